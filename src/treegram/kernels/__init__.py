"""Kernels: scikit-learn estimators from graphs to Gram matrices and rows of features, one idea per file.

``base`` has what all kernels share, ``explicit`` and ``node_pairs`` the two families, ``grid`` the computation of many parameters at
once. The features of nodes come from ``treegram.structure``, and the sums over pairs of graphs from ``treegram.pairsum``.
"""

from treegram.kernels.base import register_kernel as register_kernel
from treegram.kernels.csm import CSM
from treegram.kernels.explicit import FeatureMap
from treegram.kernels.gik import GIK, NSPDK
from treegram.kernels.graphhopper import GraphHopper
from treegram.kernels.graphlets import Graphlets
from treegram.kernels.kernel_sum import KernelSum
from treegram.kernels.nystroem import Nystroem
from treegram.kernels.oddcl import ODDCL, ODDST
from treegram.kernels.oddcl_approx import ODDCLApprox, ODDCLFeatures
from treegram.kernels.ordered_trees import OrderedTrees
from treegram.kernels.p2k import P2K
from treegram.kernels.random_walk import AttributedWalk, RandomWalk
from treegram.kernels.shortest_path import ShortestPath
from treegram.kernels.statistics_kernel import StatisticsKernel
from treegram.kernels.wl import WL, WLCL, WLOA
from treegram.kernels.wwl import WWL

__all__ = [
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
    "ODDCLFeatures",
    "OrderedTrees",
    "RandomWalk",
    "ShortestPath",
    "StatisticsKernel",
]

for _name in sorted(__all__, key=str.lower):
    if getattr(_kind := globals()[_name], "name", ""):
        register_kernel(_kind)
