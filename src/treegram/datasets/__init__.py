"""Data sets: the TU text format and Parquet files, summaries, and generated graphs.

The class ``Graphs`` is in ``treegram.graphs``. Downloads go through ``fetch``.
"""

from treegram.datasets.generators import load_digits_graphs, make_molecules, make_motifs, make_synthetic
from treegram.datasets.summarize import summarize_graphs
from treegram.datasets.tu import iter_tu, load_tu, save_tu

__all__ = [
    "iter_tu",
    "load_digits_graphs",
    "load_tu",
    "make_molecules",
    "make_motifs",
    "make_synthetic",
    "save_tu",
    "summarize_graphs",
]
