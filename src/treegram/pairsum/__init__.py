"""Pair sums: turn features and vectors of nodes into one sum over pairs of nodes per pair of graphs.

Every kernel in treegram is such a sum, or an inner product of explicit vectors; one module per kind of sum, each with its compiled
loops below. Graphs and their features come from ``treegram.structure``; parameters, normalization and grids belong to
``treegram.kernels``.
"""
