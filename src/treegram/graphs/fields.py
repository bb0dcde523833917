"""Turn a collection into plain arrays and back."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._core.types import Array, Ints
from treegram.exceptions import InvalidGraphError
from treegram.graphs.collection import Graphs

_NAMES = ("graph_names", "node_names")  # there may be many of these; column names are few


def graphs_to_fields(graphs: Graphs) -> dict[str, Any]:
    """Return the arrays and names of a collection, without its targets and optional fields that are None."""
    content = {
        field.name: getattr(graphs, field.name)
        for field in fields(Graphs)
        if field.name != "targets" and not (field.default is None and getattr(graphs, field.name) is None)
    }
    for name in ("label_values", "edge_label_values"):
        values = content[name]
        if values and all(type(value) is int and abs(value) < 2**63 for value in values):
            content[name] = np.array(values, dtype=np.int64)
    return content | {name: _pack(content[name]) for name in _NAMES if name in content}


def fields_to_graphs(content: Any) -> Graphs:
    """Build a collection from its arrays, which are checked."""
    plain = dict(content)
    for name in ("label_values", "edge_label_values"):
        if isinstance(plain[name], np.ndarray):
            plain[name] = tuple(plain[name].tolist())
    return Graphs(**plain | {name: _unpack(plain[name]) for name in _NAMES if name in plain}, targets=None)


def _pack(names: Array) -> tuple[Ints, NDArray[np.uint64]]:
    """Return the length of each name in bytes, and all bytes as 64-bit numbers, padded with zeros."""
    texts = [name.encode("utf-8", "surrogatepass") for name in names]
    data = b"".join(texts)
    padded = data.ljust(-len(data) % 8 + len(data), b"\0")
    return np.array([len(text) for text in texts], dtype=np.int64), np.frombuffer(padded, dtype="<u8").astype(np.uint64)


def _unpack(packed: Any) -> list[str]:
    lengths, numbers = packed
    data = numbers.astype("<u8").tobytes()
    ends = np.cumsum(lengths)
    is_valid = (lengths >= 0).all() and (lengths <= len(data)).all()  # so that the sum does not overflow
    if not is_valid or not 0 <= len(data) - int(lengths.sum()) < 8:
        raise InvalidGraphError("The lengths of names do not fit their bytes.")
    spans = [slice(end - length, end) for end, length in zip(ends, lengths, strict=True)]
    return [data[span].decode("utf-8", "surrogatepass") for span in spans]
