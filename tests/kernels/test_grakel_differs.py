"""Where GraKeL computes something else than the definition, shown; ours follows the definition (docs/from_grakel.md)."""

import numpy as np
import pytest

from treegram import ODDST, Graphs, make_synthetic

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


def test_grakels_odd_sth_depends_on_the_order_of_the_data_set_and_ours_does_not(graphs):
    there, back = oddsth(graphs), oddsth(graphs[::-1])[::-1, ::-1]
    assert np.abs(there - back).max() > 0.1 * np.abs(there).max()
    kernel = ODDST(depth=2, normalize=False)
    np.testing.assert_allclose(kernel.fit_transform(graphs), kernel.fit_transform(graphs[::-1])[::-1, ::-1])
