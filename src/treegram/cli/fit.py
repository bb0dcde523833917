"""``treegram fit``: a data set in, a file with a fitted model out."""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram import GraphGP, GraphSVC, save_model
from treegram._files import check_writable
from treegram._params import Whole
from treegram._wording import counted
from treegram.cli._data import add_data_arguments, load_data
from treegram.cli._kernels import KERNELS, kernel_name, read_word
from treegram.cli._output import add_output_arguments
from treegram.cli._parser import Parser

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = (
    "treegram fit ENZYMES --kernel oddcl --kernel wl -o enzymes.tgm",
    "treegram fit ./solubility --target numbers -o solubility.tgm",
)


def add_arguments(parser: Parser, arguments: list[str]) -> None:  # noqa: ARG001 (what every command is given)
    """The arguments of the command."""
    add_data_arguments(parser)
    add_output_arguments(parser, "the model, with the graphs of DATA; it holds no code, and treegram predict reads it")
    parser.add_argument(
        "--kernel",
        metavar="NAME",
        dest="kernels",
        action="append",
        type=kernel_name,
        help=f"one of {', '.join(KERNELS)}; may be given several times, and the best is taken (default: oddcl). Its parameters are "
        "chosen, too",
    )
    parser.add_argument(
        "--target",
        choices=("classes", "numbers"),
        help="what the targets are: classes make a support vector machine with probabilities, numbers a Gaussian process with "
        "error bars (default: numbers if some target is no whole number)",
    )
    parser.add_argument(
        "--folds",
        metavar="N",
        type=partial(read_word, (Whole(2),)),
        default=10,
        help="folds of the cross-validation that chooses, for classes (default: 10)",
    )
    parser.add_argument(
        "--jobs", metavar="N", type=partial(read_word, (Whole(),)), default=-1, help="threads to use (default: -1, all)"
    )


def run(args: argparse.Namespace) -> None:
    """Fit and save; all that can be checked is checked before the computation."""
    _check_target(args.output, overwrite=args.force)
    graphs, y = load_data(args)
    if y is None:
        raise ValueError(
            f"{args.data} has no targets, so that there is nothing to learn; add its graph labels or graph attributes."
        )
    kernels = list(dict.fromkeys(args.kernels or ["oddcl"]))
    is_number = args.target == "numbers" if args.target else _are_numbers(y)
    model: Any
    if is_number:
        model = GraphGP(kernels, n_jobs=args.jobs)
    else:
        model = GraphSVC(kernels, cv=args.folds, probability=True, n_jobs=args.jobs)
    start = time.perf_counter()
    model.fit(graphs, y)
    save_model(model, args.output)
    chosen = ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in model.best_params_.items()
    )
    rated = (
        f"log marginal likelihood {model.log_marginal_likelihood_:.4g}"
        if is_number
        else f"accuracy {model.best_score_:.3f} on held-out folds"
    )
    seconds = time.perf_counter() - start
    print(
        f"{args.output}: {type(model).__name__} of {counted(len(graphs), 'graph')} of {args.data}, {chosen}, {rated}, {seconds:.2f} s"
    )


def _check_target(path: Path, *, overwrite: bool) -> None:
    check_writable(path)
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists already; give --force to replace it, or another name.")


def _are_numbers(y: NDArray[Any]) -> bool:
    """Whether some target is no whole number."""
    return y.dtype.kind == "f" and bool((y != np.round(y)).any())
