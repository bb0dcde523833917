"""Mixing of 64-bit codes, and hash tables on flat arrays: the one home of both.

Records are sums by (row, code), graph after graph. Their hash table knows the records of the current graph only: what an
earlier graph left there counts as empty. Compiled loops never make room: they stop and say how many records must fit.
"""

from __future__ import annotations

import numpy as np

from treegram._core.jit import inlined, jit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)


@inlined
def mix(x):
    """The finalizer of splitmix64: a bijection of 64 bits in which every input bit moves every output bit."""
    x = (x ^ (x >> _S30)) * _M1
    x = (x ^ (x >> _S27)) * _M2
    return x ^ (x >> _S31)


@inlined
def join(a, b):
    """The code of the pair (a, b)."""
    return mix(a + b * GOLDEN)


@inlined
def _slot(row, code, n_slots):
    return np.int64((code ^ (np.uint64(row) * GOLDEN)) & np.uint64(n_slots - 1))


@inlined
def has_room(n_records, first, rows, table):
    """Whether the arrays have room for so many records, and the table for those from ``first`` on."""
    return n_records <= len(rows) and 2 * (n_records - first) <= len(table)


@inlined
def find(row, code, first, used, rows, codes, table):
    """The place of the record (row, code) of the current graph, which starts at ``first``; ``used`` if it is new."""
    slot = _slot(row, code, len(table))
    while True:
        i = table[slot]
        if i < first:  # empty, or left by an earlier graph
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


@jit
def number_pairs(first, second, table, numbers, seen):
    """Number equal pairs (first[v], second[v]) equally, in order of appearance; returns how many differ.

    Fills ``numbers``, and ``seen`` with each number's first place. ``table`` is scratch: a power of two, at least twice as
    many as there are pairs.
    """
    last = len(table) - 1
    for i in range(len(table)):
        table[i] = -1
    n_distinct = 0
    for v in range(len(first)):
        slot = np.int64(join(second[v], first[v]) & np.uint64(last))
        while table[slot] >= 0:
            place = seen[table[slot]]
            if first[place] == first[v] and second[place] == second[v]:
                break
            slot = (slot + 1) & last
        if table[slot] < 0:
            table[slot] = n_distinct
            seen[n_distinct] = v
            n_distinct += 1
        numbers[v] = table[slot]
    return n_distinct


@jit
def number_rows(rows, table, numbers, seen):
    """The same for whole rows of 64-bit words."""
    last = len(table) - 1
    for i in range(len(table)):
        table[i] = -1
    n_distinct = 0
    for v in range(len(rows)):
        code = np.uint64(0)
        for i in range(rows.shape[1]):
            code = (code ^ rows[v, i]) * GOLDEN
            code ^= code >> _S30
        slot = np.int64(mix(code) & np.uint64(last))
        while table[slot] >= 0 and not _is_same(v, seen[table[slot]], rows):
            slot = (slot + 1) & last
        if table[slot] < 0:
            table[slot] = n_distinct
            seen[n_distinct] = v
            n_distinct += 1
        numbers[v] = table[slot]
    return n_distinct


@inlined
def _is_same(v, w, rows):
    n_same = 0
    while n_same < rows.shape[1] and rows[v, n_same] == rows[w, n_same]:
        n_same += 1
    return n_same == rows.shape[1]
