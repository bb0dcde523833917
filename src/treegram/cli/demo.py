"""``treegram demo``: the main job from start to end, on data that needs no download."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

from treegram import ODDCL, Graphs, load_digits_graphs
from treegram._core.files import check_writable, replacing
from treegram._core.matplotlib import blank_axes
from treegram._core.types import Floats, Ints
from treegram.cli._parser import Parser
from treegram.explanations.plots import plot_gram

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = ("treegram demo -o demo",)

_DEPTH, _C, _FOLDS = 2, 10.0, 10
_FEWEST = 150  # every digit then has a member in every fold


def add_arguments(parser: Parser, arguments: list[str]) -> None:  # noqa: ARG001 (what every command is given)
    """The arguments of the command."""
    parser.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        type=Path,
        default=Path("demo"),
        help="where the picture goes (default: demo)",
    )
    parser.add_argument(
        "--graphs", metavar="N", type=int, default=1797, help="use the first N of the 1797 digits (default: all)"
    )


def run(args: argparse.Namespace) -> None:
    """Load, compute, cross-validate, draw."""
    axes = blank_axes()  # first, so that a missing matplotlib is told at once
    clock = _Clock()
    graphs, y = _load(args.graphs)
    args.output.mkdir(parents=True, exist_ok=True)
    picture = args.output / "gram.png"
    check_writable(picture)
    clock.tell("load", repr(graphs))

    # On one thread: compiling takes longer beside others that wait for it.
    ODDCL(depth=_DEPTH).fit_transform(graphs[:20])
    clock.tell("compile", "once per installation; later runs load the compiled code")

    K = ODDCL(depth=_DEPTH, n_jobs=-1).fit_transform(graphs)
    clock.tell("Gram matrix", f"{len(K)} x {len(K)}, exact, ODDCL(depth={_DEPTH})")

    scores = _cross_validate(K, y)
    guess = np.bincount(y).max() / len(y)
    spread = f"mean and standard deviation over {_FOLDS} folds, C = {_C:g}"
    clock.tell("SVM", f"accuracy {scores.mean():.1%} ± {scores.std():.1%} ({spread}); largest class {guess:.1%}")

    plot_gram(K, y, ax=axes, title=f"{len(K)} handwritten digits, sorted by digit: ODDCL kernel, depth {_DEPTH}")
    with replacing(picture) as file:
        axes.figure.savefig(file, format="png", dpi=150)
    clock.tell("picture", str(picture))


class _Clock:
    """Tells each finished step with the time since the one before."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def tell(self, step: str, result: str) -> None:
        now = time.perf_counter()
        print(f"{step:12}{now - self._last:7.2f} s  {result}", flush=True)
        self._last = now


def _load(n_graphs: int) -> tuple[Graphs, Ints]:
    graphs, y = load_digits_graphs()
    if not _FEWEST <= n_graphs <= len(graphs):
        raise ValueError(f"--graphs must be from {_FEWEST} to {len(graphs)}; got {n_graphs}.")
    return graphs[:n_graphs], y[:n_graphs]


def _cross_validate(K: Floats, y: Ints) -> Floats:
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0)
    scores: Floats = cross_val_score(SVC(kernel="precomputed", C=_C), K, y, cv=folds)
    return scores
