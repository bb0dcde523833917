import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from treegram import load_digits_graphs
from treegram.exceptions import ParameterError


def test_all_images_become_small_graphs():
    graphs, y = load_digits_graphs()
    assert len(graphs) == 1797
    assert y.tolist() == graphs.targets.tolist() == load_digits().target.tolist()
    assert 20 < graphs.sizes.mean() < 35
    assert graphs.sizes.min() > 0


def test_nodes_and_edges_match_the_image():
    graphs, _ = load_digits_graphs()
    image = load_digits().images[7]
    graph = graphs[7]
    row, column = np.nonzero(image >= 4)
    steps = graph.attributes[:, :2] - graph.attributes[0, :2]
    assert (steps / 1.5 + [row[0], column[0]]).tolist() == np.stack([row, column], axis=1).tolist()
    assert np.corrcoef(graph.attributes[:, 2], image[row, column])[0, 1] == pytest.approx(1)
    near = np.abs(np.subtract.outer(row, row)), np.abs(np.subtract.outer(column, column))
    assert graph.edges().tolist() == np.argwhere(np.triu(np.add(*near) == 1)).tolist()


@pytest.mark.parametrize("n_levels", [1, 2, 3, 13])
def test_labels_are_equal_gray_levels(n_levels):
    graphs, _ = load_digits_graphs(n_levels=n_levels)
    assert graphs.label_values == tuple(range(n_levels))
    ink = graphs.attributes[:, 2]
    brightest = [ink[graphs.labels == label].max() for label in range(n_levels)]
    palest = [ink[graphs.labels == label].min() for label in range(n_levels)]
    assert all(np.less(brightest[:-1], palest[1:]))


def test_attributes_suit_the_default_node_kernel():
    graphs, y = load_digits_graphs()
    graphs, y = graphs[:150], y[:150]
    squares = (graphs.attributes**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * graphs.attributes @ graphs.attributes.T
    alike = np.exp(-distances / graphs.n_attributes)
    starts = graphs.offsets[:-1]
    K = np.add.reduceat(np.add.reduceat(alike, starts, axis=0), starts, axis=1)
    K /= np.sqrt(np.outer(K.diagonal(), K.diagonal()))
    assert cross_val_score(SVC(kernel="precomputed", C=100), K, y, cv=5).mean() > 0.9


@pytest.mark.parametrize("n_levels", [0, 17, 1.5])
def test_invalid_parameters_raise(n_levels):
    message = "n_levels of load_digits_graphs must be a whole number of at least 1 and at most 16; got"
    with pytest.raises(ParameterError, match=message):
        load_digits_graphs(n_levels=n_levels)
