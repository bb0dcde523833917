"""``treegram fit``: choose a model, fit it to a data set, and save it."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

import treegram
from treegram._core.text import counted
from treegram.cli._data import add_data_argument, has_real_targets, load_data, with_molecules
from treegram.cli._kernels import AUTO, add_search_options, check_search_options, kernel_class, users_of
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


def add_arguments(parser: Parser, arguments: list[str]) -> None:  # noqa: ARG001 (the signature of all commands)
    """Add the arguments of the command."""
    add_data_argument(parser)
    add_output(parser, "model file, with the graphs of DATA; it holds no code, and treegram predict reads it")
    models = "classification with a support vector machine and probabilities, or regression with a Gaussian process and error bars"
    add_search_options(parser, AUTO, models)
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
    check_search_options(names, args)
    graphs, y = load_data(args.data, args)
    if y is None:
        raise ValueError(
            f"{args.data} has no targets, so there is nothing to learn; add graph labels or graph attributes to a data set, or name "
            "the targets of molecules with --target."
        )
    kernels = AUTO if names == [AUTO] else [kernel for name in names for kernel in _kernels(name, args)]
    model: Any
    if _is_regression(args, y):
        model = treegram.GraphGP(kernels, max_seconds=args.max_seconds, n_jobs=args.jobs)
    else:
        model = treegram.GraphSVC(
            kernels, cv=args.folds, probability=True, max_seconds=args.max_seconds, n_jobs=args.jobs
        )
    start = time.perf_counter()
    model.fit(graphs, y)
    treegram.save_model(with_molecules(model, args), args.output)
    seconds = time.perf_counter() - start
    if kernels == AUTO:
        print(model.search_summary())
    print(f"{args.output}: {type(model).__name__} of {counted(len(graphs), 'graph')} of {args.data}, {seconds:.2f} s")
    print(_choice(model, args.data, names))


def _kernels(name: str, args: argparse.Namespace) -> list[Any]:
    """Return a kernel with each of the scales and values of gamma that apply to it."""
    from sklearn.pipeline import make_pipeline

    fixed = {"use_edge_labels": True} if args.use_edge_labels and name in users_of("use_edge_labels") else {}
    gammas = args.gamma if args.gamma and name in users_of("gamma") else []
    scales = args.scale if args.scale and name in users_of("uses_attributes") else ["raw"]
    kernels = [kernel_class(name)(**fixed, **widths) for widths in ([{"gamma": gamma} for gamma in gammas] or [{}])]
    return [
        kernel if scale == "raw" else make_pipeline(treegram.ScaleAttributes(scale), kernel)
        for scale in scales
        for kernel in kernels
    ]


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
