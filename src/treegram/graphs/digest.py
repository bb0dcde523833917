"""Identify graphs by digests: equal data have equal digests, and any change of any field changes them.

Collections are equal in the sense of ``==``: the order in which edges were listed, the types of the arrays that the numbers came
in, and values of labels that no node has do not matter. Only 0.0 and -0.0 are equal and have different digests.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from hashlib import blake2b, sha256
from itertools import pairwise

import numpy as np

from treegram._core.types import Array, Ints
from treegram.graphs.check import COLUMN_NAMES, ROWS, LabelValues, plain_label
from treegram.graphs.collection import Graphs

# Stores of results keep digests. The first stores wrote "None" for these fields where they were missing, and hashed fields in
# the order of the class: neither may change. A newer field adds nothing where it is missing.
_ALWAYS_NAMED = {"labels", "attributes", "edge_labels", "targets", "edge_attributes"}
_LABEL_VALUES = {"labels": "label_values", "edge_labels": "edge_label_values"}


def digest_graphs(graphs: Graphs, leave_out: Collection[str] = ()) -> str:
    """Return the SHA-256 of all fields of a collection: structure, labels, vectors, targets and names.

    Parameters
    ----------
    graphs : Graphs
        The collection.
    leave_out : collection of str, default=()
        Optional fields that do not count, such as ``("targets", "graph_names")``.

    Returns
    -------
    str
        Hexadecimal digits, the same in every process and on every computer.
    """
    content = {field.name: getattr(graphs, field.name) for field in fields(graphs)} | dict.fromkeys(leave_out)
    for name, values in _LABEL_VALUES.items():
        content[name], content[values] = _drop_unused(content[name], getattr(graphs, values))
    digest = sha256()
    for name, value in content.items():
        if isinstance(value, np.ndarray):
            array = _plain_array(value)
            digest.update(f"{name} {array.dtype.str} {value.shape}".encode())
            digest.update(array.tobytes())
        elif value is not None or name in _ALWAYS_NAMED:
            digest.update(f"{name} {value}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def digest_each(graphs: Graphs, leave_out: Collection[str] = ()) -> list[str]:
    """Return the digest of each graph over all fields: equal graphs have equal digests, whatever collection they are in.

    Parameters
    ----------
    graphs : Graphs
        The collection.
    leave_out : collection of str, default=()
        Optional fields that do not count, such as ``("targets", "graph_names")``.

    Returns
    -------
    list of str
        Hexadecimal digits, in the order of the graphs. They are not those of :func:`digest_graphs`.
    """
    kept = {
        group: {
            name: _rows_to_hash(graphs, name)
            for name in names
            if name not in leave_out and getattr(graphs, name) is not None
        }
        for group, names in ROWS.items()
    }
    columns = [(name, getattr(graphs, name)) for name in COLUMN_NAMES if name not in leave_out]
    shapes = [(name, rows.dtype.str, rows.shape[1:]) for group in kept.values() for name, rows in group.items()]
    head = repr((graphs.directed, shapes, columns)).encode()
    degrees, digests = graphs.degrees, []
    for i, (first, last) in enumerate(pairwise(graphs.offsets.tolist())):
        nodes, arcs = slice(first, last), slice(graphs.indptr[first], graphs.indptr[last])
        parts = [np.array([last - first]), degrees[nodes], graphs.indices[arcs] - first]
        parts += [rows[nodes] for rows in kept["nodes"].values()]
        parts += [rows[arcs] for rows in kept["arcs"].values()]
        parts += [rows[i : i + 1] for rows in kept["graphs"].values()]
        digests.append(blake2b(head + b"".join(part.tobytes() for part in parts), digest_size=16).hexdigest())
    return digests


def _drop_unused(codes: Ints | None, values: LabelValues) -> tuple[Ints | None, LabelValues]:
    """Return the codes of labels, and their values, as if there had never been values that no node has."""
    if codes is None:
        return None, ()
    used = np.unique(codes)
    if len(used) == len(values):
        return codes, values
    return np.searchsorted(used, codes), tuple(values[code] for code in used.tolist())


def _rows_to_hash(graphs: Graphs, name: str) -> Array:
    """Return an array whose rows have equal bytes if and only if those of a field are equal."""
    array: Array = getattr(graphs, name)
    if name not in _LABEL_VALUES:
        return _plain_array(array)
    return _plain_array(np.fromiter(getattr(graphs, _LABEL_VALUES[name]), dtype=object))[array]


def _plain_array(array: Array) -> Array:
    """Return whole numbers and floats with 64 bits, and anything else as one digest of 16 bytes per value."""
    if array.dtype.kind == "f":
        return np.ascontiguousarray(array, dtype="<f8")
    if array.dtype.kind in "iub" and (array.dtype != np.uint64 or (array < 2**63).all()):
        return np.ascontiguousarray(array, dtype="<i8")
    texts = [repr(plain_label(value)).encode("utf-8", "surrogatepass") for value in array.ravel().tolist()]
    digests = b"".join(blake2b(text, digest_size=16).digest() for text in texts)
    return np.frombuffer(digests, dtype="V16").reshape(array.shape)
