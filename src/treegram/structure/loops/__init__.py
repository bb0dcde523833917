"""Compiled: which trees, colours, balls and paths each node has, on flat arrays."""
