"""Compiled functions as parts of those that call them."""

import os
import subprocess
import sys

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
