"""Tests of Gram matrices in Zarr stores: correct values, even after interruptions."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
import zarr
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from treegram import ODDCL, ODDST, P2K, WL, WLOA, KernelSum, ScaleAttributes, ShortestPath, gram_to_zarr, make_synthetic
from treegram._core.files import only_writer
from treegram.exceptions import ParameterError, StoreError
from treegram.kernels import gram_store

KERNELS = [
    ODDCL(depth=1),
    ODDCL(depth=1, gamma="scale", normalize=False),
    WL(2),
    WLOA(),
    P2K(),
    ShortestPath(),
    KernelSum([WL(), make_pipeline(ScaleAttributes(), ODDCL(depth=1))]),
    make_pipeline(ScaleAttributes("robust"), ODDCL(depth=1)),
]


@pytest.fixture(scope="module")
def graphs():
    return make_synthetic(23, random_state=0)[0]


@pytest.fixture
def count_blocks(monkeypatch):
    """Return the computed blocks, in order."""
    computed = []
    write = gram_store._write_block

    def counted(shared, i, j, *graphs):
        computed.append((i, j))
        write(shared, i, j, *graphs)

    monkeypatch.setattr(gram_store, "_write_block", counted)
    return computed


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: " ".join(repr(kernel).split()))
@pytest.mark.parametrize("chunk", [5, 100])
def test_stored_matrix_equals_the_gram_matrix(kernel, chunk, graphs, tmp_path):
    stored = gram_to_zarr(kernel, graphs, tmp_path / "K.zarr", chunk=chunk, n_jobs=2)
    K = clone(kernel).fit_transform(graphs)
    np.testing.assert_allclose(stored[:], K, rtol=1e-13, atol=1e-14)
    np.testing.assert_array_equal(stored[:], stored[:].T)
    group = zarr.open_group(tmp_path / "K.zarr", mode="r")
    assert group.metadata.zarr_format == 3
    assert type(kernel).__name__ in group.attrs["kernel"]
    if getattr(kernel, "normalize", True):
        np.testing.assert_allclose(np.diag(stored[:]), 1.0, atol=1e-15)


def test_single_precision_equals_the_rounded_matrix(graphs, tmp_path):
    stored = gram_to_zarr(ODDCL(), graphs, tmp_path / "K", chunk=6, dtype="float32")
    exact = gram_to_zarr(ODDCL(), graphs, tmp_path / "exact", chunk=6)
    assert stored.dtype == np.float32
    np.testing.assert_array_equal(stored[:], exact[:].astype(np.float32))


def test_values_beyond_single_precision_raise(graphs, tmp_path):
    kernel = ODDST(3, lam=10, normalize=False)
    with pytest.raises(ValueError, match="too large for float32: use dtype='float64', or normalize=True"):
        gram_to_zarr(kernel, graphs, tmp_path / "K", dtype="float32")


def test_half_of_the_blocks_are_computed_and_none_twice(graphs, tmp_path, count_blocks):
    for _ in range(2):
        gram_to_zarr(WL(), graphs, tmp_path / "K", chunk=5)
    assert sorted(count_blocks) == [(i, j) for i in range(5) for j in range(i, 5)]


@pytest.mark.parametrize("name", ["gram/c/0/3", "gram/c/3/0", "gram/c/2/2", "self_kernels/c/1"])
@pytest.mark.parametrize("damage", ["gone", "cut", "changed"])
def test_missing_or_damaged_block_is_recomputed(name, damage, graphs, tmp_path, count_blocks):
    expected = gram_to_zarr(WL(), graphs, tmp_path / "K", chunk=5)[:]
    count_blocks.clear()
    file = tmp_path / "K" / name
    content = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(content[:-3] if damage == "cut" else bytes([content[0] ^ 1]) + content[1:])
    np.testing.assert_array_equal(gram_to_zarr(WL(), graphs, tmp_path / "K", chunk=5)[:], expected)
    assert len(count_blocks) == 1


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"kernel": WL(2)}, "kernel"),
        ({"chunk": 6}, "chunk"),
        ({"dtype": "float32"}, "dtype"),
        ({"X": make_synthetic(23, random_state=1)[0]}, "graphs"),
    ],
)
def test_another_matrix_raises_and_nothing_changes(other, what, graphs, tmp_path):
    first = gram_to_zarr(WL(), graphs, tmp_path / "K", chunk=5)[:]
    arguments = {"kernel": WL(), "X": graphs, "path": tmp_path / "K", "chunk": 5} | other
    with pytest.raises(StoreError, match=f"holds another matrix: its {what} is"):
        gram_to_zarr(**arguments)
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "K" / "gram", mode="r")[:], first)


def test_n_jobs_does_not_change_the_result(graphs, tmp_path):
    first = gram_to_zarr(ODDCL(n_jobs=2), graphs, tmp_path / "K", chunk=5, n_jobs=2)[:]
    np.testing.assert_array_equal(gram_to_zarr(ODDCL(), graphs, tmp_path / "K", chunk=5)[:], first)
    np.testing.assert_array_equal(gram_to_zarr(ODDCL(), graphs, tmp_path / "K1", chunk=5)[:], first)


def test_invalid_arguments_write_nothing(graphs, tmp_path):
    for arguments, message in [
        ({"chunk": 0}, "chunk of gram_to_zarr must be a whole number of at least 1"),
        ({"dtype": "int8"}, "dtype of gram_to_zarr must be one of 'float32', 'float64'"),
        ({"kernel": ODDCL(node_kernel=lambda a, b: a @ b.T)}, "must not have functions"),
        ({"kernel": ODDCL(depth=-1)}, "depth of ODDCL must be"),
    ]:
        with pytest.raises(ParameterError, match=message):
            gram_to_zarr(**{"kernel": WL(), "X": graphs, "path": tmp_path / "K", **arguments})
    assert not (tmp_path / "K").exists()


def test_foreign_folder_raises_and_keeps_its_files(graphs, tmp_path):
    """Including files whose names end like those of unfinished chunks."""
    for name in ("zarr.json", "thesis.txt"):
        folder = tmp_path / name
        (folder / "downloads").mkdir(parents=True)
        files = [folder / name, folder / "downloads" / "thesis.iso.partial", folder / f"1.{32 * 'a'}.partial"]
        for file in files:
            file.write_text("{")
        with pytest.raises(StoreError, match="cannot be read"):
            gram_to_zarr(WL(), graphs, folder)
        assert sorted(path for path in folder.rglob("*") if path.is_file()) == sorted(files)
        assert all(file.read_text() == "{" for file in files)


def test_existing_store_loses_only_its_own_unfinished_chunks(graphs, tmp_path):
    gram_to_zarr(WL(), graphs, tmp_path / "K", chunk=5)
    ours, theirs = tmp_path / "K" / "gram" / "c" / "0" / f"1.{32 * 'a'}.partial", tmp_path / "K" / "thesis.iso.partial"
    for file in (ours, theirs):
        file.write_text("half")
    gram_to_zarr(WL(), graphs, tmp_path / "K", chunk=5)
    assert (ours.exists(), theirs.exists()) == (False, True)


def test_store_with_a_symlink_raises_and_nothing_is_written_outside(graphs, tmp_path):
    gram_to_zarr(WL(), graphs, tmp_path / "K", chunk=5)
    row = tmp_path / "K" / "gram" / "c" / "1"
    shutil.rmtree(row)
    (tmp_path / "outside").mkdir()
    row.symlink_to(tmp_path / "outside")
    with pytest.raises(StoreError, match="is a symbolic link"):
        gram_to_zarr(WL(), graphs, tmp_path / "K", chunk=5)
    assert not any((tmp_path / "outside").iterdir())


@pytest.mark.skipif(os.name != "posix", reason="pipes and links as on Unix")
@pytest.mark.parametrize("kind", ["pipe", "file", "link", "dangling link"])
def test_path_that_is_no_folder_raises(kind, graphs, tmp_path):
    path = tmp_path / "K"
    (tmp_path / "folder").mkdir()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "file":
        path.write_text("thesis")
    else:
        path.symlink_to(tmp_path / ("folder" if kind == "link" else "nothing"))
    before = path.lstat()
    with pytest.raises(StoreError, match="K must be a folder, or a path where there is nothing"):
        gram_to_zarr(WL(), graphs, path)
    assert path.lstat() == before
    assert not any((tmp_path / "folder").iterdir())


@pytest.mark.skipif(os.name != "posix", reason="pipes as on Unix")
@pytest.mark.parametrize("name", ["gram/c/0/1", "self_kernels/c/0", "zarr.json", "gram/zarr.json"])
def test_store_with_a_pipe_raises(name, graphs, tmp_path):
    """Reading a pipe would wait for ever."""
    gram_to_zarr(WL(), graphs, tmp_path / "K", chunk=5)
    (tmp_path / "K" / name).unlink()
    os.mkfifo(tmp_path / "K" / name)
    with pytest.raises(StoreError, match=r"a device, which a store cannot contain|it has no .*zarr.json"):
        gram_to_zarr(WL(), graphs, tmp_path / "K", chunk=5)


@pytest.mark.parametrize(
    ("array", "change", "what"),
    [
        ("gram", {"codecs": [{"name": "bytes", "configuration": {"endian": "big"}}, {"name": "crc32c"}]}, "codecs"),
        ("gram", {"codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}, "codecs"),
        ("self_kernels", {"codecs": [{"name": "bytes", "configuration": {"endian": "big"}}]}, "codecs"),
        (
            "gram",
            {"chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}}},
            "chunk_key_encoding",
        ),
        ("gram", {"chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}}}, "chunk_key_encoding"),
        ("gram", {"fill_value": 0.0}, "fill_value"),
        ("self_kernels", {"data_type": "float32"}, "data_type"),
        ("gram", {"shape": [22, 23]}, "shape"),
    ],
)
def test_store_with_other_metadata_raises(array, change, what, graphs, tmp_path):
    """The same bytes would be other numbers, or the blocks would be looked for elsewhere."""
    gram_to_zarr(WL(), graphs, tmp_path / "K", chunk=5)
    path = tmp_path / "K" / array / "zarr.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(StoreError, match=f"holds another matrix: its {array} {what} is"):
        gram_to_zarr(WL(), graphs, tmp_path / "K", chunk=5)


@pytest.mark.parametrize("existed", [False, True])
def test_store_that_another_process_has_just_created_is_used(existed, graphs, tmp_path, monkeypatch):
    """Both have found no store; the slower one must not fail with "Directory not empty"."""
    add_arrays, path = gram_store._add_arrays, tmp_path / "K"
    if existed:
        path.mkdir()

    def create_twice(group, record):
        monkeypatch.setattr(gram_store, "_add_arrays", add_arrays)
        gram_to_zarr(WL(), graphs, path, chunk=5)
        add_arrays(group, record)

    monkeypatch.setattr(gram_store, "_add_arrays", create_twice)
    K = gram_to_zarr(WL(), graphs, path, chunk=5)
    np.testing.assert_allclose(K[:], WL().fit_transform(graphs), atol=1e-14)
    assert names_in(tmp_path) == ["K"]


def names_in(folder):
    return [path.name for path in folder.iterdir()]


KILLED_CREATOR = """
import os, sys, zarr
from treegram import WL, gram_to_zarr, make_synthetic
setattr(zarr.Group, sys.argv[2], lambda *args, **options: os._exit(9))
gram_to_zarr(WL(), make_synthetic(23, random_state=0)[0], sys.argv[1], chunk=5)
"""


@pytest.mark.parametrize("moment", ["create_array", "update_attributes"])
def test_store_whose_creation_was_killed_is_created_again(graphs, tmp_path, moment):
    command = [sys.executable, "-c", KILLED_CREATOR, str(tmp_path / "K"), moment]
    assert subprocess.run(command, check=False).returncode == 9
    K = gram_to_zarr(WL(), graphs, tmp_path / "K", chunk=5)
    np.testing.assert_allclose(K[:], WL().fit_transform(graphs), atol=1e-14)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".part"] == ["K"]


def test_empty_folder_is_used(graphs, tmp_path):
    (tmp_path / "K").mkdir()
    assert gram_to_zarr(WL(), graphs, tmp_path / "K").shape == (23, 23)


def test_missing_zarr_error_says_what_to_install(graphs, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ImportError, match=r"Gram matrices on disk need zarr: pip install zarr"):
        gram_to_zarr(WL(), graphs, tmp_path / "K")


def test_too_small_disk_raises_before_computing(graphs, tmp_path, monkeypatch, count_blocks):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=100))
    with pytest.raises(OSError, match=r"is too full: it has .* left, and the file takes .*"):
        gram_to_zarr(WL(), graphs, tmp_path / "K", chunk=5)
    assert not count_blocks


def test_full_disk_raises_and_keeps_finished_blocks(graphs, tmp_path, monkeypatch, count_blocks):
    write = gram_store._write

    def full(path, block, values):
        if block == (1, 4):
            raise OSError(28, "No space left on device")
        write(path, block, values)

    with monkeypatch.context() as patched:
        patched.setattr(gram_store, "_write", full)
        with pytest.raises(OSError, match=r"cannot be written \(No space left on device\). Finished blocks are kept"):
            gram_to_zarr(WL(), graphs, tmp_path / "K", chunk=5, n_jobs=1)
    n_before = len(count_blocks)
    K = gram_to_zarr(WL(), graphs, tmp_path / "K", chunk=5)
    np.testing.assert_allclose(K[:], WL().fit_transform(graphs), atol=1e-14)
    assert len(count_blocks) == 15 + 1  # the one that failed twice
    assert n_before < 15


PROGRAM = """
import sys
from treegram import ODDCL, gram_to_zarr, make_synthetic
graphs, _ = make_synthetic(60, random_state=0)
print("ready", flush=True)
gram_to_zarr(ODDCL(depth=3), graphs, sys.argv[1], chunk=6, n_jobs=2)
print("done", flush=True)
"""


@pytest.mark.slow
def test_killed_repeatedly_it_still_finishes(tmp_path):
    rng = np.random.default_rng(0)
    for _ in range(5):
        with subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path / "K")], stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(rng.uniform(0, 0.5))
            process.send_signal(signal.SIGKILL)
    graphs, _ = make_synthetic(60, random_state=0)
    K = gram_to_zarr(ODDCL(depth=3), graphs, tmp_path / "K", chunk=6)
    np.testing.assert_allclose(K[:], ODDCL(depth=3).fit_transform(graphs), rtol=1e-13)
    assert not list((tmp_path / "K").rglob("*.partial"))


def test_second_writer_raises(graphs, tmp_path):
    gram_to_zarr(WL(), graphs, tmp_path / "K")
    with only_writer(tmp_path / "K"), pytest.raises(StoreError, match="Another process is writing"):
        gram_to_zarr(WL(), graphs, tmp_path / "K")
