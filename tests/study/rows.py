"""Result rows with a given accuracy, for tests."""

from treegram.study.store import Row

N_GRAPHS = 1000


def classes(accuracy):
    """Return actual and predicted classes of 1,000 graphs with this accuracy."""
    n_right = round(N_GRAPHS * accuracy)
    return (0,) * N_GRAPHS, (0,) * n_right + (1,) * (N_GRAPHS - n_right)


def make_row(dataset, kernel, repeat, fold, accuracy, chosen, *, n_unconverged=0, seconds=0.1, n_fits=9, run=1):
    actual, predicted = classes(accuracy)
    return Row(dataset, kernel, repeat, fold, actual, predicted, chosen, 0.5, n_fits, n_unconverged, seconds, run)
