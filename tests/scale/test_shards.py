"""Rows in files: the same for any workers, resumed, and what fit_chunks learns from."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier

from treegram import (
    ODDCL,
    WL,
    FeatureMap,
    Landmarks,
    ODDCLFeatures,
    ParquetChunks,
    Shards,
    StoreError,
    TUChunks,
    embed_chunks,
    features_to_shards,
    fit_chunks,
    make_synthetic,
    save_parquet,
    save_tu,
)
from treegram.scale import shards as module

FEATURES = [
    ODDCLFeatures(depth=1, method="orf", n_components=16, n_features=64),
    FeatureMap(WL(1)),
    Landmarks(ODDCL(depth=1), 5),
]


@pytest.fixture(scope="module")
def graphs():
    return make_synthetic(30, random_state=0)[0]


@pytest.fixture(scope="module")
def folder(graphs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tu") / "DATA"
    save_tu(graphs, folder)
    return folder


@pytest.fixture
def count(monkeypatch):
    written, write = [], module._write
    monkeypatch.setattr(module, "_write", lambda shared, i: (written.append(i), write(shared, i)))
    return written


@pytest.mark.filterwarnings("ignore:.*hashed to 64 columns")
@pytest.mark.parametrize("features", FEATURES, ids=lambda features: type(features).__name__)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_shards_are_the_rows_of_the_chunks(features, n_jobs, graphs, folder, tmp_path):
    features.fit(graphs)
    chunks = TUChunks(folder, chunk_size=8)
    shards = features_to_shards(features, chunks, tmp_path, n_jobs=n_jobs)
    assert len(shards) == 4
    for (rows, y), (expected, y_expected) in zip(shards, embed_chunks(features, chunks), strict=True):
        expected = expected.toarray() if hasattr(expected, "toarray") else expected
        np.testing.assert_array_equal(rows.toarray(), expected)
        np.testing.assert_array_equal(y, y_expected)
    np.testing.assert_array_equal(shards.classes, chunks.classes)


def test_parquet_files_are_read_by_workers_of_their_own(graphs, tmp_path):
    save_parquet(graphs, tmp_path / "graphs.parquet")
    features = FeatureMap(WL(1)).fit(graphs)
    chunks = ParquetChunks(tmp_path / "graphs.parquet", chunk_size=8)
    copied = pickle.loads(pickle.dumps(chunks))  # as a worker gets it
    assert [copied[i] for i in range(4)] == list(chunks)
    shards = features_to_shards(features, chunks, tmp_path / "rows", n_jobs=2)
    assert np.vstack([rows.toarray() for rows, _ in shards]).tolist() == features.transform(graphs).toarray().tolist()
    assert len(features_to_shards(features, copied, tmp_path / "rows")) == 4


def test_a_model_learns_the_same_from_shards_as_from_chunks(graphs, folder, tmp_path):
    features = FeatureMap(WL(1)).fit(graphs)
    chunks = TUChunks(folder, chunk_size=7, shuffle=True, random_state=0)
    shards = features_to_shards(features, chunks, tmp_path)
    one = fit_chunks(SGDClassifier(random_state=0), features, chunks, n_epochs=2)
    other = fit_chunks(SGDClassifier(random_state=0), None, shards, n_epochs=2)
    np.testing.assert_array_equal(one.coef_, other.coef_)


@pytest.mark.parametrize("damage", ["gone", "cut", "changed"])
def test_only_what_is_missing_or_damaged_is_computed_again(damage, graphs, tmp_path, count):
    features, chunks = FeatureMap(WL(1)).fit(graphs), [graphs[:10], graphs[10:20], graphs[20:]]
    features_to_shards(features, chunks, tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    file = tmp_path / "000001.npz"
    content = file.read_bytes()
    if damage == "gone":
        file.unlink()
        with pytest.raises(StoreError, match="has 2 of 3 shards"):
            Shards(tmp_path)
    else:
        middle = len(content) // 2
        file.write_bytes(
            content[:middle] if damage == "cut" else content[:200] + bytes([content[200] ^ 1]) + content[201:]
        )
    features_to_shards(features, chunks, tmp_path)
    assert sorted(count) == [0, 1, 1, 2]
    assert file.read_bytes() == before[file.name]


def test_other_rows_are_refused(graphs, tmp_path):
    chunks = [graphs[:10], graphs[10:]]
    features_to_shards(FeatureMap(WL(1)).fit(graphs), chunks, tmp_path)
    with pytest.raises(StoreError, match="they are of other features"):
        features_to_shards(FeatureMap(WL(2)).fit(graphs), chunks, tmp_path)
    with pytest.raises(StoreError, match="they are of other graphs"):
        features_to_shards(FeatureMap(WL(1)).fit(graphs), chunks[::-1], tmp_path)
    assert len(Shards(tmp_path)) == 2


def test_a_folder_without_shards_is_refused(tmp_path):
    with pytest.raises(StoreError, match="has no shards that can be read"):
        Shards(tmp_path)
    (tmp_path / "shards.json").write_text('{"n_shards": 1}')
    with pytest.raises(StoreError, match="it is not complete"):
        Shards(tmp_path)


def test_chunks_can_be_read_by_number(folder):
    chunks = TUChunks(folder, chunk_size=7, shuffle=True, random_state=1)
    assert [chunks[i] for i in range(len(chunks))] == list(chunks)
    with pytest.raises(IndexError, match="There are 5 chunks; got 5"):
        chunks[len(chunks)]
    with pytest.raises(ValueError, match="needs a number as random_state"):
        TUChunks(folder, shuffle=True)[0]
