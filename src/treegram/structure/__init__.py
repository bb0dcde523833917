"""Structure: turn graphs into sparse features of nodes, one module per idea, each with its compiled loops below.

Features are rows of counts under 64-bit codes that depend on labels and edges alone, so they mean the same in any collection.
Attribute vectors, and sums over pairs of nodes, belong to ``treegram.pairsum``.
"""
