"""Tests of compiled functions: cached on disk, safe to call from Python, and the same without a compiler."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from treegram._core import jit as jit_module

ROOT = Path(__file__).parents[2]
MODULE = """
import numpy as np
from treegram._core.jit import contracted, inlined, jit, reordered

@jit
def _square(x):
    return x * x

@inlined
def _twice(x):
    return 2 * x

@contracted
def _add(x, y):
    return _square(x) + y

@reordered
def total(values):
    found = 0.0
    for value in values:
        found += _add(value, _twice(1.0))
    return found

@jit(allocates=True)
def fresh(n):
    return np.zeros(n)
"""
PAIR = """
from collections import namedtuple

Pair = namedtuple("Pair", "x y")

@jit
def add_pair(pair):
    return pair.x + pair.y

assert add_pair(Pair(1, 2)) == 3
"""
CALL = """
from loop import *
from loop import _add, _square, _twice
print(total(np.arange(3.0)), _add(2, 1), _square(3), _twice(0.5), fresh(2).sum())
from treegram._core.jit import compilations
print(compilations.count, sum(total.stats.cache_hits.values()))
"""
NO_INTERNALS = "import sys, numba.core; del numba.core.event; sys.modules['numba.core.event'] = None\n"
NO_FOLDER = "from numba.core import caching; caching.CompileResultCacheImpl._locator_classes = []\n"
EXPECTED = ["11.0", "5", "9", "1.0", "0.0"]


@pytest.fixture
def call(tmp_path):
    """Run a program in a folder with compiled functions; return results, number of compilations and of cache hits."""
    (tmp_path / "loop.py").write_text(MODULE)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_DISABLE_JIT": "0"}

    def run(before=""):
        command = [sys.executable, "-c", before + CALL]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        *results, n_compiled, n_hits = done.stdout.split()
        return results, int(n_compiled), int(n_hits)

    return run


def test_every_function_can_be_called_from_python_and_is_cached(call):
    assert call() == (EXPECTED, 3, 0)
    assert call() == (EXPECTED, 0, 1)


@pytest.mark.parametrize("before", [NO_INTERNALS, NO_FOLDER], ids=["another numba", "no folder for a cache"])
def test_results_are_the_same_without_internals_or_cache(call, before):
    assert call(before)[0] == EXPECTED


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:-7], lambda data: bytes(len(data))])
def test_cut_files_in_the_cache_are_compiled_again(call, tmp_path, damage):
    """As a power cut leaves them: empty, short, or full of zeros."""
    call()
    files = [path for path in tmp_path.rglob("*.nb[ic]") if "total" in path.name]
    assert {path.suffix for path in files} == {".nbi", ".nbc"}
    for path in files:
        path.write_bytes(damage(path.read_bytes()))
        assert call() == (EXPECTED, 1, 0)
        assert call() == (EXPECTED, 0, 1)


def test_renamed_class_does_not_break_an_older_cache(call, tmp_path):
    """numba reads the index of an older source, which names the type of a named tuple, before it finds out that it is older."""
    (tmp_path / "loop.py").write_text(MODULE + PAIR.replace("Pair", "Couple"))
    call()
    (tmp_path / "loop.py").write_text(MODULE + PAIR)
    assert call()[0] == EXPECTED


EVERY_KERNEL = """
import warnings
import numpy as np
from treegram import Graphs
from treegram.kernels.registry import KERNELS
warnings.simplefilter("error")
warnings.simplefilter("ignore", UserWarning)  # of labels or vectors that a kernel does not use
edges = [[(0, 1), (1, 2), (2, 0), (2, 3)], [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 3)]]
graphs = Graphs.from_edges(
    edges,
    labels=[list("CCON"), list("COO"), list("CCCC")],
    attributes=[[[0.0], [1.0], [2.0], [3.0]], [[1.5], [2.0], [0.0]], [[1.0], [1.0], [0.0], [4.0]]],
    edge_labels=[list("-=-="), list("-="), list("---")],
)
for name, kernel in sorted(KERNELS.items()):
    print(name, *kernel().fit_transform(graphs).ravel().tolist())
"""


def test_every_kernel_runs_without_the_compiler():
    results = {}
    for disabled in ("0", "1"):
        environment = {**os.environ, "NUMBA_DISABLE_JIT": disabled}
        command = [sys.executable, "-c", EVERY_KERNEL]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        results[disabled] = {line.split()[0]: [float(x) for x in line.split()[1:]] for line in done.stdout.splitlines()}
    assert len(results["0"]) >= 18
    assert results["0"].keys() == results["1"].keys()
    for name, compiled in results["0"].items():
        np.testing.assert_allclose(results["1"][name], compiled, rtol=1e-13, err_msg=name)


@pytest.mark.parametrize("is_watched", [True, False])
def test_first_compilation_is_announced_once_when_progress_is_shown(monkeypatch, capsys, is_watched):
    monkeypatch.setattr(jit_module, "is_watched", lambda: is_watched)
    compilations = jit_module._Compilations()
    function = SimpleNamespace(__module__="treegram.structure.trees")
    event = SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)})
    for _ in range(2):
        compilations.on_start(event)
        compilations.on_start(event)  # an inner function
        compilations.on_end(event)
        compilations.on_end(event)
    assert compilations.count == 2
    message = "treegram: compiling, which takes up to half a minute, once per installation ...\n"
    assert capsys.readouterr() == ("", message if is_watched else "")


def test_only_one_module_uses_numba_internals():
    """A release may rename them. This file names them only to remove them."""
    own = {ROOT / "src/treegram/_core/jit.py", Path(__file__)}
    files = [path for folder in ("src", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    found = [str(path) for path in files if path not in own and re.search(r"numba\.core\b", path.read_text("utf-8"))]
    assert found == []
    assert len(files) > 100
