"""``treegram fit``: a data set in, a file with a fitted model out."""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline

from treegram import GraphGP, GraphSVC, ScaleAttributes, save_model
from treegram._core.files import check_writable
from treegram._core.params import Number, Whole
from treegram._core.text import counted
from treegram.cli._data import add_data_arguments, are_numbers, load_data
from treegram.cli._kernels import (
    KERNELS,
    add_attribute_options,
    attribute_choices,
    check_attribute_options,
    kernel_choice,
    read_word,
)
from treegram.cli._molecules import is_molecule_file, with_molecules
from treegram.cli._output import add_output_arguments
from treegram.cli._parser import Parser
from treegram.kernels.registry import AUTO

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = (
    "treegram fit ENZYMES --kernel oddcl --kernel wl -o enzymes.tgm",
    "treegram fit ENZYMES --kernel auto --max-seconds 300 -o enzymes.tgm",
    "treegram fit ./mine --scale raw,standard --gamma none,scale -o mine.tgm",
    "treegram fit ./solubility --task numbers -o solubility.tgm",
    "treegram fit molecules.csv --smiles-column smiles --target y -o molecules.tgm",
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
        type=kernel_choice,
        help=f"one of {', '.join(KERNELS)}; may be given several times, and the best is taken (default: oddcl). Its parameters are "
        "chosen, too. Or auto alone, which tries many kernels and sums of the best, and tells what it tried",
    )
    add_attribute_options(parser, "With --kernel auto it does so by itself")
    parser.add_argument(
        "--max-seconds",
        metavar="X",
        type=partial(read_word, (Number(0),)),
        help="after so many seconds no further kernel is tried (default: all are)",
    )
    parser.add_argument(
        "--task",
        choices=("classes", "numbers"),
        help="what the targets are: classes make a support vector machine with probabilities, numbers a Gaussian process with "
        "error bars (default: numbers if some target is not a whole number)",
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
        cure = "name them with --target" if is_molecule_file(args.data) else "add its graph labels or graph attributes"
        raise ValueError(f"{args.data} has no targets, so there is nothing to learn; {cure}.")
    kernels: Any = list(dict.fromkeys(args.kernels or ["oddcl"]))
    if AUTO in kernels and len(kernels) > 1:
        raise ValueError("--kernel auto cannot be combined with other kernels: it tries all that suit the data.")
    check_attribute_options(kernels, args.scale, args.gamma)
    kernels = AUTO if kernels == [AUTO] else [one for name in kernels for one in _candidates(name, args)]
    is_number = _is_number(args, y)
    model: Any
    if is_number:
        model = GraphGP(kernels, max_seconds=args.max_seconds, n_jobs=args.jobs)
    else:
        model = GraphSVC(kernels, cv=args.folds, probability=True, max_seconds=args.max_seconds, n_jobs=args.jobs)
    start = time.perf_counter()
    model.fit(graphs, y)
    save_model(with_molecules(model, args), args.output)
    if kernels == AUTO:
        print(model.search_summary())
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


def _is_number(args: argparse.Namespace, y: NDArray[Any]) -> bool:
    """Whether the targets are numbers, as --task says, if they can be what it says."""
    if args.task == "classes" and are_numbers(y):
        raise ValueError(f"The targets of {args.data} are numbers, such as {y[0]}, not classes. Use --task numbers.")
    if args.task == "numbers" and y.dtype.kind not in "buif":
        raise ValueError(f"The targets of {args.data} are classes, such as {y[0]}, not numbers. Use --task classes.")
    return args.task == "numbers" if args.task else are_numbers(y)


def _candidates(name: str, args: argparse.Namespace) -> list[Any]:
    """A kernel with each of the scales and widths that the command line offers it."""
    scales, gammas = attribute_choices(name, args.scale, args.gamma)
    kernels = [name if gamma is None else KERNELS[name](gamma=gamma) for gamma in gammas]
    return [
        kernel
        if scale == "raw"
        else make_pipeline(ScaleAttributes(scale), KERNELS[kernel]() if kernel == name else kernel)
        for scale in scales
        for kernel in kernels
    ]


def _check_target(path: Path, *, overwrite: bool) -> None:
    check_writable(path)
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists already; give --force to replace it, or another name.")
