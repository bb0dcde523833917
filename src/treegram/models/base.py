"""The base of all models: parameters, checks of the arguments of ``fit``, and fitting the result of a search."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from html import escape
from numbers import Integral
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d

from treegram._core.bases import BaseEstimator
from treegram._core.parallel import one_blas_thread, verbosely
from treegram._core.params import (
    FLAG,
    FUNCTION,
    LIST,
    NOTHING,
    SPLITTER,
    Allowed,
    Checked,
    Instance,
    Number,
    Whole,
    Words,
    parameters,
)
from treegram._core.text import counted, warn_user
from treegram._core.types import Array, Floats, Ints, Masks
from treegram.exceptions import ParameterError
from treegram.graphs import Graphs, as_graphs
from treegram.kernels.base import GraphKernel
from treegram.kernels.registry import AUTO, PRECOMPUTED
from treegram.models import linear
from treegram.models.auto import auto_candidates
from treegram.models.blocks import linear_candidates
from treegram.models.parts import Parts, read_chunks
from treegram.models.search import (
    Candidate,
    Data,
    Fits,
    Precomputed,
    Score,
    SearchResult,
    Splits,
    check_gram,
    check_memory,
    list_candidates,
    search,
)

STRENGTHS: Allowed = (Number(0, above=True), LIST)
SPLITS: Allowed = (Whole(2), SPLITTER, LIST)
_MOST_SHOWN = 5  # kernels in the repr of an automatic model
_MOST_EXACT = 2**53  # larger whole numbers are not exact as floats
_LARGEST = 1e150  # target: its square, summed over all graphs, is finite
_MANY_CLASSES, _FEW_PER_CLASS = 20, 5  # more classes with fewer graphs look like measurements
DecisionParts: TypeAlias = tuple[list[tuple[Any, Floats]], Floats, tuple[Any, ...]]


def flat_steps(model: Any) -> list[Any]:
    """List the steps of a pipeline and of pipelines within it; a model that is not a pipeline is its only step."""
    if not isinstance(model, Pipeline):
        return [model]
    steps = (step for _, step in model.steps if step is not None and step != "passthrough")
    return [flat for step in steps for flat in flat_steps(step)]


class SearchSummary:
    """A table of the candidates of an automatic model: the largest weights first, then the best scores, then candidates that failed."""

    def __init__(self, records: Sequence[Mapping[str, Any]], score_name: str, note: str = "") -> None:
        self.note = note  # below the table
        self.columns = ("weight", score_name, "graphs", "seconds", "candidate", "reason")
        self.rows = []
        for record in sorted(records, key=_rank):
            weight, score, note = record["weight"], record["score"], record["note"]
            self.rows.append(
                (
                    "" if weight is None else f"{weight:.3f}",
                    "" if score is None else f"{score:.4f}",
                    str(record["n_graphs"]),
                    f"{record['seconds']:.1f}",
                    record["candidate"],
                    f"{record['reason']} ({note})" if note else record["reason"],
                )
            )

    def __str__(self) -> str:
        rows = [self.columns, *self.rows]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        numbers = ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths[:4], strict=False)) for row in rows]
        lines = [f"{left}  {row[4]:<{widths[4]}}  {row[5]}" for left, row in zip(numbers, rows, strict=True)]
        return "\n".join(line.rstrip() for line in [*lines, *filter(None, [self.note])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, *body = (
            "<tr>" + "".join(f'<{tag} style="text-align:left">{escape(cell)}</{tag}>' for cell in row) + "</tr>"
            for tag, row in [("th", self.columns), *(("td", row) for row in self.rows)]
        )
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>{note}"


def _rank(record: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return a sort key: the largest weight, then the most graphs, then the best score; those without a score come last."""
    weight, score = record["weight"], record["score"]
    if score is None:
        return (0.0, 0.0, 0.0)
    return (-(weight or 0.0), -record["n_graphs"], -score)


