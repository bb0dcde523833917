"""Numbers in words: formats, and sentences that follow from the numbers of a summary and from nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from treegram._core.html import render
from treegram._core.text import counted, listed
from treegram.study.metrics import Metric, main_metric, other_metrics
from treegram.study.protocol import CONTROLS
from treegram.study.statistics import Posterior, Ranking, TTest, holm
from treegram.study.summary import ROPE, Cell, ComparisonSummary, PairSummary, Summary

__all__ = [
    "NONE",
    "agreement",
    "below_baseline",
    "below_the_table",
    "best",
    "definitions",
    "duration",
    "factor",
    "has_score",
    "is_best",
    "measured",
    "missing",
    "not_measured",
    "overall",
    "p_value",
    "pair_verdicts",
    "percent",
    "progress",
    "provenance",
    "ranking_verdict",
    "signed",
    "speed",
    "unconverged",
]

NONE = "\N{EN DASH}"  # where there is no number
_UNITS = (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3))
_LEVEL = 0.05  # of the tests of pairs; a Ranking has its own
_MOST_NAMED = 6  # cells; if there are more, only their number is given


# -------------------------------------------------------------------- formats


def measured(mean: float | None, deviation: float | None = None, words: str = "", *, decimals: int = 2) -> str:
    """Return ``83.01 ± 1.95``, ``83.0 ±1.9``, or the words that are printed instead."""
    if mean is None:
        return words or NONE
    space = " " if decimals > 1 else ""
    return f"{mean:.{decimals}f}" + ("" if deviation is None else f" ±{space}{deviation:.{decimals}f}")


def signed(value: float) -> str:
    """Return a difference with its sign; a value that rounds to zero has none."""
    text = f"{abs(value):.2f}"
    sign = "" if float(text) == 0 else "\N{MINUS SIGN}" if value < 0 else "+"
    return sign + text


def duration(seconds: float | None) -> str:
    """Return a time with two or three digits, in a suitable unit."""
    if seconds is None:
        return NONE
    name, unit = next((one for one in _UNITS if seconds >= one[1]), _UNITS[-1])
    value = seconds / unit
    return f"{value:.0f} {name}" if value >= 100 else f"{value:.3g} {name}" if value >= 10 else f"{value:.2g} {name}"


def factor(ratio: float | None) -> str:
    """Return ``5,800 ×``, with two digits."""
    if ratio is None:
        return ""
    number = f"{float(f'{ratio:.2g}'):,.0f}" if ratio >= 10 else f"{ratio:.2g}"
    return f"{number} \N{MULTIPLICATION SIGN}"


def p_value(p: float) -> str:
    """Return ``= 0.008`` or ``< 0.001``."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}" if p < 0.1 else f"= {p:.2f}"


def percent(probability: float) -> str:
    """Return a probability in percent; 0 and 100 only where they are exact."""
    if 0 < probability < 0.005:
        return "< 1 %"
    return "> 99 %" if 0.995 < probability < 1 else f"{100 * probability:.0f} %"


# -------------------------------------------------------------------- the headline


def progress(summary: Summary) -> str:
    """Say what is compared, and how many of the planned runs are done; a run is one repeat of a kernel on a data set."""
    protocol = summary.protocol
    planned = sum(cell.n_planned for cell in summary.cells)
    done = sum(len(cell.repeats) for cell in summary.cells)
    state = f"all {counted(planned, 'run')} done" if done == planned else f"{done:,} of {counted(planned, 'run')} done"
    n_others = sum(kernel.is_baseline for kernel in summary.kernels)
    others = f" and {counted(n_others, 'baseline')}" if n_others else ""
    control = f" This is a control: {CONTROLS[protocol.control]}." if protocol.control else ""
    return (
        f"{counted(len(summary.kernels) - n_others, 'kernel')}{others} on {counted(len(summary.datasets), 'data set')}, nested "
        f"cross-validation with {protocol.outer_folds} outer and {protocol.inner_folds} inner folds, "
        f"{'once' if protocol.repeats == 1 else f'repeated {protocol.repeats} times with other splits'}: {state}."
        f"{_fewer(summary)}{control}"
    )


