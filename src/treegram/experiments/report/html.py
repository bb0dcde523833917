"""The report as one HTML page that needs nothing else: no network, no scripts, pictures inside."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import resources
from statistics import median
from string import Template

from treegram.experiments._describe_choices import Histogram
from treegram.experiments.diagrams import accuracy_plot, critical_difference_diagram, time_plot
from treegram.experiments.report import sentences
from treegram.experiments.report._figures import draw, labels
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
from treegram.experiments.report._markup import Markup, element, join
from treegram.experiments.report._pieces import (
    against,
    anchor,
    bullets,
    figure,
    gallery,
    paragraph,
    row_name,
    section,
    small,
    table,
)
from treegram.experiments.statistics import Posterior, Ranking, TTest
from treegram.experiments.summary import (
    Cell,
    ComparisonSummary,
    DatasetSummary,
    PairSummary,
    PairTest,
    Summary,
)

__all__ = ["write_html"]

_LEARNS_FROM = {"": "nothing", "training": "training graphs", "all": "all graphs"}


def write_html(summary: Summary) -> str:
    """Write the report as one page.

    Parameters
    ----------
    summary : Summary
        The numbers.

    Returns
    -------
    str
        HTML. Names and notes of the study are text in it, never markup; its policy forbids scripts and the network. The
        same summary gives the same page.

    Raises
    ------
    ImportError
        If there is no matplotlib.
    """
    files = resources.files("treegram.experiments.report")
    sections = [
        section("Accuracy", _accuracy(summary)),
        section("Time of one Gram matrix", _time(summary)),
        section("Statistics", _statistics(summary)),
        section("Chosen parameters", _chosen(summary)),
        section("Data sets", _datasets(summary)),
        section("Kernels", _kernels(summary)),
        section("Every fold", _folds(summary)),
        section("Definitions", [bullets(sentences.definitions(summary))]),
        section("Provenance", [_provenance(summary)]),
    ]
    shown = [(title, body) for title, body in sections if body]
    links = (element("a", title, href=f"#{anchor(title)}") for title, _ in shown)
    return Template((files / "template.html").read_text("utf-8")).substitute(
        title=join(summary.title),
        style=(files / "style.css").read_text("utf-8"),
        head=_head(summary),
        contents=join(*links),
        sections=join(*(body for _, body in shown)),
    )


# -------------------------------------------------------------------- the head


def _head(summary: Summary) -> Markup:
    findings = [sentences.agreement(summary), sentences.best(summary), sentences.speed(summary)]
    latest = max((run.started[:10] for run in summary.runs), default="nothing run yet")
    return join(
        paragraph(f"treegram report · study {summary.study} · {latest}", "kicker"),
        element("h1", summary.title),
        paragraph(summary.reference, "reference"),
        paragraph(sentences.progress(summary), "lead"),
        element("div", *_tiles(summary), class_="tiles"),
        *(paragraph(finding) for finding in findings),
        paragraph(summary.about, "about"),
    )


def _tiles(summary: Summary) -> Iterator[Markup]:
    """The main findings as numbers."""
    compared = [cell for cell in summary.cells if cell.difference is not None and cell.margin is not None]
    if compared:
        agreeing = sum(not cell.is_marked for cell in compared)
        yield _tile(f"{agreeing} of {len(compared)}", "accuracies within two standard deviations of the published ones")
        yield _tile(
            signed(median(cell.difference or 0.0 for cell in compared)), "points, median difference to published"
        )
    ratios = [cell.speed_up for cell in summary.cells if cell.speed_up is not None]
    if ratios:
        yield _tile(factor(median(ratios)), "as fast as published, one Gram matrix, median")
    n_folds = sum(len(repeat) for cell in summary.cells for repeat in cell.folds)
    fits = sum(cell.n_fits for cell in summary.cells), sum(cell.n_unconverged for cell in summary.cells)
    yield _tile(f"{n_folds:,}", f"outer folds; {fits[0]:,} fits of a support vector machine, {fits[1]:,} not converged")


def _tile(number: str, text: str) -> Markup:
    return element("div", element("b", number), element("span", text))


# -------------------------------------------------------------------- accuracy and time


def _accuracy(summary: Summary) -> Iterator[Markup]:
    caption = "Accuracy in percent, mean ± standard deviation over repeats" + (
        ". Below it the published number and the difference; ▲ and ▼ mark more than two standard deviations. "
        if summary.has_published
        else ". "
    )
    baseline = [
        row_name("largest class", "always answered"),
        *(element("td", accuracy(dataset.majority)) for dataset in summary.datasets),
    ]
    rows = (
        [
            row_name(kernel.name),
            *(_accuracy_cell(cell, summary) for cell in summary.row(kernel.name)),
        ]
        for kernel in summary.kernels
    )
    head = ["kernel", *(dataset.name for dataset in summary.datasets)]
    yield table(f"{caption}Bold: the highest of ours.", head, [baseline, *rows], "numbers")
    yield gallery(_accuracy_figures(summary))


def _accuracy_cell(cell: Cell, summary: Summary) -> Markup:
    ours = accuracy(cell.mean, cell.deviation)
    shown = element("b", ours) if sentences.is_highest(cell, summary) else join(ours)
    theirs = accuracy(cell.published, cell.published_deviation, cell.published_words)
    beyond = ("up" if (cell.difference or 0) > 0 else "down") if cell.is_marked else ""
    return element(
        "td",
        shown,
        against(theirs if theirs != NONE else "", change(cell), beyond),
        small(repeats(cell, summary.protocol.repeats)),
        small(f"{counted(cell.n_unconverged, 'fit')} not converged" if cell.n_unconverged else "", "down"),
    )


def _accuracy_figures(summary: Summary) -> Iterator[Markup]:
    for i, dataset in enumerate(summary.datasets):
        cells = summary.column(dataset.name)
        if all(cell.mean is None for cell in cells):
            continue
        published = [cell.published for cell in cells] if any(cell.published for cell in cells) else None
        picture = draw(
            f"accuracy{i}",
            f"Accuracy of each kernel on {dataset.name}; the table has the numbers.",
            accuracy_plot,
            labels([cell.kernel for cell in cells]),
            [cell.mean for cell in cells],
            [cell.deviation for cell in cells],
            published,
            [cell.published_deviation for cell in cells],
            majority=dataset.majority,
            title=labels([dataset.name])[0],
        )
        yield figure(picture, f"{dataset.name}: mean accuracy; bars are standard deviations over repeats.")


def _time(summary: Summary) -> Iterator[Markup]:
    if not any(cell.gram_seconds for cell in summary.cells):
        return
    yield paragraph(sentences.speed(summary))
    has_published = any(cell.published_seconds for cell in summary.cells)
    rows = (
        [row_name(kernel.name, kernel.timed), *map(_time_cell, summary.row(kernel.name))] for kernel in summary.kernels
    )
    yield table(
        "Processor time of one full Gram matrix on one thread"
        + ("; below it the published time, and how many times as fast ours is." if has_published else "."),
        ["kernel", *(dataset.name for dataset in summary.datasets)],
        rows,
        "numbers",
    )
    yield gallery(_time_figures(summary))


def _time_cell(cell: Cell) -> Markup:
    theirs = duration(cell.published_seconds) if cell.published_seconds else ""
    return element("td", duration(cell.gram_seconds), against(theirs, factor(cell.speed_up)))


def _time_figures(summary: Summary) -> Iterator[Markup]:
    for i, dataset in enumerate(summary.datasets):
        cells = summary.column(dataset.name)
        if all(cell.gram_seconds is None for cell in cells):
            continue
        published = [cell.published_seconds for cell in cells]
        picture = draw(
            f"time{i}",
            f"Time of one Gram matrix of each kernel on {dataset.name}; the table has the numbers.",
            time_plot,
            labels([cell.kernel for cell in cells]),
            [cell.gram_seconds for cell in cells],
            published if any(published) else None,
            title=labels([dataset.name])[0],
        )
        yield figure(picture, f"{dataset.name}: time of one Gram matrix, on a logarithmic axis.")


# -------------------------------------------------------------------- statistics


def _statistics(summary: Summary) -> Iterator[Markup]:
    for i, comparison in enumerate(summary.comparisons):
        yield from _comparison(comparison, i)
    for pair in summary.pairs:
        yield from _pair(pair)
    yield bullets([sentences.below_majority(summary, published=whose) for whose in (True, False)])


def _comparison(comparison: ComparisonSummary, number: int) -> Iterator[Markup]:
    yield element("h3", f"Ranks: {comparison.name}")
    said, pictures = [], []
    if comparison.published:
        said.append(sentences.ranking_verdict(comparison.published, "On the published table"))
        if comparison.dropped:
            said.append(f"Not every number is published for {listed(comparison.dropped)}, left out of that test.")
    if comparison.ours:
        said.append(sentences.ranking_verdict(comparison.ours, "On our table"))
        pictures.append(_ranks(comparison.ours, f"ranks{number}", "our"))
    else:
        said.append(sentences.missing(comparison))
    if comparison.published:
        pictures.append(_ranks(comparison.published, f"published-ranks{number}", "published"))
    yield bullets(said)
    yield gallery(pictures)


def _ranks(ranking: Ranking, name: str, whose: str) -> Markup:
    ranks = sorted(zip(ranking.mean_ranks, ranking.names, strict=True))
    description = f"Mean ranks on {whose} accuracies: {', '.join(f'{kernel} {rank:.2f}' for rank, kernel in ranks)}."
    caption = f"Critical-difference diagram of {whose} accuracies: a bar joins kernels that cannot be told apart."
    short = dict(zip(ranking.names, labels(ranking.names), strict=True))
    groups = tuple(tuple(short[kernel] for kernel in group) for group in ranking.groups)
    shown = replace(ranking, names=tuple(short.values()), groups=groups)
    return figure(draw(name, description, critical_difference_diagram, shown), caption)


def _pair(pair: PairSummary) -> Iterator[Markup]:
    yield element("h3", f"{pair.kernel} against {pair.baseline}")
    said = sentences.pair_verdicts(pair)
    if pair.published:
        said.append(sentences.overall(pair, pair.published, "by the published numbers"))
    if pair.ours:
        said.append(sentences.overall(pair, pair.ours, "by ours"))
    yield bullets(said)
    head = ["data set", "published", "ours", "t-test over repeats", "corrected t-test", "better, equal, worse"]
    caption = f"{pair.kernel} minus {pair.baseline}, in points, with 95 % intervals and two-sided p-values."
    yield table(caption, head, map(_pair_row, pair.tests), "numbers")


def _pair_row(test: PairTest) -> list[Markup]:
    ours = signed(test.corrected.difference) if test.corrected else NONE
    return [
        row_name(test.dataset),
        element("td", *_tested(test.published, signed(test.published.difference) if test.published else NONE)),
        element("td", ours, small(counted(test.n_repeats, "repeat") if test.n_repeats else "")),
        element("td", *_tested(test.over_repeats)),
        element("td", *_tested(test.corrected)),
        element("td", _outcomes(test.posterior)),
    ]


def _tested(test: TTest | None, before: str = "") -> list[str]:
    if test is None:
        return [NONE]
    p, interval = f"p {p_value(test.p_value)}", f"{signed(test.interval[0])} to {signed(test.interval[1])}"
    return [before, small(p), small(interval)] if before else [p, small(interval)]


def _outcomes(posterior: Posterior | None) -> str:
    if posterior is None:
        return NONE
    return ", ".join(map(share, (posterior.first_better, posterior.practically_equal, posterior.second_better)))


# -------------------------------------------------------------------- what was chosen


def _chosen(summary: Summary) -> Iterator[Markup]:
    if not any(cell.chosen for cell in summary.cells):
        return
    names = [dataset.name for dataset in summary.datasets]
    rows = ([row_name(kernel.name), *map(_favourite, summary.row(kernel.name))] for kernel in summary.kernels)
    caption = "What inner cross-validation chose most often, with its share of the outer folds."
    yield table(caption, ["kernel", *names], rows)
    yield paragraph("How often each value was chosen, kernel by kernel:")
    rows_of = ([cell for cell in summary.row(kernel.name) if cell.chosen] for kernel in summary.kernels)
    yield element("div", *(_distribution(cells) for cells in rows_of if cells), class_="chips")


def _favourite(cell: Cell) -> Markup:
    if not cell.chosen:
        return element("td", NONE)
    combination, count = cell.chosen[0]
    parts = re.split("(?<=,) ", combination)
    return element(
        "td",
        *(join(element("span", one, class_="whole"), " ") for one in parts),
        small(share(count / sum(n for _, n in cell.chosen))),
    )


def _distribution(cells: Sequence[Cell]) -> Markup:
    """Bars for each parameter and data set of a kernel, on demand."""
    kernel = cells[0].kernel
    rows = (
        [row_name(parameters[0].parameter), *(element("td", *_bars(one)) for one in parameters)]
        for parameters in zip(*(cell.histograms for cell in cells), strict=True)
    )
    counts = table(f"{kernel}: number of outer folds by chosen value.", ["", *(cell.dataset for cell in cells)], rows)
    return element("details", element("summary", kernel), counts)


def _bars(histogram: Histogram) -> Iterator[Markup]:
    highest = max(histogram.counts)
    for value, count in zip(histogram.values, histogram.counts, strict=True):
        bar = element("i", style=f"width:{4 * count / highest if highest else 0:.2f}em")
        yield element("span", element("span", value), bar, str(count) if count else "", class_="bar")


# -------------------------------------------------------------------- what there was, and every fold


def _datasets(summary: Summary) -> Iterator[Markup]:
    head = ["data set", "graphs", "classes", "largest class", "nodes", "edges", "attributes", "digest", "note"]
    rows = ([row_name(one.name), *_facts(one), element("td", one.note, class_="note")] for one in summary.datasets)
    caption = (
        "Nodes and edges are means per graph, attributes are numbers per node, "
        "the digest is equal for equal graphs and classes alone."
    )
    yield table(caption, head, rows)


def _facts(dataset: DatasetSummary) -> list[Markup]:
    facts = dataset.facts
    if facts is None:
        return [element("td", NONE) for _ in range(7)]
    counts = [f"{facts.n_graphs:,}", str(len(facts.class_counts)), f"{dataset.majority:.2f} %"]
    sizes = [f"{facts.mean_nodes:.1f}", f"{facts.mean_edges:.1f}", str(facts.n_attributes)]
    return [element("td", one) for one in [*counts, *sizes, fingerprint(facts.digest)]]


def _kernels(summary: Summary) -> Iterator[Markup]:
    rows = (
        [
            row_name(kernel.name),
            element("td", *(element("div", choice) for choice in kernel.choices), class_="note"),
            element("td", _LEARNS_FROM[kernel.learns_from]),
            element("td", kernel.note, class_="note"),
        ]
        for kernel in summary.kernels
    )
    yield table("What is selected from, beside C.", ["kernel", "choices", "learns from", "note"], rows)


def _folds(summary: Summary) -> Iterator[Markup]:
    for dataset in summary.datasets:
        cells = [cell for cell in summary.column(dataset.name) if cell.folds]
        if cells:
            yield element("h3", dataset.name)
            yield element("div", *map(_fold_details, cells), class_="chips")


def _fold_details(cell: Cell) -> Markup:
    head = ["repeat", *(str(fold + 1) for fold in range(len(cell.folds[0]))), "mean"]
    rows = (
        [
            row_name(str(repeat + 1)),
            *(element("td", f"{fold:.1f}") for fold in folds),
            element("td", f"{sum(folds) / len(folds):.2f}"),
        ]
        for repeat, folds in zip(cell.repeats, cell.folds, strict=True)
    )
    detail = table(f"{cell.kernel} on {cell.dataset}: accuracy of each outer fold in percent.", head, rows, "numbers")
    return element("details", element("summary", cell.kernel), detail)


def _provenance(summary: Summary) -> Markup:
    found = sentences.provenance(summary)
    return element("dl", *(join(element("dt", name), element("dd", value)) for name, value in found))