@parameters
class GraphModel(Checked, BaseEstimator):
    """Base of all models."""

    _allowed: ClassVar[Mapping[str, Allowed]] = {"n_jobs": (Whole(), NOTHING), "verbose": (FLAG, Whole(0))}

    n_jobs: int | None = None
    verbose: int = 0

    def _forget(self) -> None:
        """Remove what an earlier ``fit`` has learned."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    def _check_one_target(self) -> None:
        """Raise unless the model is fitted, on a single target."""
        check_is_fitted(self)
        if hasattr(self, "estimators_"):
            raise ParameterError(
                f"This {type(self).__name__} was fitted on several targets, and has a model for each: use one of them, such as "
                "model.estimators_[0], for anything but predict and score."
            )

    def _read_new(self, X: Any) -> Any:
        """Return new graphs as a collection."""
        return as_graphs(X)

    @abstractmethod
    def _decision_parts(self) -> DecisionParts:
        """Return the parts of a decision: fitted kernels with weights of their graphs, intercepts, and the names of outputs.

        Decisions are the sum over the parts of K(X, fitted) @ weights, plus the intercept.
        """


@parameters
class CombiningModel(GraphModel):
    """Base of the automatic models, which combine several kernels with learned weights."""

    _allowed: ClassVar[Mapping[str, Allowed]] = {"kernels": (Words(AUTO), Instance((list, tuple), "a list of kernels"))}
    _score_name: ClassVar[str]  # of the scores in search_results_

    kernels: Any = field(default=AUTO, kw_only=False)

    def search_summary(self) -> SearchSummary:
        """Return a table of the candidates that prints as plain text and renders as a table in a notebook.

        Returns
        -------
        SearchSummary
            One row for each record of ``search_results_``: weight, leave-one-out score, the number of graphs it was computed
            on, seconds, candidate, and why it was tried or left out. The largest weights come first, candidates without a
            score last.
        """
        self._check_one_target()
        return SearchSummary(self.search_results_, self._score_name, self._describe_targets())  # type: ignore[attr-defined]

    def _describe_targets(self) -> str:
        """Return a line about the targets; only regressors have one."""
        return ""

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text: str = super().__repr__(N_CHAR_MAX)
        choice = self._describe_choice()
        return f"{text}  # {choice}" if choice else text

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        choice = self._describe_choice()
        if choice and "text/html" in bundle:
            bundle["text/html"] += f"<p>{escape(choice)}</p>"
        return bundle

    def _describe_choice(self) -> str:
        """Return the weights of a fitted model and the names of its candidates, the largest first; else an empty text."""
        records = [record for record in getattr(self, "search_results_", []) if record["weight"] is not None]
        records.sort(key=_rank)
        terms = [f"{record['weight']:.2f} {record['candidate']}" for record in records[:_MOST_SHOWN]]
        n_more = len(records) - len(terms)
        return " + ".join([*terms, f"{n_more} more"] if n_more else terms)

    @property
    def _is_auto(self) -> bool:
        return isinstance(self.kernels, str)

    def _candidates(self, graphs: Graphs, *, with_counts: bool = False) -> list[Candidate]:
        if self._is_auto:
            return auto_candidates(graphs, self.n_jobs, with_counts=with_counts)
        return list_candidates(self.kernels, {}, self.n_jobs)

    def _fit_chunks(self, chunks: Any, sample_weight: Any) -> Self:
        """Fit on pairs (graphs, y), as on all graphs together."""
        with verbosely(self.verbose), read_chunks(chunks, check_fit) as (parts, y):
            graphs = parts if len(parts) > linear.SWITCH else parts.gather(np.arange(len(parts)))
            return self.fit(graphs, y, sample_weight=sample_weight)  # type: ignore[attr-defined]

    def _row_candidates(self, graphs: Graphs) -> list[Candidate]:
        """Return the candidates for a linear model on rows."""
        return linear_candidates(graphs, self.n_jobs) if self._is_auto else self._candidates(graphs)


@parameters
class KernelModel(GraphModel):
    """Base of the models that choose one kernel, its parameters and a strength of regularization."""

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "kernel": (Instance((GraphKernel, Pipeline, str, list, tuple), "a kernel, its name, or a list of these"),),
        "param_grid": (Words("auto"), Instance((dict, list, tuple), "a dict of lists, or a list of these")),
    }

    kernel: Any = field(default="oddcl", kw_only=False)
    param_grid: Any = "auto"

    def _search(self, data: Data, strength: str) -> SearchResult:
        """Find the best candidate and set the attributes that describe it; its kernel is not fitted yet."""
        check_memory(len(data.graphs))
        score = self._make_score(data)
        result = search(data, self._candidates(), score, strength, n_jobs=self.n_jobs, verbose=self.verbose)
        self.best_params_ = result.table["params"][result.index]
        kernel = self.best_params_["kernel"]
        self.kernel_: Any = Precomputed() if kernel == PRECOMPUTED else clone(kernel)
        return result

    def _candidates(self) -> list[Candidate]:
        return list_candidates(self.kernel, self.param_grid, self.n_jobs)

    def _kernel_on_graphs(self) -> Any:
        """Return the fitted kernel; raise if the user passed a Gram matrix instead."""
        self._check_one_target()
        if isinstance(self.kernel_, Precomputed):
            raise ParameterError(
                f"{type(self).__name__} with kernel='precomputed' cannot be explained: it knows no graphs. Fit it on graphs."
            )
        return self.kernel_

    def _decision_parts(self) -> DecisionParts:
        kernel = self._kernel_on_graphs()
        weights, intercept = self.dual_coef_[:, None], self.intercept_  # type: ignore[attr-defined]
        return [(kernel, weights)], np.array([intercept]), ("prediction",)

    @abstractmethod
    def _make_score(self, data: Data) -> Score:
        """Return the function that scores a Gram matrix on one fold, for each strength."""


@parameters
class CrossValidatedModel(KernelModel):
    """Base of the models that choose by cross-validation.

    A subclass names its regularization parameter and the order in which values are tried, reads targets and divides
    them into folds, scores a fold, and fits the best candidate.
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "scoring": (Instance((str,), "the name of a scorer of scikit-learn"), FUNCTION, NOTHING),
        "cv": SPLITS,
    }
    _strength: ClassVar[str]
    _order: ClassVar[slice] = slice(None)  # ties go to the first strength

    scoring: Any = None
    cv: Any = 10

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed
        return tags

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose a kernel, its parameters and the strength of regularization, and fit the model on all graphs.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs; with ``kernel="precomputed"`` their Gram matrix, an array of shape (n_graphs, n_graphs).
        y : array-like of shape (n_graphs,)
            One target for each graph: for a classifier its class (an integer, string or boolean), for a regressor a number.
        sample_weight : array-like of shape (n_graphs,), default=None
            Weights of graphs in each fit: they multiply C, or the squared error, and a classifier is not fitted on
            graphs of weight 0. Scores of the search are also weighted, except with your own ``scoring`` function.
        groups : array-like of shape (n_graphs,), default=None
            For a splitter that keeps groups together, such as :class:`sklearn.model_selection.GroupKFold`.

        Returns
        -------
        self
            The fitted model.
        """
        self._check_parameters()
        graphs, labels = check_fit(X, y, check_gram if self._is_precomputed else as_graphs)
        self._forget()
        targets = self._read_targets(labels)
        strengths = check_strengths(self._strength, getattr(self, self._strength))[self._order]
        weights = None if sample_weight is None else check_weights(sample_weight, len(targets))
        data = Data(graphs, targets, weights, strengths, self._splits(targets, groups))
        with one_blas_thread(), verbosely(self.verbose):
            result = self._search(data, self._strength)
            self.cv_results_, self.best_index_ = result.table, result.index
            self.best_score_ = float(result.table["mean_test_score"][result.index])
            self._fit_best(data, result.fits)
        return self

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == PRECOMPUTED

    def _candidates(self) -> list[Candidate]:
        if not self._is_precomputed:
            return super()._candidates()
        if self.param_grid not in ("auto", {}):
            raise ValueError(
                f"param_grid cannot be used with kernel='precomputed', which has no parameters; got {self.param_grid!r}."
            )
        return [Candidate(PRECOMPUTED, Precomputed())]

    def _read_new(self, X: Any) -> Any:
        return self.kernel_.transform(X) if isinstance(self.kernel_, Precomputed) else super()._read_new(X)

    @abstractmethod
    def _read_targets(self, labels: Array) -> Array:
        """Return the targets as numbers: class codes, or the regression targets themselves."""

    def _splits(self, targets: Array, groups: Any) -> Splits:
        """Return the (training, test) ids of the folds."""
        if isinstance(self.cv, Integral):
            return self._folds(targets, int(self.cv))
        splits = list(check_cv(self.cv).split(np.zeros(len(targets)), targets, groups))
        if not splits:
            raise ValueError(f"cv must give at least one pair of training and test ids; got {self.cv!r}.")
        return [(np.asarray(train, dtype=np.int64), np.asarray(test, dtype=np.int64)) for train, test in splits]

    @abstractmethod
    def _folds(self, targets: Array, n_folds: int) -> Splits:
        """Return ``n_folds`` folds, or fewer, with a warning, if there are too few graphs."""

    @abstractmethod
    def _fit_best(self, data: Data, fits: Fits) -> None:
        """Fit ``kernel_`` with the best strength on all graphs; ``fits`` are those of the search."""


# -------------------------------------------------------------------- arguments of fit


def check_fit(X: Any, y: Any, read: Callable[[Any], Any] = as_graphs) -> tuple[Any, Array]:
    """Return the graphs, converted by ``read``, and the targets; raise unless there is one target for each graph."""
    graphs, targets = X if isinstance(X, Parts) else read(X), check_targets(y)
    if len(graphs) != len(targets):
        raise ValueError(f"y must have one target for each graph: {len(graphs)} graphs, got {len(targets)} targets.")
    return graphs, targets


def check_targets(y: Any) -> Array:
    """Return the targets as a one-dimensional array; raise if any is missing. A single column counts as one target."""
    if y is None:
        raise ValueError("y is missing: give one target for each graph.")
    targets = np.asarray(y)
    if targets.ndim == 2 and targets.shape[1] == 1:
        y = targets = column_or_1d(targets, warn=True)
    if targets.ndim != 1:
        raise ValueError(
            f"y must have one target for each graph; got an array of shape {targets.shape}. Only GraphRegressor, GraphRidge and "
            "GraphGP take several numbers for each graph, and not with kernel='precomputed'."
        )
    # Look at the original values: numpy turns a NaN among strings into a string, and drops a mask.
    for i, target in enumerate(y.tolist() if isinstance(y, np.ndarray) else y):
        if _is_missing(target):
            raise ValueError(f"y[{i}] is {target}: the target of graph {i} is missing. Leave this graph out.")
    return targets


def _is_missing(target: Any) -> bool:
    try:
        return target is None or bool(target != target)  # NaN and NaT are not equal to themselves
    except TypeError:  # pandas.NA: comparisons are neither True nor False
        return True


def check_weights(sample_weight: Any, n_graphs: int) -> Floats:
    """Return the weights of graphs as an array, checked to be finite and not negative."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_graphs,):
        raise ValueError(
            f"sample_weight must have one number for each of {n_graphs} graphs; got shape {weights.shape}."
        )
    is_valid = np.isfinite(weights) & (weights >= 0)
    if not is_valid.all() or not weights.any():
        first = int(np.argmin(is_valid))
        raise ValueError(
            f"sample_weight must be finite, not negative, and not 0 for all; sample_weight[{first}] is {weights[first]}."
        )
    return weights


