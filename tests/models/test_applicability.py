"""Tests of applicability: similarities and verdicts equal slow literal ones, also after a model file; figures on the page agree."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

from strategies import collections
from treegram import (
    ODDCL,
    WL,
    WLCL,
    WLOA,
    GraphClassifier,
    GraphGP,
    GraphRegressor,
    Graphs,
    SelectLabels,
    StatisticsKernel,
    load_digits_graphs,
    load_model,
    save_model,
)
from treegram.exceptions import ParameterError
from treegram.models import applicability, linear

ROOT = Path(__file__).resolve().parents[2]
KERNELS = [WLOA(1), WL(1, normalize=False), StatisticsKernel()]


@pytest.fixture(scope="module")
def digits():
    graphs, y = load_digits_graphs(n_levels=3)
    return graphs[:160].assign(attributes=None, graph_names=[f"g{i}" for i in range(160)]), y[:160]


def fitted_models(graphs, y):
    yield GraphClassifier(KERNELS).fit(graphs, y)
    yield GraphRegressor(KERNELS).fit(graphs, graphs.sizes + y / 10.0)
    yield GraphGP(WL(1, normalize=False), param_grid={}, noise=0.1).fit(graphs, graphs.sizes + y / 10.0)


def literal_gram(model, fitted, graphs):
    """Return the sum of the kernels of all pairs of graphs, each divided by its mean on the fitted graphs if there are several."""
    kernels = getattr(model, "kernels_", None) or [model.kernel_]
    weights = getattr(model, "weights_", [1.0])
    total = np.zeros((len(fitted) + len(graphs),) * 2)
    for kernel, weight in zip(kernels, weights, strict=True):
        K = type(kernel)(**kernel.get_params()).fit(fitted).transform(fitted)
        rows = kernel.transform(graphs)
        corner = np.diag([type(kernel)(**kernel.get_params()).fit(fitted).diag(graph)[0] for graph in graphs])
        unit = K.diagonal().mean() if hasattr(model, "kernels_") else 1.0
        total += weight / unit * np.block([[K, rows.T], [rows, corner]])
    return total


@pytest.mark.parametrize("which", range(3), ids=["classifier", "regressor", "process"])
def test_similarities_and_verdicts_are_literal_ones(digits, which, tmp_path):
    graphs, y = digits
    fitted, new = graphs[:110], graphs[105:]
    model = list(fitted_models(fitted, y[:110]))[which]
    found = model.applicability(new)
    K, n = literal_gram(model, fitted, new), 110
    diagonal = K.diagonal()
    cosines = K / np.sqrt(diagonal[:, None] * diagonal)
    own = [max(cosines[i, j] for j in range(n) if j != i) for i in range(n)]
    for g in range(len(new)):
        row = cosines[n + g, :n]
        assert found.similarity[g] == pytest.approx(row.max())
        assert row[found.nearest[g]] == pytest.approx(row.max())
        assert found.nearest_names[g] == f"g{found.nearest[g]}"
        below = [100 * np.mean([value < found.similarity[g] + shift for value in own]) for shift in (-1e-9, 1e-9)]
        assert below[0] - 1e-9 <= found.percentile[g] <= below[1] + 1e-9
    assert found.nearest[:5].tolist() == list(range(105, 110))
    if not which:
        codes = np.searchsorted(model.classes_, y[:110])
        predicted = np.searchsorted(model.classes_, model.predict(new))
        left_out = np.argmax(model.loo_decisions_, axis=1)

        def support(row, others, code):
            nearest = sorted(others, key=lambda j: -round(row[j], 12))[:10]
            return sum(row[j] for j in nearest if codes[j] == code)

        far = [-support(cosines[n + g], range(n), predicted[g]) for g in range(len(new))]
        usual = [-support(cosines[i], set(range(n)) - {i}, left_out[i]) for i in range(n)]
        assert len(model.classes_) == 10
    else:
        noise = model.noise_ if which == 1 else 0.1
        inverse = np.linalg.inv(K[:n, :n] + noise * np.eye(n))
        far = [K[n + g, n + g] + noise - K[n + g, :n] @ inverse @ K[:n, n + g] for g in range(len(new))]
        usual = [
            K[i, i]
            + noise
            - K[i, others] @ np.linalg.solve(K[np.ix_(others, others)] + noise * np.eye(n - 1), K[others, i])
            for i in range(n)
            for others in [np.setdiff1d(np.arange(n), i)]
        ]
    outside, edge = np.quantile(usual, 0.98), np.quantile(usual, 0.90)
    expected = ["outside" if value > outside else "at the edge" if value > edge else "inside" for value in far]
    assert found.verdict.tolist() == expected
    save_model(model, tmp_path / "model.tgm")
    loaded = load_model(tmp_path / "model.tgm").applicability(new)
    assert loaded.verdict.tolist() == expected
    assert loaded.nearest_names == found.nearest_names
    np.testing.assert_array_equal(loaded.percentile, found.percentile)
    table = found.to_frame()
    assert list(table) == [
        *("nearest", "nearest_names", "similarity", "percentile"),
        "unseen_labels",
        "unseen_colors",
        "verdict",
    ]
    assert table["verdict"].tolist() == expected


def test_labels_and_surroundings_that_no_training_graph_has_are_counted():
    edges, labels = [(0, 1), (1, 2), (2, 3)], ["C", "C", "O", "N"]
    fitted = Graphs.from_edges([edges, edges[:2]] * 3, labels=[labels, labels[:3]] * 3)
    new = Graphs.from_edges([edges, edges, [], edges], labels=[labels, ["C", "C", "O", "S"], [], ["C", "C", "N", "O"]])
    model = GraphRegressor([WL(1)]).fit(fitted, [0.0, 1.0, 0.1, 1.1, 0.0, 1.0])
    found = model.applicability(new)
    assert found.unseen_labels.tolist() == [0.0, 0.25, 0.0, 0.0]
    assert found.unseen_colors.tolist() == [0.0, 0.75, 0.0, 1.0]
    assert found.verdict[2] == "outside"
    assert found.similarity[2] == 0.0
    assert found.nearest_names is None
    assert list(found.to_frame())[:2] == ["nearest", "similarity"]


def test_labels_of_graphs_that_were_not_fitted_are_unseen():
    """A part of a collection keeps the table of all labels."""
    labels = [["C", "O"], ["C", "C"]] * 3 + [["C", "S"]]
    graphs = Graphs.from_edges([[(0, 1)]] * 7, labels=labels)
    model = GraphRegressor([WL(1)]).fit(graphs[:6], [0.0, 1.0, 0.1, 1.1, 0.0, 1.0])
    assert model.kernels_[0].graphs_.label_values == ("C", "O", "S")
    assert model.applicability(graphs).unseen_labels.tolist() == [0.0] * 6 + [0.5]


@pytest.mark.parametrize("is_reversed", [False, True])
def test_labels_count_as_the_kernel_with_the_fewest_steps_sees_them(is_reversed):
    labels = [[("C", "ring"), ("O", "")], [("C", "ring"), ("C", "")]] * 3 + [[("C", "ring"), ("O", "acid")]]
    graphs = Graphs.from_edges([[(0, 1)]] * 7, labels=labels)
    kernels = [WL(1), make_pipeline(SelectLabels(0), WL(1))]
    model = GraphRegressor(kernels[::-1] if is_reversed else kernels)
    model.fit(graphs[:6], [0.0, 1.0, 0.1, 1.1, 0.0, 1.0])
    assert len(model.kernels_) == 2
    assert model.applicability(graphs[5:]).unseen_labels.tolist() == [0.0, 0.5]


def test_percentile_counts_training_graphs_that_are_less_similar_not_equally():
    """All training graphs but the last have a copy of themselves: no similarity is larger."""
    graphs = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]] * 3 + [[(0, 1), (1, 2), (2, 3)]])
    found = GraphRegressor([WL(1)]).fit(graphs, [0.0, 1.0, 0.1, 1.1, 0.0, 1.0, 2.0]).applicability(graphs)
    np.testing.assert_allclose(found.percentile[:6], 100 / 7)


def test_edge_labels_belong_to_the_surroundings():
    graphs = Graphs.from_edges([[(0, 1)]] * 4, edge_labels=[["a"], ["b"]] * 2)
    model = GraphRegressor([WL(1, use_edge_labels=True)]).fit(graphs, [0.0, 1.0, 0.0, 1.0])
    new = Graphs.from_edges([[(0, 1)]] * 2, edge_labels=[["a"], ["c"]])
    assert model.applicability(new).unseen_colors.tolist() == [0.0, 1.0]


@settings(max_examples=25, deadline=None)
@given(collections(min_graphs=4, max_graphs=6, labeled=True, dimension=0, edge_labels=False, directed=False), st.data())
def test_unseen_colors_are_those_of_a_literal_refinement(collection, data):
    graphs = collection.pack()
    n = data.draw(st.integers(1, len(graphs) - 1))

    def colors(graph):
        named = [graph.label_values[code] for code in graph.labels]
        neighbors = [graph.indices[graph.indptr[v] : graph.indptr[v + 1]] for v in range(graph.n_nodes)]
        for _ in range(2):
            named = [
                (named[v], tuple(sorted(map(repr, (named[w] for w in neighbors[v]))))) for v in range(graph.n_nodes)
            ]
        return list(map(repr, named))

    known = {color for i in range(n) for color in colors(graphs[i])}
    found = applicability._unseen_colors(graphs[:n], graphs[n:])
    for share, graph in zip(found, graphs[n:], strict=True):
        expected = np.mean([color not in known for color in colors(graph)]) if graph.n_nodes else 0.0
        assert share == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore:Nothing was learned")
def test_models_that_cannot_compare_say_so(digits, monkeypatch):
    graphs, y = digits
    model = GraphRegressor([WL(1)]).fit(graphs[:30], np.column_stack([y[:30], -y[:30]]).astype(float))
    with pytest.raises(ParameterError, match="fitted on several targets"):
        model.applicability(graphs)
    monkeypatch.setattr(linear, "SWITCH", 20)
    with pytest.raises(ParameterError, match="keeps no training graphs"):
        GraphClassifier([WL(1)]).fit(graphs[:30], y[:30]).applicability(graphs)


def test_graphs_unlike_all_others_are_outside():
    graphs, y = load_digits_graphs()
    graphs = graphs.assign(labels=None)
    stars = Graphs.from_edges([[(0, i) for i in range(1, 40)]] * 2, attributes=[np.full((40, 3), 50.0)] * 2)
    for model in (
        GraphClassifier([ODDCL(1), WLCL(1)]).fit(graphs[:200], y[:200]),
        GraphGP(ODDCL(1), param_grid={}).fit(graphs[:200], y[:200]),
    ):
        found = model.applicability(graphs[200:400] + stars)
        assert (found.verdict[:200] == "inside").mean() > 0.8
        assert set(found.verdict[200:]) == {"outside"}


# -------------------------------------------------------------------- figures on the page


def test_errors_are_larger_outside_and_the_page_has_the_stored_figures(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import applicability as benchmark

    monkeypatch.delitem(sys.modules, "applicability")
    stored = json.loads(benchmark.STORE.read_text())
    page = (ROOT / "docs" / "new_graphs.md").read_text()
    assert f"{benchmark.MARKS[0]}\n{benchmark.render(stored)}\n{benchmark.MARKS[1]}" in page
    assert len(stored["classes"]) >= 4
    assert len(stored["numbers"]) >= 6
    for tables in stored.values():
        assert benchmark.ratio(list(tables.values()), "at the edge") > 1.1
        assert benchmark.ratio(list(tables.values()), "outside") > 1.4
    classes = list(stored["classes"].values())
    assert benchmark.mean(classes, "outside", "outside", 2) < benchmark.mean(classes, "outside", "inside", 2) - 0.05
