"""Kernels, models and studies on a Dask cluster of processes: the same bits, whatever happens to the workers."""

import time

import joblib
import numpy as np
import pytest

from treegram import (
    CSM,
    GIK,
    ODDCL,
    P2K,
    WL,
    WLOA,
    ClusterError,
    FeatureMap,
    GraphHopper,
    GraphSVC,
    ShortestPath,
    _dask,
    features_to_shards,
    gram_to_zarr,
    make_synthetic,
)
from treegram._core.parallel import send_tasks
from treegram.pairsum.tiles import _batches
from workers import new_client

pytestmark = pytest.mark.filterwarnings("ignore")  # Dask warns of sockets that killed workers leave open
KERNELS = [
    ODDCL(depth=2),
    WL(),
    WLOA(),
    P2K(),
    GIK(radius=1),
    GraphHopper(),
    ShortestPath(),
    CSM(max_size=2, use_labels=True),
]


@pytest.fixture(scope="module")
def client():
    with new_client() as client:
        yield client


@pytest.fixture(scope="module")
def graphs():
    return make_synthetic(40, random_state=0)[0]


@pytest.fixture
def many_tiles(monkeypatch):
    for module in ("nodes", "paths", "matching"):
        monkeypatch.setattr(f"treegram.pairsum.{module}.TILE_COLUMNS", 200)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_every_kernel_gives_the_same_bits(kernel, client, graphs, many_tiles):
    expected = kernel.fit_transform(graphs), kernel.transform(graphs[:7])
    with joblib.parallel_config(backend="dask", client=client):
        found = kernel.fit_transform(graphs), kernel.transform(graphs[:7])
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_so_do_grids_and_models(client, graphs):
    y = np.arange(len(graphs)) % 2
    expected = ODDCL().gram_grid(graphs, depth=[0, 1], lam=[0.5, 1.0])
    model = GraphSVC(ODDCL(), cv=3).fit(graphs, y)
    with joblib.parallel_config(backend="dask", client=client):
        np.testing.assert_array_equal(ODDCL().gram_grid(graphs, depth=[0, 1], lam=[0.5, 1.0]), expected)
        other = GraphSVC(ODDCL(), cv=3).fit(graphs, y)
        np.testing.assert_array_equal(other.decision_function(graphs), model.decision_function(graphs))


def test_a_client_can_be_given_directly(client, graphs, tmp_path):
    K = gram_to_zarr(ODDCL(), graphs, tmp_path / "K", chunk=8, client=client)
    np.testing.assert_array_equal(K[:], gram_to_zarr(ODDCL(), graphs, tmp_path / "local", chunk=8)[:])
    features = FeatureMap(WL(1)).fit(graphs)
    chunks = [graphs[i : i + 8] for i in range(0, 40, 8)]
    for mine, theirs in zip(
        features_to_shards(features, chunks, tmp_path / "Z", client=client),
        features_to_shards(features, chunks, tmp_path / "Z1"),
        strict=True,
    ):
        assert (mine[0] != theirs[0]).nnz == 0


def _slow_square(shared, number):
    time.sleep(0.05)
    return shared["factor"] * number**2


def test_a_worker_of_another_version_is_refused(client, graphs, monkeypatch):
    monkeypatch.setattr(_dask.metadata, "version", lambda name: "9.9.9")
    with (
        joblib.parallel_config(backend="dask", client=client),
        pytest.raises(ClusterError, match=r"A worker has treegram .*, the client 9\.9\.9\. Install the same version"),
    ):
        ODDCL().fit_transform(graphs)


def test_a_cluster_without_workers_is_given_up(monkeypatch):
    monkeypatch.setattr(_dask, "PATIENCE", 1.0)
    with (
        new_client(n_workers=0) as alone,
        joblib.parallel_config(backend="dask", client=alone, wait_for_workers_timeout=0),
        pytest.raises(ClusterError, match="has it had workers within the last"),
    ):
        list(send_tasks(_slow_square, {"factor": 1}, [(0,)], n_jobs=None, label=None))


def _wrong(shared, number):
    raise ValueError(f"task {number} cannot be")


def test_an_error_of_a_task_is_raised_here(client):
    with (
        joblib.parallel_config(backend="dask", client=client),
        pytest.raises(ValueError, match="task 0 cannot be"),
    ):
        list(send_tasks(_wrong, None, [(0,)], n_jobs=None, label=None))


@pytest.mark.parametrize("n_workers", [1, 2, 64])
def test_tasks_of_several_tiles_are_ordered_bounded_and_get_smaller(n_workers):
    tiles = [((first, first + 10), first + 10) for first in range(500, -10, -10)]
    batches = list(_batches(tiles, n_workers, 20_000))
    assert [tile for batch in batches for tile in batch] == tiles
    sizes = [sum((last - first) * n_rows for (first, last), n_rows in batch) for batch in batches]
    assert max(sizes) < 20_000 + 5_100  # one tile more at most
    assert sizes[-1] < sizes[0]
    assert len(batches) == {1: 8, 2: 12, 64: 51}[n_workers]
