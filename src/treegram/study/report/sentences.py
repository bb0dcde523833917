"""What the numbers say, in sentences that are made from them and from nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from treegram._core.text import counted, listed
from treegram.study.metrics import Metric, main_metric, other_metrics
from treegram.study.protocol import CONTROLS
from treegram.study.report.format import duration, factor, measured, p_value, share, signed
from treegram.study.statistics import Posterior, Ranking, TTest
from treegram.study.summary import ROPE, Cell, ComparisonSummary, PairSummary, Summary

__all__ = [
    "agreement",
    "below_baseline",
    "below_the_table",
    "best",
    "definitions",
    "fits",
    "has_score",
    "is_best",
    "missing",
    "model",
    "not_measured",
    "overall",
    "pair_verdicts",
    "progress",
    "provenance",
    "ranking_verdict",
    "speed",
    "unconverged",
]

_POINT_OF_NUMBERS = " A point is a hundredth of the standard deviation of the targets."
_LEVEL = 0.05  # of the tests of pairs; a Ranking has its own
_MOST_NAMED = 6  # cells; beyond, their number must do


# -------------------------------------------------------------------- the headline


def progress(summary: Summary) -> str:
    """What was run, and how much of what was planned; a run is one repeat of one kernel on one data set."""
    protocol = summary.protocol
    planned = sum(cell.n_planned for cell in summary.cells)
    done = sum(len(cell.repeats) for cell in summary.cells)
    if done < planned:
        state = f"{done:,} of {counted(planned, 'run')} {'is' if planned == 1 else 'are'} done"
    else:
        state = f"all {planned:,} runs are done" if planned > 1 else "it is done"
    return (
        f"{_entries(summary)} on {counted(len(summary.datasets), 'data set')}, nested "
        f"cross-validation with {protocol.outer_folds} outer and {protocol.inner_folds} inner folds, "
        f"{'once' if protocol.repeats == 1 else f'repeated {protocol.repeats} times with other splits'}: {state}."
        f"{_fewer(summary)}"
        f"{f' This is a control: {CONTROLS[protocol.control]}.' if protocol.control else ''}"
    )


def _entries(summary: Summary) -> str:
    n_others = sum(kernel.is_baseline for kernel in summary.kernels)
    others = f" and {counted(n_others, 'baseline')}" if n_others else ""
    return f"{counted(len(summary.kernels) - n_others, 'kernel')}{others}"


def _fewer(summary: Summary) -> str:
    """Where fewer repeats are planned; empty if nowhere."""
    fewer = [cell for cell in summary.cells if 0 < cell.n_planned < summary.protocol.repeats]
    if not fewer:
        return ""
    named = [f"{cell.kernel} on {cell.dataset} ({cell.n_planned})" for cell in fewer]
    which = listed(named) if len(named) <= _MOST_NAMED else f"{len(named)} of {len(summary.cells)} cells, which say so"
    return f" Fewer repeats are planned for {which}."


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
    """The best kernel of each data set, or kernels."""
    parts, metric = [], main_metric(summary.protocol.task)
    for dataset in summary.datasets:
        cells = [cell for cell in summary.column(dataset.name) if is_best(cell, summary)]
        if cells:
            few = any(len(cell.repeats) < cell.n_planned for cell in cells)
            after = f" after {counted(min(len(cell.repeats) for cell in cells), 'repeat')}" if few else ""
            deviation, decimals = cells[0].deviation if len(cells) == 1 else None, metric.decimals_of(cells[0].mean)
            number = measured(cells[0].mean, deviation, decimals=decimals)
            each = " each" if len(cells) > 1 else ""
            parts.append(f"on {dataset.name}, {listed([cell.kernel for cell in cells])} with {number}{each}{after}")
    what = "highest mean accuracy" if metric.higher_is_better else f"lowest {metric.name}"
    return f"The {what}: {'; '.join(parts)}." if parts else ""


def is_best(cell: Cell, summary: Summary, decimals: int = 2) -> bool:
    """Whether no other kernel has a better number on the data set, as numbers are printed."""
    metric = main_metric(summary.protocol.task)

    def printed(mean: float) -> float:
        return round(mean, metric.decimals_of(mean, decimals))

    means = [printed(one.mean) for one in summary.column(cell.dataset) if one.mean is not None]
    best = max if metric.higher_is_better else min
    return cell.mean is not None and printed(cell.mean) == best(means)


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
    few = [cell for cell in summary.cells if 0 < len(cell.repeats) < cell.n_planned]
    if fewer := _fewer(summary).strip():
        yield fewer
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
    lowest = min(ranking.mean_ranks)
    first = [name for name, rank in zip(ranking.names, ranking.mean_ranks, strict=True) if rank == lowest]
    leads = f"{listed(first)} {'has' if len(first) == 1 else 'share'} the best mean rank, {lowest:.2f}."
    friedman = (
        f"{where} {leads} Friedman's test over {len(ranking.names)} kernels and {ranking.n_datasets} data sets gives "
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
    published = [(test.dataset, test.published, test.published.p_value) for test in pair.tests if test.published]
    corrected = [(test.dataset, test.corrected, test.holm or 0.0) for test in pair.tests if test.corrected]
    found = []
    if published:
        found.append(f"On the published means and deviations, by Welch's t-test, {_verdict(pair, published)}")
    if corrected:
        found.append(
            f"On our folds, by the corrected resampled t-test with Holm's correction, {_verdict(pair, corrected)}"
        )
    if corrected and len(pair.baselines) > 1:
        found.append(_within_rope(pair))
    return found


def _within_rope(pair: PairSummary) -> str:
    """On which data sets the kernel is as good as whatever is best there."""
    known = [test for test in pair.tests if test.corrected]
    lower = [test for test in known if test.corrected and test.corrected.difference < -ROPE]
    named = [f"{one.dataset} ({signed(one.corrected.difference)} to {one.baseline})" for one in lower if one.corrected]
    but = f"; it is lower by more than {ROPE:g} point on {listed(named)}" if named else ""
    return (
        f"{pair.kernel} is within {ROPE:g} point of the best of the others, or above it, on {len(known) - len(lower)} of "
        f"{counted(len(known), 'data set')}{but}. The best of the others is chosen on each data set in hindsight, which favors it."
    )


def _verdict(pair: PairSummary, tests: Sequence[tuple[str, TTest, float]]) -> str:
    better = [name for name, test, p in tests if p < _LEVEL and test.difference > 0]
    worse = [name for name, test, p in tests if p < _LEVEL and test.difference < 0]
    open_ = [name for name, _, _ in tests if name not in better and name not in worse]
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


def below_baseline(summary: Summary, *, published: bool) -> str:
    """Which numbers are worse than what always answering the largest class, or the mean, gives; empty if none is."""
    metric = main_metric(summary.protocol.task)

    def number(cell: Cell) -> float | None:
        return cell.published if published else cell.mean

    found = []
    for dataset in summary.datasets:
        limit = dataset.baseline
        cells = [(cell.kernel, number(cell)) for cell in summary.column(dataset.name)]
        worse = [
            f"{kernel} {measured(value, decimals=metric.decimals_of(value))}"
            for kernel, value in cells
            if value and limit and (value < limit if metric.higher_is_better else value > limit)
        ]
        if worse:
            shown = f"{measured(limit, decimals=metric.decimals_of(limit))}{' %' if metric.in_percent else ''}"
            found.append(f"on {dataset.name} ({shown}) {', '.join(worse)}")
    whose = f"{'Published' if published else 'Our'} {metric.plural}"
    what = "below the share of the largest class" if metric.in_percent else "above that of always answering the mean"
    return f"{whose} {what}: {'; '.join(found)}." if found else ""


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
    protocol, metric = summary.protocol, main_metric(summary.protocol.task)
    strength, values = protocol.strengths
    found = [
        f"{metric.meaning} The result of a repeat is the mean over its {protocol.outer_folds} outer folds; the tables "
        "show the mean ± standard deviation (n - 1) of these results. Only complete repeats count. All repeats use the same "
        f"graphs, so the deviation says how much the splits matter, not how far the kernel's true {metric.name} may be.",
        f"In each outer fold, {protocol.inner_folds}-fold cross-validation on its training graphs chooses the kernel's parameters "
        f"and {strength} of {model(summary)}, {strength} in {{{', '.join(f'{one:g}' for one in sorted(values))}}}. Of equally "
        f"good points the first in the study's order is taken, and of these the {'smallest C' if strength == 'C' else 'largest alpha'}. "
        "Points with equal Gram matrices count as the first of them.",
        "All kernels see the same folds.",
        *_learned(summary),
        "The time of a Gram matrix is processor time on one thread, for all graphs of the data set, without compilation.",
        *(one.meaning for one in other_metrics(protocol.task)),
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
            f"graphs, and Holm's method for several data sets. The probabilities (Bayesian correlated t-test) allow for shared "
            f"training graphs, too; differences up to {ROPE:g} point count as equal.{_POINT_OF_NUMBERS * (protocol.task == 'numbers')}"
        )
    return found


def model(summary: Summary) -> str:
    """The model that learns from the Gram matrices."""
    return "a support vector machine" if summary.protocol.task == "classification" else "kernel ridge regression"


def fits(summary: Summary) -> str:
    """What is fitted: this model, and baselines."""
    others = " or a baseline" * any(kernel.is_baseline for kernel in summary.kernels)
    return f"{summary.n_fits:,} fits of {model(summary)}{others}, {summary.n_unconverged:,} not converged"


def not_measured(summary: Summary) -> str:
    """Which of the other scores no fold has; empty if none is missing."""
    cells = [cell for cell in summary.cells if cell.repeats]
    names = [one.name for one in other_metrics(summary.protocol.task) if not has_score(summary, one)]
    if not cells or not names:
        return ""
    return (
        f"{listed(names)}: not measured. The folds do not define it, or they were run by a version of treegram that kept no "
        "decision values."
    )


def has_score(summary: Summary, metric: Metric) -> bool:
    """Whether any cell has this score."""
    return any(one.mean is not None for cell in summary.cells for one in cell.others if one.name == metric.name)


def provenance(summary: Summary) -> list[tuple[str, str]]:
    """How the numbers came about, as names and values."""
    cells, runs = summary.cells, summary.runs
    dates = sorted(run.started for run in runs)
    machines = [", ".join(f"{name} {value}" for name, value in run.machine.items()) for run in runs]
    versions = [", ".join(f"{name} {value}" for name, value in run.versions.items()) for run in runs]
    found = [
        ("study", f"{summary.study}, seed {summary.protocol.seed}"),
        ("study file", f"SHA-256 {summary.digest}"),
        (
            "runs",
            f"{len(runs)}, started {dates[0]}" + (f" to {dates[-1]}" if len(dates) > 1 else "") if runs else "none",
        ),
        ("commands", "; ".join(dict.fromkeys(run.command for run in runs))),
        ("machine", "; ".join(dict.fromkeys(machines))),
        ("versions", "; ".join(dict.fromkeys(versions))),
        ("outer folds", f"{summary.n_folds:,}"),
        ("unused folds, of incomplete repeats", str(sum(cell.n_unused for cell in cells) or "")),
        (
            "SVM fits" if summary.protocol.task == "classification" else "ridge fits",
            f"{summary.n_fits:,}, not converged {summary.n_unconverged:,}",
        )
        if not any(kernel.is_baseline for kernel in summary.kernels)
        else ("fits", fits(summary)),
        ("processor time of the folds", duration(sum(cell.cpu_seconds for cell in cells))),
    ]
    return [(name, value) for name, value in found if value]
