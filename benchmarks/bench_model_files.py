"""Compare model files with pickle and skops: size, time to save, load and first predict, memory to load, and what a user must trust.

    python benchmarks/bench_model_files.py

skops is not among treegram's own packages: it is compared if it is installed. Memory is the peak of Python's allocator while a
file is loaded, and while it is loaded and gives its first prediction, divided by the size of the file. Loading a model file fits
its kernel again.
"""

from __future__ import annotations

import importlib
import pickle
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import treegram as tg
from common import best_of, load, machine, table

N_GRAPHS = 300  # of ENZYMES
KERNELS = (tg.WL(), tg.WLOA(), tg.ODDCL(depth=2), tg.ShortestPath(), tg.GraphHopper(), tg.P2K())


def load_pickle(path: Path) -> Any:
    return pickle.loads(path.read_bytes())


def ways() -> Iterator[tuple[str, Callable[[Any, Path], Any], Callable[[Path], Any], Callable[[Path], object]]]:
    """Return the name, the functions to save and load, and the number of types a user must trust."""
    yield "model file", tg.save_model, tg.load_model, lambda _: 0
    if find_spec("skops") is not None:
        skops = importlib.import_module("skops.io")
        untrusted = skops.get_untrusted_types
        yield (
            "skops",
            skops.dump,
            lambda path: skops.load(path, trusted=untrusted(file=path)),
            lambda path: len(untrusted(file=path)),
        )
    yield "pickle", lambda model, path: path.write_bytes(pickle.dumps(model)), load_pickle, lambda _: "any code"


def peak_memory(function: Callable[[], object]) -> int:
    function()  # leave compiling and importing out
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak - before


def measure(kernel: Any, folder: Path) -> Iterator[list[object]]:
    graphs = load("ENZYMES")[:N_GRAPHS]
    model = tg.GraphSVC(kernel, param_grid={}, C=1, cv=2).fit(graphs, graphs.targets)
    for name, save, read, trusted in ways():
        path = folder / "model"
        save(model, path)
        size = path.stat().st_size
        tasks = [partial(save, model, path), partial(read, path), partial(predict_first, read, path, graphs[:1])]
        times = [f"{1e3 * seconds:.0f} ms" for seconds in best_of(*tasks, rounds=3)]
        memory = [f"{peak_memory(task) / size:.1f}" for task in tasks[1:]]
        yield [type(kernel).__name__, name, f"{size / 1e6:.1f} MB", *times, *memory, trusted(path)]


def predict_first(read: Callable[[Path], Any], path: Path, graphs: tg.Graphs) -> object:
    return read(path).predict(graphs)


def main() -> str:
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for kernel in KERNELS for row in measure(kernel, Path(folder))]
    return table(
        f"Files of a GraphSVC of {N_GRAPHS} graphs of ENZYMES",
        [
            "kernel",
            "way",
            "file",
            "save",
            "load",
            "load and first prediction",
            "memory to load / file",
            "memory of both / file",
            "types to trust",
        ],
        rows,
    )


if __name__ == "__main__":
    print(f"{machine()}\n\n{main()}")
