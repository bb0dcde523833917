"""scikit-learn estimators, one published kernel per file."""

from treegram.kernels.gik import GIK
from treegram.kernels.graphhopper import GraphHopper
from treegram.kernels.nspdk import NSPDK
from treegram.kernels.oddcl import ODDCL
from treegram.kernels.oddst import ODDST
from treegram.kernels.shortest_path import ShortestPath
from treegram.kernels.wl import WL, WLCL

__all__ = ["GIK", "NSPDK", "ODDCL", "ODDST", "WL", "WLCL", "GraphHopper", "ShortestPath"]
