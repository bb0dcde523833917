"""The report as Markdown, as GitHub shows it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from treegram.experiments.report import sentences
from treegram.experiments.report._format import (
    NONE,
    accuracy,
    change,
    counted,
    duration,
    factor,
    fingerprint,
    listed,
    p_value,
    repeats,
    share,
    signed,
)
from treegram.experiments.statistics import Posterior, Ranking, TTest
from treegram.experiments.summary import Cell, ComparisonSummary, DatasetSummary, PairSummary, Summary

__all__ = ["write_markdown"]


def write_markdown(summary: Summary) -> str:
    """Write the report without its pictures.

    Parameters
    ----------
    summary : Summary
        The numbers.

    Returns
    -------
    str
        Markdown with tables, ending in an end of line. Names and notes of the study are text in it, never markup.
    """
    blocks = [
        *_head(summary),
        *_accuracy(summary),
        *_time(summary),
        *_statistics(summary),
        *_chosen(summary),
        *_notes(summary),
        "## Definitions",
        _bullets(sentences.definitions(summary)),
        *_provenance(summary),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _text(value: str) -> str:
    """Any text as one line in which nothing is markup; an underscore inside a word is none, and stays as it is."""
    line = " ".join(value.split()).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"[\\`*\[\]|~#]|\b_|_\b", r"\\\g<0>", line)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {_text(line)}" for line in lines if line)


def _head(summary: Summary) -> Iterator[str]:
    yield f"# {_text(summary.title)}"
    yield _text(summary.about)
    yield _text(summary.reference)
    yield _bullets(
        [
            sentences.progress(summary),
            sentences.agreement(summary),
            sentences.best(summary),
            sentences.speed(summary),
        ]
    )


# -------------------------------------------------------------------- tables


def _names(datasets: Iterable[DatasetSummary]) -> list[str]:
    return [_text(dataset.name) for dataset in datasets]


def _accuracy(summary: Summary) -> Iterator[str]:
    yield "## Accuracy"
    yield "In percent, mean ± standard deviation over repeats" + (
        "; below it what is published, with the difference. ▲ and ▼ mark more than two standard deviations."
        if summary.has_published
        else "."
    )
    majority = ["largest class", *(accuracy(dataset.majority) for dataset in summary.datasets)]
    rows = (
        [_text(kernel.name), *(_accuracy_cell(cell, summary.protocol.repeats) for cell in summary.row(kernel.name))]
        for kernel in summary.kernels
    )
    yield _table(["kernel", *_names(summary.datasets)], [majority, *rows])
    if unconverged := sum(cell.n_unconverged for cell in summary.cells):
        yield f"{counted(unconverged, 'fit')} of {sum(cell.n_fits for cell in summary.cells):,} did not converge."


def _accuracy_cell(cell: Cell, n_planned: int) -> str:
    lines = [accuracy(cell.mean, cell.deviation)]
    if cell.published is not None or cell.published_words:
        theirs = accuracy(cell.published, cell.published_deviation, _text(cell.published_words))
        mark = f"**{change(cell)}**" if cell.is_marked else change(cell)
        lines.append(f"<sub>published {theirs}{f', {mark}' if mark else ''}</sub>")
    if few := repeats(cell, n_planned):
        lines.append(f"<sub>{few}</sub>")
    return "<br>".join(lines)


def _time(summary: Summary) -> Iterator[str]:
    if not any(cell.gram_seconds for cell in summary.cells):
        return
    yield "## Time of one Gram matrix"
    yield sentences.speed(summary)
    rows = (
        [_text(kernel.name), *map(_time_cell, summary.row(kernel.name)), _text(kernel.timed)]
        for kernel in summary.kernels
    )
    yield _table(["kernel", *_names(summary.datasets), "parameters"], rows)


def _time_cell(cell: Cell) -> str:
    if cell.published_seconds is None:
        return duration(cell.gram_seconds)
    ratio = f", {factor(cell.speed_up)}" if cell.speed_up else ""
    return f"{duration(cell.gram_seconds)}<br><sub>published {duration(cell.published_seconds)}{ratio}</sub>"


# -------------------------------------------------------------------- statistics


def _statistics(summary: Summary) -> Iterator[str]:
    below = [sentences.below_majority(summary, published=True), sentences.below_majority(summary, published=False)]
    if summary.comparisons or summary.pairs or any(below):
        yield "## Statistics"
    for comparison in summary.comparisons:
        yield from _comparison(comparison)
    for pair in summary.pairs:
        yield from _pair(pair)
    yield _bullets(below)


def _comparison(comparison: ComparisonSummary) -> Iterator[str]:
    yield f"### {_text(comparison.name)}"
    said = []
    if comparison.published:
        said.append(sentences.ranking_verdict(comparison.published, "On the published table"))
        if comparison.dropped:
            said.append(f"Not every number is published for {listed(comparison.dropped)}, left out of that test.")
    said.append(
        sentences.ranking_verdict(comparison.ours, "On our table") if comparison.ours else sentences.missing(comparison)
    )
    yield _bullets(said)
    rankings = [("ours", comparison.ours), ("published", comparison.published)]
    shown = [(whose, ranking) for whose, ranking in rankings if ranking]
    if shown:
        rows = [[_text(name), *(_rank(ranking, name) for _, ranking in shown)] for name in comparison.kernels]
        yield _table(["kernel", *(f"mean rank, {whose}" for whose, _ in shown)], rows)


def _rank(ranking: Ranking, name: str) -> str:
    return f"{ranking.mean_ranks[ranking.names.index(name)]:.2f}" if name in ranking.names else NONE


def _pair(pair: PairSummary) -> Iterator[str]:
    yield f"### {_text(pair.kernel)} against {_text(pair.baseline)}"
    said = sentences.pair_verdicts(pair)
    if pair.published:
        said.append(sentences.overall(pair, pair.published, "by the published numbers"))
    if pair.ours:
        said.append(sentences.overall(pair, pair.ours, "by ours"))
    yield _bullets(said)
    head = [
        "data set",
        "published difference",
        "ours",
        "t-test over repeats",
        "corrected t-test",
        "better / equal / worse",
    ]
    rows = (
        [
            _text(test.dataset),
            _tested(test.published),
            signed(test.corrected.difference) if test.corrected else NONE,
            f"p {p_value(test.over_repeats.p_value)}" if test.over_repeats else NONE,
            f"p {p_value(test.corrected.p_value)}" if test.corrected else NONE,
            _outcomes(test.posterior),
        ]
        for test in pair.tests
    )
    yield _table(head, rows)


def _tested(test: TTest | None) -> str:
    return f"{signed(test.difference)}, p {p_value(test.p_value)}" if test else NONE


def _outcomes(posterior: Posterior | None) -> str:
    if posterior is None:
        return NONE
    return " / ".join(map(share, (posterior.first_better, posterior.practically_equal, posterior.second_better)))


# -------------------------------------------------------------------- the rest


def _chosen(summary: Summary) -> Iterator[str]:
    if not any(cell.chosen for cell in summary.cells):
        return
    yield "## Most often chosen"
    yield "By inner cross-validation, with the share of outer folds."
    rows = ([_text(kernel.name), *map(_favourite, summary.row(kernel.name))] for kernel in summary.kernels)
    yield _table(["kernel", *_names(summary.datasets)], rows)


def _favourite(cell: Cell) -> str:
    if not cell.chosen:
        return NONE
    combination, count = cell.chosen[0]
    return f"{_text(combination)}<br><sub>{share(count / sum(n for _, n in cell.chosen))}</sub>"


def _notes(summary: Summary) -> Iterator[str]:
    yield "## Data sets"
    rows = ([_text(one.name), *_facts(one), _text(one.note)] for one in summary.datasets)
    yield _table(["data set", "graphs", "classes", "mean nodes", "mean edges", "attributes", "digest", "note"], rows)
    yield "## Kernels"
    described = (
        [_text(one.name), "<br>".join(map(_text, one.choices)), one.learns_from or "nothing", _text(one.note)]
        for one in summary.kernels
    )
    yield _table(["kernel", "what is selected from, beside C", "learns from", "note"], described)


def _facts(dataset: DatasetSummary) -> list[str]:
    facts = dataset.facts
    if facts is None:
        return [NONE] * 6
    sizes = f"{facts.mean_nodes:.1f}", f"{facts.mean_edges:.1f}"
    return [
        f"{facts.n_graphs:,}",
        str(len(facts.class_counts)),
        *sizes,
        str(facts.n_attributes),
        _text(fingerprint(facts.digest)),
    ]


def _provenance(summary: Summary) -> Iterator[str]:
    yield "## Provenance"
    yield _bullets(f"{name}: {value}" for name, value in sentences.provenance(summary))
