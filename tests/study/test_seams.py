"""Laws for the way of data through a study: graphs keep their targets and groups, repeats have their own folds, stores one data set.

Targets are distinct numbers, so that each stored fold says which graphs it tested.
"""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin

from treegram import Graphs, load_digits_graphs
from treegram.cli import main
from treegram.exceptions import StudyError
from treegram.study import Store, Study, run_study
from treegram.study.protocol import KernelSpec, Protocol, StudyEntry

PROTOCOL = Protocol(repeats=4, outer_folds=3, inner_folds=2, task="regression")


class Sizes(RegressorMixin, BaseEstimator):
    """Predict what the graph itself says: its number of nodes; refuse targets of other graphs."""

    def fit(self, X, y):
        np.testing.assert_array_equal(np.floor(y), X.sizes)
        return self

    def predict(self, X):
        return X.sizes.astype(float)


def chains(sizes):
    return Graphs.from_edges([[(i, i + 1) for i in range(size - 1)] for size in sizes], n_nodes=list(sizes))


@pytest.fixture
def data():
    """Return graphs of 1 to 40 nodes in random order; the target of each is its size and a little more."""
    sizes = np.random.default_rng(0).permutation(np.arange(1, 41))
    return chains(sizes), sizes + 0.25


def folds_of(path):
    """Return the targets of the graphs of each test fold, by repeat."""
    with Store.open(path, create=False) as store:
        rows = store.rows()
    repeats = sorted({row.repeat for row in rows})
    return [[row.actual for row in rows if row.repeat == repeat] for repeat in repeats], rows


