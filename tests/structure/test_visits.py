"""Work on one large graph is split into calls, and shows progress between them."""

from contextlib import contextmanager

import numpy as np
import pytest

from treegram import GIK, NSPDK, ODDCL, ODDST, GraphHopper, Graphs, ShortestPath
from treegram.kernels import graphhopper
from treegram.pairsum import nodes, paths
from treegram.structure import distances, invariants, trees, visits

N = 60
STAR, COMPLETE = [(0, i) for i in range(1, N)], [(i, j) for i in range(N) for j in range(i)]
PATH = [(i, i + 1) for i in range(N - 1)]


@pytest.fixture
def shown(monkeypatch):
    """Return the labels of all progress displays, with the number of items, the total, and the number of steps."""
    counts = {}

    @contextmanager
    def progress(total, label):
        def advance(n):
            counts[label] = (counts[label][0] + n, total, counts[label][2] + 1)

        counts[label] = (0, total, 0)
        yield advance

    def track(items, total, label):
        with progress(total, label) as advance:
            for item in items:
                yield item
                advance(1)

    for module in (visits, paths):
        monkeypatch.setattr(module, "progress", progress)
    monkeypatch.setattr(nodes, "track", track)
    monkeypatch.setattr(paths, "STEPS_PER_CALL", 10)
    for module in (distances, graphhopper, invariants, trees):
        monkeypatch.setattr(module, "STEPS_PER_CALL", 10)
    monkeypatch.setattr(nodes, "ROWS_PER_CALL", 7)
    return counts


@pytest.mark.parametrize(
    ("kernel", "edges", "label"),
    [
        (ODDST(), STAR, "trees"),
        (ODDCL(), STAR, "trees"),
        (NSPDK(), COMPLETE, "balls"),
        (NSPDK(), COMPLETE, "patterns"),
        (GIK(), PATH, "patterns"),
        (GIK(), PATH, "pair sums"),
        (ShortestPath(), PATH, "distances"),
        (ShortestPath(missing_labels="constant"), PATH, "distances"),  # one group: nodes count, not groups
        (ShortestPath(), PATH, "path sums"),
        (GraphHopper(), PATH, "positions on shortest paths"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str | list) else None,
)
def test_one_large_graph_shows_progress(shown, kernel, edges, label):
    graphs = Graphs.from_edges([edges], attributes=[np.arange(float(N))[:, None]])
    K = kernel.fit_transform(graphs)
    assert K[0, 0] == pytest.approx(1.0)
    n_shown, total, n_steps = shown[label]
    assert min(total, n_steps) > 5
    assert 0.8 * total <= n_shown <= total


def test_hops_in_a_dense_ball_stop_when_all_nodes_are_reached():
    """Node by node and arc by arc, the complete graph would take N^4 steps; distances are unchanged."""
    directed = Graphs.from_edges([[*COMPLETE, *((j, i) for i, j in COMPLETE)]], directed=True)
    undirected = Graphs.from_edges([COMPLETE])
    for graphs in (undirected, directed):
        features = invariants.ball_pair_features(graphs, 1, 1)
        assert features.counts.shape == (1, 4)  # one pair of balls for each (r, d)
        np.testing.assert_allclose(features.counts.data, 1.0)
