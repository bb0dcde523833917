"""Every joblib backend gives the same bits."""

import pickle

import joblib
import numpy as np
import pytest

import treegram.pairsum.tiles
from treegram import (
    CSM,
    GIK,
    NSPDK,
    ODDCL,
    ODDST,
    P2K,
    WL,
    WLCL,
    WLOA,
    GraphHopper,
    Graphs,
    GraphSVC,
    KernelSum,
    ODDCLApprox,
    OrderedTrees,
    ShortestPath,
    load_tu,
)
from treegram._core import parallel
from treegram._core.parallel import send_tasks
from workers import new_client

KERNELS = [
    CSM(max_size=2, use_labels=True),
    GIK(),
    GraphHopper(),
    KernelSum([WL(), ODDCL(1)]),
    NSPDK(),
    ODDCL(),
    ODDCLApprox(n_components=50, random_state=0),
    ODDST(),
    OrderedTrees(depth=1),
    P2K(),
    ShortestPath(),
    WL(),
    WLCL(),
    WLOA(),
]


@pytest.fixture(scope="module")
def graphs():
    """Return 800 nodes with three attributes, enough for sums whose order depends on a sample of the nodes."""
    rng = np.random.default_rng(0)
    edges = [[(i, i + 1) for i in range(19)] + [(int(i), int(i) + 2) for i in rng.choice(18, 3)] for _ in range(40)]
    labels = [rng.integers(0, 3, 20).tolist() for _ in range(40)]
    return Graphs.from_edges(edges, labels=labels, attributes=[rng.normal(size=(20, 3)) for _ in range(40)])


@pytest.fixture(autouse=True)
def many_tiles(monkeypatch):
    for module in ("nodes", "paths", "matching"):
        monkeypatch.setattr(f"treegram.pairsum.{module}.TILE_COLUMNS", 200)


def matrices(kernel, graphs):
    kernel.fit(graphs)
    return kernel.fit_transform(graphs), kernel.transform(graphs[:7])


def assert_same_bits(graphs, **config):
    for kernel in KERNELS:
        expected = matrices(kernel, graphs)
        with joblib.parallel_config(**config):
            found = matrices(kernel, graphs)
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(mine, theirs, err_msg=type(kernel).__name__)


def test_two_threads(graphs):
    assert_same_bits(graphs, backend="threading", n_jobs=2)


def test_pickled_tasks(graphs, monkeypatch):
    """As processes receive them, without processes."""
    sent = []

    def run_pickled(call, number, task):
        sent.append(number)
        return parallel._run_task(pickle.loads(pickle.dumps(call)), number, task)

    expected = [matrices(kernel, graphs) for kernel in KERNELS]
    monkeypatch.setattr(parallel, "_run_alone", run_pickled)
    for module in (parallel, treegram.pairsum.tiles):
        monkeypatch.setattr(module, "share_memory", lambda: False)
    for kernel, pair in zip(KERNELS, expected, strict=True):
        for mine, theirs in zip(matrices(kernel, graphs), pair, strict=True):
            np.testing.assert_array_equal(mine, theirs, err_msg=type(kernel).__name__)
    assert len(sent) > 20


@pytest.mark.slow
def test_processes(graphs):
    assert_same_bits(graphs, backend="loky", n_jobs=2)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # from Dask itself
def test_dask_cluster(graphs, data_dir):
    with new_client() as client:
        assert_same_bits(graphs, backend="dask", client=client)
        for name in ("COX2", "ENZYMES"):
            some = load_tu(name, data_dir=data_dir)[0][:60]
            expected = ODDCL(depth=3).fit_transform(some)
            with joblib.parallel_config(backend="dask", client=client):
                np.testing.assert_array_equal(ODDCL(depth=3).fit_transform(some), expected)
        y = np.arange(len(graphs)) % 2
        model = GraphSVC(ODDCL(), cv=3).fit(graphs, y)
        with joblib.parallel_config(backend="dask", client=client):
            other = GraphSVC(ODDCL(), cv=3).fit(graphs, y)
        np.testing.assert_array_equal(other.decision_function(graphs), model.decision_function(graphs))


def fail(shared, number):
    raise ValueError(f"task {number} of {shared}")


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_error_in_a_task_is_raised_in_the_caller(backend):
    with joblib.parallel_config(backend=backend, n_jobs=2), pytest.raises(ValueError, match="task 0 of x"):
        list(send_tasks(fail, "x", [(0,)], n_jobs=None, label=None))
