import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

from treegram import (
    ODDCL,
    ODDST,
    BinEdgeAttributes,
    FeatureMap,
    Graphs,
    GraphSVC,
    ScaleAttributes,
    load_model,
    save_model,
)
from treegram.exceptions import InvalidGraphError, ModelFileError
from treegram.models.saving.states import restore_state


def paths(values, **options):
    """Return one path per list of numbers, which are its edge attributes."""
    edges = [[(i, i + 1) for i in range(len(row))] for row in values]
    return Graphs.from_edges(
        edges, n_nodes=[len(row) + 1 for row in values], edge_attributes=[np.array(row) for row in values], **options
    )


def labels(graphs):
    return [graphs.edge_label_values[code] for code in graphs.edge_labels[graphs._edge_arcs()]]


def test_bins_have_about_equal_size():
    graphs = BinEdgeAttributes(n_bins=4).fit_transform(paths([[1.0, 2, 3, 4], [5, 6, 7, 8]]))
    assert labels(graphs) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert graphs.edge_attributes is None


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 7.5, 1e9]), min_size=1, max_size=30), st.integers(1, 6))
def test_bins_match_a_naive_rule(values, n_bins):
    transformer = BinEdgeAttributes(n_bins).fit(paths([values]))
    (cuts,) = transformer.thresholds_
    assert len(cuts) < n_bins
    assert labels(transformer.transform(paths([values]))) == [sum(value > cut for cut in cuts) for value in values]
    assert len(set(labels(transformer.transform(paths([values]))))) == len(cuts) + 1  # no bin is empty
    ordered = sorted(values)
    shares = [ordered[-(-i * len(values) // n_bins) - 1] for i in range(1, n_bins)]
    assert cuts.tolist() == sorted({share for share in shares if share < ordered[-1]})


def test_thresholds_come_from_the_training_graphs():
    transformer = BinEdgeAttributes(2).fit(paths([[1.0, 2.0, 3.0]]))
    assert transformer.thresholds_[0].tolist() == [2.0]
    assert labels(transformer.transform(paths([[-100.0, 2.0, 2.001, 50.0]]))) == [0, 0, 1, 1]


def test_existing_edge_labels_are_kept_and_columns_become_tuples():
    graphs = Graphs.from_edges(
        [[(0, 1), (1, 2), (2, 3)]],
        edge_labels=[["-", "=", "-"]],
        edge_attributes=[[[1.0, 5.0], [2.0, 5.0], [1.0, 5.0]]],
    )
    assert labels(BinEdgeAttributes(2).fit_transform(graphs)) == [("-", 0, 0), ("=", 1, 0), ("-", 0, 0)]


def test_kernel_uses_the_bins_and_stays_positive_semidefinite():
    rng = np.random.default_rng(0)
    graphs = paths([rng.normal(size=5).tolist() for _ in range(12)])
    with pytest.warns(
        UserWarning, match=r"ODDCL does not use the edge vectors of these graphs.*BinEdgeAttributes\(\) before"
    ):
        blind = ODDCL(depth=2).fit_transform(graphs)
    assert np.allclose(blind, 1.0)
    K = make_pipeline(BinEdgeAttributes(3), ODDCL(depth=2, use_edge_labels=True)).fit_transform(graphs)
    assert K.min() < 0.9
    assert np.linalg.eigvalsh(K)[0] > -1e-10


@pytest.mark.parametrize("estimator", [GraphSVC("wl", param_grid={}, C=1, cv=2), FeatureMap(ODDCL(1))])
def test_unused_edge_attributes_warn_once(estimator):
    graphs, y = paths([[1.0, 2.0]] * 8), np.arange(8) % 2
    with pytest.warns(UserWarning, match="does not use the .*edge vectors") as record:
        estimator.fit(graphs, y)
    assert len(record) == 1


def test_edge_attributes_alone_separate_the_classes(tmp_path):
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 20)
    graphs = paths([(rng.normal(size=6) + 2 * target).tolist() for target in y])
    kernel = make_pipeline(BinEdgeAttributes(4), ODDST(use_edge_labels=True))
    model = GraphSVC(kernel, param_grid={"depth": [1], "lam": [1.0]}, C=1, cv=2).fit(graphs[::2], y[::2])
    assert model.score(graphs[1::2], y[1::2]) > 0.8
    save_model(model, tmp_path / "model.tg")
    assert (load_model(tmp_path / "model.tg").predict(graphs) == model.predict(graphs)).all()


@pytest.mark.parametrize("graphs", [Graphs.from_edges([]), Graphs.from_edges([[]], n_nodes=[2])])
def test_without_edges_there_is_one_bin(graphs):
    transformer = BinEdgeAttributes().fit(graphs)
    assert transformer.transform(graphs).n_edges == 0
    assert labels(transformer.transform(paths([[1.0, 2.0]]))) == [0, 0]


def test_missing_or_different_edge_attributes_raise():
    with pytest.raises(InvalidGraphError, match="BinEdgeAttributes bins edge attributes, but the graphs have none"):
        BinEdgeAttributes().fit(Graphs.from_edges([[(0, 1)]]))
    two = Graphs.from_edges([[(0, 1)]], edge_attributes=[[[1.0, 2.0]]])
    with pytest.raises(
        InvalidGraphError,
        match=r"edges of the new graphs .X. have 2 attributes, but BinEdgeAttributes was fitted on .* 1",
    ):
        BinEdgeAttributes().fit(paths([[1.0]])).transform(two)


def test_node_transformers_keep_edge_attributes():
    graphs = paths([[1.0, 2.0]], attributes=[[[0.0], [1.0], [2.0]]])
    assert ScaleAttributes().fit_transform(graphs).edge_attributes.tolist() == graphs.edge_attributes.tolist()


@pytest.mark.parametrize("thresholds", [None, [np.array([2.0, 1.0])], [np.array([np.nan])], [np.zeros((1, 1))], ["a"]])
def test_model_file_with_changed_thresholds_is_rejected(thresholds):
    with pytest.raises(ModelFileError, match="thresholds"):
        restore_state(BinEdgeAttributes(), {"thresholds_": thresholds})
