"""Data sets: the TU text format, read whole or in chunks, fetched and written; what graphs hold; generated graphs; graphs from bundled images."""

from treegram.datasets.chunks import TUChunks
from treegram.datasets.digits import load_digits_graphs
from treegram.datasets.motifs import make_motifs
from treegram.datasets.random_molecules import make_molecules
from treegram.datasets.save import save_tu
from treegram.datasets.summarize import summarize_graphs
from treegram.datasets.synthetic import make_synthetic
from treegram.datasets.tu import load_tu

__all__ = [
    "TUChunks",
    "load_digits_graphs",
    "load_tu",
    "make_molecules",
    "make_motifs",
    "make_synthetic",
    "save_tu",
    "summarize_graphs",
]
