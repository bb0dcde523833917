"""Data sets of studies: controls take away what they say and nothing else, folds keep groups together, files are loaded."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treegram import Graphs, make_synthetic
from treegram._core.errors import StudyError
from treegram.study import Store, read_study, run_study, summarize
from treegram.study.data import check_data, load_source, outer_folds
from treegram.study.protocol import KernelSpec, Protocol, Study, StudyEntry, entry_key
from treegram.study.report import render_report


@pytest.fixture(scope="module")
def data():
    return make_synthetic(20, n_nodes=12, n_edges=18, random_state=0)


def checked(control, graphs, y, groups=None, **options):
    protocol = Protocol(outer_folds=2, inner_folds=2, control=control, **options)
    loaded = (graphs, y) if groups is None else (graphs, y, groups)
    return check_data({"A": loaded}, protocol)[0]


def test_permuted_targets_are_the_same_ones(data):
    plain, permuted, again, other = (
        checked(control, *data, seed=seed) for control, seed in (("", 0), *(("permuted-targets", i) for i in (0, 0, 1)))
    )
    assert permuted.graphs is data[0]
    assert sorted(permuted.targets) == sorted(plain.targets)
    assert not np.array_equal(permuted.targets, plain.targets)
    np.testing.assert_array_equal(permuted.targets, again.targets)
    assert not np.array_equal(permuted.targets, other.targets)


# -------------------------------------------------------------------- groups


@given(st.integers(0, 10**6), st.sampled_from(["classification", "regression"]))
@settings(max_examples=20, deadline=None)
def test_folds_keep_groups_together(seed, task):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 40))
    graphs = Graphs.from_edges([[(0, 1)]] * n)
    groups = rng.choice(["a", "b", "c", "d", "e", "f"], n)
    groups[:6] = list("abcdef")
    y = np.arange(n) % 2 if task == "classification" else rng.normal(size=n)
    protocol = Protocol(outer_folds=3, inner_folds=2, task=task, split="groups")
    (data,) = check_data({"A": (graphs, y, groups)}, protocol)
    split = outer_folds(data, 3, seed)
    assert sorted(np.concatenate([test for _, test in split])) == list(range(n))
    for train, test in split:
        assert not set(groups[train]) & set(groups[test])
        assert sorted([*train, *test]) == list(range(n))
    again = outer_folds(data, 3, seed)
    assert all(
        np.array_equal(one, other)
        for first, second in zip(split, again, strict=True)
        for one, other in zip(first, second, strict=True)
    )


def test_groups_follow_graphs_that_are_left_out(data):
    graphs, y = data
    y = y.copy()
    y[4] = 7
    with pytest.warns(UserWarning, match="class 7 has fewer than 2 graphs and is left out"):
        found = checked("", graphs, y, np.arange(20), split="groups", min_class_size=2)
    np.testing.assert_array_equal(found.groups, np.delete(np.arange(20), 4))


def test_groups_are_part_of_what_a_data_set_is(data):
    digests = {
        checked("", *data, groups, split="groups" if groups is not None else "").facts.digest
        for groups in (None, np.arange(20), np.arange(20) // 2)
    }
    assert len(digests) == 3
    study = Study("s", ("A",), (StudyEntry("wl", (KernelSpec("wl"),)),))
    keys = {
        entry_key(replace(study, protocol=Protocol(split=split)), study.kernels[0], "A")
        for split in ("", "groups", "scaffold")
    }
    assert len(keys) == 3


@pytest.mark.parametrize(
    ("groups", "split", "problem"),
    [
        (None, "groups", "Groups, .* need each other"),
        (range(20), "", "Groups, .* need each other"),
        (range(19), "groups", "There are 20 graphs, but groups of 19"),
        ([0] * 20, "scaffold", "The graphs have 1 group, fewer than the 2 outer folds"),
    ],
)
def test_groups_that_cannot_be_used_are_refused(data, groups, split, problem):
    with pytest.raises(StudyError, match=f"^A: {problem}"):
        checked("", *data, groups, split=split)


# -------------------------------------------------------------------- files of molecules

MOLECULES = """smiles,y,batch
c1ccccc1C,1.0,a
c1ccccc1CC,2.5,a
C1CCCCC1,3.0,b
C1CCCCC1C,3.5,b
CCO,0.5,c
CCN,0.7,c
"""
STUDY = """
datasets = ["esol"]
protocol = { repeats = 1, outer_folds = 2, inner_folds = 2, task = "regression", split = "scaffold" }
kernels = [{ name = "WL", kernel = "wl" }, { name = "forest", baseline = "summary-forest" }]
[sources.esol]
file = "esol.csv"
target = "y"
groups = "scaffold"
"""


def test_a_study_reads_a_file_of_molecules(tmp_path, monkeypatch):
    pytest.importorskip("rdkit")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "esol.csv").write_text(MOLECULES)
    (tmp_path / "study.toml").write_text(STUDY)
    study = read_study("study.toml")
    graphs, y, groups = load_source(study.sources["esol"], tmp_path)
    assert (len(graphs), y.tolist()) == (6, [1.0, 2.5, 3.0, 3.5, 0.5, 0.7])
    assert len(set(groups)) == 3
    assert groups[0] == groups[1] != groups[2] == groups[3] != groups[4] == groups[5]
    by_column = load_source({**study.sources["esol"], "groups": "batch"}, tmp_path)[2]
    assert by_column.tolist() == ["a", "a", "b", "b", "c", "c"]
    with Store.open("s.sqlite") as store:
        assert run_study(study, store) == 4
        summary = summarize(store)
    assert "Outer folds keep molecules with the same Bemis-Murcko scaffold together" in render_report(summary, ".md")


def test_a_source_without_a_file_is_refused(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY.replace('file = "esol.csv"', ""))
    with pytest.raises(StudyError, match=r"sources.esol: the key 'file' is missing"):
        read_study(tmp_path / "study.toml")
