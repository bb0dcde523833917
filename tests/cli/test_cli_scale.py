"""Commands with ``--workers``: what they write is the same, and no worker outlives them."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import psutil
import pytest

from treegram import Shards, make_synthetic, save_tu
from treegram.cli import main
from treegram.study.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
STUDY = """\
title = "A small study"
datasets = ["A"]
[protocol]
repeats = 20
outer_folds = 3
inner_folds = 2
seed = 7
C = [0.1, 10]
[[kernels]]
name = "trees"
kernel = "oddst"
grid = { depth = [0, 1] }
[[kernels]]
name = "colors, scaled"
kernel = "wlcl"
attributes = ["robust"]
grid = { n_iterations = [0, 1] }
"""
N_ROWS = 2 * 20 * 3


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, with a data set and a study in it, and nothing to download."""
    save_tu(make_synthetic(24, n_nodes=8, n_edges=10, permuted=(3, 1), random_state=0)[0], tmp_path / "A")
    (tmp_path / "small.toml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TREEGRAM_DATA", raising=False)
    return tmp_path


def rows(path):
    """The rows of a store without what differs from run to run."""
    with Store.open(path, create=False) as store:
        return [replace(row, seconds=0.0, run=0) for row in store.rows()]


def gram(path):
    with np.load(path) as file:
        return file["K"]


def shards(path):
    return np.vstack([chunk.toarray() for chunk, _ in Shards(path)])


@pytest.mark.parametrize(
    ("words", "output", "read"),
    [
        ("evaluate A --kernel wl --kernel oddcl --folds 3 --repeats 2 --store", "A.sqlite", rows),
        ("reproduce small.toml --repeats 1 --store", "small.sqlite", rows),
        ("gram A --kernel wloa -o", "K.npz", gram),
        ("features A --chunk 10 --random-state 0 --method orf -o", "Z.shards", shards),
    ],
    ids=lambda word: word.split()[0] if isinstance(word, str) else "",
)
def test_workers_write_the_same(words, output, read, folder, capsys):
    assert main([*words.split(), f"here-{output}"]) == 0
    alone = capsys.readouterr()
    assert main([*words.split(), f"there-{output}", "--workers", "2"]) == 0
    out, err = capsys.readouterr()
    assert "2 workers, dashboard: http://" in err
    np.testing.assert_array_equal(read(folder / f"there-{output}"), read(folder / f"here-{output}"))
    if read is rows:
        assert out.replace("there-", "here-") == alone.out


def test_ctrl_c_ends_the_workers_and_keeps_what_was_finished(folder):
    command = [sys.executable, "-m", "treegram", "reproduce", "small.toml", "--workers", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        while process.poll() is None and not n_rows("small.sqlite"):
            time.sleep(0.05)
        family = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, signal.SIGINT)  # to all of its processes, as a terminal does
        err = process.communicate(timeout=120)[1]
    assert process.returncode == 130, err
    assert err.endswith("Stopped. What was finished is in small.sqlite; the same command continues from there.\n")
    assert len(family) >= 2
    assert psutil.wait_procs(family, timeout=30)[1] == []
    assert 0 < n_rows("small.sqlite") < N_ROWS
    assert main(["reproduce", "small.toml"]) == 0
    assert main(["reproduce", "small.toml", "--store", "again.sqlite"]) == 0
    assert rows("small.sqlite") == rows("again.sqlite")


def test_ctrl_c_while_workers_start_is_quiet(folder):
    command = [sys.executable, "-m", "treegram", "gram", "A", "-o", "K.npz", "--workers", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        family = []
        while process.poll() is None and not any(seconds(worker) > 0.2 for worker in family):  # busy with importing
            time.sleep(0.02)
            family = workers_of(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        err = process.communicate(timeout=120)[1]
    assert (process.returncode, err) == (130, "Stopped; nothing is left half-written.\n")
    assert psutil.wait_procs(family, timeout=30)[1] == []


def workers_of(pid):
    """The worker processes of a cluster that this process has started."""
    return [
        child for child in psutil.Process(pid).children(recursive=True) if "spawn_main" in " ".join(child.cmdline())
    ]


def seconds(process):
    times = process.cpu_times()
    return times.user + times.system


def n_rows(path):
    """Of a store that another process may be about to make."""
    with contextlib.suppress(Exception):
        return len(rows(path))
    return 0
