"""Turn a collection into plain arrays and back, and identify it by a digest."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from typing import Any

import numpy as np

from treegram.graphs.collection import Graphs

__all__ = ["fields_to_graphs", "graphs_digest", "graphs_to_fields"]


def graphs_to_fields(graphs: Graphs) -> dict[str, Any]:
    """Return the arrays of a collection, without its targets."""
    content = {field.name: getattr(graphs, field.name) for field in fields(Graphs) if field.name != "targets"}
    if content["edge_attributes"] is None:
        del content["edge_attributes"]  # so that digests in result stores stay the same
    for name in ("label_values", "edge_label_values"):
        values = content[name]
        if values and all(type(value) is int and abs(value) < 2**63 for value in values):
            content[name] = np.array(values, dtype=np.int64)
    return content


def fields_to_graphs(content: Any) -> Graphs:
    """Build a collection from its arrays, which are checked."""
    known = dict(content)
    for name in ("label_values", "edge_label_values"):
        if isinstance(known[name], np.ndarray):
            known[name] = tuple(known[name].tolist())
    return Graphs(**known, targets=None)


def graphs_digest(graphs: Graphs) -> str:
    """Return the SHA-256 of a collection without its targets; it depends on nodes, edges, labels and vectors, and their order."""
    digest = hashlib.sha256()
    for name, value in graphs_to_fields(graphs).items():
        is_array = isinstance(value, np.ndarray)
        digest.update(f"{name} {value.shape if is_array else ''} ".encode())
        if is_array:
            plain = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))  # no copy on most machines
            digest.update(plain.reshape(-1).view(np.uint8).data)
        else:
            digest.update(repr(value).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