def leave_out_weightless(graphs: Any, targets: Array, sample_weight: Any) -> tuple[Any, Array, Floats]:
    """Return the graphs with a weight above 0, their targets, and their weights, whose mean is 1."""
    if sample_weight is None:
        return graphs, targets, np.ones(len(targets))
    weights = check_weights(sample_weight, len(targets))
    ids = np.flatnonzero(weights > 0)
    if len(ids) < len(weights):
        graphs, targets, weights = graphs[ids], targets[ids], weights[ids]
    return graphs, targets, weights / weights.mean()


def check_strengths(name: str, values: Any) -> Floats:
    """Return the distinct strengths of regularization, ascending; ``name`` is their parameter, for errors."""
    try:
        strengths = np.unique(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        strengths = np.empty(0)
    if not strengths.size or not (np.isfinite(strengths).all() and strengths[0] > 0):
        raise ValueError(f"{name} must be positive and finite; got {values!r}. Give a number, or a list of numbers.")
    return strengths


def check_classes(labels: Array) -> tuple[Array, Ints]:
    """Return the sorted classes and the code of each graph's class; warn if the targets look like those of a regression."""
    if labels.dtype.kind == "f":
        rule = "a class that is a number must be finite and at most 2^53 in size"
        _check_each(labels, np.abs(labels) <= _MOST_EXACT, rule)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)  # there is a clearer one below
        if type_of_target(labels).startswith("continuous"):
            raise ValueError(
                f"y must be classes: integers, strings or booleans; got numbers such as {labels.flat[0]}. For numbers use "
                "GraphRegressor, GraphRidge or GraphGP."
            )
        check_classification_targets(labels)
    classes, codes = encode_classes(labels)
    _warn_of_many_classes(classes, codes)
    return classes, codes


