"""The automatic choice: candidates, and a least-squares model for each, compared by leave-one-out predictions.

**Candidates** are structures combined with views of the graphs, the same for all data. A **view** is the output of
transformers of the graphs: full labels, or one part of labels that are tuples; no vectors, raw vectors, scaled or whitened ones, or
vectors with those of the neighbors; edge vectors in bins. The node kernel learns its width from the vectors of a view,
so it suits any range and dimension. A **structure** is what else must match for two nodes to be compared: colors,
trees, edges, or pairs of nodes. Candidates that need something the graphs lack are left out. Their list does not depend
on targets.

A **model** predicts sum_i (K(G, G_i) / s + 1) c_i, with s the mean of K(G_i, G_i), and minimizes the squared errors plus
alpha times its squared norm; the 1 represents the intercept. One decomposition of a Gram matrix gives the best alpha and,
in closed form, all leave-one-out predictions, so kernels, strengths and combinations are compared without any further fit. A **stack** adds the
predictions of models with non-negative weights that sum to 1, learned from the leave-one-out predictions.

**Screening** fits candidates on a sample first, which costs little more than their Gram matrices; only the best few are fitted
on all graphs. Very many graphs have a model of their own: see ``linear``.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NoReturn

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize, minimize_scalar, nnls
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from treegram._core.parallel import track
from treegram._core.text import warn_user
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.graphs.check import column_groups
from treegram.graphs.transforms import (
    BinEdgeAttributes,
    DropAttributes,
    NeighborMeans,
    ScaleAttributes,
    SelectLabels,
)
from treegram.kernels import CSM, GIK, ODDCL, ODDST, P2K, WL, WLCL, WLOA, KernelSum, ShortestPath, StatisticsKernel
from treegram.models.applicability import spread_ids
from treegram.models.forecast import forecast, in_words, out_of_proportion
from treegram.models.search import Candidate, with_jobs

# Increase it with every change to the candidates or the search that can change a choice: stored studies record it, and
# another version cannot continue them. tests/models/test_auto.py lists the candidates of this version.
AUTO_VERSION = "5"

SMALL_SAMPLE, LARGE_SAMPLE = 300, 1000  # graphs for screening: a third of all, but within these bounds
MANY = 2000  # graphs; above this, strengths are those of the sample, and fewer candidates go on
MOST_PARTS = 4  # of labels that are tuples: parts that are views, the first with all structures
N_FINALISTS, N_FINALISTS_OF_MANY = 5, 3  # candidates that go on from the sample to a stack
LEAST_SHARE = 0.03  # of a model in a stack
ALPHAS = np.logspace(-4, 1, 11)
_NOTHING = 0.95, 6.0  # share of the error of the mean, and graphs of which it may come closer: see `learned_nothing`
_UNKNOWN = 2.0  # graphs of unknown class in the fit of a temperature
_DIGITS = 12  # of errors that are compared: the rest is rounding
_LOG_TEMPERATURES = (-5.0, 3.0)


def seed_of(*identity: Any) -> int:
    """Return a seed that depends only on an identity, so that adding a run never changes the others."""
    digest = hashlib.sha256(json.dumps(identity).encode()).digest()
    return int.from_bytes(digest[:4], "little")


# -------------------------------------------------------------------- candidates of "auto"


@dataclass(frozen=True)
class View:
    """Transformers of the graphs, the structures to try on them, and the width of the node kernel, if there are vectors."""

    name: str
    reason: str
    steps: tuple[Callable[[], Any], ...]
    structures: tuple[str, ...]
    gamma: str | None = None


def auto_candidates(graphs: Graphs, n_jobs: int | None = None, *, with_counts: bool = False) -> list[Candidate]:
    """Return the candidates that suit the graphs; ``with_counts`` adds one for targets that grow with the size of a graph."""
    candidates = [Candidate("statistics", StatisticsKernel(), reason="numbers of whole graphs may be enough")]
    candidates += groups_of_attributes(graphs)
    views = [
        *_views_of_labels(graphs, with_counts=with_counts),
        *_views_of_vectors(graphs),
        *_views_of_edge_vectors(graphs),
    ]
    candidates += [candidate for view in views for candidate in _in_view(view, graphs)]
    if n_jobs is None:
        return candidates
    return [replace(candidate, kernel=with_jobs(candidate.kernel, n_jobs)) for candidate in candidates]


def groups_of_attributes(graphs: Graphs) -> Iterator[Candidate]:
    """Yield a candidate for each named group of graph attributes, and one for the attributes without a group."""
    if graphs.graph_attributes is None:
        return
    groups = column_groups(graphs.graph_attribute_names, graphs.graph_attributes.shape[1])
    for group in groups:
        kernel = StatisticsKernel("graph_attributes", group=None if set(groups) == {""} else group)
        name = f"graph attributes {group}".rstrip()
        yield Candidate(name, kernel, reason="what is known of each graph may matter")


def _views_of_labels(graphs: Graphs, *, with_counts: bool) -> Iterator[View]:
    structures: tuple[str, ...] = ("colors 1", "colors 3", "matched colors 1", "matched colors 3", "trees 3", "edges")
    structures += ("number of matched colors 1",) if with_counts else ()
    steps: tuple[Callable[[], Any], ...] = (DropAttributes,)
    name, reason = "no vectors", "labels and shape may be enough"
    if not graphs.n_attributes:
        structures, steps, name, reason = (*structures, "pairs"), (), "", ""
    parts = max((len(value) for value in graphs.label_values if isinstance(value, tuple)), default=0)
    yield View(name, reason, steps, ("matched colors 1", "matched colors 3") if parts else structures)
    for part in range(min(parts, MOST_PARTS)):
        name, reason = f"part {part + 1} of labels", "one part of the labels may be enough"
        select = partial(SelectLabels, part)
        yield View(name, reason, (*steps, select), ("matched colors 3",) if part else structures)


def _views_of_vectors(graphs: Graphs) -> Iterator[View]:
    if not graphs.n_attributes:
        return
    alike, robust = "all attributes count alike", partial(ScaleAttributes, "robust")
    yield View("raw vectors", "the ranges of attributes may mean something", (), ("colors 3",), "scale")
    pairs = ("pairs",) if graphs.n_attributes == 1 else ()  # otherwise they use whitened vectors
    yield View("scaled vectors", alike, (robust,), ("colors 1", "trees 1", *pairs), "narrow")
    yield View("neighbor means", f"{alike}, and so do the neighbors'", (robust, NeighborMeans), ("colors 1",), "narrow")
    if graphs.n_attributes > 1:
        structures, whiten = ("nodes", "colors 1", "trees 1", "pairs"), partial(ScaleAttributes, "whiten")
        reason = "attributes may be correlated"
        yield View("whitened vectors", reason, (whiten,), structures, "white")
    reason = "bins need no width, and any one attribute may make nodes alike"
    yield View("attributes in bins", reason, (), ("spread labels",))


def _views_of_edge_vectors(graphs: Graphs) -> Iterator[View]:
    if not graphs.n_edge_attributes:
        return
    drop = (DropAttributes,) if graphs.n_attributes else ()
    reason = "numbers at the edges may matter"
    yield View("edge vectors in bins", reason, (*drop, BinEdgeAttributes), ("edges", "colors 1"))
    if graphs.n_attributes:
        name, reason = "scaled vectors and edge vectors in bins", "numbers at nodes and edges may matter together"
        steps = (BinEdgeAttributes, partial(ScaleAttributes, "robust"))
        yield View(name, reason, steps, ("colors 1",), "narrow")


# -------------------------------------------------------------------- structures


_SIZES: dict[str, Any] = {"normalize": "tanimoto"}  # keeps the sizes of graphs visible, which the cosine hides


def _pairs(gamma: str | None = None, **_: Any) -> KernelSum:
    """Return a kernel on pairs of nodes: balls around one node, nodes up to three steps apart, and all shortest paths."""
    return KernelSum(
        [
            GIK(invariant="nspdk", radius=0, distance=3, gamma=gamma),
            GIK(invariant="nspdk", radius=1, distance=0, gamma=gamma),
            ShortestPath(length_kernel="brownian", use_labels=True, gamma=gamma),
        ]
    )


def _nodes(gamma: str, **_: Any) -> WLCL:
    return WLCL(0, missing_labels="constant", gamma=gamma)


def _bins(**_: Any) -> KernelSum:
    """Return the sum of three draws of bins: with a single draw, accuracy varies by half a point."""
    return KernelSum([P2K(n_iterations=2, mode="hash", random_state=seed) for seed in range(3)])


def _colors(n_iterations: int, **options: Any) -> WL | WLCL:
    return WLCL(n_iterations, **options) if "gamma" in options else WL(n_iterations, **_SIZES, **options)


_STRUCTURES: dict[str, tuple[Callable[..., Any], str]] = {
    "nodes": (_nodes, "nodes of equal label, whatever is around them"),
    "colors 1": (partial(_colors, 1), "nodes whose neighbors have equal labels"),
    "colors 3": (partial(_colors, 3), "nodes with equal surroundings, up to three steps away"),
    "matched colors 1": (partial(WLOA, 1, **_SIZES), "as colors 1, but each node is matched at most once"),
    "matched colors 3": (partial(WLOA, 3, **_SIZES), "as colors 3, but each node is matched at most once"),
    "number of matched colors 1": (
        partial(WLOA, 1, normalize=False),
        "as matched colors 1, not normalized: a number may grow with the size of a graph",
    ),
    "trees 1": (partial(ODDCL, 1, counting="visits"), "nodes with equal trees, one step deep"),
    "trees 3": (partial(ODDST, 3, lam=1.2), "nodes with equal trees, three steps deep"),
    "edges": (
        partial(CSM, max_size=2, use_labels=True),
        "edges one by one: if nodes have many edges, no two have equal surroundings",
    ),
    "spread labels": (_bins, "labels spread along the edges"),
    "pairs": (_pairs, "pairs of nodes near and far"),
}


def _in_view(view: View, graphs: Graphs) -> Iterator[Candidate]:
    """Yield the candidates of a view."""
    options: dict[str, Any] = {} if view.gamma is None else {"gamma": view.gamma}
    has_edge_labels = graphs.edge_labels is not None or BinEdgeAttributes in view.steps
    options |= {"use_edge_labels": True} if has_edge_labels else {}
    for name in view.structures:
        make, reason = _STRUCTURES[name]
        steps, kernel = [step() for step in view.steps], make(**options)
        yield Candidate(
            ", ".join(filter(None, [name, view.name])),
            make_pipeline(*steps, kernel) if steps else kernel,
            reason="; ".join(filter(None, [reason, view.reason])),
        )


# -------------------------------------------------------------------- least squares


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """A fitted least-squares model, with its leave-one-out predictions of the fitted graphs."""

    alpha: float
    coefficients: Floats  # (n_graphs, n_outputs), of K itself
    intercept: Floats  # (n_outputs,)
    loo_predictions: Floats  # (n_graphs, n_outputs)
    error: float  # their mean squared error


def fit_least_squares(K: Floats, Y: Floats, weights: Floats, *, alpha: float | None = None) -> LeastSquares:
    """Fit a model, by default with the alpha of the smallest leave-one-out error; ties go to the largest alpha.

    A weight of 0 is treated as a very small one.
    """
    weights = np.maximum(weights, 1e-9 * weights.max())
    roots = np.sqrt(weights)[:, None]
    unit = float(K.diagonal().mean()) or 1.0
    K = K / unit + 1.0
    if alpha is not None:
        coefficients, residuals = _solve(K, roots * Y, roots, alpha)
    else:
        alpha, coefficients, residuals = _solve_all(K, roots * Y, roots)
    error = _error(residuals, weights)
    return LeastSquares(alpha, coefficients / unit, coefficients.sum(axis=0), Y - residuals / roots, error)


def predict_by_mean(Y: Floats, weights: Floats) -> Floats:
    """Return the leave-one-out predictions of a model that knows no graphs: for each, the mean target of the others."""
    mean = np.average(Y, axis=0, weights=weights)
    weights_of_others = np.maximum(weights.sum() - weights, 1e-9 * weights.sum())
    return mean - (weights / weights_of_others)[:, None] * (Y - mean)


def learned_nothing(predictions: Floats, Y: Floats, weights: Floats) -> bool:
    """Return whether leave-one-out predictions are hardly better than the mean target of the other graphs.

    Candidates and weights were chosen by them, so on targets without any signal their error is often 5 % smaller than
    that of the mean for 100 graphs, and 0.5 % for 1,000.
    """
    roots = np.sqrt(weights)[:, None]
    error, of_mean = (_error(roots * (p - Y), weights) for p in (predictions, predict_by_mean(Y, weights)))
    least = max(_NOTHING[0], 1.0 - _NOTHING[1] / len(Y)) * of_mean
    return error >= least > 0  # a constant target leaves nothing to learn


def warn_of_nothing(answer: str) -> None:
    """Warn that a model has learned nothing, and say what it answers instead."""
    warn_user(
        "Nothing was learned: left-out graphs are predicted no better than without looking at them, so the model predicts "
        f"{answer} for every graph. More graphs, or other labels or attributes, may help.",
    )


def _error(residuals: Floats, weights: Floats) -> float:
    return round(float((residuals**2).sum() / weights.sum() / residuals.shape[1]), _DIGITS)


def _solve_all(K: Floats, targets: Floats, roots: Floats) -> tuple[float, Floats, Floats]:
    """Return the best alpha, its coefficients, and the weighted residuals of the leave-one-out predictions."""
    values, V = np.linalg.eigh(roots * K * roots.T)
    values, products, squares = np.maximum(values, 0.0), V.T @ targets, V**2
    best: tuple[float, float, Floats, Floats] | None = None
    for alpha in ALPHAS[::-1]:
        solved = V @ (products / (values + alpha)[:, None])
        residuals = solved / (squares @ (1.0 / (values + alpha)))[:, None]
        error = _error(residuals, roots**2)
        if best is None or error < best[0]:
            best = error, float(alpha), roots * solved, residuals
    assert best is not None
    return best[1:]


def _solve(K: Floats, targets: Floats, roots: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return coefficients and residuals for one alpha, at a fraction of the cost of a decomposition."""
    A = roots * K * roots.T
    A[np.diag_indices(len(A))] += alpha
    L = cholesky(A, lower=True, overwrite_a=True)
    solved = cho_solve((L, True), targets)
    inverse = dpotri(L, lower=1, overwrite_c=1)[0]
    return roots * solved, solved / inverse.diagonal()[:, None]


