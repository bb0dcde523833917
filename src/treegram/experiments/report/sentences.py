"""What the numbers say, in sentences that are made from them and from nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from treegram.experiments.report._format import accuracy, counted, duration, factor, listed, p_value, share, signed
from treegram.experiments.statistics import Posterior, Ranking, TTest
from treegram.experiments.summary import ROPE, Cell, ComparisonSummary, PairSummary, Summary

__all__ = [
    "agreement",
    "below_majority",
    "best",
    "definitions",
    "is_highest",
    "missing",
    "overall",
    "pair_verdicts",
    "progress",
    "provenance",
    "ranking_verdict",
    "speed",
]

_LEVEL = 0.05  # of the tests of pairs; a Ranking has its own
_MOST_NAMED = 6  # cells; beyond, their number must do


# -------------------------------------------------------------------- the headline


def progress(summary: Summary) -> str:
    """What was run, and how much of what was planned."""
    planned = len(summary.cells) * summary.protocol.repeats
    done = sum(len(cell.repeats) for cell in summary.cells)
    protocol = summary.protocol
    return (
        f"{counted(len(summary.kernels), 'kernel')} on {counted(len(summary.datasets), 'data set')}, nested "
        f"cross-validation with {protocol.outer_folds} outer and {protocol.inner_folds} inner folds, "
        f"{'once' if protocol.repeats == 1 else f'repeated {protocol.repeats} times with other splits'}: "
        + (f"all {planned:,} repeats are done." if done == planned else f"{done:,} of {planned:,} repeats are done.")
    )


def agreement(summary: Summary) -> str:
    """How many of our numbers agree with published ones; empty if there are none of both."""
    cells = [cell for cell in summary.cells if cell.difference is not None and cell.margin is not None]
    if not cells:
        return ""
    lower, higher = (sum(cell.is_marked and (cell.difference or 0) * sign > 0 for cell in cells) for sign in (-1, 1))
    middle = median(cell.difference or 0.0 for cell in cells)
    return (
        f"Of {counted(len(cells), 'accuracy') if len(cells) == 1 else f'{len(cells)} accuracies'} that can be compared "
        f"with a published one, {len(cells) - lower - higher} agree within two standard deviations, {higher} "
        f"{'is' if higher == 1 else 'are'} higher and {lower} lower; the median difference is {signed(middle)} points."
    )


def best(summary: Summary) -> str:
    """The most accurate kernel of each data set, or kernels."""
    parts = []
    for dataset in summary.datasets:
        cells = [cell for cell in summary.column(dataset.name) if is_highest(cell, summary)]
        if cells:
            few = any(len(cell.repeats) < summary.protocol.repeats for cell in cells)
            after = f" after {counted(min(len(cell.repeats) for cell in cells), 'repeat')}" if few else ""
            numbers = accuracy(cells[0].mean, cells[0].deviation if len(cells) == 1 else None)
            parts.append(f"{listed([cell.kernel for cell in cells])} on {dataset.name} ({numbers}{after})")
    return f"The highest mean accuracy has {listed(parts)}." if parts else ""


def is_highest(cell: Cell, summary: Summary) -> bool:
    """Whether no other kernel has a higher number on the data set, as numbers are printed."""
    means = [round(one.mean, 2) for one in summary.column(cell.dataset) if one.mean is not None]
    return cell.mean is not None and round(cell.mean, 2) == max(means)


def speed(summary: Summary) -> str:
    """How our times compare with the published ones; empty if there are none of both."""
    ratios = sorted(cell.speed_up for cell in summary.cells if cell.speed_up is not None)
    if not ratios:
        return ""
    return (
        f"One Gram matrix is computed {factor(median(ratios))} as fast as published (median of {len(ratios)}; from "
        f"{factor(ratios[0])} to {factor(ratios[-1])}), by other code on another machine."
    )


# -------------------------------------------------------------------- tests over data sets


def ranking_verdict(ranking: Ranking, where: str) -> str:
    """What Friedman's and Nemenyi's tests say; `where` begins the sentence."""
    friedman = (
        f"{where} Friedman's test over {len(ranking.names)} kernels and {ranking.n_datasets} data sets gives "
        f"χ² = {ranking.statistic:.2f}, p {p_value(ranking.p_value)}"
    )
    if ranking.p_value >= ranking.alpha:
        return f"{friedman}: these numbers do not show that any kernel differs from another."
    pairs = list(_significant(ranking))
    nemenyi = f"by Nemenyi's test (critical difference {ranking.critical_difference:.2f} mean ranks)"
    if not pairs:
        return f"{friedman}; {nemenyi} no two kernels can be told apart."
    claims = listed([f"{better} is significantly better than {listed(worse)}" for better, worse in pairs])
    return f"{friedman}; {nemenyi} {claims}, and no other two kernels can be told apart."


def _significant(ranking: Ranking) -> Iterator[tuple[str, list[str]]]:
    """Kernels, best first, each with those that are significantly worse."""
    ordered = sorted(zip(ranking.mean_ranks, ranking.names, strict=True))
    for rank, name in ordered:
        if worse := [other for at, other in ordered if at - rank >= ranking.critical_difference]:
            yield name, worse


def missing(comparison: ComparisonSummary) -> str:
    """Why there is no ranking of ours."""
    cells = comparison.missing
    named = listed([f"{kernel} on {dataset}" for kernel, dataset in cells[:_MOST_NAMED]])
    what = (
        named
        if len(cells) <= _MOST_NAMED
        else f"{len(cells)} of {len(comparison.kernels) * len(comparison.datasets)} cells"
    )
    return f"No test of ours yet: no complete repeat of {what}."


# -------------------------------------------------------------------- tests of two kernels


def pair_verdicts(pair: PairSummary) -> list[str]:
    """What the t-tests say of two kernels: on the published numbers, then on ours."""
    published = [(test.dataset, test.published) for test in pair.tests if test.published]
    corrected = [(test.dataset, test.corrected) for test in pair.tests if test.corrected]
    found = []
    if published:
        found.append(f"On the published means and deviations, by Welch's t-test, {_verdict(pair, published)}")
    if corrected:
        found.append(f"On our folds, by the corrected resampled t-test, {_verdict(pair, corrected)}")
    return found


def _verdict(pair: PairSummary, tests: Sequence[tuple[str, TTest]]) -> str:
    better = [name for name, test in tests if test.p_value < _LEVEL and test.difference > 0]
    worse = [name for name, test in tests if test.p_value < _LEVEL and test.difference < 0]
    open_ = [name for name, _ in tests if name not in better and name not in worse]
    said = [
        f"is significantly better than {pair.baseline} on {listed(better)}" if better else "",
        f"is significantly worse than {pair.baseline} on {listed(worse)}" if worse else "",
        f"cannot be told apart from {pair.baseline} on {listed(open_)}" if open_ else "",
    ]
    return f"{pair.kernel} {listed([one for one in said if one])} (level {_LEVEL})."


def overall(pair: PairSummary, posterior: Posterior, where: str) -> str:
    """What the signed-rank test over data sets says; `where` ends the first part of the sentence."""
    return (
        f"Over these data sets together, {where}, the probability that {pair.kernel} is better by more than {ROPE:g} point "
        f"is {share(posterior.first_better)}, that {pair.baseline} is {share(posterior.second_better)}, that neither is "
        f"{share(posterior.practically_equal)} (Bayesian signed-rank test)."
    )


# -------------------------------------------------------------------- other remarks


def below_majority(summary: Summary, *, published: bool) -> str:
    """Which accuracies are lower than what always answering the largest class gives; empty if none is."""

    def number(cell: Cell) -> float | None:
        return cell.published if published else cell.mean

    found = []
    for dataset in summary.datasets:
        limit = dataset.majority
        cells = [(cell.kernel, number(cell)) for cell in summary.column(dataset.name)]
        below = [f"{kernel} {value:.2f}" for kernel, value in cells if value and limit and value < limit]
        if below:
            found.append(f"on {dataset.name}, whose largest class has {limit:.2f} %: {', '.join(below)}")
    whose = "published accuracies" if published else "accuracies of ours"
    return f"Below the share of the largest class are these {whose}: {'; '.join(found)}." if found else ""


def _learned(summary: Summary) -> str:
    """What sees which graphs before it is tested; empty if nothing learns from data."""
    seen = [
        ("training", "from the training graphs of each outer fold alone"),
        ("all", "from all graphs, never from their classes"),
    ]
    said = []
    for source, what in seen:
        names = [kernel.name for kernel in summary.kernels if kernel.learns_from == source]
        if names:
            said.append(f"{listed(names)} {'learns' if len(names) == 1 else 'learn'} {what}")
    return f"Of what is learned from data without classes (scales, widths, pivots): {'; '.join(said)}." if said else ""


def definitions(summary: Summary) -> list[str]:
    """What the numbers mean."""
    protocol = summary.protocol
    learned = _learned(summary)
    found = [
        f"Accuracy is in percent: the mean over the {protocol.outer_folds} outer folds is the result of a repeat; shown are "
        "mean ± standard deviation (n - 1) of the repeats' results. Only complete repeats count. Repeats use the same graphs, so "
        "that this ± says how much the splits matter, not how far the kernel's true accuracy may be.",
        f"In each outer fold, {protocol.inner_folds}-fold cross-validation on its training graphs chooses the kernel's parameters "
        f"and C of a support vector machine, C in {{{', '.join(f'{C:g}' for C in protocol.C)}}}. Of equally good points the first "
        "in the study's order is taken, and of these the smallest C. Points with equal Gram matrices count as the first of them.",
        "All kernels see the same folds.",
        *([learned] if learned else []),
        "The time of a Gram matrix is processor time on one thread, all graphs of the data set, compilation not included.",
    ]
    if summary.has_published:
        found.insert(
            1,
            "▲ and ▼ mark a difference to the published accuracy of more than two standard deviations: 2 √(s² + p²), where s is our "
            "and p the published standard deviation of repeats' results. If one of them is not known, as ours after a single "
            "repeat, the other stands alone.",
        )
    if summary.pairs:
        found.append(
            "The t-test over repeats, and Welch's on published numbers, take repeats as independent. They are not, so that these "
            "p-values are too small. The corrected resampled t-test (Nadeau and Bengio) allows for folds that share training graphs, "
            f"and so do the probabilities (Bayesian correlated t-test); differences up to {ROPE:g} point count as equal there."
        )
    return found


def provenance(summary: Summary) -> list[tuple[str, str]]:
    """How the numbers came about, as names and values."""
    cells, runs = summary.cells, summary.runs
    dates = sorted(run.started for run in runs)
    machines = [", ".join(f"{name} {value}" for name, value in run.machine.items()) for run in runs]
    versions = [", ".join(f"{name} {value}" for name, value in run.versions.items()) for run in runs]
    found = [
        ("study", f"{summary.study}, seed {summary.protocol.seed}"),
        ("runs", f"{len(runs)}, begun {dates[0]}" + (f" to {dates[-1]}" if len(dates) > 1 else "") if runs else "none"),
        ("commands", "; ".join(dict.fromkeys(run.command for run in runs))),
        ("machine", "; ".join(dict.fromkeys(machines))),
        ("versions", "; ".join(dict.fromkeys(versions))),
        ("outer folds", f"{sum(len(repeat) for cell in cells for repeat in cell.folds):,}"),
        ("unused folds, of repeats that are not complete", str(sum(cell.n_unused for cell in cells) or "")),
        ("SVM fits", f"{sum(c.n_fits for c in cells):,}, not converged {sum(c.n_unconverged for c in cells):,}"),
        ("processor time of the folds", duration(sum(cell.cpu_seconds for cell in cells))),
    ]
    return [(name, value) for name, value in found if value]
