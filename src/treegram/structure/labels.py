"""Labels: 64-bit hashes that depend on their values alone, and names to show."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Sequence
from hashlib import blake2b

import numpy as np

from treegram._core.errors import InvalidGraphError
from treegram._core.types import Hashes, Ints
from treegram.graphs import Graphs
from treegram.structure.hashing import GOLDEN

__all__ = ["arc_hashes", "edge_name", "hash_label", "node_hashes", "node_name"]


def hash_label(value: Hashable) -> int:
    """Return 64 bits that depend on the label's value alone: never on the process, the machine or the data set."""
    return int.from_bytes(blake2b(_spell(value).encode(), digest_size=8, person=b"treegram").digest(), "little")


def _spell(value: Hashable) -> str:
    """Return a text that differs for different labels, types included."""
    if isinstance(value, tuple):
        return f"({','.join(_spell(item) for item in value)})"
    return f"{type(value).__name__}:{value!r}"


def node_hashes(graphs: Graphs, missing_labels: str) -> Hashes:
    """Return the hash of each node's label; without labels, of its degree or of one constant. Shape (n_nodes,), uint64."""
    if graphs.labels is not None:
        return _hashes(graphs.labels, graphs.label_values)
    codes = graphs.degrees if missing_labels == "degree" else np.zeros(graphs.n_nodes, np.int64)
    return _hashes(codes, range(int(codes.max(initial=0)) + 1))


def _hashes(codes: Ints, values: Sequence[Hashable]) -> Hashes:
    """Return the hash of each code's value; values that no code refers to, as in a slice of a collection, cost nothing."""
    is_used = np.zeros(len(values), bool)
    is_used[codes] = True
    hashes = np.zeros(len(values), np.uint64)
    for code in np.flatnonzero(is_used).tolist():
        hashes[code] = hash_label(values[code])
    return hashes[codes]


def arc_hashes(graphs: Graphs, *, use_edge_labels: bool) -> Hashes:
    """Return the hash of each arc's label, or one constant for all. Shape (n_arcs,), uint64."""
    if not use_edge_labels or not len(graphs.indices):
        return np.full(len(graphs.indices), GOLDEN)
    if graphs.edge_labels is None:
        raise InvalidGraphError("use_edge_labels=True, but the graphs have no edge labels.")
    return _hashes(graphs.edge_labels, graphs.edge_label_values)


def node_name(graphs: Graphs, node: int, missing_labels: str) -> str:
    """Return a node's label as text; without labels, its degree or 0."""
    if graphs.labels is not None:
        return _show(graphs.label_values[graphs.labels[node]])
    return str(graphs.degrees[node] if missing_labels == "degree" else 0)


def edge_name(graphs: Graphs, arc: int) -> str:
    """Return an arc's label as text."""
    assert graphs.edge_labels is not None  # arc_hashes has checked it
    return _show(graphs.edge_label_values[graphs.edge_labels[arc]])


def _show(value: Hashable) -> str:
    """Return a label as text; in quotes where it could be mistaken for a number or for the brackets of a tree."""
    is_plain = not isinstance(value, str) or re.fullmatch(r"[^\W\d][\w .+*/#@-]*", value)
    return str(value) if is_plain else json.dumps(value, ensure_ascii=False)