def stack(loo_predictions: Sequence[Floats], Y: Floats, weights: Floats) -> Floats:
    """Return weights of models that sum to 1: those of non-negative least squares on their predictions, normalized.

    They are close to the best of all weights that sum to 1, but not equal to them.
    """
    roots = np.sqrt(weights)[:, None]
    columns = np.column_stack([(roots * array).ravel() for array in [*loo_predictions, Y]])
    triangle: Floats = np.asarray(np.linalg.qr(columns, mode="r"))
    shares = nnls(triangle[:, :-1], triangle[:, -1])[0]
    if not shares.any():  # no model is better than predicting 0: keep the one with the smallest error
        shares[np.argmin([((columns[:, -1] - column) ** 2).sum() for column in columns[:, :-1].T])] = 1.0
    return shares / shares.sum()


# -------------------------------------------------------------------- classes


def class_targets(codes: Ints, n_classes: int) -> Floats:
    """Return 1 for a graph's class and -1 for the others, (n_graphs, n_classes); for two classes, only the second column."""
    Y = np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)
    return Y[:, 1:] if n_classes == 2 else Y


def all_classes(decisions: Floats) -> Floats:
    """Return a column for each class; for two classes, ``decisions`` has a column for the second only."""
    return np.hstack([-decisions, decisions]) if decisions.shape[1] == 1 else decisions


