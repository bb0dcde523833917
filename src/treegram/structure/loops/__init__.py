"""Compiled: which trees, colors, balls and paths each node has, on flat arrays."""
