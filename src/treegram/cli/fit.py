"""``treegram fit``: choose a model, fit it to a data set, and save it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import treegram
from treegram._core.text import counted
from treegram.cli._data import add_data_argument, has_real_targets, load_data, with_molecules
from treegram.cli._kernels import AUTO, add_search_options, kernel_class, parameter_values, scales_of
from treegram.cli._parser import Parser, add_jobs, add_output, at_least, check_output

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = (
    "treegram fit ENZYMES -o enzymes.tgm",
    "treegram fit ENZYMES --kernel oddcl --kernel wl -o enzymes.tgm",
    "treegram fit ./mine --kernel oddcl --scale raw,standard --gamma none,scale -o mine.tgm",
    "treegram fit ./solubility --task regression --max-seconds 300 -o solubility.tgm",
    "treegram fit molecules.csv --smiles-column smiles --target y -o molecules.tgm",
)


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:
    """Add the arguments of the command."""
    add_data_argument(parser)
    add_output(parser, "model file, with the graphs of DATA; it holds no code, and treegram predict reads it")
    models = "classification with a support vector machine and probabilities, or regression with a Gaussian process and error bars"
    add_search_options(parser, arguments, AUTO, models)
    parser.add_argument(
        "--max-seconds", metavar="X", type=at_least(0, float), help="try no further kernel after X seconds"
    )
    add_jobs(parser)


def run(args: argparse.Namespace) -> None:
    """Fit and save; check all that can be checked before the computation."""
    check_output(args.output, force=args.force)
    names = list(dict.fromkeys(args.kernels or [AUTO]))
    if AUTO in names and len(names) > 1:
        raise ValueError("--kernel auto cannot be combined with other kernels: it tries all that suit the data.")
    scales = scales_of(args, names)
    graphs, y = load_data(args.data, args)
    if y is None:
        raise ValueError(
            f"{args.data} has no targets, so there is nothing to learn; add graph labels or graph attributes to a data set, or name "
            "the targets of molecules with --target."
        )
    options: dict[str, Any] = {"max_seconds": args.max_seconds, "n_jobs": args.jobs}
    if names != [AUTO]:
        pairs = [pair for name in names for pair in _candidates(name, scales[name], args)]
        options |= {"kernel": [kernel for kernel, _ in pairs], "param_grid": [grid for _, grid in pairs]}
    model: Any
    if _is_regression(args, y):
        model = treegram.GraphGP(**options)
    else:
        model = treegram.GraphSVC(cv=args.folds, probability=True, **options)
    start = time.perf_counter()
    model.fit(graphs, y)
    treegram.save_model(with_molecules(model, args), args.output)
    seconds = time.perf_counter() - start
    if names == [AUTO]:
        print(model.search_summary())
    print(f"{args.output}: {type(model).__name__} of {counted(len(graphs), 'graph')} of {args.data}, {seconds:.2f} s")
    print(_choice(model, args.data, names))


def _candidates(
    name: str, scales: Sequence[str], args: argparse.Namespace
) -> Iterator[tuple[Any, dict[str, list[Any]]]]:
    """Yield a kernel after each of the scales, and the grid to search: a single value of an option fixes a parameter."""
    from sklearn.pipeline import make_pipeline

    values = parameter_values(args, kernel_class(name))
    kernel = kernel_class(name)(**{key: given[0] for key, given in values.items() if len(given) == 1})
    grid = {
        key: given
        for key, given in (kernel.default_param_grid() | values).items()
        if len(given) > 1 or key not in values
    }
    for scale in scales:
        yield kernel if scale == "raw" else make_pipeline(treegram.ScaleAttributes(scale), kernel), grid


def _is_regression(args: argparse.Namespace, y: NDArray[Any]) -> bool:
    if args.task == "classification" and has_real_targets(y):
        raise ValueError(f"The targets of {args.data} are numbers, such as {y[0]}, not classes. Use --task regression.")
    if args.task == "regression" and y.dtype.kind not in "buif":
        raise ValueError(
            f"The targets of {args.data} are classes, such as {y[0]}, not numbers. Use --task classification."
        )
    return args.task == "regression" if args.task else has_real_targets(y)


def _choice(model: Any, data: str, names: list[str]) -> str:
    chosen = ", ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={' '.join(str(value).split())}"
        for name, value in model.best_params_.items()
        if name != "param_grid"
    )
    if isinstance(model, treegram.GraphGP):
        return f"Best by log marginal likelihood, {model.log_marginal_likelihood_:.4g}: {chosen}"
    kernels = " ".join(f"--kernel {name}" for name in names)
    return (
        f"Best of {counted(len(model.cv_results_['params']), 'candidate')} by cross-validation: {chosen}; accuracy "
        f"{model.best_score_:.3f} (optimistic; treegram evaluate {data} {kernels} gives an unbiased estimate)"
    )