def _fewer(summary: Summary) -> str:
    """Name the cells for which fewer repeats are planned; empty if there are none."""
    fewer = [cell for cell in summary.cells if 0 < cell.n_planned < summary.protocol.repeats]
    if not fewer:
        return ""
    named = [f"{cell.kernel} on {cell.dataset} ({cell.n_planned})" for cell in fewer]
    which = (
        listed(named)
        if len(named) <= _MOST_NAMED
        else f"{len(named)} of {len(summary.cells)} cells, marked in the table"
    )
    return f" Fewer repeats are planned for {which}."


def agreement(summary: Summary) -> str:
    """Count how many of our numbers agree with published ones; empty if there are none."""
    cells = summary.compared
    if not cells:
        return ""
    higher, lower = (sum(cell.mark == mark for cell in cells) for mark in ("up", "down"))
    middle = median(cell.difference or 0.0 for cell in cells)
    return (
        f"Of {counted(len(cells), 'published accuracy', 'published accuracies')}, ours agree with "
        f"{len(cells) - lower - higher} within two standard deviations; {higher} of ours are higher and {lower} lower. The "
        f"median difference is {signed(middle)} points."
    )


def best(summary: Summary) -> str:
    """Name the best kernel or kernels of each data set."""
    found, metric = [], main_metric(summary.protocol.task)
    for dataset in summary.datasets:
        cells = [cell for cell in summary.column(dataset.name) if is_best(cell, summary)]
        if cells:
            few = any(len(cell.repeats) < cell.n_planned for cell in cells)
            after = f" after {counted(min(len(cell.repeats) for cell in cells), 'repeat')}" if few else ""
            deviation, decimals = cells[0].deviation if len(cells) == 1 else None, metric.decimals_of(cells[0].mean)
            number = measured(cells[0].mean, deviation, decimals=decimals)
            found.append(f"on {dataset.name}, {listed([cell.kernel for cell in cells])} with {number}{after}")
    what = "highest mean accuracy" if metric.higher_is_better else f"lowest {metric.name}"
    return f"The {what}: {'; '.join(found)}." if found else ""


def is_best(cell: Cell, summary: Summary, decimals: int = 2) -> bool:
    """Return whether no other kernel has a better printed number on the data set."""
    metric = main_metric(summary.protocol.task)

    def printed(mean: float) -> float:
        return round(mean, metric.decimals_of(mean, decimals))

    means = [printed(one.mean) for one in summary.column(cell.dataset) if one.mean is not None]
    return cell.mean is not None and printed(cell.mean) == (max if metric.higher_is_better else min)(means)


def speed(summary: Summary) -> str:
    """Compare our times with the published ones; empty if there are none."""
    ratios = summary.speed_ups
    if not ratios:
        return ""
    return (
        f"One Gram matrix is computed {factor(median(ratios))} as fast as published (median of {len(ratios)}; from "
        f"{factor(ratios[0])} to {factor(ratios[-1])}). The published times come from other code on another machine."
    )


def unconverged(summary: Summary) -> str:
    """Say how many fits did not converge; empty if all did."""
    n_failed = summary.n_unconverged
    return f"{n_failed:,} of {counted(summary.n_fits, 'fit')} did not converge." if n_failed else ""


def below_the_table(summary: Summary) -> Iterator[str]:
    """Explain the numbers of a table in a terminal."""
    planned, folds = summary.protocol.repeats, summary.protocol.outer_folds
    spread = f"mean ± standard deviation over {planned} repeats of" if planned > 1 else "mean over one"
    yield f"{spread} {folds}-fold cross-validation"
    if any(cell.mark for cell in summary.cells):
        yield "* differs from the published number by more than two standard deviations"
    if fewer := _fewer(summary).strip():
        yield fewer
    few = [cell for cell in summary.cells if 0 < len(cell.repeats) < cell.n_planned]
    if len(few) > _MOST_NAMED:
        yield f"{len(few)} of {len(summary.cells)} cells have fewer than {counted(planned, 'repeat')} so far"
    elif few:
        named = [f"{cell.kernel} on {cell.dataset} ({len(cell.repeats)})" for cell in few]
        yield f"fewer than {counted(planned, 'repeat')} so far: {', '.join(named)}"
    if sentence := unconverged(summary):
        yield sentence


# -------------------------------------------------------------------- tests over data sets


