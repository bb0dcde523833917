"""Data sets: the TU text format, read whole or in chunks, fetched and written; what graphs hold; generated graphs; graphs from bundled images."""

from treegram.datasets._chunks import TUChunks
from treegram.datasets._describe import describe
from treegram.datasets._digits import load_digits_graphs
from treegram.datasets._molecules import make_molecules
from treegram.datasets._motifs import make_motifs
from treegram.datasets._save import save_tu
from treegram.datasets._synthetic import make_synthetic
from treegram.datasets._tu import load_tu

__all__ = [
    "TUChunks",
    "describe",
    "load_digits_graphs",
    "load_tu",
    "make_molecules",
    "make_motifs",
    "make_synthetic",
    "save_tu",
]
