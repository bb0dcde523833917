"""Reading a data set against numpy.loadtxt on the same files; importing treegram against importing scikit-learn's SVM."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from common import DATA_DIR, PAPER_SETS, best_of, load, table

IMPORT_TIMER = "import time; start = time.process_time(); {0}; print(time.process_time() - start)"


def loadtxt(name: str) -> None:
    for path in sorted((Path(str(DATA_DIR)) / name).glob(f"{name}_*.txt")):
        np.loadtxt(path, delimiter="," if "," in path.read_text()[:200] else None)


def import_time(statement: str) -> float:
    command = [sys.executable, "-c", IMPORT_TIMER.format(statement)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> str:
    parts = []
    if DATA_DIR is not None:
        rows = []
        for name in PAPER_SETS:
            load(name)
            theirs, ours = best_of(lambda n=name: loadtxt(n), lambda n=name: load(n), rounds=3)
            rows.append([name, f"{theirs * 1000:.0f} ms", f"{ours * 1000:.0f} ms", f"**{ours / theirs:.2f}**"])
        parts.append(table("Reading (process time)", ["data set", "numpy.loadtxt", "load_tu", "ratio"], rows))
    # Names of treegram are imported when first used: the second statement makes them all be used.
    statements = ("import sklearn.svm", "import treegram", "from treegram import *")
    times = [[import_time(statement) for statement in statements] for _ in range(5)]
    theirs, bare, everything = (min(column) for column in zip(*times, strict=True))
    row = [f"{theirs:.2f} s", *(f"{ours:.2f} s, **{ours / theirs:.2f}**" for ours in (bare, everything))]
    parts.append(table("Importing (process time, and ratio to the first)", statements, [row]))
    return "\n".join(parts)


if __name__ == "__main__":
    print(main())
