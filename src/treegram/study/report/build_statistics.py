"""The part of the report about tests: which differences are more than chance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from treegram._core.text import counted, listed
from treegram.study.diagrams import critical_difference_diagram
from treegram.study.metrics import main_metric
from treegram.study.report import sentences
from treegram.study.report.document import Block, Bullets, Figure, Heading, Table, TableCell
from treegram.study.report.figures import labels
from treegram.study.report.format import NONE, p_value, share, signed
from treegram.study.statistics import Posterior, Ranking, TTest
from treegram.study.summary import ComparisonSummary, PairSummary, PairTest, Summary

__all__ = ["statistics_blocks"]


def statistics_blocks(summary: Summary) -> Iterator[Block]:
    """Ranks, pairs, and what is below the largest class."""
    for i, comparison in enumerate(summary.comparisons):
        yield from _comparison(comparison, i, main_metric(summary.protocol.task).plural)
    for pair in summary.pairs:
        yield from _pair(pair, summary.protocol.task)
    below = tuple(sentences.below_baseline(summary, published=whose) for whose in (True, False))
    if any(below):
        yield Bullets(below)


def _comparison(comparison: ComparisonSummary, number: int, scores: str) -> Iterator[Block]:
    yield Heading(f"Ranks: {comparison.name}")
    said = []
    if comparison.published:
        said.append(sentences.ranking_verdict(comparison.published, "On the published table"))
        if comparison.dropped:
            said.append(f"This test leaves out {listed(comparison.dropped)}, for which not every number is published.")
    ours = comparison.ours
    said.append(sentences.ranking_verdict(ours, "On our table") if ours else sentences.missing(comparison))
    yield Bullets(tuple(said))
    rankings = [("our", "ranks", ours), ("published", "published-ranks", comparison.published)]
    shown = [(whose, name, ranking) for whose, name, ranking in rankings if ranking]
    if shown:
        rows = (
            (TableCell(kernel), *(TableCell(_rank(ranking, kernel)) for _, _, ranking in shown))
            for kernel in comparison.kernels
        )
        head = ("kernel", *(f"{whose} table" for whose, _, _ in shown))
        yield Table("Mean ranks over the data sets; 1 is best.", head, tuple(rows), "numbers")
    for whose, name, ranking in shown:
        yield _rank_diagram(ranking, f"{name}{number}", f"{whose} {scores}")


def _rank(ranking: Ranking, name: str) -> str:
    return f"{ranking.mean_ranks[ranking.names.index(name)]:.2f}" if name in ranking.names else NONE


def _rank_diagram(ranking: Ranking, name: str, scores: str) -> Figure:
    ranks = sorted(zip(ranking.mean_ranks, ranking.names, strict=True))
    description = f"Mean ranks on {scores}: {', '.join(f'{kernel} {rank:.2f}' for rank, kernel in ranks)}."
    caption = f"Critical-difference diagram of {scores}: a bar joins kernels that Nemenyi's test does not separate."
    short = dict(zip(ranking.names, labels(ranking.names), strict=True))
    groups = tuple(tuple(short[kernel] for kernel in group) for group in ranking.groups)
    shown = replace(ranking, names=tuple(short.values()), groups=groups)
    return Figure(name, description, caption, partial(critical_difference_diagram, shown))


def _pair(pair: PairSummary, task: str) -> Iterator[Block]:
    yield Heading(f"{pair.kernel} against {pair.baseline}")
    said = sentences.pair_verdicts(pair)
    if pair.published:
        said.append(sentences.overall(pair, pair.published, "by the published numbers"))
    if pair.ours:
        said.append(sentences.overall(pair, pair.ours, "by ours"))
    yield Bullets(tuple(said))
    difference = f"{pair.kernel} minus {pair.baseline}, in points"
    if task == "regression":
        difference = (
            f"Errors of {pair.baseline} minus those of {pair.kernel}, in percent of the targets' standard deviation"
        )
    names_rival, has_published = len(pair.baselines) > 1, any(test.published for test in pair.tests)
    head = ("ours", "t-test over repeats", "corrected t-test", "by Holm", "better, equal, worse")
    yield Table(
        f"{difference}, with 95 % intervals and two-sided p-values.",
        ("data set", *(("published",) if has_published else ()), *head),
        tuple(_pair_row(test, names_rival=names_rival, has_published=has_published) for test in pair.tests),
        "numbers",
    )


def _pair_row(test: PairTest, *, names_rival: bool, has_published: bool) -> tuple[TableCell, ...]:
    ours = signed(test.corrected.difference) if test.corrected else NONE
    return (
        TableCell(test.dataset, remarks=(f"against {test.baseline}",) if names_rival else ()),
        *((_published(test.published),) if has_published else ()),
        TableCell(ours, remarks=(counted(test.n_repeats, "repeat"),) if test.n_repeats else ()),
        _tested(test.over_repeats),
        _tested(test.corrected),
        TableCell(NONE if test.holm is None else f"p {p_value(test.holm)}"),
        TableCell(_outcomes(test.posterior)),
    )


def _published(test: TTest | None) -> TableCell:
    if test is None:
        return TableCell(NONE)
    tested = _tested(test)
    return TableCell(signed(test.difference), remarks=(tested.text, *tested.remarks))


def _tested(test: TTest | None) -> TableCell:
    if test is None:
        return TableCell(NONE)
    low, high = test.interval
    return TableCell(f"p {p_value(test.p_value)}", remarks=(f"{signed(low)} to {signed(high)}",))


def _outcomes(posterior: Posterior | None) -> str:
    if posterior is None:
        return NONE
    return ", ".join(map(share, (posterior.first_better, posterior.practically_equal, posterior.second_better)))