@pytest.mark.parametrize("split", ["", "groups"])
def test_every_repeat_has_its_own_outer_folds(tmp_path, data, split):
    graphs, y = data
    study = Study("s", ("A",), (StudyEntry("sizes", estimator=Sizes()),), replace(PROTOCOL, split=split))
    run_study(study, tmp_path / "s", {"A": (graphs, y, np.arange(40) // 2) if split else (graphs, y)})
    repeats, _ = folds_of(tmp_path / "s")
    assert len(repeats) == 4
    for folds in repeats:
        assert sorted(number for fold in folds for number in fold) == sorted(y), "each graph is tested once"
    partitions = {frozenset(map(frozenset, folds)) for folds in repeats}
    assert len(partitions) == 4


def test_kernels_see_the_same_folds_in_each_repeat(tmp_path, data):
    entries = tuple(StudyEntry(name, (KernelSpec(name),)) for name in ("wl", "oddst"))
    run_study(Study("s", ("A",), entries, replace(PROTOCOL, repeats=2)), tmp_path / "s", {"A": data})
    _, rows = folds_of(tmp_path / "s")
    by_entry = {name: [row.actual for row in rows if row.kernel == name] for name in ("wl", "oddst")}
    assert by_entry["wl"] == by_entry["oddst"]
    assert len(set(by_entry["wl"])) == 6


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_graphs_keep_their_targets_in_training_and_test_parts(tmp_path, data, n_jobs):
    """`Sizes` checks the training parts; its predictions for test graphs show that these are aligned as well."""
    study = Study("s", ("A",), (StudyEntry("sizes", estimator=Sizes()),), PROTOCOL)
    run_study(study, tmp_path / "s", {"A": data}, n_jobs=n_jobs)
    _, rows = folds_of(tmp_path / "s")
    for row in rows:
        np.testing.assert_array_equal(np.floor(row.actual), row.predicted)


def test_groups_stay_with_their_graphs_if_small_classes_are_left_out(tmp_path):
    rng = np.random.default_rng(1)
    y = rng.permutation([0] * 20 + [1] * 20 + [2])  # class 2 is left out
    sizes = rng.permutation(np.arange(1, 42))
    groups = np.array([f"pair {size // 2}" for size in sizes])
    protocol = Protocol(repeats=3, outer_folds=3, inner_folds=2, min_class_size=5, split="groups")
    tested = []

    class Recorder(BaseEstimator):
        def fit(self, X, y):
            tested.append(set(X.sizes // 2))
            return self

        def predict(self, X):
            assert not tested[-1] & set(X.sizes // 2), "a group is in the training and the test part"
            return np.zeros(len(X), int)

    study = Study("s", ("A",), (StudyEntry("recorder", estimator=Recorder()),), protocol)
    with pytest.warns(UserWarning, match="is left out"):
        run_study(study, tmp_path / "s", {"A": (chains(sizes), y, groups)})
    assert len(tested) == 9


@pytest.mark.filterwarnings("ignore:Left out 8 graphs without a value")
def test_command_keeps_groups_with_their_graphs_if_targets_are_missing(tmp_path, monkeypatch, capsys):
    """Lines without a target are left out; groups must not move to other graphs, or folds would leak."""
    pytest.importorskip("rdkit")
    sizes = np.random.default_rng(2).permutation(np.arange(1, 31))
    lines = ["smiles,logS,batch"]
    for position, size in enumerate(sizes):
        target = "" if position % 4 == 1 else f"{size + 0.25}"
        lines.append(f"{'C' * size},{target},{size // 3}")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chains.csv").write_text("\n".join(lines) + "\n")
    words = [
        "evaluate",
        "chains.csv",
        "--target",
        "logS",
        "--groups",
        "batch",
        "--kernel",
        "wl",
        "--folds",
        "3",
        "--repeats",
        "2",
    ]
    assert main([*words, "--store", "s"]) == 0
    capsys.readouterr()
    repeats, _ = folds_of(tmp_path / "s")
    has_target = sorted(size + 0.25 for position, size in enumerate(sizes) if position % 4 != 1)
    for folds in repeats:
        assert sorted(number for fold in folds for number in fold) == has_target
        groups = [{int(number) // 3 for number in fold} for fold in folds]
        assert sum(map(len, groups)) == len(set.union(*groups)), "no group is in two folds"


def test_store_takes_one_data_set_under_a_name(tmp_path):
    """Whatever changes, graph attributes and names included, a store with results refuses other data."""
    graphs, y = load_digits_graphs()
    graphs, y = graphs[:40], y[:40] % 2
    study = Study(
        "s", ("D",), (StudyEntry("wl", (KernelSpec("wl"),)),), Protocol(repeats=2, outer_folds=2, inner_folds=2)
    )
    numbers = np.random.default_rng(0).normal(size=(40, 2))
    described = graphs.assign(graph_attributes=numbers)
    run_study(study.part(repeats=1), tmp_path / "s", {"D": (described, y)})
    others = {
        "none": graphs,
        "other values": graphs.assign(graph_attributes=numbers + 1e-9),
        "names": described.assign(graph_attribute_names=["mass", "volume"]),
        "graph names": described.assign(graph_names=[f"g{i}" for i in range(40)]),
    }
    for other in others.values():
        with pytest.raises(
            StudyError, match=r"D is not the data set .*: digest is \w+ and was \w+\. Use another store"
        ):
            run_study(study, tmp_path / "s", {"D": (other, y)})
    again = graphs.assign(graph_attributes=numbers.tolist())
    assert run_study(study, tmp_path / "s", {"D": (again, y.astype(np.int8))}) == 2


def test_data_without_results_can_be_corrected(tmp_path, data):
    """A run that fails before its first result has stored the facts of its data, which bind nobody."""
    graphs, y = data
    study = Study("s", ("A",), (StudyEntry("sizes", estimator=Sizes()),), PROTOCOL)
    with pytest.raises(AssertionError):
        run_study(study, tmp_path / "s", {"A": (graphs, y[::-1])})
    assert run_study(study, tmp_path / "s", {"A": data}) == 12
    with pytest.raises(StudyError, match="A is not the data set"):
        run_study(study, tmp_path / "s", {"A": (graphs, y[::-1])})
