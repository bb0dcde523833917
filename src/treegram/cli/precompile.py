"""``treegram precompile``: compile everything ahead of time, by running a little of everything."""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import treegram
from treegram.cli._parser import Parser

EXAMPLES = ("treegram precompile", "NUMBA_CACHE_DIR=/opt/treegram-cache treegram precompile")

_ABOUT = """\
Compiled code is kept on disk, and later runs load it. It fits this kind of processor and these versions of Python, numba and
treegram. Its folder is NUMBA_CACHE_DIR if that is set, or else __pycache__ next to treegram's own files, or else a cache folder of
the user. Several processes may share it; numba ignores a folder that it cannot write to. Make sure that nobody else can write to
it: code in this folder is executed."""


def add_arguments(parser: Parser) -> None:
    """Describe where compiled code is kept; the command has no arguments."""
    parser.description = f"{parser.description}\n\n{_ABOUT}"


def run(args: argparse.Namespace) -> None:  # noqa: ARG001
    """Run all tasks, and print how many functions were compiled."""
    from treegram._core import jit
    from treegram._core.parallel import track

    start = time.perf_counter()
    tasks = list(_tasks())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the graphs are too few for good models
        for task in track(tasks, len(tasks), "compiling"):
            task()
    seconds = time.perf_counter() - start
    count = jit.compilations.count
    done = f"Compiled {count} functions" if count else "Everything was compiled already"
    print(f"{done}; this took {seconds:.0f} s.")


def _tasks() -> Iterator[Callable[[], object]]:
    """Yield calls that run every compiled function on every type of array that it encounters."""
    from treegram.kernels.registry import KERNELS

    graphs = treegram.load_digits_graphs(n_levels=3)[0][:24]
    edges = [[(0, 1), (1, 2), (2, 0), (2, 3)], [(0, 1), (1, 2)]]
    labels, edge_labels = [["C", "C", "O", "N"], ["C", "O", "O"]], [["-", "=", "-", "="], ["-", "="]]
    labeled = treegram.Graphs.from_edges(edges * 6, labels=labels * 6, edge_labels=edge_labels * 6)
    for kernel in KERNELS.values():
        yield partial(_run_kernel, kernel(), graphs)
        yield partial(_run_kernel, kernel(), labeled)
        if hasattr(kernel, "_feature_rows"):
            yield partial(_run_kernel, treegram.FeatureMap(kernel()), graphs)
    for n_features in (64, None):
        yield partial(
            _run_kernel, treegram.FeatureMap(treegram.ODDCL(1), n_components=8, n_features=n_features), graphs
        )
    svc = treegram.GraphSVC("oddcl", cv=3)
    for model in (svc, treegram.GraphRidge("oddcl", cv=3), treegram.GraphGP("oddcl")):
        yield partial(model.fit, graphs, [0, 1, 2] * 8)
    yield partial(_explain, graphs)
    yield partial(_read, graphs)


def _run_kernel(kernel: Any, graphs: treegram.Graphs) -> None:
    try:
        kernel.fit_transform(graphs)
    except ValueError:  # kernels on vectors refuse graphs without vectors
        return
    kernel.fit(graphs).transform(graphs[:5])
    if grid := getattr(kernel, "_default_param_grid", None):
        kernel.gram_grid(graphs, {name: values[:2] for name, values in grid.items()})


def _explain(graphs: treegram.Graphs) -> None:
    kernel = treegram.KernelSum([treegram.ODDST(), treegram.WLCL(1)])
    model = treegram.GraphRidge(kernel, param_grid={}, alpha=1).fit(graphs, range(len(graphs)))
    treegram.explain(model, graphs[:5])


def _read(graphs: treegram.Graphs) -> None:
    scaled = treegram.ScaleAttributes().fit_transform(graphs)  # numbers with many digits
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "scaled"
        treegram.save_tu(scaled, folder)
        treegram.load_tu(folder)
        list(treegram.iter_tu(folder, chunk_size=5))
