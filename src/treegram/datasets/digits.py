"""Graphs from the digit images that come with scikit-learn: real data without a download."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treegram._core.params import Whole, check_value
from treegram._core.types import Ints
from treegram.graphs import Graphs

__all__ = ["load_digits_graphs"]

_WHITE, _BLACK = 0, 16  # gray levels of the images

# With these units the node kernel exp(-|x - y|^2 / 3) distinguishes a pixel from the next one (0.47) and from the one after it
# (0.05), and full ink from a pale edge. Chosen by cross-validation on a third of the images; factors of 1.5 either way change little.
_STEP, _INK = 1.5, 3.0

_STEPS = {4: ((0, 1), (1, 0)), 8: ((0, 1), (1, 0), (1, 1), (1, -1))}


def load_digits_graphs(*, threshold: int = 4, neighbors: int = 4, n_levels: int = 1) -> tuple[Graphs, Ints]:
    """Load 1797 handwritten digits as graphs of their inked pixels.

    Each 8 x 8 image of scikit-learn's ``load_digits`` becomes a graph: its nodes are the pixels with ink, its edges
    join neighboring pixels, and position and ink are the attributes.

    Parameters
    ----------
    threshold : int, default=4
        Gray level, from 1 to 16, from which a pixel counts as ink; 4 gives 27 nodes per graph on average.
    neighbors : {4, 8}, default=4
        Whether pixels are joined to their 4 direct neighbors, or also to the 4 diagonal ones.
    n_levels : int, default=1
        Number of gray levels that become the discrete label of a pixel, 0 for the palest; with 1 all pixels have the
        same label, and only the attributes distinguish gray levels.

    Returns
    -------
    graphs : Graphs
        The graphs. Attributes are the row, the column and the ink, in units that suit the kernels' default ``gamma``.
    y : ndarray of shape (1797,)
        The digits, from 0 to 9; also kept as ``graphs.targets``.

    Notes
    -----
    Up to a threshold of 14 every image has some ink; above it, some graphs have no nodes.

    Examples
    --------
    >>> from treegram import load_digits_graphs
    >>> graphs, y = load_digits_graphs()
    >>> graphs
    Graphs(1,797 graphs, 48,401 nodes, 65,792 edges, undirected, 1 label, 3 attributes, targets)
    """
    from sklearn.datasets import load_digits  # brings all of scikit-learn's data sets along

    owner = "load_digits_graphs"
    check_value("threshold", owner, threshold, (Whole(_WHITE + 1, _BLACK),))
    check_value("neighbors", owner, neighbors, tuple(Whole(number, number) for number in _STEPS))
    check_value("n_levels", owner, n_levels, (Whole(1, _BLACK),))
    pixels, y = load_digits(return_X_y=True)
    images = pixels.reshape(-1, 8, 8).astype(np.int64)
    is_ink = images >= threshold
    image, row, column = np.nonzero(is_ink)
    ink = images[image, row, column]
    graphs = Graphs.from_arrays(
        np.concatenate([[0], np.cumsum(is_ink.sum(axis=(1, 2)))]),
        _join_neighbors(is_ink, _STEPS[neighbors]),
        labels=(ink - threshold) * n_levels // (_BLACK - threshold + 1),
        attributes=np.stack([_STEP * row, _STEP * column, _INK / _BLACK * ink], axis=1),
        targets=y,
    )
    return graphs, y.astype(np.int64)


def _join_neighbors(is_ink: NDArray[np.bool_], steps: tuple[tuple[int, int], ...]) -> Ints:
    """Return the pairs of inked pixels one step apart, numbered through all images."""
    numbers = np.full(np.add(is_ink.shape, (0, 2, 2)), -1)  # a frame of no pixels around each image
    inner = numbers[:, 1:-1, 1:-1]
    inner[is_ink] = np.arange(np.count_nonzero(is_ink))
    pairs = []
    for down, right in steps:
        moved = np.roll(numbers, (-down, -right), axis=(1, 2))[:, 1:-1, 1:-1]
        joined = (inner >= 0) & (moved >= 0)
        pairs.append(np.stack([inner[joined], moved[joined]], axis=1))
    return np.concatenate(pairs)
