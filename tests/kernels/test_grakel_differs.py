"""Cases in which GraKeL deviates from the definition; treegram follows the definition (docs/from_grakel.md)."""

import re
from pathlib import Path

import numpy as np
import pytest

from treegram import ODDST, Graphs, RandomWalk, make_synthetic

grakel = pytest.importorskip("grakel", reason="GraKeL has no wheel for this Python")


@pytest.fixture
def graphs():
    """Six graphs with labels, of different shapes."""
    drawn, _ = make_synthetic(6, n_nodes=12, n_edges=18, rewired=(6, 9), permuted=(0, 0), random_state=0)
    return Graphs.from_arrays(drawn.offsets, drawn.edges(), labels=np.arange(drawn.n_nodes) % 3)


def oddsth(graphs):
    converted = [
        grakel.Graph(
            [tuple(edge) for edge in np.concatenate([g.edges(), g.edges()[:, ::-1]]).tolist()],
            node_labels=dict(enumerate(g.labels.tolist())),
        )
        for g in graphs
    ]
    return grakel.kernels.OddSth(h=3).fit_transform(converted)


def test_grakel_odd_sth_depends_on_the_order_of_the_data_set_and_treegram_does_not(graphs):
    there, back = oddsth(graphs), oddsth(graphs[::-1])[::-1, ::-1]
    assert np.abs(there - back).max() > 0.1 * np.abs(there).max()
    kernel = ODDST(depth=2, normalize=False)
    np.testing.assert_allclose(kernel.fit_transform(graphs), kernel.fit_transform(graphs[::-1])[::-1, ::-1])


@pytest.mark.slow
def test_grakel_labeled_walks_are_wrong_by_default():
    """On a path N-C-O, GraKeL counts all nine pairs of single nodes, though only three have equal labels."""
    path = [{(0, 1): 1, (1, 0): 1, (1, 2): 1, (2, 1): 1}, {0: "N", 1: "C", 2: "O"}]
    graphs = Graphs.from_edges([[(0, 1), (1, 2)]], labels=["NCO"])
    fast, right = (
        grakel.RandomWalkLabeled(lamda=0.1, method_type=method).fit_transform([path])[0, 0]
        for method in ("fast", "baseline")
    )
    own = RandomWalk(0.1, n_steps=40, use_labels=True, normalize=False).fit_transform(graphs)[0, 0]
    assert own + 6 == pytest.approx(right, rel=1e-12)
    assert abs(fast - right) > 0.02


def test_page_lists_every_kernel_of_grakel():
    page = (Path(__file__).parents[2] / "docs/from_grakel.md").read_text()
    kernels = set(grakel.kernels.__all__) - {"Kernel", "default_executor"}
    assert not [name for name in kernels if not re.search(rf"\| .*`{name}\b.* \|", page)]
