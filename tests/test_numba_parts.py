"""Compiled functions as parts of those that call them."""

import os
import subprocess
import sys

import pytest

MODULE = """
import numpy as np
from treegram._numba import compilations, jit

@jit
def _first(values, i):
    return values[i]

@jit
def add(values):
    total = 0.0
    for i in range(len(values)):
        total += _first(values, i)
    return total

@jit
def add_twice(values, out):
    row = out[0]
    row[0] = 2 * add(values)
    return row[0]

@jit(allocates=True)
def add_copy(values):
    return add(values.copy())
"""
CALL = """
from loop import *
values = np.arange(4.0)
print(add_twice(values, np.zeros((2, 1))), add(values), add_copy(values))
print(compilations.count > 0, sum(sum(loop.stats.cache_hits.values()) for loop in (add_twice, add, add_copy)))
"""


# What compiled loops do with arrays and bundles, and what Python makes of the same functions.
SAME = """
import numba, sys
numba.version_info = numba.version_info._replace(short=tuple(map(int, sys.argv[1].split("."))))
from collections import namedtuple
import numpy as np
from treegram import _numba_parts
from treegram._numba import jit

Bundle = namedtuple("Bundle", "numbers flags table pair")

@jit
def items(values, places, out):
    for i in range(len(places)):
        out[i] = values[places[i]]
    out[0] += values[-1] * values[np.uint64(1)]
    out[-2] = values[0]

@jit
def tables(table, square, out):
    for i in range(table.shape[0]):
        for j in range(np.uint64(table.shape[1])):
            out[i, j] = table[i, j] + square[-1 - i, 0, np.uint64(j)]
    out[-1, -1] = 7
    row = table[1]
    out[0, 0] += row[-1]

@jit
def bundles(bundle, chosen, out):
    n = 0
    while n < len(bundle.flags):
        if bundle.flags[n] or bundle.pair[1] > 100:
            out[n] = bundle.numbers[n] * bundle.pair[0] + bundle.table[n, 1]
        else:
            numbers, flags, table, (first, second) = bundle
            out[n] = first + second + numbers[n]
            flags[n] = True
        n += 1
    return chosen[1]

@jit
def choices(values, out):
    for i in range(len(values) - 1):
        out[i] = max(values[i], values[i + 1], -1) - min(2 * i, values[i], 3.5)
    return max(1, 2.5) + min(len(values), 3)

@jit(allocates=True)
def copies(values, out):
    held = values.copy()
    for _ in range(3):
        held = held[::-1] + np.ones(len(held))
    pair = (held, values)
    for i in range(len(out)):
        out[i] = pair[0][i] - pair[1][-1]

rng = np.random.default_rng(0)
v, t, s = rng.normal(size=9), rng.normal(size=(3, 4)), rng.normal(size=(5, 3, 8))
nan = np.array([1.0, np.nan, 3.0, -2.0, np.nan, -0.0, 0.0])
places, few = np.array([3, -1, 0]), np.array([1, 2], np.uint8)
flags = np.array([True, False, True])
cases = [
    (items, (v, places), 4), (items, (v[::2], few), 4), (items, (v.astype(np.float32), places), 4),
    (items, (np.arange(9), places), 4), (tables, (t, s), (3, 4)), (tables, (t[:, ::-1], s[:, :, ::2]), (3, 4)),
    (tables, (np.asfortranarray(t), np.asfortranarray(s[:4])), (3, 4)),
    (bundles, (Bundle(v, flags, t, (2.5, 3)), (4, 5)), 9), (bundles, (Bundle(np.arange(5), flags, t, (2, 3)), (0.5, 5)), 9),
    (choices, (v,), 9), (choices, (nan,), 9), (choices, (np.arange(7),), 9), (copies, (v,), 9), (copies, (v[::2],), 5),
]
for loop, given, shape in cases:
    results = []
    for function in (loop, loop.py_func):
        flags[:] = True, False, True
        out = np.zeros(shape)
        results.append((function(*given, out), out, flags.copy()))
    (a, b, c), (d, e, f) = results
    assert a == d, (loop, a, d)
    np.testing.assert_array_equal(b.view(np.int64), e.view(np.int64), str(loop))
    np.testing.assert_array_equal(c, f)
print(_numba_parts._IS_KNOWN, _numba_parts._IS_QUICK, sum(loop.nopython_signatures != [] for loop, _, _ in cases))
"""


@pytest.mark.parametrize("version", ["0.68", "0.61", "0.60"])
def test_compiled_loops_do_what_python_does_with_the_quick_compiler_and_without(tmp_path, version):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
    (tmp_path / "same.py").write_text(SAME)
    command = [sys.executable, str(tmp_path / "same.py"), version]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == [str(version >= "0.61"), str(version == "0.68"), "14"]


def test_a_function_works_on_its_own_and_as_a_part_and_is_loaded_from_disk(tmp_path):
    (tmp_path / "loop.py").write_text(MODULE)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_DISABLE_JIT": "0"}
    for is_compiled, n_loaded in ((True, 0), (False, 3)):
        done = subprocess.run(
            [sys.executable, "-c", CALL], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.split() == ["12.0", "6.0", "6.0", str(is_compiled), str(n_loaded)]
    kept = {path.name.partition("-")[0] for path in (tmp_path / "cache").rglob("*.nbi")}
    assert kept == {"loop.add", "loop.add_twice", "loop.add_copy"}  # a private function is in others alone
