"""Tests of compiled functions: cached on disk, linked into compiled callers, and safe to call from Python."""

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
BITS = """
from treegram._core.jit import as_bits, as_float

@jit
def there_and_back(x):
    return as_float(as_bits(x))
"""
CALL = """
from loop import *
from loop import _add, _square, _twice
print(total(np.arange(3.0)), _add(2, 1), _square(3), _twice(0.5), fresh(2).sum())
from treegram._core.jit import compilations
print(compilations.count, sum(total.stats.cache_hits.values()))
"""
NO_LINKING = "import numba.core.codegen; del numba.core.codegen.JITCodeLibrary\n"
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
    assert call() == (EXPECTED, 5, 0)
    assert call() == (EXPECTED, 0, 1)


@pytest.mark.parametrize("before", [NO_LINKING, NO_FOLDER], ids=["another numba", "no folder for a cache"])
def test_results_are_the_same_without_linking_or_cache(call, before):
    assert call(before)[0] == EXPECTED


@pytest.fixture
def compiler(request):
    """Probe numba again for this test and for the next ones."""
    jit_module._linking_compiler.cache_clear()
    yield
    jit_module._linking_compiler.cache_clear()


def results_in_this_process():
    """Return results of functions without a file, which are not cached and therefore compiled now."""
    loop = {}
    exec(MODULE + BITS, loop)
    return [loop["total"](np.arange(3.0)), loop["_add"](2, 1), loop["_square"](3), loop["there_and_back"](0.5)]


def test_functions_are_linked_into_their_callers(compiler):
    assert results_in_this_process() == [11.0, 5, 9, 0.5]
    assert jit_module._linking_compiler() is not None


def test_unsupported_numba_falls_back_to_plain_njit(compiler, monkeypatch):
    def fail():
        raise ImportError("renamed")

    monkeypatch.setattr(jit_module, "_make_linking_compiler", fail)
    assert results_in_this_process() == [11.0, 5, 9, 0.5]
    assert jit_module._linking_compiler() is None


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
