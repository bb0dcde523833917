"""Tests of the studies in the package: they are valid, and published numbers match the paper."""

import math

import pytest

from treegram.kernels.registry import KERNELS
from treegram.study.protocol import KernelSpec, Pair, Protocol, entry_key, shipped_studies
from treegram.study.study_file import read_study

DATASETS = ("COX2", "BZR", "DHFR", "ENZYMES", "PROTEINS", "SYNTHETICnew")

# Copied from the paper by hand, independently of the study file: accuracy, deviation.
TABLE_1 = """
ODDCL_ST       83.01 1.95  92.85 0.30  84.05 3.02  73.40 0.98  75.86 0.77     95.83 0.73
ODDCL_Approx   79.99 1.20  87.12 1.14  81.48 0.36  69.95 1.12  75.93 0.59     96.1 0.74
GH             - -         - -         - -         68.3 1.31   74.1 0.5       78.3 1.5
SP             - -         - -         - -         72.3 0.9    75.5 0.8       82.5 1.3
CSM            - -         - -         - -         69.5 0.7    out_of_memory - out_of_time -
P2K            77.41 0.65  82.06 0.51  67.23 0.84  67.99 -     69.37 0.81     75.16 1.37
GIK_NSPDK      71.68 0.99  86.84 0.55  70.76 1.07  76.18 0.52  70.78 0.91     83.46 1.38
GIK_SGK_GLOBAL 78.09 0.58  70.80 0.96  81.41 0.65  76.53 0.53  71.38 0.53     83.43 1.41
GIK_SGK_LOCAL  81.07 0.82  86.23 0.67  81.24 0.66  76.22 0.40  71.40 0.60     83.83 1.31
GIK_WL_GLOBAL  81.63 0.98  69.11 0.93  81.46 0.84  76.17 0.48  70.21 0.88     82.66 1.02
GIK_WL_LOCAL   71.66 0.97  86.54 0.85  71.66 0.97  76.62 0.63  71.85 0.71     82.60 0.77
WL             81.45 0.76  88.41 0.42  82.76 0.41  48.5 0.7    75.6 0.5       97.5 2.4
ODD_ST         82.76 0.97  88.21 0.54  83.75 1.03  51.26 1.03  73.85 0.55     96.63 0.64
"""
MINUTE, HOUR, DAY = 60, 3600, 86400
TABLE_2 = {  # ENZYMES, PROTEINS, SYNTHETICnew
    "ODDCL_ST": (35 * MINUTE, 21 * MINUTE, 23 * MINUTE),
    "ODDCL_Approx": (1.8 * MINUTE, 5.2 * MINUTE, 7.5 * MINUTE),
    "GH": (12 * MINUTE + 10, 2.8 * HOUR, 12 * MINUTE + 10),
    "SP": (3 * DAY, 7.7 * DAY, 3.4 * DAY),
    "GIK": (48 * MINUTE, 3 * HOUR + 49 * MINUTE, 16.3 * MINUTE),
    "P2K": (6, 28, 5),
}
GRID = {"depth": (0, 1, 2, 3), "lam": (0.1, 0.3, 0.5, 0.7, 1, 1.2)}
LINES = [line.split() for line in TABLE_1.split("\n") if line]


@pytest.fixture(scope="module")
def paper():
    return read_study("paper")


@pytest.fixture(scope="module")
def rows(paper):
    return {entry.name: entry for entry in paper.kernels}


@pytest.mark.parametrize("name", shipped_studies())
def test_shipped_studies_are_valid_and_described(name):
    study = read_study(name)
    assert study.name == name
    assert study.title
    assert study.about
    keys = {entry_key(study, entry, dataset) for entry in study.kernels for dataset in study.datasets}
    assert len(keys) == len(study.kernels) * len(study.datasets), "no two entries are the same"


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[0])
def test_published_accuracies_match_the_paper(rows, line):
    name, *cells = line
    accuracy, deviation = {}, {}
    for dataset, mean, spread in zip(DATASETS, cells[::2], cells[1::2], strict=True):
        if mean != "-":
            accuracy[dataset] = mean.replace("_", " ") if mean[0].isalpha() else float(mean)
        if spread != "-":
            deviation[dataset] = float(spread)
    assert rows[name].published.accuracy == accuracy
    assert rows[name].published.deviation == deviation


def test_published_times_match_the_paper(paper):
    for entry in paper.kernels:
        times = TABLE_2.get(entry.name.partition("_")[0] if entry.name.startswith("GIK") else entry.name, ())
        expected = dict(zip(DATASETS[3:], times, strict=False))
        assert entry.published.seconds.keys() == expected.keys(), entry.name
        for dataset, seconds in expected.items():
            assert math.isclose(entry.published.seconds[dataset], seconds), (entry.name, dataset)


