"""Tests of the command line: output files, messages and exit codes."""

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import treegram
from checks import gram_array
from treegram import ODDCL, ODDST, Graphs, save_parquet, save_tu, summarize_graphs
from treegram.cli import COMMANDS
from treegram.cli._data import ATOM_ATTRIBUTES, ATOM_LABELS, MOLECULE_FILES
from treegram.cli._kernels import NAMES, parameter_texts
from treegram.kernels.base import GraphKernel
from treegram.kernels.registry import KERNELS

N_GRAPHS = 8


@pytest.fixture
def graphs():
    rng = np.random.default_rng(0)
    return Graphs.from_edges(
        [[(0, 1), (1, 2), (2, 3)][: 2 + i % 2] for i in range(N_GRAPHS)],
        n_nodes=[4] * N_GRAPHS,
        labels=[[1, 2, 1, 2]] * N_GRAPHS,
        attributes=[rng.normal(size=(4, 2)) for _ in range(N_GRAPHS)],
        edge_labels=[[0, 1, 0][: 2 + i % 2] for i in range(N_GRAPHS)],
        targets=[-1, 1] * (N_GRAPHS // 2),
    )


@pytest.fixture
def folder(graphs, tmp_path, monkeypatch):
    """Change to a working folder with a data set TINY, and allow no download."""
    save_tu(graphs, tmp_path / "TINY")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TREEGRAM_DATA", raising=False)
    monkeypatch.delenv("TREEGRAM_MIRROR", raising=False)
    return tmp_path


def files(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != "TINY")


# -------------------------------------------------------------------- gram


def test_gram_npz_holds_matrix_order_targets_and_meta(run, folder, graphs):
    code, out, err = run("gram", "TINY", "--kernel", "oddcl", "--depth", "2", "--lam", "1.2", "-o", "K.npz")
    assert (code, err) == (0, "")
    assert out.startswith("K.npz: 8 x 8 Gram matrix of TINY, oddcl")
    assert files(folder) == ["K.npz"]
    with np.load("K.npz", allow_pickle=False) as saved:
        np.testing.assert_array_equal(saved["K"], ODDCL(depth=2, lam=1.2).fit_transform(graphs))
        np.testing.assert_array_equal(saved["graph_ids"], np.arange(N_GRAPHS))
        np.testing.assert_array_equal(saved["y"], graphs.targets)
        meta = json.loads(str(saved["meta"]))
    assert meta["kernel"] == "oddcl"
    assert meta["data"] == "TINY"
    assert meta["parameters"] == ODDCL(depth=2, lam=1.2, n_jobs=-1).get_params()
    assert meta["grid"] is None
    assert set(meta["versions"]) == {"python", "treegram", "numpy", "scipy", "scikit-learn", "numba"}
    assert meta["versions"]["treegram"] == treegram.__version__
    assert meta["created"].endswith("+00:00")


def test_gram_without_targets_omits_y(run, folder, graphs):
    Path("TINY/TINY_graph_labels.txt").unlink()
    assert run("gram", "TINY", "-o", "K.npz")[0] == 0
    with np.load("K.npz") as saved:
        assert "y" not in saved


@pytest.mark.parametrize("kernel", [ODDCL, ODDST])
def test_gram_grid_equals_gram_grid_of_the_kernel(run, folder, graphs, kernel):
    name = kernel.__name__.lower()
    code, _, err = run("gram", "TINY", "--kernel", name, "--depth", "0,2", "--lam", "0.5,1,1.2", "-o", "K.npz")
    assert (code, err) == (0, "")
    with np.load("K.npz") as saved:
        np.testing.assert_array_equal(saved["K"], gram_array(kernel(), graphs, depth=[0, 2], lam=[0.5, 1, 1.2]))
        np.testing.assert_array_equal(saved["depth"], [0, 2])
        np.testing.assert_array_equal(saved["lam"], [0.5, 1, 1.2])
        meta = json.loads(str(saved["meta"]))
    assert meta["grid"] == {"depth": [0, 2], "lam": [0.5, 1, 1.2]}
    assert not {"depth", "lam"} & set(meta["parameters"])


def test_gram_grid_over_one_parameter_takes_the_other_from_its_option(run, folder, graphs):
    assert run("gram", "TINY", "--depth", 1, "--lam", "0.5,2", "-o", "K.npz")[0] == 0
    with np.load("K.npz") as saved:
        np.testing.assert_array_equal(saved["K"], gram_array(ODDCL(depth=1), graphs, lam=[0.5, 2]))


@pytest.mark.parametrize(
    ("words", "parameter", "value"),
    [
        (["--depth", "0"], "depth", 0),
        (["--lam=0.5"], "lam", 0.5),
        (["--gamma", "0.1"], "gamma", 0.1),
        (["--gamma", "none"], "gamma", None),
        (["--counting", "visits"], "counting", "visits"),
        (["--node-kernel", "linear"], "node_kernel", "linear"),
        (["--missing-labels", "constant"], "missing_labels", "constant"),
        (["--use-edge-labels"], "use_edge_labels", True),
        (["--normalize", "no"], "normalize", False),
        (["--jobs", "2"], "n_jobs", 2),
    ],
)
def test_gram_options_set_kernel_parameters(run, folder, words, parameter, value):
    assert run("gram", "TINY", *words, "-o", "K.npz")[0] == 0
    with np.load("K.npz") as saved:
        assert json.loads(str(saved["meta"]))["parameters"] == {**ODDCL(n_jobs=-1).get_params(), parameter: value}


def test_gram_finds_data_in_the_data_folder(run, folder, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    monkeypatch.setenv("TREEGRAM_DATA", str(folder))
    assert run("gram", "TINY", "--no-download", "-o", "K.npz")[0] == 0


# -------------------------------------------------------------------- kernels and their options


def test_kernel_names_in_help_match_the_package():
    from treegram import MoleculeGraphs
    from treegram._core.params import allowed_values
    from treegram.graphs.molecule_files import SUFFIXES

    public = {getattr(treegram.kernels, name) for name in treegram.kernels.__all__}
    kernels = {thing for thing in public if isinstance(thing, type) and issubclass(thing, GraphKernel)}
    assert {
        *KERNELS.values(),
        treegram.KernelSum,
    } == kernels  # a sum of kernels cannot be written as command-line options
    assert tuple(sorted(KERNELS)) == NAMES
    assert tuple(SUFFIXES) == MOLECULE_FILES
    for parameter, names in (("labels", ATOM_LABELS), ("attributes", ATOM_ATTRIBUTES)):
        assert all(rule.accepts(names.split(", ")) for rule in allowed_values(MoleculeGraphs)[parameter][:1])
        assert str(allowed_values(MoleculeGraphs)[parameter][0]).count("'") == 2 * len(names.split(", "))


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_help_describes_every_parameter(run, name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    code, out, err = run("gram", "--kernel", name, "--help")
    assert (code, err) == (0, "")
    texts = parameter_texts(KERNELS[name])
    assert set(texts) == set(KERNELS[name]().get_params())
    for parameter, text in texts.items():
        if parameter != "n_jobs":
            option = parameter.replace("_", "-")
            assert f"--{option} " in out or f"--no-{option} " in out
            assert text in out
        assert "`" not in text
        assert "\\" not in text


def test_list_of_numbers_is_one_argument(run, folder):
    code, _, err = run("gram", "TINY", "--kernel", "csm", "--max-size", "2", "--weights", "1,0.5", "-o", "K.npz")
    assert (code, err) == (0, "")
    with np.load("K.npz", allow_pickle=False) as file:
        assert json.loads(str(file["meta"]))["parameters"]["weights"] == [1.0, 0.5]


def test_new_kernel_gets_its_options_without_extra_code(run, folder, monkeypatch):
    class Louder(ODDST):
        """A kernel with one parameter.

        Parameters
        ----------
        depth : int, default=1
            How deep, at 100 %.
        """

        def __init__(self, depth=1, n_jobs=None):
            super().__init__(depth, n_jobs=n_jobs)

    monkeypatch.setitem(KERNELS, "louder", Louder)
    monkeypatch.setattr("treegram.cli._kernels.NAMES", (*NAMES, "louder"))
    assert "How deep, at 100 %. Expected: a whole number of at least 0 (default: 1)" in " ".join(
        run("gram", "--kernel", "louder", "--help")[1].split()
    )
    assert run("gram", "TINY", "--kernel", "louder", "--depth", 2, "-o", "K.npz")[0] == 0
    message = "unknown option --lam: it has no effect on louder; it is for --kernel oddcl, "
    assert message in run("gram", "TINY", "--kernel", "louder", "--lam", 2)[2]


# -------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("gramm", "treegram: error: unknown command 'gramm' (choose from info, fit, predict, explain, map, similar, evaluate, reproduce, report, gram, precompile, completion); did you mean gram?"),
        ("--versoin", "treegram: error: unknown option --versoin; did you mean --version?"),
        ("gram TINY", "treegram gram: error: the following arguments are required: -o/--output"),
        ("info", "treegram info: error: the following arguments are required: DATA"),
        ("gram TINY more -o K.npz", "unexpected argument 'more'"),
        ("gram TINY -x 3 -o K.npz", "unexpected argument '-x'"),
        ("gram TINY --ouput K.npz", "unknown option --ouput; did you mean --output?"),
        ("gram TINY --depht=3 -o K.npz", "unknown option --depht; did you mean --depth"),
        ("gram TINY --kernel odcl -o K.npz", "unknown kernel 'odcl' (choose from attributedwalk, csm, gik, "),
        ("gram TINY --kernel odcl -o K.npz", "; did you mean oddcl"),
        ("gram TINY --kernel", "argument --kernel: expected one argument"),
        ("gram TINY --kernel oddst --gamma 1 -o K.npz", "unknown option --gamma: it has no effect on oddst; it is for --kernel attributedwalk, csm, gik"),
        ("gram TINY --depth -1 -o K.npz", "argument --depth: expected a whole number of at least 0, got '-1'"),
        ("gram TINY --depth 1.5 -o K.npz", "argument --depth: expected a whole number of at least 0, got '1.5'"),
        ("gram TINY --lam 0 -o K.npz", "argument --lam: expected a number greater than 0, got '0'"),
        ("gram TINY --lam nan -o K.npz", "argument --lam: expected a number greater than 0, got 'nan'"),
        ("gram TINY --gamma -1 -o K.npz", "argument --gamma: expected a number of at least 0"),
        ("gram TINY --counting visit -o K.npz", "expected one of 'capped', 'paper', 'visits', got 'visit'; did you mean visits"),
        ("gram TINY --node-kernel rfb -o K.npz", "'sigmoid', got 'rfb'; did you mean rbf?"),
        ("gram TINY --depth 0,-2 -o K.npz", "argument --depth: expected a whole number of at least 0, got '-2'"),
        ("gram TINY -o K.txt", "The output must end in .npz; got 'K.txt'."),
        ("gram TINY --workers 2 -o K.npz", "unknown option --workers"),
        ("gram TINY -o none/K.npz", "The folder none of the output file does not exist"),
        ("gram TINY -o TINY/folder.npz", "TINY/folder.npz is a folder; the output must be a file."),
        ("gram ENZMES --no-download -o K.npz", "Unknown data set 'ENZMES'"),
        ("gram none/TINY -o K.npz", "The folder none/TINY does not exist"),
        ("gram TINY --node-kernel chi2 -o K.npz", "egative"),
        ("gram TINY --lam 1e200 --normalize no -o K.npz", "lam ** size overflows: at --depth 3"),
        ("info none/TINY", "treegram info: error: The folder none/TINY does not exist"),
    ],
)  # fmt: skip
def test_bad_input_prints_one_line_and_writes_nothing(run, folder, words, message):
    (folder / "TINY" / "folder.npz").mkdir()
    code, out, err = run(*words.split())
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert files(folder) == []


def test_error_names_missing_edge_labels(run, folder):
    Path("TINY/TINY_edge_labels.txt").unlink()
    code, _, err = run("gram", "TINY", "--use-edge-labels", "-o", "K.npz")
    assert code == 2
    assert "the graphs have no edge labels" in err


def test_existing_file_is_kept_without_force(run, folder):
    assert run("gram TINY -o K.npz")[0] == 0
    before = Path("K.npz").read_bytes()
    code, _, err = run("gram TINY --depth 1 -o K.npz")
    assert code == 2
    assert "K.npz exists already; use --force to replace it, or another name." in err
    assert Path("K.npz").read_bytes() == before
    assert run("gram TINY --depth 1 -o K.npz --force")[0] == 0
    assert Path("K.npz").read_bytes() != before


def raising(error):
    def raise_error(*args, **kwargs):
        if args and hasattr(args[0], "write"):
            args[0].write(b"half a file")
        raise error

    return raise_error


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 2, "treegram gram: error: K.npz: No space left on device\n"),
        (KeyboardInterrupt(), 130, "Interrupted; no partial files were left.\n"),
    ],
)
def test_no_partial_file_is_left(run, folder, monkeypatch, error, code, message):
    Path("K.npz").write_text("old")
    monkeypatch.setattr(np, "savez", raising(error))
    assert run("gram TINY -o K.npz --force") == (code, "", message)
    assert files(folder) == ["K.npz"]
    assert Path("K.npz").read_text() == "old"


