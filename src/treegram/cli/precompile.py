"""``treegram precompile``: compile all that treegram will need on this machine, so that no later run has to."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from treegram import (
    FeatureMap,
    GraphGP,
    GraphRidge,
    Graphs,
    GraphSVC,
    ODDCLFeatures,
    ScaleAttributes,
    TUChunks,
    load_digits_graphs,
    load_tu,
    save_tu,
)
from treegram._core import jit
from treegram._core.progress import track
from treegram.cli._parser import Parser
from treegram.kernels.registry import KERNELS

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = ("treegram precompile", "NUMBA_CACHE_DIR=/opt/treegram-cache treegram precompile")

_ABOUT = """\
Compiled code is kept on disk, and every later run loads it from there. It is for this kind of processor and these versions
of Python, numba and treegram. The folder is NUMBA_CACHE_DIR if that is set, else __pycache__ beside treegram's own files,
else a folder of the user's. Several processes may share it. It may be read-only later, as in an image. Keep it from
strangers: code from this folder is run."""


def add_arguments(parser: Parser, arguments: list[str]) -> None:  # noqa: ARG001 (what every command is given)
    """The command has no arguments; its help says where compiled code is."""
    parser.description = f"{parser.description}\n\n{_ABOUT}"


def run(args: argparse.Namespace) -> None:  # noqa: ARG001
    """Do a little of everything, and tell what that compiled."""
    start = time.perf_counter()
    tasks = list(_tasks())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what so few graphs are good for does not matter
        for task in track(tasks, len(tasks), "compiling"):
            task()
    seconds = time.perf_counter() - start
    found = (
        f"Compiled {jit.compilations.count} functions" if jit.compilations.count else "All was compiled already"
    )
    print(f"{found}; this took {seconds:.0f} s. The code is in {cache_folder()}")


def cache_folder() -> str:
    """The folder in or below which compiled code is kept."""
    from treegram.datasets.loops import parse
    from treegram.models.loops import solver

    paths = [getattr(loop, "_cache", None) for loop in (parse.scan_table, solver.climb_path)]
    known = [path.cache_path for path in paths if path is not None and path.cache_path]
    return os.path.commonpath(known) if known else "no folder: none can be written to"


def _tasks() -> Iterator[Callable[[], object]]:
    """Calls that run every loop on every type of array that it meets: kernels, then models, then readers."""
    digits, _ = load_digits_graphs(n_levels=3)
    digits, classes = digits[:24], np.arange(24) % 3
    for kind in KERNELS.values():
        yield partial(_run_kernel, kind(), digits)
        yield partial(_run_kernel, kind(), _with_edge_labels())
        if hasattr(kind, "features"):
            yield partial(_run_kernel, FeatureMap(kind()), digits)
    yield partial(_run_kernel, ODDCLFeatures(depth=1, n_components=8, n_features=64), digits)
    yield partial(_run_kernel, ODDCLFeatures(depth=1, n_features=None), digits)
    for model in (GraphSVC(cv=3, probability=True), GraphRidge(cv=3), GraphGP()):
        yield partial(_run_model, model, digits, classes)
    yield partial(_read, digits)


def _with_edge_labels() -> Graphs:
    edges = [[(0, 1), (1, 2), (2, 0), (2, 3)], [(0, 1), (1, 2)]]
    labels = [["C", "C", "O", "N"], ["C", "O", "O"]]
    return Graphs.from_edges(edges * 6, labels=labels * 6, edge_labels=[["-", "=", "-", "="], ["-", "="]] * 6)


def _run_kernel(kernel: Any, graphs: Graphs) -> None:
    try:
        kernel.fit_transform(graphs)
    except ValueError:  # a kernel of vectors refuses graphs that have none
        return
    kernel.fit(graphs).transform(graphs[:5])
    if usual := getattr(kernel, "_default_param_grid", None):
        kernel.gram_grid(graphs, **{name: values[:2] for name, values in usual.items()})


def _run_model(model: Any, graphs: Graphs, targets: Any) -> None:
    model.fit(graphs, targets).predict(graphs[:5])


def _read(graphs: Graphs) -> None:
    irrational = ScaleAttributes().fit_transform(graphs)  # numbers of many digits
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "warm"
        save_tu(irrational, folder)
        load_tu(folder)
        for _ in TUChunks(folder, chunk_size=5):
            pass