def most_likely(decisions: Floats) -> Ints:
    """Return the code of the class with the highest decision; ties go to the first class."""
    return all_classes(decisions).argmax(axis=1)


def fit_bias(decisions: Floats, codes: Ints, weights: Floats) -> Floats:
    """Return what to add to decisions, (n_outputs,), so that the softmax of the sums makes the weighted classes most likely.

    The temperature of the softmax is fitted with it, and forgotten: see `fit_temperature`.
    """
    is_class = codes[:, None] == np.arange(all_classes(decisions).shape[1])
    weights = weights[:, None] / weights.sum()

    def loss(parameters: Floats) -> tuple[float, Floats]:
        scores = all_classes(decisions + parameters[1:]) / np.exp(parameters[0])
        logs = log_softmax(scores, axis=1)
        slopes = weights * (np.exp(logs) - is_class)  # by the scores
        of_bias = slopes.sum(axis=0) / np.exp(parameters[0])
        of_bias = of_bias[1:] - of_bias[:1] if decisions.shape[1] == 1 else of_bias
        return -float((weights * logs)[is_class].sum()), np.array([-(slopes * scores).sum(), *of_bias])

    start = np.zeros(1 + decisions.shape[1])
    bounds = [_LOG_TEMPERATURES, *[(-2.0, 2.0)] * decisions.shape[1]]
    return minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x[1:]


