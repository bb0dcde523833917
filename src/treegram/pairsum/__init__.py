"""Pair sums: features and vectors of nodes to one sum over pairs of nodes per pair of graphs.

Every kernel of treegram is such a sum, or an inner product of explicit vectors; one module per kind of sum, each with its compiled
loops below. Graphs and their features come from ``treegram.structure``; parameters, normalization and grids belong to
``treegram.kernels``.
"""