def test_kernels_are_in_the_order_of_the_table_followed_by_ours(paper):
    names = [entry.name for entry in paper.kernels]
    ours = ["ODDCL_ST (visits)", "ODD_ST (capped)", "WL x node kernel"]
    assert names == [line[0] for line in LINES] + ours
    assert not any(paper.kernels[names.index(name)].published.accuracy for name in ours)


def test_protocol_matches_the_paper(paper, rows):
    assert paper.datasets == DATASETS
    assert paper.protocol == Protocol(10, 10, 10, 0, (0.01, 0.1, 1, 10, 100, 1000, 10000), "training")
    for name in ("ODDCL_ST", "ODDCL_Approx", "ODD_ST", "ODDCL_ST (visits)", "ODD_ST (capped)"):
        assert rows[name].choices[0].param_grid == GRID
    approximate = {"counting": "paper", "method": "rff", "n_components": 1000, "random_state": 0}
    assert rows["ODDCL_Approx"].choices == (KernelSpec("oddcl-approx", approximate, GRID),)


def test_kernels_are_normalized_and_use_the_node_kernel_of_the_paper(paper):
    for entry in paper.kernels:
        (choice,) = entry.choices
        kernel = KERNELS[choice.kernel](**choice.parameters)
        assert kernel.normalize
        assert getattr(kernel, "gamma", None) is None, "1/d"
        assert getattr(kernel, "node_kernel", "rbf") == "rbf"


def test_grids_of_the_other_kernels_are_small(paper):
    for entry in paper.kernels:
        for choice in entry.choices:
            assert choice.param_grid == GRID or math.prod(map(len, choice.param_grid.values())) <= 6, entry.name


def test_comparisons_and_pairs_match_the_paper(paper):
    printed = [line[0] for line in LINES]
    first, second = paper.comparisons
    assert list(first.kernels) == [name for name in printed if name not in ("GH", "SP", "CSM")]
    assert first.datasets == DATASETS
    assert list(second.kernels) == printed
    assert second.datasets == ("ENZYMES", "PROTEINS", "SYNTHETICnew")
    assert paper.pairs == (Pair("ODDCL_ST", "WL", ("COX2", "BZR", "DHFR", "ENZYMES")),)


def test_beyond_study_has_the_folds_of_the_paper_study(paper):
    beyond = read_study("beyond")
    assert beyond.datasets == paper.datasets
    for name in ("repeats", "outer_folds", "inner_folds", "seed"):
        assert getattr(beyond.protocol, name) == getattr(paper.protocol, name)
    assert beyond.kernels[0].name == "selected"
    assert len(beyond.kernels[0].choices) > 1
    assert beyond.protocol.fitted_on == "all"


def test_wide_study_has_every_kernel_and_no_data_set_used_to_design_auto(rows):
    wide = read_study("wide")
    made_on = {"ENZYMES", "PROTEINS", "SYNTHETICnew", "COX2", "BZR", "DHFR", "MUTAG", "Cuneiform"}
    assert len(wide.datasets) == 9
    assert not made_on & set(wide.datasets)
    assert wide.protocol.fitted_on == "training"
    assert not any(entry.fitted_on for entry in wide.kernels)
    assert wide.kernels[0].choices == (KernelSpec("auto"),)
    used = {choice.kernel for entry in wide.kernels for choice in entry.choices}
    # All kernels that existed when it was run, except two variants of ODDCL.
    assert used == {
        "auto",
        *["csm", "gik", "graphhopper", "nspdk", "oddcl", "oddst", "p2k", "sp", "wl", "wlcl", "wloa"],
    }
    assert used - {"auto"} <= set(KERNELS)
    assert {entry.estimator for entry in wide.kernels if entry.estimator} == {"summary-svm", "summary-forest", "gin"}
    assert wide.kernels[1].choices == rows["ODDCL_ST"].choices


def test_wide_study_compares_auto_with_all_others():
    wide = read_study("wide")
    _, *others = (entry.name for entry in wide.kernels)
    assert {pair.kernel for pair in wide.pairs} == {"auto"}
    assert {pair.datasets for pair in wide.pairs} == {one.datasets for one in wide.comparisons} == {wide.datasets}
    assert set(wide.pairs[0].baselines) == set(others), "the best of all"
    assert set(wide.pairs[1].baselines) == {entry.name for entry in wide.kernels[1:] if not entry.estimator}
    assert [{"auto", *others} - set(one.kernels) for one in wide.comparisons] == [{"GIN"}, set()]
