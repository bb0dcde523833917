"""All kernels by the names that the command line and study files use."""

from __future__ import annotations

from typing import Any

from treegram import kernels

__all__ = ["KERNELS"]

KERNELS: dict[str, type[Any]] = {
    "oddcl": kernels.ODDCL,
    "oddcl-approx": kernels.ODDCLApprox,
    "oddst": kernels.ODDST,
    "wl": kernels.WL,
    "wlcl": kernels.WLCL,
    "graphhopper": kernels.GraphHopper,
    "sp": kernels.ShortestPath,
    "nspdk": kernels.NSPDK,
    "gik": kernels.GIK,
    "p2k": kernels.P2K,
    "csm": kernels.CSM,
    "orderedtrees": kernels.OrderedTrees,
}