def ranking_verdict(ranking: Ranking, where: str) -> str:
    """State the results of Friedman's and Nemenyi's tests; `where` begins the sentence."""
    lowest = min(ranking.mean_ranks)
    first = [name for name, rank in zip(ranking.names, ranking.mean_ranks, strict=True) if rank == lowest]
    leads = f"{listed(first)} {'has' if len(first) == 1 else 'share'} the best mean rank, {lowest:.2f}."
    friedman = (
        f"{where} {leads} Friedman's test over {len(ranking.names)} kernels and {ranking.n_datasets} data sets gives "
        f"χ² = {ranking.statistic:.2f}, p {p_value(ranking.p_value)}"
    )
    if ranking.p_value >= ranking.alpha:
        return f"{friedman}: these numbers do not show that any kernel differs from another."
    friedman += ", which rejects that all kernels are equal."
    nemenyi = f"Nemenyi's test (critical difference {ranking.critical_difference:.2f} mean ranks)"
    ordered = sorted(zip(ranking.mean_ranks, ranking.names, strict=True))
    worse = {
        name: [other for at, other in ordered if at - rank >= ranking.critical_difference] for rank, name in ordered
    }
    claims = [f"{name} is significantly better than {listed(others)}" for name, others in worse.items() if others]
    if not claims:
        return f"{friedman} Nevertheless {nemenyi} does not separate any two."
    return f"{friedman} By {nemenyi} {listed(claims)}; it separates no other pair."


def missing(comparison: ComparisonSummary) -> str:
    """Say why our numbers have no ranking."""
    cells = comparison.missing
    named = listed([f"{kernel} on {dataset}" for kernel, dataset in cells[:_MOST_NAMED]])
    n_cells = len(comparison.kernels) * len(comparison.datasets)
    what = named if len(cells) <= _MOST_NAMED else f"{len(cells)} of {n_cells} cells"
    return f"Our numbers cannot be ranked yet: there is no complete repeat of {what}."


# -------------------------------------------------------------------- tests of two kernels


def pair_verdicts(pair: PairSummary) -> list[str]:
    """State the results of the t-tests of two kernels after Holm's correction: on the published numbers, then on ours."""
    published = [(test.dataset, test.published) for test in pair.tests if test.published]
    corrected = [(test.dataset, test.corrected) for test in pair.tests if test.corrected]
    found = []
    if published:
        found.append(f"On the published means and deviations, by Welch's t-test, {_verdict(pair, published)}")
    if corrected:
        found.append(f"On our folds, by the corrected resampled t-test, {_verdict(pair, corrected)}")
    if corrected and len(pair.baselines) > 1:
        found.append(_within_rope(pair))
    return found


def _verdict(pair: PairSummary, tests: Sequence[tuple[str, TTest]]) -> str:
    """Say on which data sets the kernels differ significantly, by p-values after Holm's correction."""
    groups: dict[str, list[str]] = {}
    for (name, test), p in zip(tests, holm([test.p_value for _, test in tests]), strict=True):
        sign = "not" if p >= _LEVEL else "better" if test.difference > 0 else "worse"
        groups.setdefault(sign, []).append(f"{name} (p {p_value(p)})" if sign != "not" else name)
    words = {
        "better": f"is significantly better than {pair.baseline} on",
        "worse": f"is significantly worse than {pair.baseline} on",
        "not": f"does not differ significantly from {pair.baseline} on",
    }
    said = [f"{words[sign]} {listed(groups[sign])}" for sign in words if sign in groups]
    return f"{pair.kernel} {listed(said)} (level {_LEVEL}, p-values after Holm's correction)."


def _within_rope(pair: PairSummary) -> str:
    """Say on which data sets the kernel is as good as the best of the others there."""
    known = [(test, test.corrected) for test in pair.tests if test.corrected]
    lower = [
        f"{one.dataset} ({signed(test.difference)} to {one.baseline})" for one, test in known if test.difference < -ROPE
    ]
    but = f"; it is lower by more than {ROPE:g} point on {listed(lower)}" if lower else ""
    return (
        f"{pair.kernel} is within {ROPE:g} point of the best of the others, or above it, on {len(known) - len(lower)} of "
        f"{counted(len(known), 'data set')}{but}. The best of the others is chosen on each data set in hindsight, which favors it."
    )


