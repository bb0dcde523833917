"""Tests of the forecasts of what candidates cost."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

from treegram import (
    NSPDK,
    WL,
    WLCL,
    DropAttributes,
    GraphClassifier,
    GraphRegressor,
    Graphs,
    KernelSum,
    ShortestPath,
    StatisticsKernel,
    load_digits_graphs,
    make_motifs,
)
from treegram.models import auto, linear
from treegram.models import forecast as forecasts
from treegram.models.auto import auto_candidates
from treegram.models.forecast import forecast, out_of_proportion
from treegram.models.search import Candidate


def grids(n_graphs, side, n_attributes=0, n_labels=1):
    """Return square grids of nodes with random vectors and labels."""
    nodes = np.arange(side * side).reshape(side, side)
    edges = [
        np.stack([a.ravel(), b.ravel()], axis=1) for a, b in ((nodes[1:], nodes[:-1]), (nodes[:, 1:], nodes[:, :-1]))
    ]
    rng = np.random.default_rng(0)
    n = side * side
    return Graphs.from_edges(
        [np.concatenate(edges)] * n_graphs,
        n_nodes=[n] * n_graphs,
        labels=[rng.integers(n_labels, size=n).tolist() for _ in range(n_graphs)],
        attributes=[rng.normal(size=(n, n_attributes)) for _ in range(n_graphs)] if n_attributes else None,
    )


@pytest.mark.parametrize(
    ("kernel", "n_attributes", "power"),
    [(WL(3), 3, 2), (WLCL(1), 3, 4), (ShortestPath(use_labels=True), 3, 6), (ShortestPath(use_labels=True), 0, 4)],
)
def test_forecast_grows_as_the_cost_does(kernel, n_attributes, power):
    """Twice the side of a grid has four times the nodes."""
    small, large = (forecast(kernel, grids(20, side, n_attributes)) for side in (30, 60))
    assert np.log2(large / small) == pytest.approx(power, abs=0.35)


def test_labels_and_dropped_vectors_make_kernels_cheaper():
    one, many = grids(10, 30, 3), grids(10, 30, 3, n_labels=10)
    assert forecast(WLCL(1), many) < forecast(WLCL(1), one) / 5
    assert forecast(make_pipeline(DropAttributes(), ShortestPath()), one) < forecast(ShortestPath(), one) / 10


def test_forecast_of_a_sum_is_the_sum():
    graphs = grids(5, 10, 3)
    parts = [WL(1), ShortestPath(), StatisticsKernel(), NSPDK(radius=1, distance=2)]
    assert forecast(KernelSum(parts), graphs) == pytest.approx(sum(forecast(part, graphs) for part in parts))


def test_what_is_out_of_proportion_is_named_with_its_cost():
    graphs = grids(20, 40, 3)
    notes = out_of_proportion([Candidate("a", ShortestPath()), Candidate("b", WL()), Candidate("c", WL(1))], graphs)
    assert list(notes) == [0]
    assert notes[0].startswith(f"it would take about {forecast(ShortestPath(), graphs):.0f} s on 20 graphs, and all ")
    assert not out_of_proportion([Candidate("a", ShortestPath())], graphs)  # there is nothing else


@given(st.lists(st.floats(0.01, 1e4), min_size=1, max_size=8))
def test_what_is_left_out_takes_far_longer_than_all_that_is_kept(seconds):
    with mock.patch.object(forecasts, "forecast", lambda kernel, _: kernel):
        candidates = [Candidate(str(i), cost) for i, cost in enumerate(seconds)]
        left_out = out_of_proportion(candidates, Graphs.from_edges([[(0, 1)]]))
    kept = sorted(cost for i, cost in enumerate(seconds) if i not in left_out)
    assert kept
    assert all(seconds[i] > max(8.0, 3 * sum(kept)) for i in left_out)
    assert all(cost <= max(8.0, 3 * sum(kept[:i]) * (1 + 1e-12)) for i, cost in enumerate(kept) if i)


def test_long_forecasts_are_shown_with_the_progress(monkeypatch):
    labels = []

    def track(iterable, total=None, label=""):
        labels.append(label)
        yield from iterable

    for module in (auto, linear):
        monkeypatch.setattr(module, "track", track)
    graphs, y, _ = make_motifs(40, random_state=0)
    for seconds, shown in ((2.0, ""), (6.0, ", about 12 s")):
        monkeypatch.setattr(auto, "forecast", lambda *_, seconds=seconds: seconds)
        GraphClassifier(["wl", "wloa"]).fit(graphs, y)
        assert labels[-1] == f"trying kernels on 40 graphs{shown}"
    monkeypatch.setattr(linear, "SWITCH", 10)
    monkeypatch.setattr(forecasts, "_PER_NODE_OF_ROWS", 1.0)
    GraphClassifier(["wl"]).fit(graphs, y)
    n_each = graphs.n_nodes + 2 * graphs.n_edges
    assert labels[-2:] == [f"fitting a linear model on 40 graphs, about {2 * n_each:,} s", "fitting 1 linear model"]


def test_nothing_is_left_out_of_small_data():
    for graphs in (load_digits_graphs()[0][:300], make_motifs(300, random_state=0)[0]):
        assert not out_of_proportion(auto_candidates(graphs), graphs)


@pytest.mark.parametrize("kind", [GraphClassifier, GraphRegressor])
@pytest.mark.parametrize("is_linear", [False, True])
def test_models_note_what_they_left_out(kind, is_linear, monkeypatch):
    if is_linear and kind is GraphRegressor:
        pytest.skip("the regressor decides on a sample")
    monkeypatch.setattr(linear, "SWITCH", 10 if is_linear else 10**6)
    graphs, y, _ = make_motifs(40, random_state=0)
    monkeypatch.setattr(
        forecasts, "forecast", lambda kernel, _: 100.0 if isinstance(kernel, KernelSum | NSPDK) else 1.0
    )
    model = kind().fit(graphs, y)
    notes = {record["candidate"]: record for record in model.search_results_}
    assert notes["pairs"]["note"].startswith("left out, since it would take about 100 s on 40 graphs")
    assert notes["pairs"]["weight"] is None
    assert "To use it all the same, pass its kernels by name: kernels=[...]" in str(model.search_summary())
    assert model.score(graphs, y) > 0.6
    with pytest.warns(UserWarning, match="NSPDK is slow: it would take about 100 s"):
        named = kind([NSPDK(radius=1, distance=1), WL()]).fit(graphs, y)  # what the user names is never left out
    assert not any(record["note"].startswith("left out, since it would") for record in named.search_results_)
