"""``treegram demo``: load, compute, cross-validate and draw, on built-in data."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import treegram
from treegram._core.files import check_writable, replacing
from treegram._core.optional import blank_axes
from treegram._core.text import visible
from treegram.cli._parser import Parser, at_least

EXAMPLES = ("treegram demo -o demo",)


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:  # noqa: ARG001 (the signature of all commands)
    """Add the arguments of the command."""
    picture = "folder for the picture (default: demo)"
    parser.add_argument("-o", "--output", metavar="FOLDER", type=Path, default=Path("demo"), help=picture)
    parser.add_argument("--graphs", metavar="N", type=at_least(1), help="use only the first N of the 1797 digits")


def run(args: argparse.Namespace) -> None:
    """Load, compute, cross-validate, draw."""
    import numpy as np
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.svm import SVC

    args.output.mkdir(parents=True, exist_ok=True)
    picture = args.output / "gram.png"
    check_writable(picture)
    start = time.perf_counter()
    graphs, y = treegram.load_digits_graphs()
    graphs, y = graphs[: args.graphs], y[: args.graphs]
    start = _print_step("load", start, repr(graphs))

    kernel = treegram.ODDCL(depth=2, n_jobs=-1)
    kernel.fit_transform(graphs[:20])
    start = _print_step("compile", start, "once per installation; later runs load the compiled code")

    K = kernel.fit_transform(graphs)
    start = _print_step("Gram matrix", start, f"{len(K)} x {len(K)}, exact, ODDCL(depth=2)")

    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    scores = cross_val_score(SVC(kernel="precomputed", C=10), K, y, cv=folds)
    accuracy = f"accuracy {scores.mean():.1%} ± {scores.std():.1%} (mean and standard deviation over 10 folds, C = 10)"
    start = _print_step("SVM", start, f"{accuracy}; largest class {np.bincount(y).max() / len(y):.1%}")

    try:
        axes = blank_axes()
    except ImportError as error:
        print(f"no picture: {error}")
        return
    title = f"{len(K)} handwritten digits, sorted by digit: ODDCL kernel, depth 2"
    treegram.plot_gram(K, y, ax=axes, title=title)
    with replacing(picture) as file:
        axes.figure.savefig(file, format="png", dpi=150)
    _print_step("picture", start, visible(str(picture)))


def _print_step(step: str, start: float, result: str) -> float:
    """Print a finished step with its time, and return the start of the next."""
    now = time.perf_counter()
    print(f"{step:12}{now - start:7.2f} s  {result}", flush=True)
    return now
