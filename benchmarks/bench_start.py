"""Compare reading a data set with numpy.loadtxt, and importing treegram with scikit-learn's SVM; measure the first calls."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from common import DATA_DIR, PAPER_SETS, best_of, load, table

IMPORT_TIMER = "import time; start = time.process_time(); {0}; print(time.process_time() - start)"

# A Gram matrix and a model on MUTAG, or on digits: CPU seconds until each step is done, and the number of compilations.
STEPS = """
import time
import treegram as tg
from sklearn.model_selection import train_test_split
times = []
graphs, y = tg.load_tu("MUTAG") if {has_data} else [part[:188] for part in tg.load_digits_graphs()]
times.append(time.process_time())
tg.ODDCL(depth=3, lam=1.2).fit_transform(graphs)
times.append(time.process_time())
train, test, y_train, y_test = train_test_split(graphs, y, test_size=0.2, stratify=y, random_state=0)
model = tg.GraphSVC(tg.ODDCL(counting="visits")).fit(train, y_train)
times.append(time.process_time())
model.predict(test)
times.append(time.process_time())
from treegram._core.jit import compilations
print(*times, compilations.count)
"""


def loadtxt(name: str) -> None:
    for path in sorted((Path(str(DATA_DIR)) / name).glob(f"{name}_*.txt")):
        np.loadtxt(path, delimiter="," if "," in path.read_text()[:200] else None)


def import_time(statement: str) -> float:
    command = [sys.executable, "-c", IMPORT_TIMER.format(statement)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def environment(cache: str) -> dict[str, str]:
    """Return the environment of a new process with this cache of compiled code."""
    return os.environ | {"NUMBA_CACHE_DIR": cache} | ({"TREEGRAM_DATA": str(DATA_DIR)} if DATA_DIR else {})


def first_steps(cache: str) -> list[float]:
    """Return the CPU seconds of each step in a new process with this cache, and the number of compilations."""
    command = [sys.executable, "-c", STEPS.format(has_data=DATA_DIR is not None)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment(cache))
    *times, count = (float(word) for word in done.stdout.split())
    return [*np.diff([0.0, *times]), times[-1], count]


def child_time(command: list[str], cache: str) -> float:
    """Return the CPU seconds of a command in a new folder, with this cache of compiled code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(command, capture_output=True, check=True, cwd=folder, env=environment(cache))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ten_lines(cache: str) -> str:
    """Run the first program of the README, which needs a data set: GraphClassifier and explanations."""
    if DATA_DIR is None:
        return "-"
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    program = readme.split("```python\n")[1].split("```")[0]
    return f"{child_time([sys.executable, '-c', program], cache):.1f} s"


def cold_start() -> str:
    with (
        tempfile.TemporaryDirectory() as cache,
        tempfile.TemporaryDirectory() as other,
    ):
        rows = [
            [name, *(f"{time:.1f} s" for time in times), f"{count:.0f}", ten_lines(other)]
            for name in ("empty cache", "second run")
            for *times, count in [first_steps(cache)]
        ]
    header = [
        "",
        "import, load",
        "first ODDCL Gram",
        "GraphSVC.fit",
        "predict",
        "all",
        "functions compiled",
        "README's first program",
    ]
    return table("Cold start (process time; ODDCL and README's first program on MUTAG)", header, rows)


def main() -> str:
    parts = []
    if DATA_DIR is not None:
        rows = []
        for name in PAPER_SETS:
            load(name)
            theirs, ours = best_of(lambda n=name: loadtxt(n), lambda n=name: load(n), rounds=3)
            rows.append([name, f"{theirs * 1000:.0f} ms", f"{ours * 1000:.0f} ms", f"**{ours / theirs:.2f}**"])
        parts.append(table("Reading (process time)", ["data set", "numpy.loadtxt", "load_tu", "ratio"], rows))
    # Names of treegram are imported when first used: the second statement uses them all.
    statements = ("import sklearn.svm", "import treegram", "from treegram import *")
    times = [[import_time(statement) for statement in statements] for _ in range(5)]
    theirs, bare, everything = (min(column) for column in zip(*times, strict=True))
    row = [f"{theirs:.2f} s", *(f"{ours:.2f} s, **{ours / theirs:.2f}**" for ours in (bare, everything))]
    parts.append(table("Importing (process time, and ratio to the first)", statements, [row]))
    parts.append(cold_start())
    return "\n".join(parts)


if __name__ == "__main__":
    print(main())
