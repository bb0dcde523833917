"""What the numbers say, in sentences that are made from them and from nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from treegram._wording import counted, listed
from treegram.experiments.report._format import accuracy, duration, factor, p_value, share, signed
from treegram.experiments.statistics import Posterior, Ranking, TTest
from treegram.experiments.summary import ROPE, Cell, ComparisonSummary, PairSummary, Summary

__all__ = [
    "agreement",
    "below_majority",
    "below_the_table",
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
    "unconverged",
]

_LEVEL = 0.05  # of the tests of pairs; a Ranking has its own
_MOST_NAMED = 6  # cells; beyond, their number must do


# -------------------------------------------------------------------- the headline


def progress(summary: Summary) -> str:
    """What was run, and how much of what was planned."""
    protocol = summary.protocol
    planned = len(summary.cells) * protocol.repeats
    done = sum(len(cell.repeats) for cell in summary.cells)
    if done < planned:
        state = f"{done:,} of {counted(planned, 'repeat')} {'is' if planned == 1 else 'are'} done"
    else:
        state = f"all {planned:,} repeats are done" if planned > 1 else "it is done"
    return (
        f"{counted(len(summary.kernels), 'kernel')} on {counted(len(summary.datasets), 'data set')}, nested "
        f"cross-validation with {protocol.outer_folds} outer and {protocol.inner_folds} inner folds, "
        f"{'once' if protocol.repeats == 1 else f'repeated {protocol.repeats} times with other splits'}: {state}."
    )


def agreement(summary: Summary) -> str:
    """How many of our numbers agree with published ones; empty if there are none of both."""
    cells = summary.compared
    if not cells:
        return ""
    higher, lower = (sum(cell.mark == mark for cell in cells) for mark in ("up", "down"))
    agreeing = len(cells) - lower - higher
    middle = median(cell.difference or 0.0 for cell in cells)
    return (
        f"Published numbers exist for {counted(len(cells), 'accuracy', 'accuracies')}: {agreeing} of ours "
        f"{'agrees' if agreeing == 1 else 'agree'} within two standard deviations, {higher} "
        f"{'is' if higher == 1 else 'are'} higher and {lower} lower. The median difference is {signed(middle)} points."
    )


def best(summary: Summary) -> str:
    """The most accurate kernel of each data set, or kernels."""
    parts = []
    for dataset in summary.datasets:
        cells = [cell for cell in summary.column(dataset.name) if is_highest(cell, summary)]
        if cells:
            few = any(len(cell.repeats) < summary.protocol.repeats for cell in cells)
            after = f" after {counted(min(len(cell.repeats) for cell in cells), 'repeat')}" if few else ""
            number = accuracy(cells[0].mean, cells[0].deviation if len(cells) == 1 else None)
            each = " each" if len(cells) > 1 else ""
            parts.append(f"on {dataset.name}, {listed([cell.kernel for cell in cells])} with {number}{each}{after}")
    return f"The highest mean accuracy: {'; '.join(parts)}." if parts else ""


def is_highest(cell: Cell, summary: Summary, decimals: int = 2) -> bool:
    """Whether no other kernel has a higher number on the data set, as numbers are printed."""
    means = [round(one.mean, decimals) for one in summary.column(cell.dataset) if one.mean is not None]
    return cell.mean is not None and round(cell.mean, decimals) == max(means)


def speed(summary: Summary) -> str:
    """How our times compare with the published ones; empty if there are none of both."""
    ratios = summary.speed_ups
    if not ratios:
        return ""
    return (
        f"One Gram matrix is computed {factor(median(ratios))} as fast as published (median of {len(ratios)}; from "
        f"{factor(ratios[0])} to {factor(ratios[-1])}). The published times come from other code on another machine."
    )


def unconverged(summary: Summary) -> str:
    """How many fits ended early; empty if none did."""
    n_failed = summary.n_unconverged
    return f"{n_failed:,} of {counted(summary.n_fits, 'fit')} did not converge." if n_failed else ""


def below_the_table(summary: Summary) -> Iterator[str]:
    """What the numbers of a table in a terminal are means of, and which are means of fewer repeats."""
    planned = summary.protocol.repeats
    if planned > 1:
        spread = f"mean ± standard deviation over {planned} repeats"
        yield f"{spread} of {summary.protocol.outer_folds}-fold cross-validation"
    else:
        yield f"mean over one {summary.protocol.outer_folds}-fold cross-validation"
    if any(cell.mark for cell in summary.cells):
        yield "* differs from the published number by more than two standard deviations"
    few = [cell for cell in summary.cells if 0 < len(cell.repeats) < planned]
    if len(few) > _MOST_NAMED:
        done = sorted({len(cell.repeats) for cell in few})
        some = str(done[0]) if len(done) == 1 else f"{done[0]} to {done[-1]}"
        yield f"{len(few)} of {len(summary.cells)} cells: {some} of {counted(planned, 'repeat')} so far"
    elif few:
        named = [f"{cell.kernel} on {cell.dataset} ({len(cell.repeats)})" for cell in few]
        yield f"fewer than {counted(planned, 'repeat')} so far: {', '.join(named)}"
    if sentence := unconverged(summary):
        yield sentence


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
    nemenyi = f"Nemenyi's test (critical difference {ranking.critical_difference:.2f} mean ranks)"
    if not pairs:
        return (
            f"{friedman}, which rejects that all kernels are equal. Nevertheless {nemenyi} does not separate any two."
        )
    claims = listed([f"{better} is significantly better than {listed(worse)}" for better, worse in pairs])
    return f"{friedman}, which rejects that all kernels are equal. By {nemenyi} {claims}; it separates no other pair."


def _significant(ranking: Ranking) -> Iterator[tuple[str, list[str]]]:
    """Kernels, best first, each with those that are significantly worse."""
    ordered = sorted(zip(ranking.mean_ranks, ranking.names, strict=True))
    for rank, name in ordered:
        if worse := [other for at, other in ordered if at - rank >= ranking.critical_difference]:
            yield name, worse


def missing(comparison: ComparisonSummary) -> str:
    """Why our numbers have no ranking."""
    cells = comparison.missing
    named = listed([f"{kernel} on {dataset}" for kernel, dataset in cells[:_MOST_NAMED]])
    what = (
        named
        if len(cells) <= _MOST_NAMED
        else f"{len(cells)} of {len(comparison.kernels) * len(comparison.datasets)} cells"
    )
    return f"Our numbers cannot be ranked yet: there is no complete repeat of {what}."


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
        f"does not differ significantly from {pair.baseline} on {listed(open_)}" if open_ else "",
    ]
    return f"{pair.kernel} {listed([one for one in said if one])} (level {_LEVEL})."


def overall(pair: PairSummary, posterior: Posterior, where: str) -> str:
    """What the signed-rank test over data sets says; `where` ends the first part of the sentence."""
    return (
        f"Over these data sets together, {where}, {pair.kernel} is better by more than {ROPE:g} point with probability "
        f"{share(posterior.first_better)}, {pair.baseline} with probability {share(posterior.second_better)}, and neither "
        f"with probability {share(posterior.practically_equal)} (Bayesian signed-rank test)."
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
            found.append(f"on {dataset.name} ({limit:.2f} %) {', '.join(below)}")
    whose = "Published accuracies" if published else "Our accuracies"
    return f"{whose} below the share of the largest class: {'; '.join(found)}." if found else ""


def _learned(summary: Summary) -> list[str]:
    """Which kernels see which graphs before they are tested; empty if none learns from data."""
    seen = [("training", "the training graphs of each outer fold"), ("all", "all graphs, never from their classes")]
    said = []
    for source, what in seen:
        names = [kernel.name for kernel in summary.kernels if kernel.learns_from == source]
        if names:
            verb = "learns" if len(names) == 1 else "learn"
            said.append(f"{listed(names)} {verb} scales, widths, pivots or samples of vectors from {what}.")
    return said


def definitions(summary: Summary) -> list[str]:
    """What the numbers mean."""
    protocol = summary.protocol
    found = [
        f"Accuracy is in percent. The result of a repeat is the mean over its {protocol.outer_folds} outer folds; the tables "
        "show the mean ± standard deviation (n - 1) of these results. Only complete repeats count. All repeats use the same "
        "graphs, so the deviation says how much the splits matter, not how far the kernel's true accuracy may be.",
        f"In each outer fold, {protocol.inner_folds}-fold cross-validation on its training graphs chooses the kernel's parameters "
        f"and C of a support vector machine, C in {{{', '.join(f'{C:g}' for C in protocol.C)}}}. Of equally good points the "
        "first in the study's order is taken, and of these the smallest C. Points with equal Gram matrices count as the first "
        "of them.",
        "All kernels see the same folds.",
        *_learned(summary),
        "The time of a Gram matrix is processor time on one thread, for all graphs of the data set, without compilation.",
    ]
    if summary.has_published:
        found.insert(
            1,
            "▲ and ▼ mark a difference to the published accuracy of more than two standard deviations: 2 √(s² + p²), where s is "
            "our and p the published standard deviation of repeats' results. If one of them is unknown, as ours after a single "
            "repeat, the other is used alone.",
        )
    if summary.pairs:
        found.append(
            "The t-test over repeats, and Welch's on published numbers, treat repeats as independent. They are not, so these "
            "p-values are too small. The corrected resampled t-test (Nadeau and Bengio) allows for folds that share training "
            f"graphs, and so do the probabilities (Bayesian correlated t-test), for which differences up to {ROPE:g} point count "
            "as equal."
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
        (
            "runs",
            f"{len(runs)}, started {dates[0]}" + (f" to {dates[-1]}" if len(dates) > 1 else "") if runs else "none",
        ),
        ("commands", "; ".join(dict.fromkeys(run.command for run in runs))),
        ("machine", "; ".join(dict.fromkeys(machines))),
        ("versions", "; ".join(dict.fromkeys(versions))),
        ("outer folds", f"{summary.n_folds:,}"),
        ("unused folds, of incomplete repeats", str(sum(cell.n_unused for cell in cells) or "")),
        ("SVM fits", f"{summary.n_fits:,}, not converged {summary.n_unconverged:,}"),
        ("processor time of the folds", duration(sum(cell.cpu_seconds for cell in cells))),
    ]
    return [(name, value) for name, value in found if value]
