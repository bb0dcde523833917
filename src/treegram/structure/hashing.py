"""Hash labels, mix 64-bit codes, number equal things, and keep records in hash tables.

The hash of a label depends on its value alone, never on the process, the machine or the data set, and the same holds for all
codes made from hashes.

A record is a sum under a key (row, code). Records are written graph by graph, and their hash table holds only those of the
current graph: a slot that an earlier graph filled counts as empty. Compiled loops never allocate: they stop and return how many
records must fit (see ``structure.visits``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._core.jit import inlined, jit
from treegram._core.text import label_text
from treegram._core.types import Floats, Hashes, Ints
from treegram.exceptions import InvalidGraphError
from treegram.graphs import Graphs

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)


# -------------------------------------------------------------------- labels


def hash_label(value: Hashable) -> int:
    """Return a 64-bit hash that depends on the label's value alone, never on the process, the machine or the data set."""
    return int.from_bytes(blake2b(_spell(value).encode(), digest_size=8, person=b"treegram").digest(), "little")


def _spell(value: Hashable) -> str:
    """Return text that differs for different labels, types included."""
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
    assert graphs.edge_labels is not None  # arc_hashes checked this
    return _show(graphs.edge_label_values[graphs.edge_labels[arc]])


def _show(value: Hashable) -> str:
    """Return a label as text, in quotes if it could be mistaken for a number or for the parentheses of a tree."""
    value = label_text(value) if isinstance(value, tuple) else value
    is_plain = not isinstance(value, str) or re.fullmatch(r"[^\W\d][\w .+*/#@-]*", value)
    return str(value) if is_plain else json.dumps(value, ensure_ascii=False)


# -------------------------------------------------------------------- numbers of equal things


def equal_rows(vectors: Floats, *keys: NDArray[Any]) -> tuple[Ints, Ints]:
    """Give equal rows the same number, in order of appearance; return each row's number, and the first row of each number.

    Rows are equal if their vectors are (-0.0 equals 0.0) and all their keys, which are integers.
    """
    n, d = vectors.shape
    bits = np.empty((n, d + len(keys)), np.uint64)
    np.add(vectors, 0.0, out=bits[:, :d].view(np.float64))  # -0.0 becomes 0.0: equal numbers have equal bits
    for i, key in enumerate(keys, start=d):
        bits[:, i] = key
    numbers, first = np.empty(n, np.int64), np.empty(n, np.int64)
    return numbers, first[: number_equal_rows(bits, empty_table(n), numbers, first)]


def number_codes(codes: Hashes) -> tuple[Ints, Ints]:
    """Give equal codes the same number, in ascending order; return each code's number, and the first index of each number."""
    numbers, firsts = number_pairs(codes, codes)
    order = np.argsort(codes[firsts])
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return ranks[numbers], firsts[order]


def number_pairs(first: Hashes, second: Hashes) -> tuple[Ints, Ints]:
    """Give equal pairs (first[i], second[i]) the same number, in order of appearance; also return the first index of each number."""
    numbers, firsts = np.empty(len(first), np.int64), np.empty(len(first), np.int64)
    first, second = np.ascontiguousarray(first), np.ascontiguousarray(second)  # a stride would compile the loop again
    return numbers, firsts[: number_equal_pairs(first, second, empty_table(len(first)), numbers, firsts)]


def empty_table(n_records: int) -> Ints:
    """Return an empty hash table for ``n_records`` records: a power of 2 slots, at least twice as many as records, all -1."""
    return np.full(max(1024, 1 << max(2 * n_records - 1, 1).bit_length()), -1, np.int64)


# -------------------------------------------------------------------- compiled: codes


def mix_codes(x):
    """Apply the finalizer of splitmix64: a bijection of 64 bits in which every input bit affects every output bit."""
    x = (x ^ (x >> _S30)) * _M1
    x = (x ^ (x >> _S27)) * _M2
    return x ^ (x >> _S31)


mix = inlined(mix_codes)  # of one code, in compiled loops


@inlined
def join(a, b):
    """Return the code of the pair (a, b)."""
    return mix(a + b * GOLDEN)


# -------------------------------------------------------------------- compiled: records


@inlined
def _slot(row, code, n_slots):
    return np.int64((code ^ (np.uint64(row) * GOLDEN)) & np.uint64(n_slots - 1))


@inlined
def has_room(n_records, first, rows, table):
    """Check that the arrays have room for ``n_records`` records, and the table for those from ``first`` onward."""
    return n_records <= len(rows) and 2 * (n_records - first) <= len(table)


@inlined
def find(row, code, first, used, rows, codes, table):
    """Return the index of the record (row, code) of the current graph, which starts at ``first``; ``used`` if it is new."""
    slot = _slot(row, code, len(table))
    while True:
        i = table[slot]
        if i < first:  # empty, or filled by an earlier graph
            table[slot], rows[used], codes[used] = used, row, code
            return used
        if codes[i] == code and rows[i] == row:
            return i
        slot = (slot + 1) & (len(table) - 1)


@jit
def fill_table(first, used, rows, codes, table):
    """Enter the records first .. used - 1 into an empty table."""
    for i in range(first, used):
        slot = _slot(rows[i], codes[i], len(table))
        while table[slot] >= first:
            slot = (slot + 1) & (len(table) - 1)
        table[slot] = i


# -------------------------------------------------------------------- compiled: numbering


@jit
def number_equal_pairs(first, second, table, numbers, firsts):
    """Fill ``numbers`` (int64) and ``seen``, the first index of each number, from an empty table; return how many are distinct."""
    last, n_distinct = len(table) - 1, 0
    for v in range(len(first)):
        slot = np.int64(join(second[v], first[v]) & np.uint64(last))
        while table[slot] >= 0:
            other = firsts[table[slot]]
            if first[other] == first[v] and second[other] == second[v]:
                break
            slot = (slot + 1) & last
        if table[slot] < 0:
            table[slot], firsts[n_distinct] = n_distinct, v
            n_distinct += 1
        numbers[v] = table[slot]
    return n_distinct


@jit
def number_equal_rows(rows, table, numbers, firsts):
    """Do the same for whole rows of 64-bit words, shape (n, n_words), uint64."""
    last, n_distinct = len(table) - 1, 0
    for v in range(len(rows)):
        code = np.uint64(0)
        for i in range(rows.shape[1]):
            code = (code ^ rows[v, i]) * GOLDEN
            code ^= code >> _S30
        slot = np.int64(mix(code) & np.uint64(last))
        while table[slot] >= 0 and not _is_same(v, firsts[table[slot]], rows):
            slot = (slot + 1) & last
        if table[slot] < 0:
            table[slot], firsts[n_distinct] = n_distinct, v
            n_distinct += 1
        numbers[v] = table[slot]
    return n_distinct


@inlined
def _is_same(v, w, rows):
    n_same = 0
    while n_same < rows.shape[1] and rows[v, n_same] == rows[w, n_same]:
        n_same += 1
    return n_same == rows.shape[1]
