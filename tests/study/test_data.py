"""Tests of data sets of studies: folds keep groups together, and invalid groups raise."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treegram import Graphs, make_synthetic
from treegram.exceptions import StudyError
from treegram.study.data import check_data, outer_folds
from treegram.study.protocol import KernelSpec, Protocol, Study, StudyEntry, entry_key


@pytest.fixture(scope="module")
def data():
    return make_synthetic(20, n_nodes=12, n_edges=18, random_state=0)


def checked(graphs, y, groups=None, **options):
    protocol = Protocol(outer_folds=2, inner_folds=2, **options)
    loaded = (graphs, y) if groups is None else (graphs, y, groups)
    return check_data({"A": loaded}, protocol)[0]


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


def test_groups_of_excluded_graphs_are_dropped(data):
    graphs, y = data
    y = y.copy()
    y[4] = 7
    with pytest.warns(UserWarning, match="class 7 has fewer than 2 graphs and is left out"):
        found = checked(graphs, y, np.arange(20), split="groups", min_class_size=2)
    np.testing.assert_array_equal(found.groups, np.delete(np.arange(20), 4))


@pytest.mark.parametrize(
    ("n_small", "named"),
    [(1, "class 2 has"), (2, "each of classes 2 and 3 has"), (6, "each of 6 classes has")],
)
def test_small_classes_are_named_if_they_are_few(n_small, named):
    y = [0] * 5 + [1] * 5 + list(range(2, 2 + n_small))
    with pytest.warns(UserWarning, match=f"^A: {named} fewer than 2 graphs and is left out"):
        found = checked(Graphs.from_edges([[(0, 1)]] * len(y)), y, min_class_size=2)
    assert found.facts.class_counts == {"0": 5, "1": 5}


def test_groups_and_split_change_digests_and_keys(data):
    digests = {
        checked(*data, groups, split="groups" if groups is not None else "").facts.digest
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
def test_invalid_groups_raise(data, groups, split, problem):
    with pytest.raises(StudyError, match=f"^A: {problem}"):
        checked(*data, groups, split=split)
