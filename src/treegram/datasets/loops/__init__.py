"""Compiled: numbers out of text."""