def overall(pair: PairSummary, posterior: Posterior, where: str) -> str:
    """State the result of the signed-rank test over data sets; `where` names the numbers."""
    return (
        f"Over these data sets together, {where}, {pair.kernel} is better by more than {ROPE:g} point with probability "
        f"{percent(posterior.first_better)}, {pair.baseline} with probability {percent(posterior.second_better)}, and neither "
        f"with probability {percent(posterior.practically_equal)} (Bayesian signed-rank test)."
    )


# -------------------------------------------------------------------- other remarks


def below_baseline(summary: Summary, *, published: bool) -> str:
    """Name the numbers that are worse than always predicting the largest class, or the mean; empty if there are none."""
    metric = main_metric(summary.protocol.task)

    def shown(value: float) -> str:
        return measured(value, decimals=metric.decimals_of(value))

    found = []
    for dataset in summary.datasets:
        limit = dataset.baseline
        numbers = [(cell.kernel, cell.published if published else cell.mean) for cell in summary.column(dataset.name)]
        worse = [
            f"{kernel} {shown(value)}"
            for kernel, value in numbers
            if value and limit and (value < limit if metric.higher_is_better else value > limit)
        ]
        if worse and limit:
            found.append(f"on {dataset.name} ({shown(limit)}{' %' * metric.in_percent}) {', '.join(worse)}")
    what = "below the share of the largest class" if metric.in_percent else "above that of always predicting the mean"
    return f"{'Published' if published else 'Our'} {metric.plural} {what}: {'; '.join(found)}." if found else ""


def definitions(summary: Summary) -> list[str]:
    """Define the numbers of the report."""
    strength, values = summary.protocol.strengths
    sources = {"training": "the training graphs of each outer fold", "all": "all graphs, never from their classes"}
    text = render(
        "treegram.study",
        "definitions.txt",
        summary=summary,
        protocol=summary.protocol,
        metric=main_metric(summary.protocol.task),
        others=other_metrics(summary.protocol.task),
        model=_model(summary),
        strength=strength,
        values=", ".join(f"{one:g}" for one in sorted(values)),
        learned=[
            (listed([kernel.name for kernel in summary.kernels if kernel.learns_from == source]), graphs)
            for source, graphs in sources.items()
        ],
        rope=f"{ROPE:g}",
    )
    return list(filter(None, text.splitlines()))


def _model(summary: Summary) -> str:
    return "a support vector machine" if summary.protocol.task == "classification" else "kernel ridge regression"


def not_measured(summary: Summary) -> str:
    """Name the other scores that no fold has; empty if none is missing."""
    names = [one.name for one in other_metrics(summary.protocol.task) if not has_score(summary, one)]
    if not names or not any(cell.repeats for cell in summary.cells):
        return ""
    return f"{listed(names)}: not defined in any fold, or not measured by the version of treegram that ran them."


def has_score(summary: Summary, metric: Metric) -> bool:
    """Return whether any cell has this score."""
    return any(one.mean is not None for cell in summary.cells for one in cell.others if one.name == metric.name)


def provenance(summary: Summary) -> list[tuple[str, str]]:
    """Return the origin of the numbers, as names and values."""
    cells, runs = summary.cells, summary.runs
    dates = sorted(run.started for run in runs)
    machines = [", ".join(f"{name} {value}" for name, value in run.machine.items()) for run in runs]
    versions = [", ".join(f"{name} {value}" for name, value in run.versions.items()) for run in runs]
    others = " or a baseline" * any(kernel.is_baseline for kernel in summary.kernels)
    found = [
        ("study", f"{summary.study}, seed {summary.protocol.seed}"),
        ("study file", f"SHA-256 {summary.digest}"),
        ("runs", f"{len(runs)}, started {' to '.join(dict.fromkeys([dates[0], dates[-1]]))}" if runs else "none"),
        ("commands", "; ".join(dict.fromkeys(run.command for run in runs))),
        ("machine", "; ".join(dict.fromkeys(machines))),
        ("versions", "; ".join(dict.fromkeys(versions))),
        ("outer folds", f"{summary.n_folds:,}"),
        ("unused folds, of incomplete repeats", str(sum(cell.n_unused for cell in cells) or "")),
        ("fits", f"{summary.n_fits:,} of {_model(summary)}{others}, {summary.n_unconverged:,} not converged"),
        ("processor time of the folds", duration(sum(cell.cpu_seconds for cell in cells))),
    ]
    return [(name, value) for name, value in found if value]
