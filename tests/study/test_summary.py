"""Tests of summaries against hand calculations, the paper's own table, and the statistical tests."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from rows import make_row

from treegram.exceptions import StoreError
from treegram.study.protocol import Comparison, KernelSpec, Pair, Protocol, Published, Study, StudyEntry, entry_key
from treegram.study.report import render_report
from treegram.study.report_tables import kernel_table
from treegram.study.significance import (
    bayesian_correlated_t_test,
    bayesian_signed_rank,
    corrected_resampled_t_test,
    friedman_nemenyi,
    holm,
    t_test_from_summary,
)
from treegram.study.store import DatasetFacts, GramTime, Store
from treegram.study.study_file import read_study
from treegram.study.summary import ROPE, summarize

PROTOCOL = Protocol(repeats=3, outer_folds=2, inner_folds=2, C=(1.0, 10.0))
WL = StudyEntry("WL", (KernelSpec("wl", param_grid={"n_iterations": (0, 1, 2)}),), timed={"n_iterations": 2})
STUDY = Study("small", ("D",), (WL,), PROTOCOL)


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "small.sqlite") as opened:
        yield opened


def add(store, study, kernel, dataset, accuracies, chosen=None):
    """Add the rows of a cell; accuracies are {(repeat, fold): accuracy}, or a list of repeats."""
    if not isinstance(accuracies, dict):
        accuracies = {(r, f): one for r, repeat in enumerate(accuracies) for f, one in enumerate(repeat)}
    entry = next(entry for entry in study.kernels if entry.name == kernel)
    key = entry_key(study, entry, dataset)
    for (repeat, fold), accuracy in accuracies.items():
        picked = {"kernel": "wl", "n_iterations": 1, "C": 10.0} if chosen is None else chosen[repeat, fold]
        row = make_row(dataset, kernel, repeat, fold, accuracy, picked, n_fits=7, n_unconverged=repeat, seconds=0.25)
        store.add_row(key, row)


def with_published(entry, **published):
    return replace(entry, published=Published(**published))


def only_cell(study, store):
    (cell,) = summarize(store, study).cells
    return cell


# -------------------------------------------------------------------- cells


def test_mean_and_deviation_are_computed_over_repeats(store):
    add(store, STUDY, "WL", "D", [[0.5, 0.7], [0.6, 0.8], [0.9, 0.9]])
    cell = only_cell(STUDY, store)
    assert cell.repeats == (0, 1, 2)
    np.testing.assert_allclose(cell.folds, [[50, 70], [60, 80], [90, 90]])
    assert cell.mean == pytest.approx((60 + 70 + 90) / 3)
    assert cell.deviation == pytest.approx(np.std([60, 70, 90], ddof=1))
    assert (cell.n_fits, cell.n_unconverged, cell.cpu_seconds) == (42, 2 * (0 + 1 + 2), 1.5)


def test_only_complete_repeats_count(store):
    add(store, STUDY, "WL", "D", {(2, 1): 0.9, (2, 0): 0.7, (0, 0): 0.1, (1, 1): 0.2})
    cell = only_cell(STUDY, store)
    assert (cell.repeats, cell.deviation) == ((2,), None)
    np.testing.assert_allclose(cell.folds, [[70, 90]])
    assert cell.mean == pytest.approx(80)
    assert sum(count for _, count in cell.chosen) == 2


def test_repeats_beyond_those_of_the_study_do_not_count(store):
    add(store, STUDY, "WL", "D", {(0, 0): 0.7, (0, 1): 0.9, (1, 0): 0.1, (1, 1): 0.2})
    cell = only_cell(replace(STUDY, protocol=replace(STUDY.protocol, repeats=1)), store)
    assert (cell.repeats, cell.mean) == ((0,), pytest.approx(80))


def test_empty_store_gives_empty_cells(store):
    cell = only_cell(STUDY, store)
    assert (cell.repeats, cell.mean, cell.deviation, cell.chosen, cell.gram_seconds) == ((), None, None, (), None)
    assert not cell.mark


def test_rows_are_found_by_key_not_by_name(store):
    add(store, STUDY, "WL", "D", [[0.5, 0.7]])
    renamed = replace(STUDY, kernels=(replace(WL, name="Weisfeiler-Lehman", note="new"),))
    assert only_cell(renamed, store).mean == pytest.approx(60)
    other_grid = replace(
        STUDY, kernels=(replace(WL, choices=(KernelSpec("wl", param_grid={"n_iterations": (0, 1)}),)),)
    )
    assert only_cell(other_grid, store).mean is None


@pytest.mark.parametrize(
    ("repeats", "deviation", "margin"),
    [
        ([[0.6, 0.6], [0.8, 0.8]], 3.0, 2 * np.sqrt(200 + 9)),
        ([[0.6, 0.6], [0.8, 0.8]], None, 2 * np.sqrt(200)),
        ([[0.7, 0.7]], 3.0, 6.0),
        ([[0.7, 0.7]], 2.0, 4.0),
        ([[0.7, 0.7]], None, None),
    ],
    ids=["both", "ours alone", "theirs alone", "theirs alone, small", "neither"],
)
def test_margin_is_two_deviations_of_the_difference(store, repeats, deviation, margin):
    add(store, STUDY, "WL", "D", repeats)
    published = {"accuracy": {"D": 75.0}, "deviation": {} if deviation is None else {"D": deviation}}
    cell = only_cell(replace(STUDY, kernels=(with_published(WL, **published),)), store)
    assert cell.difference == pytest.approx(-5)
    assert cell.margin == pytest.approx(margin)
    assert cell.mark == ("down" if margin is not None and margin < 5 else "")


def test_words_in_a_published_table_are_kept_as_words(store):
    add(store, STUDY, "WL", "D", [[0.5, 0.7]])
    study = replace(STUDY, kernels=(with_published(WL, accuracy={"D": "out of memory"}),))
    cell = only_cell(study, store)
    assert (cell.published, cell.published_words, cell.difference) == (None, "out of memory", None)
    assert summarize(store, study).has_published
    assert not summarize(store, STUDY).has_published


def test_cell_has_our_time_and_the_published_one(store):
    store.add_gram_time(entry_key(STUDY, WL, "D"), GramTime("D", "WL", {"n_iterations": 2}, 0.5, learns=False, run=1))
    study = replace(STUDY, kernels=(with_published(WL, seconds={"D": 60.0}),))
    cell = only_cell(study, store)
    assert (cell.gram_seconds, cell.published_seconds, cell.learns) == (0.5, 60.0, False)


def test_chosen_parameters_are_counted(store):
    chosen = {(r, f): {"kernel": "wl", "n_iterations": 2, "C": 1.0} for r in range(2) for f in range(2)}
    chosen[1, 1] = {"kernel": "wl", "n_iterations": 0, "C": 10}
    add(store, STUDY, "WL", "D", [[0.5, 0.7], [0.5, 0.7]], chosen)
    cell = only_cell(STUDY, store)
    assert cell.chosen == (("n_iterations 2, C 1", 3), ("n_iterations 0, C 10", 1))


def test_chosen_kernel_is_named_if_there_are_several(store):
    entry = StudyEntry(
        "both", (KernelSpec("wl", param_grid={"n_iterations": (0, 1)}), KernelSpec("oddst", param_grid={"depth": (1,)}))
    )
    study = replace(STUDY, kernels=(entry,))
    chosen = {(0, 0): {"kernel": "wl", "n_iterations": 1, "C": 1.0}, (0, 1): {"kernel": "oddst", "depth": 1, "C": 1.0}}
    add(store, study, "both", "D", [[0.5, 0.7]], chosen)
    cell = only_cell(study, store)
    assert dict(cell.chosen) == {"kernel wl, n_iterations 1, C 1": 1, "kernel oddst, depth 1, C 1": 1}


def test_baseline_accuracy_is_the_share_of_the_largest_class(store):
    store.put_dataset(DatasetFacts("D", 50, {"-1": 10, "1": 40}, 3.0, 2.0, 1, "d1"))
    assert summarize(store, STUDY).baseline("D") == 80.0
    assert summarize(store, replace(STUDY, datasets=("E",))).baseline("E") is None


def test_kernel_table_says_which_graphs_a_kernel_learns_from(store):
    scaled = StudyEntry("scaled", (KernelSpec("wlcl", attributes=("robust",)),))
    entries = (WL, scaled, replace(scaled, name="on all", fitted_on="all"), replace(WL, name="WL all", fitted_on="all"))
    study = replace(STUDY, kernels=entries)
    summary = summarize(store, study)
    assert [summary.learns_from(entry) for entry in entries] == [None] * 4  # before they were run
    for entry in entries:
        learns = entry.choices != WL.choices
        store.add_gram_time(entry_key(study, entry, "D"), GramTime("D", entry.name, {}, 0.5, learns, run=1))
    summary = summarize(store, study)
    assert [summary.learns_from(entry) for entry in entries] == ["", "training", "all", ""]
    rows = kernel_table(summary).rows
    assert [cell.text for cell in rows[0][:3]] == ["WL", "wl; n_iterations in {0, 1, 2}", "nothing"]
    assert rows[0][0].notes == ("timed with n_iterations 2",)
    assert [cell.text for cell in rows[2][:3]] == ["on all", "wlcl; attributes robust", "all graphs"]


# -------------------------------------------------------------------- rankings over data sets

NAMES = ("A", "B", "C")


def three_kernels(**options):
    entries = tuple(
        StudyEntry(name, (KernelSpec("wl", parameters={"n_iterations": i}),))
        for i, name in enumerate(options.pop("names", NAMES))
    )
    return Study("three", ("D", "E"), entries, PROTOCOL, **options)


def fill(store, study, seed=0, skip=()):
    rng = np.random.default_rng(seed)
    for entry in study.kernels:
        for dataset in study.datasets:
            if (entry.name, dataset) not in skip:
                add(store, study, entry.name, dataset, rng.integers(50, 100, (3, 2)) / 100)


def test_kernels_are_ranked_by_their_means(store):
    study = three_kernels(comparisons=(Comparison("all", NAMES, ("D", "E")),))
    fill(store, study)
    summary = summarize(store, study)
    (comparison,) = summary.comparisons
    means = [[cell.mean for cell in summary.column(dataset)] for dataset in ("D", "E")]
    assert comparison.ours == friedman_nemenyi(means, NAMES)
    assert (comparison.missing, comparison.published, comparison.dropped) == ((), None, ())


def test_missing_cell_prevents_the_ranking_and_is_named(store):
    study = three_kernels(comparisons=(Comparison("all", NAMES, ("D", "E")),))
    fill(store, study, skip={("B", "E")})
    (comparison,) = summarize(store, study).comparisons
    assert (comparison.ours, comparison.missing) == (None, (("B", "E"),))


def test_study_without_comparisons_compares_all_kernels(store):
    (comparison,) = summarize(store, three_kernels()).comparisons
    assert (comparison.kernels, comparison.datasets) == (NAMES, ("D", "E"))
    assert not summarize(store, replace(three_kernels(), datasets=("D",))).comparisons


def test_entry_with_its_own_data_sets_is_planned_only_on_these(store):
    whole = three_kernels()
    first, *others = whole.kernels
    study = replace(whole, kernels=(replace(first, datasets=("E",)), *others))
    fill(store, study, skip={("A", "D")})
    summary = summarize(store, study)
    assert [cell.n_planned for cell in summary.row("A")] == [0, PROTOCOL.repeats]
    assert "all 15 runs done" in render_report(summary, ".md")
    assert not summary.comparisons
    pair = replace(study, kernels=study.kernels[:2])
    assert [test.dataset for test in summarize(store, pair).pairs[0].tests] == ["E"]
    apart = replace(study, kernels=(study.kernels[0], replace(others[0], datasets=("D",))))
    assert not summarize(store, apart).pairs


def test_two_kernels_are_compared_as_a_pair(store):
    summary = summarize(store, three_kernels(names=("A", "B")))
    assert not summary.comparisons
    (pair,) = summary.pairs
    assert (pair.kernel, pair.baseline, [test.dataset for test in pair.tests]) == ("A", "B", ["D", "E"])


def test_published_table_of_the_paper_does_not_support_all_its_claims(store):
    """chi2 = 22.25, p = 0.008, CD = 5.53: ODDCL_ST is better only than P2K; with GH and SP p = 0.49, no difference."""
    six, three = summarize(store, read_study("paper")).comparisons
    ranking = six.published
    assert (ranking.statistic, ranking.p_value) == (pytest.approx(22.25, abs=0.01), pytest.approx(0.008, abs=1e-3))
    assert ranking.critical_difference == pytest.approx(5.53, abs=0.01)
    assert dict(zip(ranking.names, ranking.mean_ranks, strict=True))["ODDCL_ST"] == 2.5
    beaten = [name for name, p in zip(ranking.names, ranking.p_values[0], strict=True) if p < 0.05]
    assert beaten == ["P2K"]
    assert three.published.p_value == pytest.approx(0.49, abs=0.01)
    assert three.dropped == ("CSM",)
    assert six.ours is three.ours is None


# -------------------------------------------------------------------- tests of two kernels


def test_pairs_are_tested_on_the_folds_that_both_have(store):
    study = three_kernels(pairs=(Pair("A", ("B",), ("D", "E")),))
    first, second = np.array([[0.9, 0.8], [0.7, 0.9], [0.6, 0.8]]), np.array([[0.6, 0.7], [0.8, 0.6], [0.5, 0.5]])
    for dataset in study.datasets:
        add(store, study, "A", dataset, first)
    add(store, study, "B", "D", {(r, f): second[r, f] for r in (0, 2) for f in (0, 1)})
    add(store, study, "B", "E", second)
    (pair,) = summarize(store, study).pairs
    on_d, on_e = pair.tests
    assert (on_d.n_repeats, on_e.n_repeats) == (2, 3)
    for test, rows in ((on_d, [0, 2]), (on_e, [0, 1, 2])):
        one, other = 100 * first[rows], 100 * second[rows]
        assert test.corrected == corrected_resampled_t_test(one - other, 0.5)
        assert test.posterior == bayesian_correlated_t_test(one - other, 0.5, rope=ROPE)
    differences = [on_d.corrected.difference, on_e.corrected.difference]
    assert pair.posterior == bayesian_signed_rank(differences, rope=ROPE)


def test_best_of_several_baselines_is_tested_on_common_repeats(store):
    study = three_kernels(pairs=(Pair("A", ("B", "C"), ("D", "E")),))
    add(store, study, "A", "D", [[0.8, 0.8], [0.8, 0.6], [0.8, 0.8]])
    add(store, study, "B", "D", [[0.7, 0.7], [0.7, 0.7], [0.7, 0.8]])
    add(store, study, "C", "D", [[0.9, 0.7]])  # the best on its only repeat
    add(store, study, "A", "E", [[0.5, 0.6], [0.5, 0.7]])
    add(store, study, "B", "E", [[0.9, 0.9], [0.9, 0.8]])
    (pair,) = summarize(store, study).pairs
    assert pair.baseline == "the best of 2 others"
    assert [(test.baseline, test.n_repeats) for test in pair.tests] == [("C", 1), ("B", 2)]
    assert [test.corrected.difference for test in pair.tests] == [pytest.approx(0), pytest.approx(-30)]
    assert [test.holm for test in pair.tests] == holm([test.corrected.p_value for test in pair.tests])
    assert [test.published for test in pair.tests] == [None, None]


def test_kernels_are_ranked_on_common_repeats(store):
    study = three_kernels(comparisons=(Comparison("all", NAMES, ("D", "E")),))
    fill(store, study, skip={("B", "D")})
    add(store, study, "B", "D", {(1, 0): 0.5, (1, 1): 0.6})
    summary = summarize(store, study)
    cells = summary.column("D")
    on_d = [np.mean(cell.folds[cell.repeats.index(1)]) for cell in cells]
    on_e = [cell.mean for cell in summary.column("E")]
    assert summary.comparisons[0].ours == friedman_nemenyi([on_d, on_e], NAMES)


def test_fewer_repeats_can_be_planned(store):
    study = replace(STUDY, datasets=("D", "E"), protocol=replace(PROTOCOL, repeats_on={"E": 2}))
    study = replace(study, kernels=(WL, replace(WL, name="net", choices=(), estimator="gin", repeats=1)))
    for dataset in study.datasets:
        add(store, study, "WL", dataset, [[0.5, 0.6]] * 3)
    summary = summarize(store, study)
    assert [(cell.n_planned, len(cell.repeats)) for cell in summary.cells] == [(3, 3), (2, 2), (1, 0), (1, 0)]


def test_single_data_set_has_no_posterior_over_data_sets(store):
    study = three_kernels(pairs=(Pair("A", ("B",), ("D",)),))
    fill(store, study)
    (pair,) = summarize(store, study).pairs
    assert pair.posterior is None
    assert pair.tests[0].posterior is not None


def test_published_pairs_are_tested_from_means_and_deviations(store):
    (pair,) = summarize(store, read_study("paper")).pairs
    tests = {test.dataset: test for test in pair.tests}
    assert tests["DHFR"].published == t_test_from_summary((84.05, 82.76), (3.02, 0.41), 10)
    assert [name for name, test in tests.items() if test.published.p_value < 0.05] == ["COX2", "BZR", "ENZYMES"]
    assert pair.posterior is None
    assert {(test.corrected, test.posterior) for test in pair.tests} == {(None, None)}


def test_one_repeat_is_enough_for_the_corrected_test(store):
    study = three_kernels(pairs=(Pair("A", ("B",), ("D",)),))
    for kernel, accuracies in (("A", [[0.9, 0.7]]), ("B", [[0.6, 0.7]])):
        add(store, study, kernel, "D", accuracies)
    ((test,),) = (pair.tests for pair in summarize(store, study).pairs)
    assert test.corrected.difference == pytest.approx(15)


def test_all_pairs_are_tested_and_corrected_per_data_set(store):
    study = three_kernels()
    fill(store, study, skip={("B", "E")})
    summary = summarize(store, study)
    tested = [(one.kernel, one.baseline, one.dataset) for one in summary.pairwise]
    assert tested == [("A", "B", "D"), ("A", "C", "D"), ("B", "C", "D"), ("A", "C", "E")]
    folds = {(cell.kernel, cell.dataset): np.array(cell.folds) for cell in summary.cells}
    for one in summary.pairwise:
        differences = folds[one.kernel, one.dataset] - folds[one.baseline, one.dataset]
        assert one.corrected == corrected_resampled_t_test(differences, 0.5)
    assert [one.holm for one in summary.pairwise[:3]] == holm([one.corrected.p_value for one in summary.pairwise[:3]])
    assert summary.pairwise[3].holm == summary.pairwise[3].corrected.p_value


# -------------------------------------------------------------------- JSON


def test_summary_is_json_serializable_and_independent_of_row_order(tmp_path):
    study = three_kernels(pairs=(Pair("A", ("B",), ("D", "E")),))
    accuracies = {(r, f): (3 + r * f + f) / 10 for r in range(3) for f in range(2)}
    summaries = []
    for order in (1, -1):
        with Store.open(tmp_path / f"{order}.sqlite") as store:
            for entry in study.kernels[::order]:
                for dataset in study.datasets[::order]:
                    add(store, study, entry.name, dataset, dict(list(accuracies.items())[::order]))
            summaries.append(json.dumps(asdict(summarize(store, study)), allow_nan=False))
    assert summaries[0] == summaries[1]


# -------------------------------------------------------------------- regression and other metrics


def regression_row(dataset, kernel, repeat, fold, error):
    """Return a fold whose predictions are all too high by ``error``, and whose targets have variance 1."""
    row = make_row(dataset, kernel, repeat, fold, 0.5, {"alpha": 1.0})
    return replace(row, actual=(-1.0, 1.0), predicted=(-1.0 + error, 1.0 + error))


def regression_facts(name, deviation):
    numbers = {"lowest": -1.0, "highest": 1.0, "mean": 0.0, "deviation": deviation, "mean_error": 0.9}
    return DatasetFacts(name, 10, {}, 5.0, 5.0, 0, "d", numbers)


def test_lower_regression_error_is_better(store):
    names, datasets = ("low", "middle", "high"), ("D", "E")
    entries = tuple(
        replace(WL, name=name, choices=(KernelSpec("wl", {"n_iterations": i}),)) for i, name in enumerate(names)
    )
    protocol = replace(PROTOCOL, task="regression")
    study = Study("numbers", datasets, entries, protocol, pairs=(Pair("low", ("high",), datasets),))
    for dataset, deviation in (("D", 2.0), ("E", 4.0)):
        store.put_dataset(regression_facts(dataset, deviation))
        for i, entry in enumerate(entries):
            for repeat in range(3):
                for fold in range(2):
                    error = (i + 1) / 4 + (repeat + fold) / 64
                    store.add_row(
                        entry_key(study, entry, dataset), regression_row(dataset, entry.name, repeat, fold, error)
                    )
    summary = summarize(store, study)
    cell = summary.row("low")[0]
    np.testing.assert_allclose(cell.folds, [[0.25 + (repeat + fold) / 64 for fold in (0, 1)] for repeat in range(3)])
    assert list(cell.other_scores) == ["RMSE", "R²"]
    assert cell.other_scores["RMSE"][0] == pytest.approx(cell.mean)
    assert cell.other_scores["R²"][0] == pytest.approx(
        np.mean([1 - fold**2 for repeat in cell.folds for fold in repeat])
    )
    assert summary.baseline("D") == 0.9
    (pair,) = summary.pairs
    # An error that is smaller by 0.5 is 25 % of the deviation of the targets on D, and 12.5 % on E.
    assert [test.corrected.difference for test in pair.tests] == pytest.approx([25.0, 12.5])
    assert pair.posterior.first_better > 0.5 > pair.posterior.second_better


def test_lowest_regression_error_has_rank_one(store):
    entries = tuple(replace(WL, name=f"K{i}", choices=(KernelSpec("wl", {"n_iterations": i}),)) for i in range(3))
    study = Study("numbers", ("D", "E"), entries, replace(PROTOCOL, repeats=1, task="regression"))
    for dataset in study.datasets:
        for i, entry in enumerate(entries):
            for fold in range(2):
                store.add_row(entry_key(study, entry, dataset), regression_row(dataset, entry.name, 0, fold, 1.0 + i))
    (comparison,) = summarize(store, study).comparisons
    assert comparison.ours.mean_ranks == (1.0, 2.0, 3.0)


def test_rows_of_another_task_raise(store):
    store.add_row(entry_key(STUDY, WL, "D"), regression_row("D", "WL", 0, 0, 1.0))
    with pytest.raises(StoreError, match="WL on D has results of another task"):
        summarize(store, STUDY)


def test_other_scores_are_means_over_folds_where_they_are_defined(store):
    for fold, area in enumerate([1.0, None]):
        row = replace(make_row("D", "WL", 0, fold, 0.5, {}), actual=(0, 1), predicted=(1, 1), roc_auc=area)
        store.add_row(entry_key(STUDY, WL, "D"), row)
    assert only_cell(STUDY, store).other_scores == {
        "balanced accuracy": (50.0, None),
        "macro F1": (pytest.approx(100 / 3), None),
        "ROC AUC": (100.0, None),
    }


def test_another_metric_can_be_used_for_the_tests(store):
    entries = tuple(replace(WL, name=f"K{i}", choices=(KernelSpec("wl", {"n_iterations": i}),)) for i in range(3))
    study = Study("areas", ("D", "E"), entries, replace(PROTOCOL, metric="ROC AUC"))
    for dataset in study.datasets:
        store.put_dataset(DatasetFacts(dataset, 10, {"a": 7, "b": 3}, 5.0, 5.0, 0, "d"))
        for i, entry in enumerate(entries):
            for repeat in range(3):
                for fold in range(2):
                    area = None if (i, repeat, fold) == (0, 2, 1) else 0.9 - 0.1 * i + 0.01 * fold
                    row = replace(make_row(dataset, entry.name, repeat, fold, 0.5, {}), roc_auc=area)
                    store.add_row(entry_key(study, entry, dataset), row)
    summary = summarize(store, study)
    first, second, _ = summary.column("D")
    assert (first.repeats, second.repeats) == ((0, 1), (0, 1, 2))  # one fold has no ROC AUC
    assert first.mean == pytest.approx(90.5)
    assert list(first.other_scores) == ["accuracy", "balanced accuracy", "macro F1"]
    assert summary.baseline("D") == 50.0
    assert summary.comparisons[0].ours.mean_ranks == (1.0, 2.0, 3.0)
    assert summary.pairwise[0].corrected.difference == pytest.approx(10)


@pytest.mark.parametrize(
    ("metric", "baseline"),
    [("accuracy", 70.0), ("balanced accuracy", 50.0), ("macro F1", 100 * (2 * 0.7 / 1.7) / 2), ("ROC AUC", 50.0)],
)
def test_baseline_of_every_metric(store, metric, baseline):
    store.put_dataset(DatasetFacts("D", 10, {"a": 7, "b": 3}, 5.0, 5.0, 0, "d"))
    study = replace(STUDY, protocol=replace(PROTOCOL, metric=metric))
    assert summarize(store, study).baseline("D") == pytest.approx(baseline)


def test_regression_differences_are_percentages_of_the_target_deviation(store):
    for metric, expected in (("mean absolute error", 25.0), ("RMSE", 25.0), ("R²", 75.0)):
        entries = tuple(
            replace(WL, name=name, choices=(KernelSpec("wl", {"n_iterations": i}),)) for i, name in enumerate("AB")
        )
        study = Study("numbers", ("D",), entries, replace(PROTOCOL, repeats=1, task="regression", metric=metric))
        store.put_dataset(regression_facts("D", 2.0))
        for entry, error in zip(entries, (0.5, 1.0), strict=True):
            for fold in range(2):
                store.add_row(entry_key(study, entry, "D"), regression_row("D", entry.name, 0, fold, error))
        (test,) = summarize(store, study).pairwise
        assert test.corrected.difference == pytest.approx(expected)
