"""``treegram features``: the file it writes, streams in bounded memory, and how it ends."""

import errno
import json
import shutil
import tracemalloc
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

import treegram
from treegram import ODDCL, Graphs, ODDCLFeatures, Shards, load_tu, save_tu
from treegram.cli import main
from treegram.cli._kernels import parameter_texts

N_GRAPHS = 9
STATELESS = {"depth": 1, "method": "orf", "n_components": 16, "n_features": 64, "random_state": 0}
STATELESS_WORDS = "--depth 1 --method orf --n-components 16 --n-features 64 --random-state 0"


def some_graphs(n_graphs=N_GRAPHS, n_nodes=6, seed=0):
    random = np.random.default_rng(seed)
    nodes = np.arange(n_graphs * n_nodes)
    back = np.minimum(random.integers(1, 4, len(nodes)), nodes % n_nodes)
    return Graphs.from_arrays(
        np.arange(n_graphs + 1) * n_nodes,
        np.stack([nodes, nodes - back], axis=1),
        labels=random.integers(3, size=len(nodes)),
        attributes=random.standard_normal((len(nodes), 2)),
        targets=np.where(np.arange(n_graphs) % 3 == 0, 1, -1),
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, with a data set TINY in it and nothing to download."""
    save_tu(some_graphs(), tmp_path / "TINY")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TREEGRAM_DATA", raising=False)
    monkeypatch.delenv("TREEGRAM_MIRROR", raising=False)
    return tmp_path


@pytest.fixture
def graphs(folder):
    return load_tu(folder / "TINY")[0]


@pytest.fixture
def run(capsys):
    """Run ``treegram features`` with the words of a line; gives the exit code and what it wrote to stdout and stderr."""

    def run_command(line):
        code = main(["features", *line.split()])
        return code, *capsys.readouterr()

    return run_command


def files(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != "TINY")


def read(path):
    """The rows as a user of scipy reads them, and what else the file holds."""
    with np.load(path, allow_pickle=False) as saved:
        rest = {name: saved[name] for name in ("y", "graph_ids") if name in saved}
        return sp.load_npz(path), rest, json.loads(str(saved["meta"]))


# -------------------------------------------------------------------- the file


def test_the_file_holds_rows_order_targets_and_meta(run, folder, graphs):
    code, out, err = run(f"TINY {STATELESS_WORDS} -o Z.npz")
    assert (code, err) == (0, "")
    assert out.startswith("Z.npz: 9 x 64 features of TINY, orf with 16 components, estimated Gram error ")
    assert files(folder) == ["Z.npz"]
    Z, rest, meta = read("Z.npz")
    features = ODDCLFeatures(**STATELESS).fit(graphs)
    assert isinstance(Z, sp.csr_matrix)
    np.testing.assert_array_equal(Z.toarray(), features.transform(graphs))
    np.testing.assert_array_equal(rest["y"], graphs.targets)
    np.testing.assert_array_equal(rest["graph_ids"], np.arange(N_GRAPHS))
    assert meta["features"] == "ODDCLFeatures"
    assert meta["parameters"] == ODDCLFeatures(**STATELESS).get_params()
    assert (meta["data"], meta["chunk"], meta["method"], meta["n_components"]) == ("TINY", None, "orf", 16)
    assert meta["estimated_error"] == features.estimated_error_
    assert meta["choice"] == features.choice_
    assert meta["versions"]["treegram"] == treegram.__version__
    assert meta["created"].endswith("+00:00")


def test_the_rows_train_a_linear_model_as_they_are(run, folder):
    assert run("TINY --random-state 0 -o Z.npz")[0] == 0
    Z, rest, _ = read("Z.npz")
    assert Z.indices.dtype == Z.indptr.dtype == np.int32  # liblinear takes no others
    assert LinearSVC(C=1e4).fit(Z, rest["y"]).score(Z, rest["y"]) == 1


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("", {}),
        ("--no-normalize --lam 1.2 --depth 2", {"normalize": False, "lam": 1.2, "depth": 2}),
        ("--counting visits --gamma 0.3", {"counting": "visits", "gamma": 0.3}),
    ],
)
def test_exact_rows_have_the_inner_products_of_the_kernel(run, folder, graphs, words, options):
    assert run(f"TINY --n-features none {words} -o Z.npz")[0] == 0
    Z, _, meta = read("Z.npz")
    np.testing.assert_allclose((Z @ Z.T).toarray(), ODDCL(**options).fit_transform(graphs), rtol=1e-10)
    assert meta["method"] == "distinct"
    assert meta["estimated_error"] < 1e-12


def test_graphs_without_targets_have_no_y(run, folder):
    Path("TINY/TINY_graph_labels.txt").unlink()
    for words in ("", "--chunk 4"):
        assert run(f"TINY {words} -o Z.npz --force")[0] == 0
        _, rest, _ = read("Z.npz")
        assert set(rest) == {"graph_ids"}


def test_graphs_without_nodes_have_empty_rows(run, folder):
    Path("TINY/TINY_graph_labels.txt").write_text("1\n" * (N_GRAPHS + 2))
    assert run(f"TINY {STATELESS_WORDS} --chunk {N_GRAPHS} -o Z.npz")[0] == 0
    Z, _, _ = read("Z.npz")
    assert Z.shape == (N_GRAPHS + 2, 64)
    np.testing.assert_array_equal(np.diff(Z.indptr) > 0, [True] * N_GRAPHS + [False] * 2)


def test_help_has_every_parameter_with_its_text(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    texts = parameter_texts(ODDCLFeatures)
    assert set(texts) == set(ODDCLFeatures().get_params())
    for parameter, text in texts.items():
        assert "--" + parameter.replace("_", "-") in out
        assert text in out


# -------------------------------------------------------------------- chunks


@pytest.mark.parametrize("chunk", [1, 2, 5, 100])
def test_chunks_give_the_rows_of_the_whole(run, folder, chunk):
    assert run(f"TINY {STATELESS_WORDS} -o whole.npz")[0] == 0
    assert run(f"./TINY {STATELESS_WORDS} --chunk {chunk} -o chunks.npz")[0] == 0
    (whole, rest, _), (chunks, chunk_rest, meta) = read("whole.npz"), read("chunks.npz")
    assert chunks.shape == whole.shape
    np.testing.assert_allclose(chunks.toarray(), whole.toarray(), atol=1e-13)
    for name, array in rest.items():
        np.testing.assert_array_equal(chunk_rest[name], array)
    assert meta["chunk"] == chunk


def test_a_map_that_looks_at_the_data_sees_a_sample_from_all_over_the_files(run, folder, graphs):
    code, out, _ = run("TINY --n-features 32 --random-state 1 --chunk 4 -o Z.npz")
    assert code == 0
    Z, _, meta = read("Z.npz")
    sample, new, *_ = treegram.TUChunks("TINY", chunk_size=4, shuffle=True, random_state=0)
    assert sample != graphs[:4]
    features = ODDCLFeatures(n_features=32, random_state=1).fit(sample)
    np.testing.assert_allclose(Z.toarray(), features.transform(graphs), atol=1e-13)
    assert (meta["choice"], meta["n_fitted"]) == (features.choice_, 4)
    assert meta["estimated_error"] == features.estimate_error(new) != features.estimated_error_
    assert f"estimated Gram error {meta['estimated_error']:.1e}" in out


def test_the_error_that_is_told_is_that_of_all_graphs(run, folder):
    """Files sorted by their vectors: the first chunk knows nothing of the others."""
    graphs, _ = treegram.make_synthetic(300, n_nodes=10, n_edges=15, random_state=0)
    drift = np.repeat(np.linspace(0, 30, 300), 10)[:, None]
    graphs = replace(graphs, attributes=graphs.attributes + drift)
    save_tu(graphs, folder / "SORTED")
    assert run("SORTED --depth 0 --method nystroem --n-components 20 --random-state 0 --chunk 50 -o Z.npz")[0] == 0
    Z, _, meta = read("Z.npz")
    K = treegram.ODDCL(depth=0).fit_transform(graphs)
    error = np.linalg.norm((Z @ Z.T).toarray() - K) / np.linalg.norm(K)
    assert error / 2 < meta["estimated_error"] < 2 * error


def test_data_that_needs_no_file_comes_in_chunks_too(run, folder):
    assert run(f"synthetic {STATELESS_WORDS} --chunk 70 -o Z.npz")[0] == 0
    Z, _, _ = read("Z.npz")
    graphs, _ = treegram.make_synthetic(random_state=0)
    np.testing.assert_allclose(Z.toarray(), ODDCLFeatures(**STATELESS).transform(graphs), atol=1e-13)


def test_chunks_are_found_by_name_in_the_given_folder(run, folder, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert run(f"TINY --data-dir {folder} --no-download --chunk 4 -o Z.npz")[0] == 0


@pytest.mark.slow
def test_memory_is_not_that_of_all_rows(run, folder):
    save_tu(some_graphs(4000), folder / "MANY")
    words = "MANY --depth 0 --method orf --n-components 600 --n-features 1200 --random-state 0 --chunk 100 -o Z.npz"
    tracemalloc.start()
    assert run(words)[0] == 0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.7 * Path("Z.npz").stat().st_size


# -------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("TINY", "treegram features: error: the following arguments are required: -o/--output"),
        ("TINY -o Z.npy", "The output file must end in .npz or .shards; got 'Z.npy'."),
        ("TINY -o Z.txt", "The output file must end in .npz or .shards; got 'Z.txt'."),
        ("TINY -o none/Z.npz", "The folder none of the output file does not exist; create it first."),
        ("TINY -o TINY/folder.npz", "TINY/folder.npz is a folder; the output must be a file."),
        ("TINY --kernel wl -o Z.npz", "unknown option --kernel: features are those of the kernel oddcl; treegram gram"),
        ("TINY --n-feature 3 -o Z.npz", "unknown option --n-feature; did you mean --n-features"),
        ("TINY --n-features 0 -o Z.npz", "argument --n-features: expected a whole number of at least 1 or None, got '0'"),
        ("TINY --method fft -o Z.npz", "expected one of 'auto', 'nystroem', 'orf', 'qmc', 'rff', got 'fft'"),
        ("TINY --chunk 0 -o Z.npz", "argument --chunk: expected a whole number of at least 1, got '0'"),
        ("TINY --chunk none -o Z.npz", "argument --chunk: expected a whole number of at least 1, got 'none'"),
        ("TINY --chunk 2 --n-features none -o Z.npz", "--n-features none needs all graphs at once"),
        ("TINY --node-kernel linear --method rff -o Z.npz", "method='rff' approximates the Gaussian kernel alone"),
        ("ENZMES --no-download -o Z.npz", "Unknown data set 'ENZMES'"),
        ("ENZMES --no-download --chunk 2 -o Z.npz", "Unknown data set 'ENZMES'"),
        ("none/TINY --chunk 2 -o Z.npz", "The folder none/TINY does not exist"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_leaves_nothing(run, folder, words, message):
    (folder / "TINY" / "folder.npz").mkdir()
    code, out, err = run(words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert files(folder) == []


@pytest.mark.parametrize(
    ("words", "table", "keep", "message"),
    [
        ("", "node_attributes", 200, "TINY_node_attributes.txt:"),
        ("", "A", 3, "TINY_A.txt:1"),
        ("", "graph_labels", 10, "one per graph"),
        ("--chunk 2", "node_attributes", 200, "TINY_node_attributes.txt:6: expected 2 numbers, got 1"),
        ("--chunk 2", "A", 3, "TINY_A.txt:1: expected a number on either side of each comma"),
        ("--chunk 2", "graph_indicator", 4, "TINY_A.txt:2: the edge (1, 3) names a node that does not exist"),
    ],
)  # fmt: skip
def test_truncated_files_are_named_and_nothing_is_written(run, folder, words, table, keep, message):
    path = Path(f"TINY/TINY_{table}.txt")
    path.write_bytes(path.read_bytes()[:keep])
    code, out, err = run(f"TINY {words} -o Z.npz")
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert files(folder) == []


def test_an_error_in_a_later_chunk_leaves_nothing(run, folder):
    path = Path("TINY/TINY_node_attributes.txt")
    lines = path.read_text().splitlines()
    lines[40] = "nan, 1"
    path.write_text("\n".join(lines))
    code, _, err = run(f"TINY {STATELESS_WORDS} --chunk 2 -o Z.npz")
    assert code == 2
    assert "TINY_node_attributes.txt:41: expected a finite number, got 'nan'" in err
    assert files(folder) == []


def test_an_existing_file_stays_unless_forced(run, folder):
    Path("Z.npz").write_text("old")
    code, _, err = run("TINY -o Z.npz")
    assert code == 2
    assert "Z.npz exists already; give --force to replace it, or another name." in err
    assert Path("Z.npz").read_text() == "old"
    assert run("TINY -o Z.npz --force")[0] == 0
    assert read("Z.npz")[0].shape == (N_GRAPHS, 4096)


def raising(error):
    def raise_error(*args, **kwargs):
        if args and hasattr(args[0], "write"):
            args[0].write(b"half a file")
        raise error

    return raise_error


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 2, "No space left on device"),
        (KeyboardInterrupt(), 130, "Stopped; nothing is left half-written."),
    ],
)
def test_nothing_half_written_stays_behind(run, folder, monkeypatch, error, code, message):
    Path("Z.npz").write_text("old")
    monkeypatch.setattr(np, "savez", raising(error))
    ended, out, err = run("TINY --chunk 2 --n-features 8 -o Z.npz --force")
    assert (ended, out) == (code, "")
    assert message in err
    assert files(folder) == ["Z.npz"]
    assert Path("Z.npz").read_text() == "old"


def test_a_full_disk_is_told_after_the_first_chunk(run, folder, monkeypatch):
    """All rows are as long as these, and lie on the disk twice for a moment: 2 x 9 x 64 numbers with their columns."""
    n_done = []
    transform = ODDCLFeatures.transform
    monkeypatch.setattr(ODDCLFeatures, "transform", lambda self, X: n_done.append(len(X)) or transform(self, X))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    code, _, err = run(f"TINY {STATELESS_WORDS} --chunk 3 -o Z.npz")
    assert code == 2
    assert "Z.npz would need 1." in err
    assert "e-05 GB, but the disk has only 1e-06 GB left." in err
    assert n_done == [3]
    assert files(folder) == []


def test_a_folder_without_write_permission_is_told_before_the_computation(run, folder, monkeypatch):
    monkeypatch.setattr(
        "treegram._core.files._create_file", raising(PermissionError(errno.EACCES, "Permission denied"))
    )
    monkeypatch.setattr(ODDCLFeatures, "fit", raising(AssertionError("computed")))
    code, _, err = run("TINY -o Z.npz")
    assert code == 2
    assert "The folder . cannot be written to (Permission denied)." in err


def test_shards_hold_the_same_rows(folder, run):
    options = "TINY --chunk 3 --depth 1 --method orf --n-components 8 --n-features 64 --random-state 0"
    assert run(f"{options} -o Z.npz")[0] == 0
    for _ in range(2):  # the second time all is there
        code, out, _ = run(f"{options} -o Z.shards")
        assert code == 0
        assert out.startswith("Z.shards: ")
    rows = sp.vstack([rows for rows, _ in Shards("Z.shards")])
    assert (rows != sp.load_npz("Z.npz")).nnz == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("TINY -o Z.npz --workers 2", "choose a name that ends in .shards"),
        ("TINY -o Z.shards --n-features none", "--n-features none needs all graphs at once"),
    ],
)
def test_workers_write_shards_of_hashed_rows_alone(folder, run, words, message):
    code, _, err = run(words)
    assert code == 2
    assert message in err
