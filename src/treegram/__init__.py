"""Exact, fast kernels for graphs whose nodes carry labels and real vectors.

Names are imported when they are first used, so that ``import treegram`` and the command start at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treegram.datasets import load_digits_graphs, load_tu, make_synthetic, save_tu
    from treegram.errors import DatasetError, InvalidGraphError, StoreError, StudyError, TreegramError
    from treegram.graphs import Graphs
    from treegram.kernels import (
        CSM,
        GIK,
        NSPDK,
        ODDCL,
        ODDST,
        P2K,
        WL,
        WLCL,
        GraphHopper,
        KernelSum,
        ODDCLApprox,
        ODDCLFeatures,
        OrderedTrees,
        ShortestPath,
    )
    from treegram.plotting import plot_gram
    from treegram.preprocessing import CentroidDistance, DropAttributes, NeighbourMeans, ScaleAttributes
    from treegram.selection import GraphGP, GraphRidge, GraphSVC
    from treegram.streaming import TUChunks, embed_chunks, fit_chunks

__all__ = [
    "CSM",
    "GIK",
    "NSPDK",
    "ODDCL",
    "ODDST",
    "P2K",
    "WL",
    "WLCL",
    "CentroidDistance",
    "DatasetError",
    "DropAttributes",
    "GraphGP",
    "GraphHopper",
    "GraphRidge",
    "GraphSVC",
    "Graphs",
    "InvalidGraphError",
    "KernelSum",
    "NeighbourMeans",
    "ODDCLApprox",
    "ODDCLFeatures",
    "OrderedTrees",
    "ScaleAttributes",
    "ShortestPath",
    "StoreError",
    "StudyError",
    "TUChunks",
    "TreegramError",
    "embed_chunks",
    "fit_chunks",
    "load_digits_graphs",
    "load_tu",
    "make_synthetic",
    "plot_gram",
    "save_tu",
]
__version__ = "0.1.0"

_HOMES = {
    "datasets": ("load_digits_graphs", "load_tu", "make_synthetic", "save_tu"),
    "errors": ("DatasetError", "InvalidGraphError", "StoreError", "StudyError", "TreegramError"),
    "graphs": ("Graphs",),
    "kernels": (
        "CSM",
        "GIK",
        "NSPDK",
        "ODDCL",
        "ODDST",
        "P2K",
        "WL",
        "WLCL",
        "GraphHopper",
        "KernelSum",
        "ODDCLApprox",
        "ODDCLFeatures",
        "OrderedTrees",
        "ShortestPath",
    ),
    "plotting": ("plot_gram",),
    "preprocessing": ("CentroidDistance", "DropAttributes", "NeighbourMeans", "ScaleAttributes"),
    "selection": ("GraphGP", "GraphRidge", "GraphSVC"),
    "streaming": ("TUChunks", "embed_chunks", "fit_chunks"),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"treegram.{module}"), name)
            globals()[name] = value
            return value
    if name in _HOMES:  # treegram.kernels, without importing it by name
        return import_module(f"treegram.{name}")
    raise AttributeError(f"module 'treegram' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_HOMES})
