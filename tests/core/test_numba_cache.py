"""The cache of compiled code: whatever is wrong with it, calls give their results."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from treegram._core import jit as _numba
from treegram.structure.features import number_sorted

MODULE = """
from treegram._core.jit import jit

@jit
def twice(x):
    return 2 * x
"""
CALL = "from loop import twice; print(twice(2), twice(0.5), sum(twice.stats.cache_hits.values()))"
FULL_DISK = """
from numba.core.caching import IndexDataCacheFile
def full(*args):
    raise OSError(28, "No space left on device")
IndexDataCacheFile._open_for_write = full
"""
NO_NEW_FILES = """
import tempfile
from numba.core.caching import IndexDataCacheFile
def refuse(*args, **options):
    raise PermissionError(13, "Permission denied")
tempfile.TemporaryFile = IndexDataCacheFile._open_for_write = refuse
"""
NO_FOLDER = "from numba.core import caching; caching.CompileResultCacheImpl._locator_classes = []; "


@pytest.fixture
def call(tmp_path):
    """Run a program in a folder with a compiled function; gives its two results and how many came from the cache."""
    (tmp_path / "loop.py").write_text(MODULE)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_DISABLE_JIT": "0"}

    def run(before=""):
        command = [sys.executable, "-c", before + CALL]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split()

    return run


def cache_files(folder, ending):
    found = list((folder / "cache").rglob(f"*.{ending}"))
    assert found
    return found


def test_a_damaged_cache_is_made_anew(call, tmp_path):
    assert call() == ["4", "1.0", "0"]
    for ending in ("nbi", "nbc"):
        for length in (0, 100):
            for path in cache_files(tmp_path, ending):
                path.write_bytes(path.read_bytes()[:length])
            assert call() == ["4", "1.0", "0"]
    assert call() == ["4", "1.0", "2"]


def test_a_full_disk_costs_the_cache_and_nothing_else(call, tmp_path):
    assert call(FULL_DISK) == ["4", "1.0", "0"]
    assert call() == ["4", "1.0", "0"]
    for path in cache_files(tmp_path, "nbi"):
        path.write_bytes(b"")
    assert call(FULL_DISK) == ["4", "1.0", "0"]


def test_no_folder_for_a_cache_is_no_error(call):
    assert call(NO_FOLDER) == ["4", "1.0", "0"]


def test_a_cache_that_cannot_be_written_to_is_read(call, tmp_path):
    assert call() == ["4", "1.0", "0"]
    # Permissions do not bind the superuser, who runs the tests in containers: the folder refuses new files in another way.
    assert call(NO_NEW_FILES) == ["4", "1.0", "2"]
    for path in cache_files(tmp_path, "nbi"):
        path.unlink()
    assert call(NO_NEW_FILES) == ["4", "1.0", "0"]


def test_processes_that_compile_at_once_share_a_cache(tmp_path):
    (tmp_path / "loop.py").write_text(MODULE)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_DISABLE_JIT": "0"}
    command = [sys.executable, "-c", CALL]
    processes = [
        subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    for process in processes:
        out, complaints = process.communicate()
        assert (process.returncode, complaints, out.split()[:2]) == (0, b"", [b"4", b"1.0"])
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["4", "1.0", "2"]


TELL = """
import gc, io, sys
class Pretender(io.StringIO):
    def isatty(self):
        return IS_TERMINAL
real, sys.stderr = sys.stderr, Pretender()
import numpy as np
from treegram.structure.features import number_sorted
number_sorted(np.zeros(3, np.uint64), np.arange(3), np.zeros(3, np.int64))
from treegram._core.jit import compilations
assert compilations.count == 1 and gc.isenabled()
real.write(sys.stderr.getvalue().replace("\\r", "|"))
sys.stderr = real
"""


def test_a_notebook_is_told_once_of_each_part(monkeypatch, capsys):
    monkeypatch.setattr(_numba, "is_notebook", lambda: True)
    listener = _numba._Compilations()
    event = SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=number_sorted.py_func)})
    for _ in range(2):
        listener.on_start(event)
        listener.on_end(event)
    told = "treegram: compiling the loops over graphs; this usually takes 2 s, once per installation ...\n"
    assert capsys.readouterr() == ("", told)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_compiling_is_not_told_where_nobody_looks(tmp_path, is_terminal):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_DISABLE_JIT": "0"}
    command = [sys.executable, "-c", TELL.replace("IS_TERMINAL", str(is_terminal))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    told = done.stderr.split("|")
    if not is_terminal:
        assert told == [""]
        return
    assert told[1].startswith("treegram: compiling the loops over graphs; this usually takes 2 s")
    assert told[2:] == [" " * len(told[1]), ""]  # wiped; the pretender is gone when the process ends and sums up


INTERRUPTED = """
import os, signal, sys
asked = []
def ask():
    asked.append(1)
    if len(asked) == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGINT)
DANGER
from loop import twice
try:
    twice(2), twice(0.5)
except KeyboardInterrupt:
    print("interrupted")
print(twice(2), twice(0.5), len(asked))
"""
LLVM_ASKS = """
from llvmlite.binding.executionengine import ExecutionEngine
find = ExecutionEngine._find_module_ptr
def interrupted(engine, pointer):
    ask()
    return find(engine, pointer)
ExecutionEngine._find_module_ptr = interrupted
"""
NUMBA_LEARNS = """
from numba.core import utils
stream = utils.stream_list
def interrupted(known):
    for some in stream(known):
        ask()
        yield some
utils.stream_list = interrupted
"""


@pytest.mark.parametrize("is_cached", [False, True])
@pytest.mark.parametrize("danger", [LLVM_ASKS, NUMBA_LEARNS], ids=["LLVM asks", "numba learns"])
def test_an_interrupt_while_code_is_made_or_loaded_comes_afterwards(call, tmp_path, danger, is_cached):
    """LLVM asks Python for code, and a KeyboardInterrupt in that question would leave a function without any: a crash.

    numba learns of its own functions from generators, and one that is interrupted is at its end: an error in every later call.
    """
    call()

    def run(moment):
        cache = str(tmp_path / ("cache" if is_cached else f"cache at {moment}"))
        command = [sys.executable, "-c", INTERRUPTED.replace("DANGER", danger), str(moment)]
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "NUMBA_DISABLE_JIT": "0"}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        *said, results = done.stdout.splitlines()
        *results, n_asked = results.split()
        assert results == ["4", "1.0"]
        return said, int(n_asked)

    said, n_asked = run(0)
    assert said == []
    assert n_asked >= 2
    for moment in {1, 2, n_asked // 2, n_asked - 1, n_asked}:
        assert run(moment)[0] == ["interrupted"]
