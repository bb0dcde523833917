"""Exact, fast kernels for graphs whose nodes carry labels and real vectors."""

from treegram.datasets import load_digits_graphs, load_tu, make_synthetic, save_tu
from treegram.errors import DatasetError, InvalidGraphError, TreegramError
from treegram.graphs import Graphs
from treegram.kernels import ODDCL, ODDST

__all__ = [
    "ODDCL",
    "ODDST",
    "DatasetError",
    "Graphs",
    "InvalidGraphError",
    "TreegramError",
    "load_digits_graphs",
    "load_tu",
    "make_synthetic",
    "save_tu",
]
__version__ = "0.1.0"