@pytest.mark.parametrize("command", ["gram TINY -o K.npz", "info TINY"])
def test_ctrl_c_exits_with_130(run, folder, monkeypatch, command):
    monkeypatch.setattr("treegram.cli._data.load", raising(KeyboardInterrupt()))
    monkeypatch.setattr("treegram.cli.gram.load", raising(KeyboardInterrupt()))
    assert run(*command.split()) == (130, "", "Interrupted; no partial files were left.\n")
    assert files(folder) == []


def test_full_disk_is_reported_before_computing(run, folder, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    monkeypatch.setattr(ODDCL, "fit_transform", raising(AssertionError("computed")))
    code, _, err = run("gram", "TINY", "-o", "K.npz")
    assert code == 2
    assert "K.npz is too full: it has 0.977 KiB left, and the file takes 0.5 KiB, with a margin of 1 MiB." in err


def test_read_only_folder_is_reported_before_computing(run, folder, monkeypatch):
    monkeypatch.setattr(
        "treegram._core.files.tempfile.TemporaryFile", raising(PermissionError(errno.EACCES, "Permission denied"))
    )
    monkeypatch.setattr(ODDCL, "fit_transform", raising(AssertionError("computed")))
    code, _, err = run("gram", "TINY", "-o", "K.npz")
    assert code == 2
    assert "The folder . cannot be written to (Permission denied)." in err


@pytest.mark.skipif(os.name != "posix", reason="names are as long as on Unix")
def test_too_long_file_name_is_reported_before_computing(run, folder, monkeypatch):
    monkeypatch.setattr(ODDCL, "fit_transform", raising(AssertionError("computed")))
    code, _, err = run("gram", "TINY", "-o", 252 * "K" + ".npz")
    assert code == 2
    assert "KKK.npz: File name too long" in err


@pytest.mark.skipif(os.name != "posix", reason="permissions as on Unix")
@pytest.mark.parametrize("command", ["gram TINY -o K.npz", "fit TINY --kernel wl --folds 2 -o m.tgm"])
def test_force_keeps_file_permissions(run, folder, command):
    assert run(*command.split())[0] == 0
    for name in files(folder):
        Path(name).chmod(0o600)
    assert run(*command.split(), "--force")[0] == 0
    assert {stat.S_IMODE(Path(name).stat().st_mode) for name in files(folder)} == {0o600}


def test_out_of_memory_prints_one_line(run, folder, monkeypatch):
    monkeypatch.setattr(ODDCL, "fit_transform", raising(MemoryError("Unable to allocate 8 TiB")))
    assert run("gram", "TINY", "-o", "K.npz")[::2] == (
        2,
        "treegram gram: error: not enough memory. Unable to allocate 8 TiB\n",
    )


def test_bug_prints_its_traceback(run, folder, monkeypatch):
    monkeypatch.setattr(ODDCL, "fit_transform", raising(RuntimeError("a bug")))
    with pytest.raises(RuntimeError, match="a bug"):
        run("gram", "TINY", "-o", "K.npz")
    assert files(folder) == []


def test_development_mode_prints_the_traceback_for_bad_input(run, folder, monkeypatch):
    monkeypatch.setattr(sys, "flags", SimpleNamespace(dev_mode=True))
    with pytest.raises(ValueError, match=r"must end in \.npz"):
        run("gram", "TINY", "-o", "K.txt")


# -------------------------------------------------------------------- info


def test_info_summarizes_the_data_set(run, folder):
    code, out, err = run("info", "TINY")
    assert (code, err) == (0, "")
    for line in (
        "TINY: 8 graphs, undirected",
        "nodes         32 in all; per graph mean 4.00, min 4, max 4",
        "edges         20 in all; per graph mean 2.50, min 2, max 3",
        "degrees       mean 1.25, min 0, max 2",
        "classes       2: -1 (4), 1 (4); largest 50.0%",
        "node labels   2: 1 (50.0%), 2 (50.0%)",
        "edge labels   2: 0 (60.0%), 1 (40.0%)",
        "attributes    2 columns, 32 distinct vectors",
        "- 4 nodes have no neighbor, in 4 graphs.",
    ):
        assert line in out


def test_info_json_has_the_same_content(run, folder):
    report = json.loads(run("info", "TINY", "--json")[1])
    assert report["n_graphs"] == 8
    assert report["targets"]["classes"] == [{"value": -1, "count": 4}, {"value": 1, "count": 4}]
    assert report["attributes"]["n_distinct"] == 32
    assert len(report["attributes"]["columns"]) == 2
    assert report["warnings"][0].startswith("2 classes have fewer than 10 graphs")


def test_double_dash_ends_the_options(run, folder):
    assert run("info", "--json", "--", "TINY")[0] == 0
    assert "The folder --json does not exist" in run("info", "--", "./--json")[2]


@pytest.mark.parametrize("name", ["digits", "synthetic"])
def test_info_supports_built_in_data(run, name):
    assert run("info", name)[1].startswith(f"{name}: ")


def warnings_of(graphs):
    return " ".join(summarize_graphs(graphs)["warnings"])


def one_node_graphs(vectors, **kwargs):
    return Graphs.from_edges([[]] * len(vectors), attributes=[[vector] for vector in vectors], **kwargs)


@pytest.mark.parametrize(
    ("graphs", "sentence"),
    [
        (Graphs.from_edges([]), "There are no graphs."),
        (Graphs.from_edges([[(0, 1)]]), "There are no targets"),
        (Graphs.from_edges([[(0, 1)]]), "There are no node labels"),
        (Graphs.from_edges([[(0, 1)]]), "There are no attributes"),
        (Graphs.from_edges([[(0, 1)]], labels=[[7, 7]]), "All nodes have the same label."),
        (Graphs.from_edges([[(0, 1)], []], n_nodes=[2, 0]), "1 graph has no nodes"),
        (Graphs.from_edges([[(0, 1)], []], n_nodes=[2, 2]), "1 graph has nodes but no edges."),
        (Graphs.from_edges([[(0, 1), (2, 3)]]), "1 graph is not connected."),
        (Graphs.from_edges([[(0, 1), (2, 1)]], n_nodes=[4], directed=True), "1 node has no neighbor, in 1 graph."),
        (Graphs.from_edges([[(0, 1)]] * 30 + [[(0, 99)]]), "The largest graph has 100 nodes, 19 times the mean."),
        (Graphs.from_edges([[(0, 1)]] * 3), "2 graphs are exact copies of an earlier one."),
        (Graphs.from_edges([[(0, 1)]] * 2, labels=[[0, 1], [1, 1]]), "All graphs have the same structure, node by node"),
        (Graphs.from_edges([[(0, 1)]] * 3, targets=[0, 1, 1]), "of an earlier one, 2 of them with another target."),
        (Graphs.from_edges([[(0, 1)]] * 3, targets=[5] * 3), "There is only one class"),
        (Graphs.from_edges([[(0, 1)]] * 3, targets=[0, 0, 1]), "Classes are unbalanced (2 to 1): always guessing the largest is right in 66.7%"),
        (Graphs.from_edges([[(0, 1)]] * 3, targets=[0, 0, 1]), "2 classes have fewer than 10 graphs"),
        (one_node_graphs([[1.0, 5.0], [2.0, 5.0]]), "Attribute column 1 is constant."),
        (one_node_graphs([[1.0, 50.0], [2.0, 30.0]]), "Attribute scales differ by 20x (standard deviation of column 1: 10, of column 0: 0.5)"),
        (one_node_graphs([[1.0], [2.0]] * 30), "Only 2 distinct vectors at 60 nodes."),
        (one_node_graphs([[100.0 * i] for i in range(9)]), "is below 1e-6 for 100% of the node pairs"),
        (one_node_graphs([[1e-5 * i] for i in range(9)]), "is above 0.99 for 100% of the node pairs"),
    ],
)  # fmt: skip
def test_info_prints_warnings(graphs, sentence):
    assert sentence in warnings_of(graphs)


def test_info_prints_no_warnings_for_ordinary_data():
    rng = np.random.default_rng(0)
    graphs = Graphs.from_edges(
        [[(0, 1), (1, 2)], [(0, 1), (0, 2)]] * 10,
        labels=[[0, 1, 0]] * 20,
        attributes=rng.normal(size=(20, 3, 2)),
        targets=[0, 1] * 10,
    )
    assert summarize_graphs(graphs)["warnings"] == []


def test_info_omits_headings_of_empty_sections(run, monkeypatch):
    rng = np.random.default_rng(0)
    graphs = Graphs.from_edges(
        [[(0, 1), (1, 2)], [(0, 1), (0, 2)]] * 10, labels=[[0, 1, 0]] * 20, attributes=rng.normal(size=(20, 3, 2))
    )
    __import__("treegram.cli.info")
    monkeypatch.setattr("treegram.cli.info.load_data", lambda name, args: (graphs, np.array([0, 1] * 10)))
    out = run("info", "digits")[1]
    assert "warnings" not in out
    assert "nothing" not in out


def test_info_reports_what_the_reader_ignores(run, folder):
    with Path("TINY/TINY_A.txt").open("a") as file:
        file.write("1, 2\n3, 3\n")
    n_lines = len(Path("TINY/TINY_A.txt").read_text().splitlines())  # each direction of an edge gets a different value
    Path("TINY/TINY_edge_attributes.txt").write_text("".join(f"{i}\n" for i in range(n_lines)))
    Path("TINY/TINY_edge_labels.txt").unlink()
    code, out, err = run("info", "TINY")
    assert (code, err) == (0, "")
    assert "warnings\n  - TINY: The edge attributes in TINY_edge_attributes.txt are left out" in out
    assert "TINY_edge_attributes.txt" in json.loads(run("info", "TINY", "--json")[1])["warnings"][0]


def test_info_escapes_control_characters_in_labels(run, folder):
    save_parquet(Graphs.from_edges([[]], labels=[["\x1b[31mred"]]), "escape.parquet")
    out = run("info", "escape.parquet")[1]
    assert "\x1b" not in out
    assert r"'\x1b[31mred'" in out


def test_info_treats_continuous_targets_as_regression(run, folder):
    Path("TINY/TINY_graph_labels.txt").unlink()
    Path("TINY/TINY_graph_attributes.txt").write_text("".join(f"{i / 2}, 1.0\n" for i in range(N_GRAPHS)))
    out = run("info", "TINY")[1]
    assert "targets       numbers, mean 1.75, min 0, max 3.5" in out
    assert "targets       numbers, mean 1.00, min 1, max 1" in out


def test_info_truncates_long_lists(run, folder):
    n = 30
    save_tu(Graphs.from_edges([[]] * n, labels=[[i] for i in range(n)], attributes=[np.arange(25.0)[None]] * n), "MANY")
    out = run("info", "MANY")[1]
    assert "  targets" not in out
    assert "9 (3.3%), and 20 more" in out
    assert "... and 5 more columns (--json has all)" in out


# -------------------------------------------------------------------- help and the process as a whole


@pytest.mark.parametrize("words", [[], ["--help"], *([name, "--help"] for name in COMMANDS)])
def test_help_shows_an_example(run, words):
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    assert "\n  treegram " in out.partition("example")[2]


def test_main_help_lists_every_command(run):
    out = run()[1]
    assert all(f"  {name}" in out and summary in out for name, summary in COMMANDS.items())


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_completion_lists_commands_and_options(run, folder):
    pytest.importorskip("shtab")
    code, out, err = run("completion bash")
    assert (code, err) == (0, "")
    Path("completion.bash").write_text(out)
    code = "source ./completion.bash; COMP_WORDS=(treegram fit --smi); COMP_CWORD=2; _shtab_treegram treegram --smi fit; echo ${COMPREPLY[@]}"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "--smiles-column\n"
    assert all(name in out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_imports_no_kernels(name):
    code = (
        f"import sys; from treegram.cli import main; assert main(['{name}', '--help']) == 0; "
        "assert not {'numba', 'scipy', 'sklearn', 'numpy'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_version_imports_few_modules():
    code = (
        "import sys, treegram.explanations.plots; from treegram.cli import main; assert main(['--version']) == 0; "
        "assert not {'matplotlib', 'networkx', 'treegram.cli.gram', 'treegram.cli.info'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"treegram {treegram.__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "code", "out", "err"),
    [
        (["--version"], 0, f"treegram {treegram.__version__}\n", ""),
        (["-h"], 0, "usage: treegram COMMAND", ""),
        ([], 0, "usage: treegram COMMAND", ""),
        (["gramm"], 2, "", "did you mean gram? (see treegram --help)"),
        (["info", "--jsn"], 2, "", "unknown option --jsn; did you mean --json? (see treegram info --help)"),
    ],
)
def test_python_m_treegram_runs_the_command(words, code, out, err):
    done = subprocess.run([sys.executable, "-m", "treegram", *words], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert done.stdout.startswith(out)
    assert err in done.stderr


def test_closed_pipe_exits_quietly(folder):
    command = [sys.executable, "-m", "treegram", "info", "TINY"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


@pytest.mark.filterwarnings("always")
def test_warning_prints_one_line(run, monkeypatch):
    monkeypatch.setattr("treegram.cli.info.run", lambda args: warnings.warn("so\n  it is", UserWarning, stacklevel=1))
    assert run("info", "digits") == (0, "", "treegram info: warning: so it is\n")


def test_info_and_gram_read_parquet(run, folder, graphs):
    pytest.importorskip("pyarrow")
    treegram.save_parquet(graphs, "tiny.parquet")
    assert run("info tiny.parquet")[1].startswith("tiny.parquet: 8 graphs, undirected\n")
