"""Tests of the public interface of treegram.study: its names, lazy imports, and reading results without kernels."""

import ast
import inspect
import subprocess
import sys

import pytest

import treegram.study
from treegram import make_synthetic
from treegram.exceptions import StoreError
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
    """Return the path of a closed store with all results of a small study; the study file is next to it."""
    (tmp_path / "small.toml").write_text(STUDY)
    data = {"A": make_synthetic(20, n_nodes=12, n_edges=18, random_state=0)}
    with Store.open(tmp_path / "small.sqlite") as store:
        assert run_study(read_study(tmp_path / "small.toml"), store, data) == 2
    return tmp_path / "small.sqlite"


def test_public_names_exist_are_documented_and_imported_for_type_checkers():
    names = treegram.study.__all__
    assert names == sorted(names, key=lambda name: (name[0].islower(), name))
    for name in names:
        value = getattr(treegram.study, name)
        assert value.__name__ == name
        assert inspect.getdoc(value)
        assert name in dir(treegram.study)
    tree = ast.parse(inspect.getsource(treegram.study))
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module.startswith("treegram.")
        for alias in node.names
    }
    assert imported == set(names)


def test_unknown_name_raises_attribute_error():
    with pytest.raises(AttributeError, match=r"'treegram.study' has no attribute 'Studdy'"):
        treegram.study.Studdy  # type: ignore[attr-defined]  # noqa: B018


def test_study_run_from_python_is_recorded(store):
    with Store.open(store, create=False) as opened:
        summary = summarize(opened)
        assert [run.command for run in opened.runs()] == ["treegram.study.run_study"]
    assert (summary.study.title, len(summary.cells)) == ("A small study", 1)
    assert summary.cells[0].mean is not None


def test_summary_of_a_store_without_a_study_raises(tmp_path):
    with Store.open(tmp_path / "empty.sqlite") as store, pytest.raises(StoreError, match="holds no study yet"):
        summarize(store)


def test_report_format_follows_the_file_extension(store, tmp_path):
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
def test_reading_results_imports_neither_kernels_nor_numba(program, store):
    report = f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; path = sys.argv[1]; {program}; {report}", store],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.strip() == "[]"
