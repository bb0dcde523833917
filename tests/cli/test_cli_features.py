"""``treegram features``: the file it writes, and how it ends."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

import treegram
from treegram import ODDCL, WL, FeatureMap, Graphs, ODDCLFeatures, load_tu, save_tu
from treegram.cli._kernels import parameter_texts

N_GRAPHS = 9
OPTIONS = {"depth": 1, "method": "orf", "n_components": 16, "n_features": 64, "random_state": 0}
WORDS = "--depth 1 --method orf --n-components 16 --n-features 64 --random-state 0"


@pytest.fixture
def graphs(tmp_path, monkeypatch):
    """The data set TINY in the working folder, and nothing to download."""
    random = np.random.default_rng(0)
    n_nodes = 6
    nodes = np.arange(N_GRAPHS * n_nodes)
    back = np.minimum(random.integers(1, 4, len(nodes)), nodes % n_nodes)
    made = Graphs.from_arrays(
        np.arange(N_GRAPHS + 1) * n_nodes,
        np.stack([nodes, nodes - back], axis=1),
        labels=random.integers(3, size=len(nodes)),
        attributes=random.standard_normal((len(nodes), 2)),
        targets=np.where(np.arange(N_GRAPHS) % 3 == 0, 1, -1),
    )
    save_tu(made, tmp_path / "TINY")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TREEGRAM_DATA", raising=False)
    monkeypatch.delenv("TREEGRAM_MIRROR", raising=False)
    return load_tu(tmp_path / "TINY")[0]


def read(path):
    """Return the rows as a user of scipy reads them, and what else the file holds."""
    with np.load(path, allow_pickle=False) as saved:
        rest = {name: saved[name] for name in ("y", "graph_ids") if name in saved}
        return sp.load_npz(path), rest, json.loads(str(saved["meta"]))


def test_the_file_holds_rows_order_targets_and_meta(run, graphs):
    code, out, err = run(f"features TINY {WORDS} -o Z.npz")
    assert (code, err) == (0, "")
    assert out.startswith("Z.npz: 9 x 64 features of TINY, oddcl; orf, 16 components, estimated Gram error ")
    Z, rest, meta = read("Z.npz")
    features = ODDCLFeatures(**OPTIONS).fit(graphs)
    assert isinstance(Z, sp.csr_matrix)
    np.testing.assert_array_equal(Z.toarray(), features.transform(graphs))
    np.testing.assert_array_equal(rest["y"], graphs.targets)
    np.testing.assert_array_equal(rest["graph_ids"], np.arange(N_GRAPHS))
    assert meta["parameters"] == ODDCLFeatures(**OPTIONS, n_jobs=-1).get_params()
    assert (meta["data"], meta["kernel"], meta["method"], meta["n_components"]) == ("TINY", "oddcl", "orf", 16)
    assert meta["estimated_error"] == features.estimated_error_
    assert meta["choice"] == features.choice_
    assert meta["versions"]["treegram"] == treegram.__version__
    assert LinearSVC(C=1e4).fit(Z, rest["y"]).score(Z, rest["y"]) == 1  # liblinear takes no other types of indices


def test_rows_of_an_explicit_kernel(run, graphs):
    code, out, err = run("features TINY --kernel wl --n-iterations 2 -o Z.npz")
    assert (code, err) == (0, "")
    Z, _, meta = read("Z.npz")
    assert out.startswith(f"Z.npz: 9 x {Z.shape[1]} features of TINY, wl, ")
    np.testing.assert_array_equal(Z.toarray(), FeatureMap(WL(n_iterations=2)).fit_transform(graphs).toarray())
    assert meta["parameters"] == WL(n_iterations=2, n_jobs=-1).get_params()


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("", {}),
        ("--no-normalize --lam 1.2 --depth 2", {"normalize": False, "lam": 1.2, "depth": 2}),
    ],
)
def test_exact_rows_have_the_inner_products_of_the_kernel(run, graphs, words, options):
    assert run(f"features TINY --n-features none {words} -o Z.npz")[0] == 0
    Z, _, meta = read("Z.npz")
    np.testing.assert_allclose((Z @ Z.T).toarray(), ODDCL(**options).fit_transform(graphs), rtol=1e-10)
    assert meta["method"] == "distinct"
    assert meta["estimated_error"] < 1e-12


def test_graphs_without_targets_have_no_y(run, graphs):
    Path("TINY/TINY_graph_labels.txt").unlink()
    assert run("features TINY -o Z.npz")[0] == 0
    assert set(read("Z.npz")[1]) == {"graph_ids"}


def test_help_of_a_kernel_has_every_parameter_with_its_text(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    code, out, err = run("features --kernel oddcl --help")
    assert (code, err) == (0, "")
    texts = parameter_texts(ODDCLFeatures)
    assert set(texts) == set(ODDCLFeatures().get_params())
    for parameter, text in texts.items():
        if parameter != "n_jobs":
            assert "--" + parameter.replace("_", "-") in out
            assert text in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("TINY", "treegram features: error: the following arguments are required: -o/--output"),
        ("TINY -o Z.npy", "The output must end in .npz; got 'Z.npy'."),
        ("TINY -o none/Z.npz", "The folder none of the output file does not exist; create it first."),
        ("TINY --kernel sp -o Z.npz", "kernel of FeatureMap must be a kernel with explicit features"),
        ("TINY --n-feature 3 -o Z.npz", "unknown option --n-feature; did you mean --n-features"),
        ("TINY --n-features 0 -o Z.npz", "argument --n-features: expected a whole number of at least 1 or None, got '0'"),
        ("TINY --node-kernel linear --method rff -o Z.npz", "method='rff' approximates the Gaussian kernel alone"),
        ("ENZMES --no-download -o Z.npz", "Unknown data set 'ENZMES'"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_leaves_nothing(run, graphs, words, message):
    code, out, err = run(f"features {words}")
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert [path.name for path in Path().iterdir()] == ["TINY"]
