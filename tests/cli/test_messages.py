"""Tests of what the commands print: messages in the words of the command line, and nothing that a terminal would obey."""

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from treegram import Graphs, save_tu
from treegram.cli import COMMANDS
from treegram.cli._data import _COMMON, OPTIONS_BY_INPUT
from treegram.cli._parser import Parser, as_options
from treegram.cli.fit import add_arguments

ESCAPE = "\x1b[31mred"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    edges = [[(0, 1), (1, 2), (2, 3)][: 2 + i % 2] for i in range(20)]
    vectors = [rng.normal(size=(4, 2)) for _ in edges]
    save_tu(
        Graphs.from_edges(
            edges, n_nodes=[4] * 20, labels=[[1, 2, 1, 2]] * 20, attributes=vectors, targets=[-1, 1] * 10
        ),
        "TINY",
    )
    return tmp_path


# -------------------------------------------------------------------- help


def listed_options(text):
    return [line.split()[0] for line in text.splitlines() if line.startswith("  -")]


def test_help_lists_at_most_115_options_in_all(run):
    """Options for one kind of input are said once; --help itself is not counted."""
    texts = [run("--help")[1], *(run(name, "--help")[1] for name in COMMANDS)]
    assert sum(option != "-h," for text in texts for option in listed_options(text)) <= 115


def test_help_begins_with_the_data_and_its_target(run):
    for name in ("fit", "evaluate", "gram", "info"):
        text = run(name, "--help")[1]
        assert text.splitlines()[0].startswith(f"usage: treegram {name} DATA")
        assert text.index("--target") < text.index("-h, --help")
        assert ("treegram info --help lists more options" in text) == (name != "info")


def test_options_for_one_kind_are_described_by_info_and_taken_by_others(run, folder):
    described = listed_options(run("info", "--help")[1])
    for name in (*_COMMON, *(name for options in OPTIONS_BY_INPUT.values() for name in options)):
        assert any(option.rstrip(",") == "--" + name.replace("_", "-") for option in described)
    for option in ("--edge-from A", "--label x", "--directed", "--no-descriptors"):
        code, _, err = run(f"fit TINY {option} -o m.tgm")
        assert code == 2
        assert f"{option.split()[0].replace('--no-', '--')} is for " in err


def test_edge_ends_and_the_target_do_not_share_a_word(run):
    text = run("info", "--help")[1]
    assert "--edge-from" in text
    assert "--edge-to" in text
    assert [option for option in listed_options(text) if "target" in option] == ["--target"]


# -------------------------------------------------------------------- the words of the place


@pytest.fixture
def options():
    parser = Parser("treegram fit", "about", (), ["--kernel", "oddcl", "--kernel", "csm"])
    add_arguments(parser)
    return parser._option_string_actions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("To use them, set use_edge_labels=True.", "To use them, set --use-edge-labels."),
        ("Set smiles_column.", "Set --smiles-column."),
        ("Skip them with on_error='skip'.", "Skip them with --skip-invalid."),
        ("Use a smaller max_size, as max_size=3.", "Use a smaller --max-size, as --max-size 3."),
        ("use normalize=True, or gamma=None", "use --normalize yes, or --gamma none"),
        ("missing_labels='degree'", "--missing-labels degree"),
        ("depth must be a whole number", "--depth must be a whole number"),
        ("To use them, use WL or ODDST.", "To use them, use --kernel wl or --kernel oddst."),
        (
            "scale them (ScaleAttributes), or make it wider (gamma='scale')",
            "scale them (--scale standard), or make it wider (--gamma scale)",
        ),
        ("For numbers use GraphRegressor, GraphRidge or GraphGP.", "For numbers use --task regression."),
        ("use --min-class-size 5, or min_class_size = 5", "use --min-class-size 5, or min_class_size = 5"),
        ("TINY_edge_label.txt has no 'edge_label'", "TINY_edge_label.txt has no 'edge_label'"),
        ("one for each of cv=10 folds", "one for each of --folds 10 folds"),
        ("the depth of a label", "the depth of a label"),
        ("descriptors=False", "--no-descriptors"),
        ("n_bins=3 of another kernel", "n_bins=3 of another kernel"),
        ("one\n  line", "one line"),
        (ESCAPE, "\N{REPLACEMENT CHARACTER}[31mred"),
    ],
)
def test_messages_speak_of_options(options, text, expected):
    assert as_options(text, options) == expected


