"""``treegram fit``: choose a model, fit it to a data set, and save it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import treegram
from treegram._core.text import counted
from treegram.cli._data import add_data_argument, load
from treegram.cli._kernels import (
    AUTO,
    add_search_options,
    find_task,
    kernel_class,
    parameter_values,
    scales_by_kernel,
)
from treegram.cli._parser import Parser, add_jobs, add_output, check_output, show

if TYPE_CHECKING:
    from treegram.graphs.graph_table import GraphTable

EXAMPLES = (
    "treegram fit ENZYMES -o enzymes.tgm",
    "treegram fit ENZYMES --kernel oddcl --kernel wl -o enzymes.tgm",
    "treegram fit ./mine --kernel oddcl --scale raw,standard --gamma none,scale -o mine.tgm",
    "treegram fit ./solubility --task regression -o solubility.tgm",
    "treegram fit molecules.csv --target solubility -o solubility.tgm",
    "treegram fit molecules.csv --target a --target b --no-descriptors -o 'model_{target}.tgm'",
    "treegram fit ./tables --target y -o model.tgm",
    "treegram fit ./structures --graphs classes.csv --target class -o proteins.tgm",
)
_OPTIMISTIC = "optimistic, because kernels and weights were chosen with the same graphs."
Candidate = tuple[Any, dict[str, list[Any]]]  # a kernel, and the grid of its parameters


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the command."""
    add_data_argument(parser)
    add_output(
        parser,
        "model file, with the graphs of DATA; it holds no code, and treegram predict reads it. With several targets, its name "
        "must contain {target}: each gets a model of its own, fitted on the graphs that have a value",
    )
    models = "classification (with probabilities if --kernel is auto), or regression with error bars"
    add_search_options(parser, models)
    add_jobs(parser)


def run(args: argparse.Namespace) -> None:
    """Fit and save; check everything possible before the computation."""
    targets = getattr(args, "target", [""])
    paths = {target: Path(str(args.output).replace("{target}", target)) for target in targets}
    if len(set(paths.values())) < len(targets):
        raise ValueError(
            f"With several targets, each once, the output must contain {{target}}, as in model_{{target}}.tgm; got {args.output}."
        )
    for path in paths.values():
        check_output(path, force=args.force)
    scales_of = scales_by_kernel(args)
    if AUTO in scales_of and len(scales_of) > 1:
        raise ValueError("--kernel auto cannot be combined with other kernels: it tries all that suit the data.")
    candidates = [
        pair for name, scales in scales_of.items() if name != AUTO for pair in _candidates(name, scales, args)
    ]
    table = load(args.data, args, kernels=scales_of)
    if not table.targets:
        raise ValueError(
            f"{args.data} has no targets, so there is nothing to learn; add graph labels or graph attributes to a data set, or name "
            "the targets of molecules, tables and structures with --target."
        )
    tasks = {target: find_task(table, target, args) for target in paths}
    for target, path in paths.items():
        _fit(table, target, tasks[target], candidates, path, args)


def _candidates(name: str, scales: Sequence[str], args: argparse.Namespace) -> Iterator[Candidate]:
    """Yield the kernel with each scale, and the grid to search: an option with a single value fixes a parameter."""
    from sklearn.pipeline import make_pipeline

    options = parameter_values(args, name)
    kernel = kernel_class(name)(**{key: values[0] for key, values in options.items() if len(values) == 1})
    searched = kernel.default_param_grid() | options
    grid = {key: values for key, values in searched.items() if len(values) > 1 or key not in options}
    for scale in scales:
        yield kernel if scale == "raw" else make_pipeline(treegram.ScaleAttributes(scale), kernel), grid


