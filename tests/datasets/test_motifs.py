"""Tests of planted motifs: where they are planted, and that explanations find them."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from treegram import ODDCL, WLCL, WLOA, Graphs, GraphSVC, explain, make_motifs
from treegram.datasets.generators import MOTIFS
from treegram.exceptions import ParameterError


@pytest.mark.parametrize("motif", MOTIFS)
def test_planted_nodes_form_the_motif_and_the_rest_is_a_tree(motif):
    graphs, y, is_motif = make_motifs(6, motifs=[motif], n_nodes=8, random_state=1)
    assert graphs.sizes.tolist() == [13] * 6
    assert y.tolist() == [0] * 6
    for graph, planted in zip(graphs, is_motif.reshape(6, 13), strict=True):
        inside = planted[graph.edges()].sum(axis=1)
        assert np.bincount(inside, minlength=3).tolist() == [7, 1, len(MOTIFS[motif])]


def test_attributes_of_motif_nodes_are_shifted():
    graphs, y, is_motif = make_motifs(40, motifs=["cycle", "cycle"], n_attributes=2, shift=10.0, random_state=0)
    for c in (0, 1):
        own = np.repeat(y == c, graphs.sizes)
        means = graphs.attributes[own & is_motif].mean(axis=0)
        np.testing.assert_allclose(means, [10 * (c == 0), 10 * (c == 1)], atol=0.5)
    np.testing.assert_allclose(graphs.attributes[~is_motif].mean(axis=0), 0, atol=0.2)


def test_same_seed_gives_the_same_graphs():
    (a, _, planted), (b, _, same) = (make_motifs(10, n_attributes=1, random_state=3) for _ in range(2))
    assert a == b
    np.testing.assert_array_equal(planted, same)
    assert a != make_motifs(10, n_attributes=1, random_state=4)[0]
    assert len(make_motifs(0, random_state=0)[0]) == 0


def test_unknown_motifs_raise():
    for motifs in ([], ["house", "castle"]):
        with pytest.raises(ParameterError, match="out of house, cycle, clique, wheel, star; got"):
            make_motifs(4, motifs=motifs)


# -------------------------------------------------------------------- explanations find the motifs


def fit_and_explain(kernel, attribute_to="tree", **options):
    """Return held-out graphs, their classes as signs, a mask of planted nodes, the model and its explanation."""
    graphs, y, is_motif = make_motifs(240, random_state=5, **options)
    model = GraphSVC(kernel, param_grid={}, C=[1, 10], cv=3).fit(graphs[::2], y[::2])
    held_out = graphs[1::2]
    signs = np.where(y[1::2] == 1, 1.0, -1.0)
    return held_out, signs, is_motif.reshape(240, -1)[1::2], model, explain(model, held_out, attribute_to=attribute_to)


@pytest.mark.parametrize(
    ("kernel", "attribute_to", "options", "least"),
    [
        (WLOA(n_iterations=3), "tree", {}, 0.96),
        (WLOA(n_iterations=3), "tree", {"motifs": ("clique", "wheel")}, 0.98),
        (WLCL(n_iterations=1), "tree", {"motifs": ("cycle", "cycle"), "n_attributes": 2, "shift": 4.0}, 0.98),
        (ODDCL(depth=1), "root", {"motifs": ("cycle", "cycle"), "n_attributes": 2, "shift": 4.0}, 0.96),
    ],
)
def test_planted_nodes_have_the_highest_contributions(kernel, attribute_to, options, least):
    _, signs, planted, _, found = fit_and_explain(kernel, attribute_to, **options)
    areas = [
        roc_auc_score(mask, sign * own)
        for mask, sign, own in zip(planted, signs, found.node_contributions, strict=True)
    ]
    assert np.mean(areas) >= least


def without(graph, nodes):
    """Return the graph without some of its nodes."""
    kept = np.setdiff1d(np.arange(graph.n_nodes), nodes)
    place = np.full(graph.n_nodes, -1)
    place[kept] = np.arange(len(kept))
    edges = place[graph.edges()]
    edges = edges[(edges >= 0).all(axis=1)]
    return Graphs.from_arrays(
        [0, len(kept)], edges, attributes=None if graph.attributes is None else graph.attributes[kept]
    )


def test_deleting_the_top_nodes_changes_decisions_more_than_deleting_random_ones():
    graphs, signs, _, model, found = fit_and_explain(WLOA(n_iterations=3))
    rng = np.random.default_rng(0)
    for n in (1, 3, 5):
        best = [
            without(g, np.argsort(-sign * own)[:n])
            for g, sign, own in zip(graphs, signs, found.node_contributions, strict=True)
        ]
        drawn = [without(g, rng.permutation(g.n_nodes)[:n]) for g in graphs]
        falls = [
            np.mean(signs * (found.decisions - model.decision_function(Graphs.concatenate(some))))
            for some in (best, drawn)
        ]
        assert falls[0] > falls[1]
