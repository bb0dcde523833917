"""Learn from graphs whose nodes carry labels and real vectors, with exact graph kernels.

Names are imported on first use, so that ``import treegram`` and the command start quickly.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as in typing, whose import would take longer than everything else
if TYPE_CHECKING:
    from typing import Any

    from treegram import exceptions as exceptions
    from treegram.datasets import *
    from treegram.datasets.parquet import *
    from treegram.explanations.contributions import *
    from treegram.explanations.maps import *
    from treegram.explanations.plots import *
    from treegram.graphs import Graphs as Graphs
    from treegram.graphs.molecules import *
    from treegram.graphs.proteins import *
    from treegram.graphs.statistics import *
    from treegram.graphs.transforms import *
    from treegram.kernels import *
    from treegram.kernels.distances import *
    from treegram.kernels.gram_store import *
    from treegram.models import *
    from treegram.models.saving import *

# Where each public name lives; ``treegram.NAME`` is its only public path.
_HOMES = {
    "graphs.molecules": ("MoleculeGraphs", "invalid_molecules", "load_molecules", "scaffold_groups"),
    "graphs.proteins": ("ProteinGraphs",),
    "datasets.parquet": ("iter_parquet", "load_parquet", "save_parquet"),
    "datasets": (
        "iter_tu",
        "load_digits_graphs",
        "load_tu",
        "make_molecules",
        "make_motifs",
        "make_synthetic",
        "save_tu",
        "summarize_graphs",
    ),
    "exceptions": (),  # `treegram.exceptions.ParameterError`, as in scikit-learn
    "explanations.contributions": ("Explanation", "explain"),
    "graphs": ("Graphs",),
    "graphs.statistics": ("GraphStatistics",),
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
        "WWL",
        "AttributedWalk",
        "FeatureMap",
        "GraphHopper",
        "Graphlets",
        "KernelSum",
        "Nystroem",
        "ODDCLApprox",
        "OrderedTrees",
        "RandomWalk",
        "ShortestPath",
        "StatisticsKernel",
    ),
    "models.saving": ("load_model", "save_model"),
    "explanations.maps": ("plot_map",),
    "explanations.plots": (
        "plot_explanation",
        "plot_gram",
        "plot_graph",
        "plot_tree",
    ),
    "graphs.transforms": (
        "BinEdgeAttributes",
        "CentroidDistance",
        "DropAttributes",
        "NeighborMeans",
        "ScaleAttributes",
        "SelectLabels",
    ),
    "models": ("GraphClassifier", "GraphGP", "GraphRegressor", "GraphRidge", "GraphSVC"),
    "kernels.distances": ("KernelDistances", "similar_graphs"),
    "kernels.gram_store": ("gram_to_zarr",),
}

__all__ = sorted(name for names in _HOMES.values() for name in names)
__version__ = "0.1.0"


if not TYPE_CHECKING:  # to type checkers, a module with this function has every name

    def __getattr__(name: str) -> Any:
        for module, names in _HOMES.items():
            if name in names:
                value = getattr(import_module(f"treegram.{module}"), name)
                globals()[name] = value
                return value
        if name in _HOMES:  # treegram.kernels works without an import of its own
            return import_module(f"treegram.{name}")
        raise AttributeError(f"module 'treegram' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"TYPE_CHECKING", "annotations", "import_module"})
