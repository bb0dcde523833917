"""``treegram fit``: choose a model, fit it to a data set, and save it."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import treegram
from treegram._core.text import counted
from treegram.cli._data import Task, add_data_argument, data_words, has_real_targets, load_tasks
from treegram.cli._kernels import AUTO, add_search_options, kernel_class, parameter_values, scales_of
from treegram.cli._parser import Parser, add_jobs, add_output, check_output

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = (
    "treegram fit ENZYMES -o enzymes.tgm",
    "treegram fit ENZYMES --kernel oddcl --kernel wl -o enzymes.tgm",
    "treegram fit ./mine --kernel oddcl --scale raw,standard --gamma none,scale -o mine.tgm",
    "treegram fit ./solubility --task regression -o solubility.tgm",
    "treegram fit molecules.csv --target a --target b -o 'model_{target}.tgm'",
    "treegram fit --nodes nodes.csv --edges edges.csv --graphs graphs.csv --target y -o model.tgm",
    "treegram fit ./structures --graphs classes.csv --target class -o proteins.tgm",
)
Candidate = tuple[Any, dict[str, list[Any]]]  # a kernel, and the grid of its parameters
_PLACE = "{target}"  # in the name of the output


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:
    """Add the arguments of the command."""
    add_data_argument(parser)
    add_output(
        parser,
        "model file, with the graphs of DATA; it holds no code, and treegram predict reads it. With several targets, its name "
        f"must contain {_PLACE}: each gets a model of its own, fitted on the graphs that have a value",
    )
    models = "classification with probabilities, or regression with error bars"
    add_search_options(parser, arguments, AUTO, models)
    add_jobs(parser)


def run(args: argparse.Namespace) -> None:
    """Fit and save; check all that can be checked before the computation."""
    paths = _output_paths(args)
    for path in paths:
        check_output(path, force=args.force)
    names = list(dict.fromkeys(args.kernels or [AUTO]))
    if AUTO in names and len(names) > 1:
        raise ValueError("--kernel auto cannot be combined with other kernels: it tries all that suit the data.")
    scales = scales_of(args, names)
    tasks, transformer = load_tasks(args.data, args)
    for task in tasks:
        if task.y is None:
            raise ValueError(
                f"{args.data} has no targets, so there is nothing to learn; add graph labels or graph attributes to a data set, or name "
                "the targets of molecules, tables and structures with --target."
            )
    candidates = [pair for name in names if name != AUTO for pair in _candidates(name, scales[name], args)]
    for path, task in zip(paths, tasks, strict=True):
        _fit(task, transformer, candidates, path, args)


def _output_paths(args: argparse.Namespace) -> list[Path]:
    """Return the output file of each target."""
    name, targets = str(args.output), list(dict.fromkeys(args.target))
    if len(targets) < len(args.target):
        raise ValueError(f"--target names a column twice: {', '.join(args.target)}.")
    if len(targets) > 1 and _PLACE not in name:
        raise ValueError(
            f"With several targets the output must contain {_PLACE}, as in model_{_PLACE}.tgm; got {name!r}."
        )
    return [Path(name.replace(_PLACE, target)) for target in targets or [""]]


def _fit(task: Task, transformer: Any, candidates: list[Candidate], path: Path, args: argparse.Namespace) -> None:
    from sklearn.pipeline import Pipeline

    model = _make_model(candidates, args, is_regression=_is_regression(args, task.y))
    start = time.perf_counter()
    model.fit(task.graphs, task.y)
    steps = [(type(step).__name__.lower(), step) for step in (transformer, model) if step is not None]
    treegram.save_model(Pipeline(steps) if transformer is not None else model, path)
    seconds = time.perf_counter() - start
    if not candidates:
        print(model.search_summary())
    missing = f" ({task.n_missing:,} without a value of {task.target} left out)" if task.n_missing else ""
    print(
        f"{path}: {type(model).__name__} of {counted(len(task.graphs), 'graph')} of {args.data}{missing}, {seconds:.2f} s"
    )
    print(_score(model, task.y))
    print(f"{_evaluation(task, args)} estimates how well such a model predicts new graphs.")


def _evaluation(task: Task, args: argparse.Namespace) -> str:
    """Return the command that evaluates such models."""
    one_target = argparse.Namespace(**{**vars(args), "target": [task.target] if task.target else []})
    words = ["treegram", "evaluate", *([] if args.nodes else [args.data]), *data_words(one_target, with_folders=True)]
    return shlex.join([*words, *(word for name in args.kernels or [AUTO] for word in ("--kernel", name))])


def _make_model(candidates: list[Candidate], args: argparse.Namespace, *, is_regression: bool) -> Any:
    """Return the automatic model, or one that chooses among the candidates."""
    if not candidates:
        return (treegram.GraphRegressor if is_regression else treegram.GraphClassifier)(n_jobs=args.jobs)
    kernels, grids = [kernel for kernel, _ in candidates], [grid for _, grid in candidates]
    if is_regression:
        return treegram.GraphGP(kernels, param_grid=grids, n_jobs=args.jobs)
    return treegram.GraphSVC(kernels, param_grid=grids, cv=args.folds, probability=True, n_jobs=args.jobs)


def _candidates(name: str, scales: Sequence[str], args: argparse.Namespace) -> Iterator[Candidate]:
    """Yield a kernel after each of the scales, and the grid to search: a single value of an option fixes a parameter."""
    from sklearn.pipeline import make_pipeline

    values = parameter_values(args, kernel_class(name))
    kernel = kernel_class(name)(**{key: given[0] for key, given in values.items() if len(given) == 1})
    searched = kernel.default_param_grid() | values
    grid = {key: given for key, given in searched.items() if len(given) > 1 or key not in values}
    for scale in scales:
        yield kernel if scale == "raw" else make_pipeline(treegram.ScaleAttributes(scale), kernel), grid


def _is_regression(args: argparse.Namespace, y: Any) -> bool:
    if args.task == "classification" and has_real_targets(y):
        raise ValueError(f"The targets of {args.data} are numbers, such as {y[0]}, not classes. Use --task regression.")
    if args.task == "regression" and y.dtype.kind not in "buif":
        raise ValueError(
            f"The targets of {args.data} are classes, such as {y[0]}, not numbers. Use --task classification."
        )
    return args.task == "regression" if args.task else has_real_targets(y)


def _score(model: Any, y: Any) -> str:
    """Say what was chosen, and call the score what it is: the model was chosen by it, so it is optimistic."""
    if isinstance(model, treegram.GraphClassifier):
        decisions = model.loo_decisions_
        found = decisions.argmax(axis=1) if decisions.ndim == 2 else (decisions > 0).astype(int)
        return f"Leave-one-out accuracy {(model.classes_[found] == y).mean():.3f}, optimistic: kernels and weights were chosen by it."
    if isinstance(model, treegram.GraphRegressor):
        return f"Weights are those under which the targets are most likely: log marginal likelihood {model.log_marginal_likelihood_:.4g}."
    chosen = ", ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={' '.join(str(value).split())}"
        for name, value in model.best_params_.items()
        if name != "param_grid"
    )
    if isinstance(model, treegram.GraphGP):
        return f"Best by log marginal likelihood, {model.log_marginal_likelihood_:.4g}: {chosen}"
    n_candidates = counted(len(model.cv_results_["params"]), "candidate")
    return f"Best of {n_candidates} by cross-validation: {chosen}; its accuracy {model.best_score_:.3f} is optimistic."
