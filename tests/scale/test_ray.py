"""The recipe for Ray in docs/cluster.md; Ray is not among the packages of the tests, so this is skipped where it is not there."""

import joblib
import numpy as np
import pytest

from treegram import ODDCL, WL, FeatureMap, features_to_shards, make_synthetic

ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Ray has warnings of its own


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield monkeypatch


@pytest.fixture(scope="module")
def on_ray(monkeypatch_module):
    from ray.util.joblib import register_ray

    monkeypatch_module.setenv("RAY_AUTH_MODE", "disabled")  # else it writes a token into the home folder
    ray.init(num_cpus=2, include_dashboard=False)
    register_ray()
    with joblib.parallel_config(backend="ray", n_jobs=2):
        yield
    ray.shutdown()


@pytest.fixture(scope="module")
def graphs():
    return make_synthetic(40, random_state=0)[0]


def test_kernels_give_the_same_bits(graphs, monkeypatch, on_ray):
    monkeypatch.setattr("treegram.pairsum.nodes.TILE_COLUMNS", 200)  # many tiles
    found = ODDCL(depth=2).fit_transform(graphs)
    with joblib.parallel_config(backend="threading", n_jobs=1):
        np.testing.assert_array_equal(found, ODDCL(depth=2).fit_transform(graphs))


def test_workers_write_shards(graphs, tmp_path, on_ray):
    features = FeatureMap(WL(1)).fit(graphs)
    shards = features_to_shards(features, [graphs[:20], graphs[20:]], tmp_path)
    assert (shards[1][0] != features.transform(graphs[20:])).nnz == 0
