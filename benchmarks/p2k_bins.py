"""Measure how much attributes contribute to the Gram matrix of P2K: its correlation with P2K without attributes.

``python benchmarks/p2k_bins.py [DATA ...]`` prints one row per data set; 1 means that the vectors change nothing.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from treegram import P2K, DropAttributes, load_tu

BINS: dict[str, dict[str, Any]] = {
    "gmm, width 1": {},
    'gmm, "scale"': {"attribute_width": "scale"},
    "hash, width 1": {"mode": "hash"},
}
DATA = ("COX2", "BZR", "DHFR", "ENZYMES", "PROTEINS", "SYNTHETICnew")


def pair_values(graphs: Any, **parameters: Any) -> Any:
    """Return the kernel of each pair of different graphs."""
    K = P2K(n_iterations=2, **parameters).fit_transform(graphs)
    return K[np.triu_indices(len(K), k=1)]


if __name__ == "__main__":
    print("| data set |", " | ".join(BINS), "|")
    print("| --- |" + " --- |" * len(BINS))
    for name in sys.argv[1:] or DATA:
        graphs, _ = load_tu(name)
        without = pair_values(DropAttributes().fit_transform(graphs))
        found = (np.corrcoef(pair_values(graphs, **bins), without)[0, 1] for bins in BINS.values())
        print(f"| {name} |", " | ".join(f"{one:.3f}" for one in found), "|")