def _warn_of_many_classes(classes: Array, codes: Ints) -> None:
    """Warn if most classes have a single graph, or if the classes are whole numbers of many values."""
    n_graphs, n_classes, n_single = len(codes), len(classes), (np.bincount(codes) == 1).sum()
    are_numbers = classes.dtype.kind in "iuf"
    looks_measured = are_numbers and n_classes > _MANY_CLASSES and n_graphs < _FEW_PER_CLASS * n_classes
    if not looks_measured and (2 * n_single <= n_classes or n_classes == 2):
        return
    cure = (
        "If these are measurements, use GraphRegressor."
        if are_numbers
        else "Merge classes, or leave the rare ones out."
    )
    warn_user(
        f"y has {n_classes} distinct values for {n_graphs} graphs, and each is a class of its own: little can be learned about "
        f"classes of so few graphs. {cure}",
    )


def encode_classes(y: Any) -> tuple[Array, Ints]:
    """Return the sorted classes and the code of each graph's class; raise if there are fewer than two classes."""
    classes, codes = np.unique(check_targets(y), return_inverse=True)
    if len(classes) < 2:
        content = f"{counted(len(codes), 'graph')} of class {classes[0]!s} alone" if len(classes) else "no graphs"
        raise ValueError(f"Classification needs at least two classes; got {content}.")
    return classes, codes.astype(np.int64)


