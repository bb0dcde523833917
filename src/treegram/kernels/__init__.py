"""Kernels: scikit-learn estimators from graphs to Gram matrices and rows of features, one idea per file.

``base`` has what all kernels share, ``explicit`` and ``node_pairs`` the two families, ``grid`` the computation of many parameters at
once, ``registry`` the kernels by name, and ``feature_map`` and ``nystroem`` rows of features. The features of nodes come from
``treegram.structure``, and the sums over pairs of graphs from ``treegram.pairsum``.
"""

from treegram._core.params import FLAG as FLAG
from treegram._core.params import Number as Number
from treegram._core.params import Whole as Whole
from treegram._core.params import Words as Words
from treegram._core.params import parameters as parameters
from treegram.kernels.base import GraphKernel as GraphKernel
from treegram.kernels.csm import CSM
from treegram.kernels.explicit import ExplicitKernel as ExplicitKernel
from treegram.kernels.feature_map import FeatureMap
from treegram.kernels.gik import GIK, NSPDK
from treegram.kernels.graphhopper import GraphHopper
from treegram.kernels.graphlets import Graphlets
from treegram.kernels.grid import Grid as Grid
from treegram.kernels.kernel_sum import KernelSum
from treegram.kernels.node_pairs import NodePairKernel as NodePairKernel
from treegram.kernels.nystroem import Nystroem
from treegram.kernels.oddcl import ODDCL, ODDST
from treegram.kernels.oddcl_approx import ODDCLApprox
from treegram.kernels.ordered_trees import OrderedTrees
from treegram.kernels.p2k import P2K
from treegram.kernels.random_walk import AttributedWalk, RandomWalk
from treegram.kernels.registry import KERNELS as KERNELS
from treegram.kernels.registry import register_kernel as register_kernel
from treegram.kernels.shortest_path import ShortestPath
from treegram.kernels.statistics_kernel import StatisticsKernel
from treegram.kernels.wl import WL, WLCL, WLOA
from treegram.kernels.wwl import WWL
from treegram.structure.features import Features as Features
from treegram.structure.features import gather as gather

# The estimators; the other names above are for your own kernels.
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
    "OrderedTrees",
    "RandomWalk",
    "ShortestPath",
    "StatisticsKernel",
]

for _name in sorted(__all__, key=str.lower):
    if getattr(globals()[_name], "name", ""):
        register_kernel(globals()[_name])
