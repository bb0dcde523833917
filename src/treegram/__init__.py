"""Exact, fast kernels for graphs whose nodes carry labels and real vectors."""

from treegram.errors import DatasetError, InvalidGraphError, TreegramError
from treegram.graphs import Graphs

__all__ = ["DatasetError", "Graphs", "InvalidGraphError", "TreegramError"]
__version__ = "0.1.0"
