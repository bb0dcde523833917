"""What all models share: their parameters, the checks of what is given to ``fit``, and the way from a search to a fitted model."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from treegram._core.params import (
    FLAG,
    FUNCTION,
    LIST,
    NOTHING,
    SEED,
    SPLITTER,
    Allowed,
    Checked,
    Instance,
    Number,
    Whole,
    Words,
    parameters,
)
from treegram._core.progress import verbosely
from treegram._core.types import Floats
from treegram.graphs import Graphs, as_graphs
from treegram.kernels.registry import AUTO
from treegram.models.account import account_table
from treegram.models.auto import search_auto
from treegram.models.crossval import Fits, check_targets
from treegram.models.search import (
    KERNEL,
    Blocks,
    Budget,
    Found,
    Given,
    Score,
    Splits,
    check_strengths,
    list_entries,
    search,
)
from treegram.pairsum.maps import one_blas_thread

__all__ = [
    "STRENGTHS",
    "CrossValidatedModel",
    "GraphModel",
    "check_fit",
    "check_numbers",
    "list_splits",
]

clock = time.monotonic  # by which max_seconds is measured
STRENGTHS: Allowed = (Number(0, above=True), LIST)


@parameters
class GraphModel(Checked, BaseEstimator):
    """Base of all models: graphs and kernels in, the best kernel with its parameters and a strength of regularization out."""

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "kernel": KERNEL,
        "grid": (Words("auto"), Instance((dict,), "a dict of lists"), Instance((list, tuple), "a list of these")),
        "max_seconds": (Number(0), NOTHING),
        "n_jobs": (Whole(), NOTHING),
        "verbose": (FLAG, Whole(0)),
    }

    kernel: Any = field(default=None, kw_only=False)
    grid: Any = "auto"
    max_seconds: float | None = None
    n_jobs: int | None = None
    verbose: int = 0

    def _search(self, given: Given, strength: str) -> Found:
        """Find the best candidate, and write it down; the kernel is fitted next."""
        options: dict[str, Any] = {"n_jobs": self.n_jobs, "verbose": int(self.verbose)}
        budget = Budget(self.max_seconds, clock)
        if isinstance(self.kernel, str) and self.kernel == AUTO:
            if self.grid != "auto":
                raise ValueError(
                    f"grid does not go with kernel='auto', which has its own candidates; got {self.grid!r}."
                )
            found = search_auto(given, self._fold_score, strength, budget=budget, **options)
        else:
            entries = list_entries(self.kernel, self.grid, self.n_jobs)
            score, blocks = self._fold_score(given), self._blocks()
            found = search(entries, given, score, strength, budget=budget, blocks=blocks, **options)
        self.kernel_ = found.kernel
        self.best_params_ = found.table["params"][found.index]
        self.search_results_ = found.account
        return found

    def search_summary(self) -> str:
        """What was tried, as a table of plain text: candidates with score, seconds and what became of them.

        Returns
        -------
        str
            One line for each record of ``search_results_``, the best first, and then those without a score.
        """
        check_is_fitted(self)
        return account_table(self.search_results_)

    @abstractmethod
    def _fold_score(self, given: Given) -> Score:
        """What scores a Gram matrix on one fold, for each strength."""

    def _blocks(self) -> Blocks | None:
        """What gives the matrices that are scored, where these are not Gram matrices."""
        return None


@parameters
class CrossValidatedModel(GraphModel):
    """Base of the models that choose by cross-validation.

    A model says what its strength of regularization is called and in which order values are tried, how targets are read and
    divided into folds, what a fold scores, and how the best candidate is fitted.
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "scoring": (Instance((str,), "the name of a scorer of scikit-learn"), FUNCTION, NOTHING),
        "cv": (Whole(2), SPLITTER, LIST),
        "random_state": SEED,
    }
    _strength: ClassVar[str]
    _order: ClassVar[slice] = slice(None)  # of equal scores the first strength wins

    scoring: Any = None
    cv: Any = 10
    random_state: Any = 0

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose a kernel, its parameters and the strength of regularization, and fit them on all graphs.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs.
        y : array-like of shape (n_graphs,)
            One target for each graph: for a classifier its class (an integer, string or boolean), for a regressor a number.
        sample_weight : array-like of shape (n_graphs,), default=None
            Weights of graphs in each fit: C, or the squared error, is multiplied by them, and a classifier is not fitted on
            graphs of weight 0. Scores of the search are weighted, too, but for a ``scoring`` function of your own.
        groups : array-like of shape (n_graphs,), default=None
            For a splitter that keeps groups together, such as :class:`sklearn.model_selection.GroupKFold`.

        Returns
        -------
        self
            The fitted model.
        """
        self._check_parameters()
        graphs, labels = check_fit(X, y)
        targets = self._read_targets(labels)
        strengths = check_strengths(self._strength, getattr(self, self._strength))[self._order]
        weights = check_weights(sample_weight, len(targets))
        given = Given(graphs, targets, weights, strengths, self._splits(targets, groups))
        with one_blas_thread(), verbosely(self.verbose):
            found = self._search(given, self._strength)
            self.cv_results_, self.best_index_ = found.table, found.index
            self.best_score_ = float(found.table["mean_test_score"][found.index])
            self._fit_best(given, found.fits)
        return self

    @abstractmethod
    def _read_targets(self, given: NDArray[Any]) -> NDArray[Any]:
        """The targets as numbers: codes of classes, or the numbers themselves."""

    @abstractmethod
    def _splits(self, targets: NDArray[Any], groups: Any) -> Splits:
        """(training, test) ids of the folds."""

    @abstractmethod
    def _fit_best(self, given: Given, fits: Fits) -> None:
        """Fit ``kernel_`` with the best strength on all graphs; ``fits`` are those of the search."""


# -------------------------------------------------------------------- what is given to fit


def check_fit(X: Any, y: Any) -> tuple[Graphs, NDArray[Any]]:
    """The graphs and their targets, as many of one as of the other."""
    graphs, targets = as_graphs(X), check_targets(y)
    if len(graphs) != len(targets):
        raise ValueError(f"y must have one target for each graph: {len(graphs)} graphs, got {len(targets)} targets.")
    return graphs, targets


def check_weights(sample_weight: Any, n_graphs: int) -> Floats | None:
    """Weights of graphs, finite and not negative; None for None."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_graphs,):
        raise ValueError(
            f"sample_weight must have one number for each of {n_graphs} graphs; got shape {weights.shape}."
        )
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise ValueError(
            f"sample_weight must be finite and not negative; sample_weight[{wrong[0]}] is {weights[wrong[0]]}."
        )
    if not weights.any():
        raise ValueError("sample_weight must be above 0 for some graph; all weights are 0.")
    return weights


def list_splits(cv: Any, y: NDArray[Any], groups: Any) -> Splits:
    """(training, test) ids of a splitter, or of an iterable of such pairs."""
    splits = list(check_cv(cv).split(np.zeros(len(y)), y, groups))
    if not splits:
        raise ValueError(f"cv must give at least one pair of training and test ids; got {cv!r}.")
    return [(np.asarray(train, dtype=np.int64), np.asarray(test, dtype=np.int64)) for train, test in splits]


def check_numbers(targets: NDArray[Any]) -> Floats:
    """Targets as finite numbers."""
    wrong = ValueError(f"y must be real numbers; got an array of dtype {targets.dtype}. For classes use GraphSVC.")
    if targets.dtype.kind == "c":
        raise wrong
    try:
        numbers = targets.astype(np.float64)
    except (TypeError, ValueError):
        raise wrong from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"y must be finite numbers; got {numbers[~np.isfinite(numbers)][0]}.")
    return numbers
