"""Tests of ``treegram precompile``."""

import os
import re
import subprocess
import sys

import pytest

from treegram import Graphs, ScaleAttributes
from treegram._core import jit
from treegram.cli import main, precompile
from treegram.kernels.registry import KERNELS

AFTERWARDS = """
import numpy as np, treegram as tg
from treegram._core.jit import compilations
graphs, y = tg.load_digits_graphs()
graphs, y = graphs[:60], y[:60] % 2
tg.ODDCL(depth=3, lam=1.2).fit_transform(graphs)
tg.GraphSVC(tg.ODDCL(counting="visits"), cv=3).fit(graphs, y).predict(graphs[:5])
tg.ODDCL().gram_grid(graphs, {"depth": [0, 1], "lam": [0.5, 1]})
tg.NSPDK().fit_transform(graphs)
tg.explain(tg.GraphClassifier().fit(graphs, y), graphs[:5])
print(compilations.count)
"""


def test_precompile_reports_the_number_of_functions(monkeypatch, capsys):
    done = []
    monkeypatch.setattr(precompile, "_tasks", lambda: iter([lambda: done.append(1), lambda: done.append(2)]))
    monkeypatch.setattr(jit.compilations, "count", 3)
    assert main(["precompile"]) == 0
    assert done == [1, 2]
    assert re.match(r"Compiled 3 functions; this took \d+ s\.", capsys.readouterr().out)
    monkeypatch.setattr(jit.compilations, "count", 0)
    main(["precompile"])
    assert capsys.readouterr().out.startswith("Everything was compiled already; ")


def test_help_shows_the_cache_folder(capsys):
    assert main(["precompile", "--help"]) == 0
    assert "NUMBA_CACHE_DIR" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::UserWarning")  # the command ignores warnings about its small graphs
def test_tasks_run_kernels_models_and_readers(monkeypatch):
    kernels = {name: KERNELS[name] for name in ("wl", "oddcl")}
    monkeypatch.setattr("treegram.kernels.registry.KERNELS", kernels)
    tasks = list(precompile._tasks())
    assert len(tasks) == 2 * len(kernels) + 1 + 7  # only one of the two kernels has features
    for task in tasks:
        task()


def test_kernel_that_rejects_the_graphs_is_skipped():
    precompile._run_kernel(ScaleAttributes(), Graphs.from_edges([[(0, 1)]]))


@pytest.mark.slow
def test_nothing_is_compiled_after_precompile(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}

    def run(*arguments):
        command = [sys.executable, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert run("-m", "treegram", "precompile").startswith("Compiled ")
    assert list(tmp_path.rglob("*.nbc"))
    assert run("-m", "treegram", "precompile").startswith("Everything was compiled already")
    assert run("-c", AFTERWARDS).split() == ["0"]