def _fit(
    table: GraphTable, target: str, task: str, candidates: list[Candidate], path: Path, args: argparse.Namespace
) -> None:
    from sklearn.pipeline import make_pipeline

    graphs, y = table.with_target(target)
    model = _make_model(task, candidates, args)
    start = time.perf_counter()
    model.fit(graphs, y)
    transformer = _drop_unused_descriptors(table.transformer, model)
    treegram.save_model(model if transformer is None else make_pipeline(transformer, model), path)
    seconds = time.perf_counter() - start
    if not candidates:
        show(str(model.search_summary()))
    show(f"{path}: {type(model).__name__} of {counted(len(graphs), 'graph')} of {args.data}, {seconds:.2f} s")
    # An automatic model has named the scale below its table.
    if candidates and getattr(model, "target_scale_", None) is not None:
        show(f"targets: {model.target_scale_}")
    show(_score(model))
    print("treegram evaluate, with the same data and kernels, estimates how well such a model predicts new graphs.")


def _drop_unused_descriptors(transformer: Any, model: Any) -> Any:
    """Return the transformer of molecules without descriptors that no kernel uses, which predict then does not compute.

    They are dropped from the fitted graphs as well: a graph is known from the training data if all of its fields are.
    """
    from sklearn.base import clone

    from treegram.graphs.check import column_groups

    groups = getattr(transformer, "descriptors", None)
    kernels = [part for kernel in getattr(model, "kernels_", []) for part in _parts(kernel)]
    used = {kernel.group for kernel in kernels if getattr(kernel, "columns", "statistics") != "statistics"}
    if not groups or not kernels or None in used or used >= set(groups):
        return transformer
    for kernel in kernels:
        values, names = kernel.graphs_.graph_attributes, kernel.graphs_.graph_attribute_names
        columns = [i for group, ids in column_groups(names, len(names)).items() if group in used for i in ids]
        kernel.graphs_ = kernel.graphs_.assign(graph_attributes=None)
        if columns:
            named = [names[i] for i in columns]
            kernel.graphs_ = kernel.graphs_.assign(graph_attributes=values[:, columns], graph_attribute_names=named)
    return clone(transformer).set_params(descriptors=[group for group in groups if group in used] or None)


def _parts(kernel: Any) -> list[Any]:
    """Return the kernel at the end of a pipeline, and the kernels that it adds up, if any."""
    from treegram.kernels.grid import split_pipeline

    final = split_pipeline(kernel)[1]
    return [final, *(part for inner in getattr(final, "kernels_", []) for part in _parts(inner))]


def _make_model(task: str, candidates: list[Candidate], args: argparse.Namespace) -> Any:
    """Return the automatic model, or one that chooses among the candidates."""
    if not candidates:
        automatic = treegram.GraphRegressor if task == "regression" else treegram.GraphClassifier
        return automatic(n_jobs=args.jobs)
    kernels, grids = [kernel for kernel, _ in candidates], [grid for _, grid in candidates]
    if task == "regression":
        return treegram.GraphGP(kernels, param_grid=grids, n_jobs=args.jobs)
    return treegram.GraphSVC(kernels, param_grid=grids, cv=args.folds, n_jobs=args.jobs)


def _score(model: Any) -> str:
    """Describe what was chosen and its score, which is optimistic because the model was chosen by it."""
    if isinstance(model, treegram.GraphClassifier):
        scores = model.loo_scores_
        largest = f"accuracy {scores['accuracy']:.3f} (the largest class: {scores['largest_class']:.3f})"
        return f"Leave-one-out {largest}, AUC {scores['auc']:.3f}; {_OPTIMISTIC}"
    if isinstance(model, treegram.GraphRegressor):
        scores = model.loo_scores_
        errors = f"RMSE {scores['rmse']:.4g}, MAE {scores['mae']:.4g}, R2 {scores['r2']:.3f}"
        return f"Leave-one-out {errors}, in units of the target; {_OPTIMISTIC}"
    choice = ", ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={' '.join(str(value).split())}"
        for name, value in model.best_params_.items()
        if name != "param_grid"
    )
    if isinstance(model, treegram.GraphGP):
        return f"Best by log marginal likelihood, {model.log_marginal_likelihood_:.4g}: {choice}"
    n_candidates = counted(len(model.cv_results_["params"]), "candidate")
    return f"Best of {n_candidates} by cross-validation: {choice}; its accuracy {model.best_score_:.3f} is optimistic."