def weigh_classes(
    class_weight: Any, classes: Array, codes: Ints, sample_weight: Floats | None, train: Ints
) -> Floats | None:
    """Return the weight of each graph, valid for the graphs in ``train``; None if all are 1."""
    if class_weight is None:
        return sample_weight
    present = np.unique(codes[train])
    of_class = np.ones(len(classes))
    named = class_weight
    if isinstance(class_weight, dict):
        unknown = [name for name in class_weight if name not in classes]
        if unknown:
            raise ValueError(f"class_weight names {unknown[0]!r}, which is not a class; the classes are {classes}.")
        named = {name: weight for name, weight in class_weight.items() if name in classes[present]}
    of_class[present] = compute_class_weight(named, classes=classes[present], y=classes[codes[train]])
    return of_class[codes] * (1.0 if sample_weight is None else sample_weight)


def check_numbers(targets: Array) -> Floats:
    """Return targets as finite numbers that a float represents exactly, and whose squares do not overflow."""
    try:
        numbers = targets.astype(np.float64) if targets.dtype.kind != "c" else None
    except (OverflowError, TypeError, ValueError):
        numbers = None
    if numbers is None:
        raise ValueError(
            f"y must be real numbers; got an array of dtype {targets.dtype}. For classes use GraphClassifier or GraphSVC."
        )
    _check_each(targets, np.isfinite(numbers), "targets must be finite numbers")
    _check_each(targets, np.abs(numbers) <= _LARGEST, f"targets must be at most {_LARGEST:g} in size: use another unit")
    if targets.dtype.kind in "iuO":
        is_exact = np.array([not isinstance(target, int) or abs(target) <= _MOST_EXACT for target in targets.tolist()])
        _check_each(targets, is_exact, "whole numbers beyond 2^53 are not exact as floats: subtract a constant")
    return numbers


def _check_each(targets: Array, is_valid: Masks, rule: str) -> None:
    """Raise with the rule, the position and the value of the first target that is not valid."""
    if not is_valid.all():
        first = int(np.argmin(is_valid))
        raise ValueError(f"y[{first}] is {targets[first]!s}: {rule}.")
