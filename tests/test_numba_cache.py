"""The cache of compiled code: whatever is wrong with it, calls give their results."""

import os
import subprocess
import sys

import pytest

MODULE = """
from treegram._numba import jit

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
