"""Exact, fast kernels for graphs whose nodes carry labels and real vectors.

Names are imported when they are first used, so that ``import treegram`` and the command start at once.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as typing has it, whose import would take longer than all the rest
if TYPE_CHECKING:
    from typing import Any

    from treegram.convert.molecules import *
    from treegram.convert.parquet import *
    from treegram.datasets import *
    from treegram.edges import *
    from treegram.errors import *
    from treegram.explanation_page import *
    from treegram.explanations import *
    from treegram.graphs import Graphs as Graphs
    from treegram.kernels import *
    from treegram.persistence import *
    from treegram.plotting import *
    from treegram.preprocessing import *
    from treegram.scale import *
    from treegram.selection import *
    from treegram.streaming import *

# Where each public name lives; ``treegram.NAME`` is its one public path.
_HOMES = {
    "convert.molecules": ("MoleculeGraphs", "bad_molecules", "load_molecules", "scaffold_groups"),
    "convert.parquet": ("ParquetChunks", "load_parquet", "save_parquet"),
    "datasets": (
        "TUChunks",
        "describe",
        "load_digits_graphs",
        "load_tu",
        "make_molecules",
        "make_motifs",
        "make_synthetic",
        "save_tu",
    ),
    "edges": ("DiscretiseEdges",),
    "errors": (
        "ClusterError",
        "DatasetError",
        "InvalidGraphError",
        "ModelFileError",
        "ParameterError",
        "StoreError",
        "StudyError",
        "TreegramError",
    ),
    "explanation_page": ("write_explanation_page",),
    "explanations": ("Explanation", "explain"),
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
        "WLOA",
        "FeatureMap",
        "GraphHopper",
        "KernelSum",
        "Landmarks",
        "ODDCLApprox",
        "ODDCLFeatures",
        "OrderedTrees",
        "ShortestPath",
    ),
    "persistence": ("load_model", "save_model"),
    "plotting": ("plot_confusion", "plot_embedding", "plot_explanation", "plot_gram", "plot_graph", "plot_tree"),
    "preprocessing": ("CentroidDistance", "DropAttributes", "NeighbourMeans", "ScaleAttributes"),
    "selection": ("GraphGP", "GraphRidge", "GraphSVC"),
    "scale": ("Shards", "features_to_shards", "gram_to_zarr"),
    "streaming": ("embed_chunks", "fit_chunks"),
}

__all__ = sorted(name for names in _HOMES.values() for name in names)
__version__ = "0.1.0"


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
