"""Compiled: sums over pairs of nodes, paths, matchings, bins and vectors, on flat arrays."""