@pytest.mark.filterwarnings("always")
def test_warnings_and_errors_speak_of_options(run, folder):
    pytest.importorskip("rdkit")
    Path("m.csv").write_text("structure,y\nCCO,1\n")
    assert "--smiles-column" in run("info m.csv")[2]
    Path("m.csv").write_text("smiles,y\nCCO,1\nC(,2\n")
    assert "--skip-invalid" in run("fit m.csv --target y -o m.tgm")[2]
    edge_labels = [[i % 2] * 3 for i in range(20)]
    graphs = Graphs.from_edges([[(0, 1), (1, 2), (2, 3)]] * 20, edge_labels=edge_labels, targets=[0, 1] * 10)
    save_tu(graphs, "BONDS")
    code, _, err = run("gram BONDS --kernel wl -o K.npz")
    assert code == 0
    assert "--use-edge-labels" in err
    for text in ("smiles_column", "on_error", "use_edge_labels"):
        assert text not in err


# -------------------------------------------------------------------- control characters


@pytest.mark.filterwarnings("always")
def test_control_characters_do_not_reach_the_terminal(run, folder):
    Path("study.toml").write_text(f'"{ESCAPE}" = 1\n'.replace("\x1b", "\\u001b"))
    Path("tables").mkdir()
    Path("tables/nodes.csv").write_text(f"graph,node,label,{ESCAPE}\n" + "".join(f"g{i},a,C,t\n" for i in range(4)))
    Path("tables/edges.csv").write_text("graph,source,target\n")
    Path("graphs.csv").write_text(f"graph,y{ESCAPE}\ng0,1\n")
    for words in (
        ["reproduce", "study.toml"],
        ["info", "tables"],
        ["gram", "tables", "--kernel", "wl", "-o", "K.npz"],
        ["info", "tables", "--graphs", "graphs.csv", "--target", f"x{ESCAPE}"],
        ["info", f"{ESCAPE}.csv"],
        ["info", f"./{ESCAPE}"],
        [ESCAPE],
        ["info", "TINY", f"--{ESCAPE}"],
        ["info", "TINY", ESCAPE],
        ["fit", "TINY", "--task", ESCAPE],
        ["gram", "TINY", "--kernel", ESCAPE],
        ["gram", "TINY", "-o", f"{ESCAPE}.npz"],
    ):
        _, out, err = run(*words)
        assert out + err
        assert "\x1b" not in out + err, words


# -------------------------------------------------------------------- special files


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize(
    "command", ["fit TINY --kernel wl --folds 2", "predict m.tgm TINY", "gram TINY", "explain m.tgm TINY"]
)
def test_force_replaces_regular_files_only(run, folder, command):
    assert run("fit TINY --kernel wl --folds 2 -o m.tgm")[0] == 0
    suffix = ".npz" if "gram" in command else ".out"
    os.mkfifo(f"pipe{suffix}")
    Path(f"folder{suffix}").mkdir()
    Path(f"link{suffix}").symlink_to("/dev/null")
    for name in ("pipe", "folder", "link"):
        path = Path(name + suffix)
        mode = stat.S_IFMT(path.lstat().st_mode)
        code, out, err = run(f"{command} -o {path} --force")
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        assert stat.S_IFMT(path.lstat().st_mode) == mode


def test_parser_describes_its_required_options():
    parser = Parser("treegram x", "about", ())
    parser.add_argument("data", metavar="DATA")
    parser.add_argument("-o", "--output", metavar="FILE", required=True)
    assert parser.format_help().startswith("usage: treegram x DATA -o FILE [options]\n")
