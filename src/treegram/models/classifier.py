"""The automatic classifier of graphs: a stack of least-squares models on kernels that suit the graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import softmax
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_is_fitted

from treegram._core.bases import ClassifierMixin
from treegram._core.parallel import one_blas_thread, verbosely
from treegram._core.params import NOTHING, Allowed, Instance, Words, parameters
from treegram._core.text import warn_user
from treegram._core.types import Array, Floats, Ints
from treegram.graphs import as_graphs
from treegram.models import linear
from treegram.models.applicability import (
    Compared,
    ComparesWithTraining,
    class_support,
    fitted_selves,
    left_out_similarities,
    spread_ids,
)
from treegram.models.auto import (
    Screening,
    all_classes,
    choose_stack,
    class_targets,
    fit_bias,
    fit_temperature,
    learned_nothing,
    most_likely,
    warn_of_nothing,
)
from treegram.models.base import (
    CombiningModel,
    DecisionParts,
    check_classes,
    check_fit,
    leave_out_weightless,
    weigh_classes,
)
from treegram.models.conformal import PredictsSets

_LOG_ODDS = 4.0  # of a confident decision of a linear model; that of a stack is near 1


@parameters
class GraphClassifier(ComparesWithTraining, PredictsSets, ClassifierMixin, CombiningModel):
    r"""Classifier of graphs that combines several kernels, chosen and weighted by leave-one-out predictions.

    For each kernel there is a least-squares model on targets of 1 and -1, one for each class against the rest. Its
    prediction for a left-out graph has a closed form, for all strengths of regularization at once. The models are
    combined with the non-negative weights for which these predictions are best:

    .. math:: f(G) = b + \sum_k w_k \sum_i c_{ki} K_k(G, G_i)

    Parameters
    ----------
    kernels : "auto" or list of GraphKernel, Pipeline or str, default="auto"
        "auto": candidates that suit the graphs, screened on a sample; the best are fitted on all graphs. See
        :doc:`/models`. Or kernels, pipelines that end in one, or names such as "wl", all fitted with their own
        parameters.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the fit of intercepts and temperature to leave-one-out decisions; kernels and their
        models are the same for any weights. "balanced": n_graphs / (n_classes * graphs of the class), for rare classes.
    n_jobs : int or None, default=None
        Threads to use for Gram matrices, as in joblib; -1 means all. None: the kernels' own number.
    verbose : int, default=0
        If above 0, print a line for each kernel tried; where neither a terminal nor a notebook shows progress, write a line
        to stderr every half minute.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    kernels_ : list of GraphKernel or Pipeline
        The kernels of the stack, fitted.
    weights_ : ndarray of shape (n_kernels,)
        Their weights, which sum to 1, the largest first; each is at least 0.03. In a linear model on rows, the shares of
        the blocks of the variance of the decisions about left-out graphs.
    alphas_ : ndarray of shape (n_kernels,)
        The strength of regularization of each model; in a linear model on rows, that of each output.
    dual_coefs_ : list of ndarray of shape (n_fitted, n_outputs)
        For each kernel, the coefficients of its fitted graphs, times its weight. There is one output for two classes, and one
        for each class otherwise.
    blocks_, coefs_ : list
        Only with more than 10,000 graphs, instead of ``kernels_``, ``dual_coefs_`` and ``train_codes_``: the blocks of rows, each
        with its ``name``, and their coefficients, (n_columns, n_outputs).
    intercept_ : ndarray of shape (n_outputs,)
        The number added to the weighted sums of kernels.
    train_codes_ : ndarray of shape (n_fitted,)
        For each graph that kernels were fitted on, the position of its class in ``classes_``.
    temperature_ : float
        Divisor of the decisions in ``predict_proba``.
    calibration_ : ndarray of shape (n_graphs,)
        Errors for ``prediction_set``, ascending: minus the probability of the true class, for each fitted graph when it
        is left out, or for the graphs of ``calibrate``.
    loo_decisions_ : ndarray of shape (n_graphs,) or (n_graphs, n_classes)
        Leave-one-out decisions about the fitted graphs; with more than 10,000, about each when its third of them is left out.
    loo_scores_ : dict
        What they are worth: "accuracy", "largest_class" (the accuracy of always predicting the largest class) and "auc"
        (area under the ROC curve; for more than two classes, the mean over each against the rest). A little optimistic,
        since kernels and weights were chosen by them.
    search_results_ : list of dict
        One record for each kernel tried: candidate, reason, n_graphs, weight (None if left out), score, seconds, and a note (why
        it was left out). The score is the leave-one-out accuracy, of decisions around the mean of all targets: otherwise a
        useless kernel would have 0 on balanced classes. ``search_summary()`` returns it as a table.

    See Also
    --------
    GraphSVC : support vector machines on one kernel, with a search over its parameters.
    GraphRegressor : for regression.

    Notes
    -----
    Kernels and transformers learn from the fitted graphs, never from a class. Candidates of "auto" are screened on a third of
    the graphs, at least 300 and at most 1,000, and the best five are fitted on all. With more than 2,000 graphs, only
    the best three are, with the strengths found on the sample. A candidate whose cost is out of proportion is left out, with
    a note in ``search_results_``. Nothing is random.

    With more than 10,000 graphs, there is one linear model on sparse rows, fitted to all graphs by logistic loss, in time and memory that
    grow linearly: colors and pairs of nodes, counts of rare ones more than of frequent ones, a piecewise linear function of each
    number of whole graphs, and mapped rows of vectors, side by side. ``kernels`` then names the kernels whose features are used; those
    without explicit ones are mapped by :class:`FeatureMap` or :class:`Nystroem`. Decisions are logarithms of odds. The model
    keeps no graphs but one with each label, and explanations have no training graphs.

    If the stack predicts left-out graphs no better than the shares of the classes do, ``fit`` warns, and the model predicts
    these shares for every graph.

    Examples
    --------
    >>> from treegram import GraphClassifier, load_digits_graphs
    >>> graphs, y = load_digits_graphs()
    >>> model = GraphClassifier(["oddcl", "wl"]).fit(graphs[:100], y[:100])
    >>> model.weights_.round(2)
    array([0.88, 0.12])
    >>> model.predict(graphs[100:108])
    array([4, 0, 5, 3, 6, 9, 6, 1])
    >>> y[100:108]
    array([4, 0, 5, 3, 6, 9, 6, 1])
    """

    _score_name = "leave-one-out accuracy"
    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "class_weight": (Words("balanced"), Instance((dict,), "a dict of weights"), NOTHING),
    }

    class_weight: Any = None

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Choose kernels, fit a model on each, and weight the models.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs. Or, without ``y``, **chunks**: an iterable of pairs (graphs, y), such as :func:`iter_parquet`, which is read
            once; or a list of Dask's delayed objects or futures of such pairs, which stay on the workers of the cluster.
        y : array-like of shape (n_graphs,), default=None
            The class of each graph: an integer, string or boolean.
        sample_weight : array-like of shape (n_graphs,), default=None
            Factors of the squared errors of graphs; graphs of weight 0 are left out. With chunks, in their order.

        Returns
        -------
        self
            The fitted model.
        """
        self._check_parameters()
        if y is None:
            return self._fit_chunks(X, sample_weight)
        graphs, labels = check_fit(X, y)
        self._forget()
        self.classes_, codes = check_classes(labels)
        self._warn_of_single_graphs(codes)
        graphs, codes, weights = leave_out_weightless(graphs, codes, sample_weight)
        of_classes = weigh_classes(self.class_weight, self.classes_, codes, weights, np.arange(len(codes)))
        assert of_classes is not None  # since weights are given
        Y = class_targets(codes, len(self.classes_))
        screening = Screening(graphs, Y, weights, codes, self._is_auto, self.verbose)
        is_linear = len(codes) > linear.SWITCH
        with one_blas_thread(), verbosely(self.verbose):
            if is_linear:
                decisions, similarities = self._fit_rows(screening), None
            else:
                decisions, similarities = self._fit_stack(screening)
        if learned_nothing(np.tanh(decisions / 2) if is_linear else decisions, Y, weights):
            warn_of_nothing("the shares of the classes")
            decisions = self._predict_shares(codes, of_classes)
        else:
            if self.class_weight is not None:
                unit = _LOG_ODDS if is_linear else 1.0
                bias = unit * fit_bias(decisions / unit, codes, of_classes)
                self.intercept_ += bias
                decisions = decisions + bias
            self.temperature_ = fit_temperature(decisions, codes, of_classes)
        self.calibration_ = np.sort(-self._probabilities(decisions)[np.arange(len(codes)), codes])
        if similarities is not None:
            predicted = most_likely(decisions[spread_ids(len(codes))])
            self.class_supports_ = np.sort(class_support(similarities, codes, predicted))
        self.loo_decisions_ = decisions[:, 0] if decisions.shape[1] == 1 else decisions
        self.loo_scores_ = _score_decisions(decisions, codes, weights)
        self.search_results_ = screening.records
        return self

    def _fit_stack(self, screening: Screening) -> tuple[Floats, Floats]:
        """Fit a stack of kernels; return the leave-one-out decisions, and similarities of some graphs to all others."""
        fitted, self.weights_ = choose_stack(screening, self._candidates(screening.graphs))
        models = [member.model for member in fitted]
        self.kernels_ = [member.kernel for member in fitted]
        self.alphas_ = np.array([model.alpha for model in models])
        self.dual_coefs_ = [w * model.coefficients for w, model in zip(self.weights_, models, strict=True)]
        shares = [w / (float(member.selves.mean()) or 1.0) for w, member in zip(self.weights_, fitted, strict=True)]
        rows = sum(share * member.rows for share, member in zip(shares, fitted, strict=True))
        selves = sum(share * member.selves for share, member in zip(shares, fitted, strict=True))
        similarities = left_out_similarities(rows, selves)
        self.nearest_similarities_ = np.sort(similarities.max(axis=1))
        self.intercept_ = self.weights_ @ [model.intercept for model in models]
        assert screening.codes is not None
        self.train_codes_ = screening.codes.astype(np.int64)
        return np.tensordot(self.weights_, [model.loo_predictions for model in models], 1), similarities

    def _fit_rows(self, screening: Screening) -> Floats:
        """Fit a linear model on rows; return the decisions about the graphs of left-out folds."""
        self.blocks_, model = linear.fit_blocks(screening, self._row_candidates, (screening.Y + 1) / 2, "logistic")
        self.coefs_, self.weights_, self.alphas_ = model.coefficients, model.shares, model.penalties
        self.intercept_ = model.intercept
        return model.left_out

    def _predict_shares(self, codes: Ints, weights: Floats) -> Floats:
        """Make the weighted shares of the classes the answer for all graphs; return the decisions about the fitted ones."""
        shares = np.bincount(codes, weights, minlength=len(self.classes_)) / weights.sum()
        logs = np.round(np.log(np.maximum(shares, np.finfo(np.float64).tiny)), 12)  # the rest is rounding
        self.intercept_ = (logs[1:] - logs[:1]) / 2 if len(logs) == 2 else logs
        self.temperature_ = 1.0
        for coefficients in self._coefficients:
            coefficients[:] = 0.0
        return np.tile(self.intercept_, (len(codes), 1))

    def _describe_choice(self) -> str:
        if hasattr(self, "intercept_") and not any(coefficients.any() for coefficients in self._coefficients):
            return "nothing was learned: the shares of the classes"
        return super()._describe_choice()

    def _warn_of_single_graphs(self, codes: Ints) -> None:
        counts = np.bincount(codes)
        if counts.min() == 1 and 2 * (counts == 1).sum() <= len(counts):  # `check_classes` warns if most have one
            warn_user(
                f"Class {self.classes_[counts.argmin()]!s} has a single graph: when that graph is left out, nothing is known of "
                "the class, so it counts as a mistake of every kernel. Add graphs, or leave the class out.",
            )

    def decision_function(self, X: Any) -> Floats:
        """Return how clearly graphs belong to the classes.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not.

        Returns
        -------
        ndarray of shape (n_graphs,) or (n_graphs, n_classes)
            For two classes, a number above 0 for the second; for more, one number for each class against the rest.
            Confident decisions are near 1 and -1.
        """
        decisions = self._decide(X)
        return decisions[:, 0] if decisions.shape[1] == 1 else decisions

    def predict(self, X: Any) -> Array:
        """Predict the classes of graphs.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not.

        Returns
        -------
        ndarray of shape (n_graphs,)
            For each graph, the class with the highest decision.
        """
        decisions = self._decide(X)
        return self.classes_[most_likely(decisions)]

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the classes.

        They are proportional to exp(decision / temperature). The one temperature is fitted on leave-one-out decisions:
        with ``class_weight``, probabilities refer to classes with these weights.
        The most probable class is always the predicted one.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not.

        Returns
        -------
        ndarray of shape (n_graphs, n_classes)
            Probabilities, which sum to 1 for each graph; columns as in ``classes_``.
        """
        return self._probabilities(self._decide(X))

    def _probabilities(self, decisions: Floats) -> Floats:
        return softmax(all_classes(decisions) / self.temperature_, axis=1)

    def _decide(self, X: Any) -> Floats:
        """Return the decisions, (n_graphs, n_outputs)."""
        check_is_fitted(self)
        graphs = as_graphs(X)
        decisions = np.tile(self.intercept_, (len(graphs), 1))
        for kernel, coefficients in self._parts:
            if coefficients.any():
                decisions += kernel.transform(graphs) @ coefficients
        return decisions

    def _summands(self) -> list[tuple[Any, float, float]]:
        units = [float(fitted_selves(kernel).mean()) or 1.0 for kernel in self.kernels_]
        return [(kernel, w / unit, unit) for kernel, w, unit in zip(self.kernels_, self.weights_, units, strict=True)]

    def _measure_doubt(self, compared: Compared) -> tuple[Floats, Floats]:
        predicted = most_likely(self._decide(compared.graphs))
        return -class_support(compared.similarities, self.train_codes_, predicted), -self.class_supports_

    def _class_scores(self, X: Any) -> Floats:
        return self.predict_proba(X)

    def _decision_parts(self) -> DecisionParts:
        check_is_fitted(self)
        classes = tuple(self.classes_.tolist())
        return self._parts, self.intercept_, classes[1:] if len(classes) == 2 else classes

    @property
    def _coefficients(self) -> list[Floats]:
        """The coefficients of the fitted graphs of each kernel or, in a linear model, of the columns of each block."""
        return self.coefs_ if hasattr(self, "coefs_") else self.dual_coefs_

    @property
    def _parts(self) -> list[tuple[Any, Floats]]:
        """The kernels or blocks with their coefficients."""
        return list(zip(self.blocks_ if hasattr(self, "blocks_") else self.kernels_, self._coefficients, strict=True))


def _score_decisions(decisions: Floats, codes: Ints, weights: Floats) -> dict[str, float]:
    """Return the weighted accuracy and area under the ROC curve of decisions, and the share of the largest class."""
    columns = all_classes(decisions)
    areas = [
        roc_auc_score(codes == code, columns[:, code], sample_weight=weights)
        for code in range(columns.shape[1])
        if 0 < (codes == code).sum() < len(codes)
    ]
    return {
        "accuracy": float(np.average(most_likely(decisions) == codes, weights=weights)),
        "largest_class": float(np.bincount(codes, weights).max() / weights.sum()),
        "auc": float(np.mean(areas)) if areas else float("nan"),
    }
