"""Compiled: support vector machines on a Gram matrix."""
