"""The public door of the experiments: what it offers, what it loads, and that reading results needs no kernel."""

import ast
import inspect
import subprocess
import sys

import pytest

import treegram.study
from treegram import StoreError, make_synthetic
from treegram.study import Store, read_study, run_study, summarize, write_report

STUDY = """
title = "A small study"
datasets = ["A"]
[protocol]
repeats = 1
outer_folds = 2
inner_folds = 2
[[kernels]]
name = "colors"
kernel = "wl"
"""


@pytest.fixture
def store(tmp_path):
    """A store with all results of a small study, closed; the study is beside it."""
    (tmp_path / "small.toml").write_text(STUDY)
    data = {"A": make_synthetic(20, n_nodes=12, n_edges=18, random_state=0)}
    with Store.open(tmp_path / "small.sqlite") as store:
        assert run_study(read_study(tmp_path / "small.toml"), store, data) == 2
    return tmp_path / "small.sqlite"


def test_every_public_name_is_there_documented_and_told_to_type_checkers():
    names = treegram.study.__all__
    assert names == sorted(names, key=lambda name: (name[0].islower(), name))
    for name in names:
        value = getattr(treegram.study, name)
        assert value.__name__ == name
        assert inspect.getdoc(value)
        assert name in dir(treegram.study)
    tree = ast.parse(inspect.getsource(treegram.study))
    told = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module.startswith("treegram.")
        for alias in node.names
    }
    assert told == set(names)


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"'treegram.study' has no attribute 'Studdy'"):
        treegram.study.Studdy  # noqa: B018


def test_a_study_runs_from_python_and_says_so(store):
    with Store.open(store, create=False) as opened:
        summary = summarize(opened)
        assert [run.command for run in opened.runs()] == ["treegram.study.run_study"]
    assert (summary.study.title, len(summary.cells)) == ("A small study", 1)
    assert summary.cells[0].mean is not None


def test_a_store_without_a_study_has_no_summary(tmp_path):
    with Store.open(tmp_path / "empty.sqlite") as store, pytest.raises(StoreError, match="holds no study yet"):
        summarize(store)


def test_reports_go_by_the_ending(store, tmp_path):
    with Store.open(store, create=False) as opened:
        summary = summarize(opened)
    for name, beginning in (("page.html", "<!doctype html>"), ("page.md", "<!-- written by treegram report -->")):
        (tmp_path / name).write_text("older")
        write_report(summary, str(tmp_path / name))
        assert (tmp_path / name).read_text().startswith(beginning)
    with pytest.raises(ValueError, match=r"must end in \.html or \.md; got"):
        write_report(summary, tmp_path / "page.pdf")
    (tmp_path / "folder.md").mkdir()
    with pytest.raises(IsADirectoryError):
        write_report(summary, tmp_path / "folder.md")


HEAVY = ["numba", "sklearn", "treegram.kernels", "treegram.graphs", "treegram.pairsum", "treegram.models"]


@pytest.mark.parametrize(
    "program",
    [
        "from treegram.study import Store, summarize; summarize(Store.open(path, create=False))",
        "from treegram.cli import main; assert main(['report', path]) == 0",
    ],
    ids=["summarize", "treegram report"],
)
def test_reading_results_imports_neither_kernels_nor_what_compiles_them(program, store):
    report = f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; path = sys.argv[1]; {program}; {report}", store],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.strip() == "[]"
