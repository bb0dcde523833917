"""The collection of graphs, its checks, one reader per library or file format, and transformers from graphs to graphs.

Data sets and generators are in ``treegram.datasets``; what a kernel sees of a graph is in ``treegram.structure``.
"""

from treegram.graphs.collection import Graphs, as_graphs

__all__ = ["Graphs", "as_graphs"]