def fit_temperature(decisions: Floats, codes: Ints, weights: Floats) -> float:
    """Return the temperature for which softmax(decisions / temperature) makes the classes most likely.

    Two more graphs of unknown class count as well: a few graphs that are all decided correctly allow no certainty.
    """
    decisions = all_classes(decisions)
    n_graphs, n_classes = decisions.shape
    is_class = codes[:, None] == np.arange(n_classes)
    targets = weights[:, None] * (is_class * n_graphs + _UNKNOWN / n_classes) / (n_graphs + _UNKNOWN)

    def loss(log_temperature: float) -> float:
        return -float((targets * log_softmax(decisions / np.exp(log_temperature), axis=1)).sum())

    return float(np.exp(minimize_scalar(loss, bounds=_LOG_TEMPERATURES, method="bounded").x))


# -------------------------------------------------------------------- screening


@dataclass(frozen=True, eq=False)
class Fitted:
    """A candidate with its fitted kernel and least-squares model, and its record for ``search_results_``."""

    candidate: Candidate
    kernel: Any
    model: LeastSquares
    record: dict[str, Any]
    rows: Floats  # of some graphs with all that the kernel was fitted on: see `spread_ids`
    selves: Floats  # the kernel of these with themselves


@dataclass(eq=False)
class Screening:
    """The graphs and targets to try candidates on, and the records of all trials so far."""

    graphs: Graphs
    Y: Floats  # (n_graphs, n_outputs)
    weights: Floats  # of the graphs
    codes: Ints | None = None  # of the classes; None for regression
    is_auto: bool = True  # the user named no kernels
    verbose: int = 0
    records: list[dict[str, Any]] = field(default_factory=list)

    def sample(self) -> Ints:
        """Return the ids of the graphs for screening, ascending; all of them if there are few."""
        size = min(max(len(self.graphs) // 3, SMALL_SAMPLE), LARGE_SAMPLE)
        return evenly_spaced(self.Y, size)

    def try_all(
        self,
        candidates: Sequence[Candidate],
        ids: Ints,
        *,
        alphas: Sequence[float] | None = None,
        keep: Callable[[Floats], None] | None = None,
    ) -> list[Fitted]:
        """Fit candidates on a part of the graphs; leave out candidates of "auto" that fail, with a note.

        ``alphas`` are their strengths, by default the best for each; ``keep`` receives the Gram matrix of each returned
        candidate.
        """
        graphs, Y, weights = self.graphs[ids], self.Y[ids], self.weights[ids]
        fitted: list[Fitted] = []
        seconds = in_words(sum(forecast(candidate.kernel, graphs) for candidate in candidates))
        label = f"trying kernels on {len(ids):,} graphs{seconds}"
        for i, candidate in enumerate(track(candidates, len(candidates), label)):
            record = self.add_record(candidate, len(ids))
            with self.leaving_out(record):
                start = time.monotonic()
                kernel, K = self.fit_kernel(candidate.kernel, graphs)
                model = fit_least_squares(K, Y, weights, alpha=None if alphas is None else alphas[i])
                score = self._score(model.loo_predictions, ids)
                record |= {"score": score, "seconds": time.monotonic() - start}
                kept = spread_ids(len(ids)) if len(ids) == len(self.graphs) else np.arange(0)  # none of a sample
                fitted.append(Fitted(candidate, kernel, model, record, K[kept], K.diagonal().copy()))
                if keep is not None:
                    keep(K)
                if self.verbose:
                    print(f"{candidate.name}: score {score:.4f} on {len(ids)} graphs, {record['seconds']:.1f} s")
        if not fitted:
            raise_failures(self.records[-len(candidates) :])
        return fitted

    def affordable(self, candidates: Sequence[Candidate], graphs: Graphs) -> list[Candidate]:
        """Return the candidates of "auto" whose cost on some graphs is not out of proportion, and note the others.

        Kernels that the user named are all returned, with a warning.
        """
        costs = out_of_proportion(candidates, graphs)
        for i, cost in costs.items():
            if self.is_auto:
                note = f"left out, since {cost}. To use it all the same, pass its kernels by name: kernels=[...]"
                self.add_record(candidates[i], len(graphs))["note"] = note
            else:
                warn_user(f"{candidates[i].name} is slow: {cost}.")
        return [candidate for i, candidate in enumerate(candidates) if not self.is_auto or i not in costs]

    def add_record(self, candidate: Candidate, n_graphs: int) -> dict[str, Any]:
        """Return a new record of a candidate, the last of all."""
        record: dict[str, Any] = {"candidate": candidate.name, "reason": candidate.reason, "n_graphs": n_graphs}
        record |= {"weight": None, "score": None, "seconds": 0.0, "note": ""}
        self.records.append(record)
        return record

    @contextlib.contextmanager
    def leaving_out(self, record: dict[str, Any]) -> Iterator[None]:
        """Note any error of a candidate of "auto" in its record, and go on; errors of kernels that the user named pass."""
        try:
            yield
        except Exception as error:
            if not self.is_auto:
                raise
            record["note"] = f"left out after {type(error).__name__}: {error}".rstrip(": .")

    def _score(self, predictions: Floats, ids: Ints) -> float:
        """Return the leave-one-out accuracy or, for regression, R2, the share of the variance explained.

        Without a graph, the mean of the targets is further from its own. On balanced classes this would tip all
        decisions of a useless kernel to the wrong side, so the accuracy is that of decisions around the mean of all.
        """
        Y, weights = self.Y[ids], self.weights[ids]
        mean = np.average(Y, axis=0, weights=weights)
        if self.codes is not None:
            decisions = predictions - predict_by_mean(Y, weights) + mean
            return float(np.average(most_likely(decisions) == self.codes[ids], weights=weights))
        variance = np.average((Y - mean) ** 2, axis=0, weights=weights).mean()
        return 1.0 - float(np.average((predictions - Y) ** 2, axis=0, weights=weights).mean() / (variance or 1.0))

    def fit_kernel(self, kernel: Any, graphs: Graphs) -> tuple[Any, Floats]:
        """Fit a copy of a kernel; return it with its values between all graphs."""
        kernel = clone(kernel)
        with warnings.catch_warnings():
            if self.is_auto:
                warnings.simplefilter("ignore")  # about kernels that the user did not name
            K: Floats = kernel.fit_transform(graphs)
        if not np.isfinite(K).all():
            raise ValueError(f"The Gram matrix of {kernel!r} has entries that are not finite.")
        return kernel, K


def raise_failures(records: Sequence[Mapping[str, Any]]) -> NoReturn:
    """Raise with the reasons why each of the candidates has failed."""
    notes = dict.fromkeys(record["note"] for record in records)
    raise ValueError(
        f"No kernel could be fitted on these graphs. All {len(records)} candidates were {'; '.join(notes)}."
    )


def evenly_spaced(Y: Floats, size: int) -> Ints:
    """Return ids of graphs that are evenly spaced in the order of their targets, ascending; ties are in random order."""
    if len(Y) <= size:
        return np.arange(len(Y))
    ties = np.random.default_rng(seed_of("auto", len(Y))).random(len(Y))
    order = np.lexsort((ties, *Y.T))
    return np.sort(order[np.linspace(0, len(order) - 1, size).astype(np.int64)])


def choose_stack(screening: Screening, candidates: Sequence[Candidate]) -> tuple[list[Fitted], Floats]:
    """Return the models of a stack, fitted on all graphs, and their weights, descending; screen candidates of "auto" first."""
    n_graphs, ids, alphas = len(screening.graphs), screening.sample(), None
    candidates = screening.affordable(candidates, screening.graphs[ids])
    if len(ids) < n_graphs and (screening.is_auto or n_graphs > MANY):
        fitted = screening.try_all(candidates, ids)
        if screening.is_auto:
            fitted = _finalists(screening, fitted, ids, N_FINALISTS if n_graphs <= MANY else N_FINALISTS_OF_MANY)
        candidates = [finalist.candidate for finalist in fitted]
        alphas = [finalist.model.alpha for finalist in fitted] if n_graphs > MANY else None
        for finalist in fitted:
            screening.records.remove(finalist.record)
    fitted = screening.try_all(candidates, np.arange(n_graphs), alphas=alphas)
    weights = _stack_weights(fitted, screening.Y, screening.weights)
    is_relevant = weights >= min(LEAST_SHARE, weights.max())
    for i in np.flatnonzero(~is_relevant):
        fitted[i].record["note"] = f"left out with a weight below {LEAST_SHARE}"
    members = [fitted[i] for i in np.flatnonzero(is_relevant)]
    weights = _stack_weights(members, screening.Y, screening.weights)
    for member, weight in zip(members, weights.tolist(), strict=True):
        member.record["weight"] = weight
    order = np.argsort(-weights, kind="stable")
    return [members[i] for i in order], weights[order]


def _finalists(screening: Screening, fitted: list[Fitted], ids: Ints, n_finalists: int) -> list[Fitted]:
    """Return the candidates with the largest weights in a stack, then those with the smallest errors."""
    weights = _stack_weights(fitted, screening.Y[ids], screening.weights[ids])
    errors = np.array([candidate.model.error for candidate in fitted])
    ranks = np.lexsort((errors, -np.where(weights >= LEAST_SHARE, weights, 0.0)))
    for i in ranks[n_finalists:]:
        fitted[i].record["note"] = f"left out after {len(ids)} graphs, not among the best {n_finalists}"
    return [fitted[i] for i in sorted(ranks[:n_finalists])]


def _stack_weights(fitted: Sequence[Fitted], Y: Floats, weights: Floats) -> Floats:
    return stack([candidate.model.loo_predictions for candidate in fitted], Y, weights)
