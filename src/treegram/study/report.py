"""Write the report of a study: tables, sentences and pictures as HTML or Markdown, and a short text for terminals."""

from __future__ import annotations

import base64
import io
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from treegram._core.files import replacing
from treegram._core.html import render
from treegram._core.optional import matplotlib_module
from treegram._core.text import counted, listed, visible
from treegram.study import sentences
from treegram.study.diagrams import critical_difference_diagram, score_plot, time_plot
from treegram.study.metrics import main_metric, other_metrics
from treegram.study.sentences import NONE, duration, factor, measured, p_value, percent, signed
from treegram.study.statistics import Ranking, TTest
from treegram.study.summary import Cell, ComparisonSummary, DatasetSummary, PairSummary, PairTest, Summary

__all__ = [
    "Table",
    "TableCell",
    "brief_text",
    "check_page",
    "markdown_bullets",
    "markdown_table",
    "render_report",
    "score_table",
    "write_report",
]

_ENDINGS = (".html", ".md")
# Near the beginning of every report: such a file may be replaced without asking.
_MARKS = (b'<meta name="generator" content="treegram report">', b"<!-- written by treegram report -->")
_BEGINNING = 1000  # bytes in which a mark must be
_ARROWS = {"up": "▲", "down": "▼", "": ""}
_LEARNS_FROM = {None: NONE, "": "nothing", "training": "training graphs", "all": "all graphs"}
_MOST_CELLS = 20  # whose other scores a terminal shows
_MOST_CHARACTERS = 32  # of a name in a picture; longer ones would leave no room for the rest
_NO_BREAK = re.compile(" (?=[±=<>%\N{MULTIPLICATION SIGN}])|(?<=[±=<>]) (?=[0-9])")
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "treegram",  # otherwise ids are random
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],  # the second is as wide, where the first is missing
    "text.parse_math": False,  # a dollar in a kernel's name is a dollar
}


def write_report(summary: Summary, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write the report of a study as one page.

    Parameters
    ----------
    summary : Summary
        The numbers, from :func:`~treegram.study.summarize`.
    path : str or path
        The file: ``.html`` for a page with pictures that needs no network, ``.md`` for Markdown without pictures.
    overwrite : bool, default=False
        Replace a file that is not such a report. An older report is always replaced.

    Raises
    ------
    FileExistsError
        If there is such a file.
    ImportError
        If the page needs matplotlib, and it is not installed.
    """
    page = Path(path)
    check_page(page, overwrite=overwrite)
    content = render_report(summary, page.suffix)
    with replacing(page) as file:
        file.write(content.encode())


def check_page(path: Path, *, overwrite: bool) -> None:
    """Raise if a report cannot be written to this path."""
    if path.suffix not in _ENDINGS:
        raise ValueError(f"A report must end in {' or '.join(_ENDINGS)}; got {str(path)!r}.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} of the output file does not exist; create it first.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; the report must be a file.")
    if not overwrite and path.exists() and not _is_report(path):
        raise FileExistsError(
            f"{path} exists and was not written by treegram report; use --force (overwrite=True in Python) to replace it, "
            "or another name."
        )


def _is_report(path: Path) -> bool:
    with path.open("rb") as file:
        beginning = file.read(_BEGINNING)
    return any(mark in beginning for mark in _MARKS)


def render_report(summary: Summary, ending: str) -> str:
    """Return the report as ``.html`` or ``.md``. Names and notes of the study are text in it, never markup."""
    from markupsafe import Markup

    return render(
        "treegram.study",
        f"report{ending}",
        summary=summary,
        latest=max((run.started[:10] for run in summary.runs), default="nothing run yet"),
        progress=sentences.progress(summary),
        findings=[sentences.agreement(summary), sentences.best(summary), sentences.speed(summary)],
        sections=[(title, list(blocks)) for title, blocks in _sections(summary).items() if blocks],
        arrows=_ARROWS,
        unbroken=partial(_NO_BREAK.sub, "\N{NO-BREAK SPACE}"),
        text=_markdown_text,
        table=lambda table: Markup(markdown_table(table)),  # several lines
        picture=_picture,
    )


# -------------------------------------------------------------------- blocks of the report


@dataclass(frozen=True)
class TableCell:
    """One cell. A line break in its text is a line break."""

    text: str
    published: str = ""  # the number that it is compared with
    change: str = ""  # the difference
    mark: str = ""  # "up" or "down" where the difference is large
    remarks: tuple[str, ...] = ()
    is_best: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of cells; the first cell of a row is its name."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    kind: str = "numbers"  # nothing wraps; "notes": text wraps


@dataclass(frozen=True)
class Figure:
    """A picture, drawn when the page is written. Markdown leaves it out: a table has the same numbers."""

    description: str  # for those who cannot see it
    caption: str
    draw: Callable[[], Any]  # returns matplotlib's axes


Block = tuple[
    str, Any
]  # ("heading", text), ("bullets", texts), ("facts", pairs), ("table", Table) or ("figures", Figures)


def _sections(summary: Summary) -> dict[str, list[Block]]:
    return {
        main_metric(summary.protocol.task).name.capitalize(): list(_scores(summary)),
        "Other scores": list(_other_scores(summary)),
        "Time of one Gram matrix": list(_gram_time(summary)),
        "Time of one fold": list(_fold_time(summary)),
        "Statistics": list(_statistics(summary)),
        "Chosen parameters": list(_chosen(summary)),
        "Data sets": [("table", _datasets(summary))],
        "Kernels": [("table", _kernels(summary))],
        "Definitions": [("bullets", sentences.definitions(summary))],
        "Provenance": [("facts", sentences.provenance(summary))],
    }


def _kernel_table(caption: str, summary: Summary, show: Callable[[Cell], TableCell]) -> Table:
    """Build a table with one row per kernel and one column per data set."""
    rows = ((TableCell(kernel.name), *map(show, summary.row(kernel.name))) for kernel in summary.kernels)
    return Table(caption, ("kernel", *(dataset.name for dataset in summary.datasets)), tuple(rows))


def score_table(summary: Summary, *, decimals: int = 2, deviations: bool = True) -> Table:
    """Build the table of the main score of every kernel on every data set, after that of the baseline without learning.

    Without deviations, words that are published instead of a number are left out, too. ``decimals`` are those of percentages.
    """
    has_rivals = len(summary.kernels) > 1
    metric = main_metric(summary.protocol.task)

    def number(mean: float | None, deviation: float | None = None, words: str = "") -> str:
        digits = metric.decimals_of(mean, decimals)
        return measured(mean, deviation if deviations else None, words if deviations else "", decimals=digits)

    def show(cell: Cell) -> TableCell:
        published = number(cell.published, cell.published_deviation, cell.published_words)
        failed = f"{counted(cell.n_unconverged, 'fit')} not converged" if cell.n_unconverged else ""
        return TableCell(
            text=number(cell.mean, cell.deviation),
            published="" if published == NONE else published,
            change="" if cell.difference is None else f"{_ARROWS[cell.mark]} {signed(cell.difference)}".strip(),
            mark=cell.mark,
            remarks=tuple(filter(None, [_repeats(cell, summary.protocol.repeats), failed])),
            is_best=has_rivals and sentences.is_best(cell, summary, decimals),
        )

    caption = [
        f"{metric.name.capitalize()}{' in percent' if metric.in_percent else ''}, mean ± standard deviation over repeats.",
        "Below it the published number and the difference; ▲ and ▼ mark differences of more than two standard deviations."
        if summary.has_published
        else "",
        f"Bold: our {'highest' if metric.higher_is_better else 'lowest'} number." if has_rivals else "",
    ]
    table = _kernel_table(" ".join(filter(None, caption)), summary, show)
    baselines = (TableCell(number(dataset.baseline)) for dataset in summary.datasets)
    return replace(table, rows=((TableCell(_baseline_name(summary)), *baselines), *table.rows))


def _repeats(cell: Cell, n_planned: int) -> str:
    """Return ``3 of 10 repeats`` where some are missing; ``2 repeats`` where the study plans fewer for this cell."""
    if not cell.repeats or len(cell.repeats) == n_planned:
        return ""
    done = "" if len(cell.repeats) == cell.n_planned else f"{len(cell.repeats)} of "
    return f"{done}{counted(cell.n_planned, 'repeat')}"


def _baseline_name(summary: Summary) -> str:
    return "largest class" if summary.protocol.task == "classification" else "mean of targets"


def _scores(summary: Summary) -> Iterator[Block]:
    yield "table", score_table(summary)
    yield "bullets", [*summary.remarks, sentences.unconverged(summary)]
    metric = main_metric(summary.protocol.task)
    figures = []
    for dataset in summary.datasets:
        cells = summary.column(dataset.name)
        if any(cell.mean is not None for cell in cells):
            published = [cell.published for cell in cells]
            draw = partial(
                score_plot,
                _labels([cell.kernel for cell in cells]),
                [cell.mean for cell in cells],
                [cell.deviation for cell in cells],
                published if any(published) else None,
                [cell.published_deviation for cell in cells],
                baseline=None if dataset.baseline is None else (_baseline_name(summary), dataset.baseline),
                label=metric.title,
                title=_labels([dataset.name])[0],
            )
            caption = (
                f"{dataset.name}: mean {metric.name.removeprefix('mean ')}; bars are standard deviations over repeats."
            )
            figures.append(Figure(f"{metric.name.capitalize()} of each kernel on {dataset.name}.", caption, draw))
    yield "figures", figures


def _other_scores(summary: Summary) -> Iterator[Block]:
    """Yield a table for each score that any fold has."""
    for i, metric in enumerate(other_metrics(summary.protocol.task)):
        if sentences.has_score(summary, metric):
            name = f"{metric.name[0].upper()}{metric.name[1:]}{' in percent' * metric.in_percent}"
            show = partial(_other_score, number=i, summary=summary, decimals=2)
            yield "table", _kernel_table(f"{name}, mean ± standard deviation over repeats.", summary, show)
    if missing := sentences.not_measured(summary):
        yield "bullets", [missing]


def _other_score(cell: Cell, number: int, summary: Summary, decimals: int) -> TableCell:
    one, metric = cell.others[number], other_metrics(summary.protocol.task)[number]
    return TableCell(measured(one.mean, one.deviation, decimals=metric.decimals_of(one.mean, decimals)))


def _gram_time(summary: Summary) -> Iterator[Block]:
    if not any(cell.gram_seconds for cell in summary.cells):
        return
    has_published = any(cell.published_seconds for cell in summary.cells)
    caption = "Processor time of one full Gram matrix on one thread" + (
        "; below it the published time, and how many times as fast ours is." if has_published else "."
    )

    def show(cell: Cell) -> TableCell:
        published = duration(cell.published_seconds) if cell.published_seconds else ""
        return TableCell(duration(cell.gram_seconds), published, factor(cell.speed_up))

    table = _kernel_table(caption, summary, show)
    names = (TableCell(kernel.name, remarks=(kernel.timed,) * bool(kernel.timed)) for kernel in summary.kernels)
    yield "table", replace(table, rows=tuple((name, *row[1:]) for name, row in zip(names, table.rows, strict=True)))
    figures = []
    for dataset in summary.datasets:
        cells = summary.column(dataset.name)
        if any(cell.gram_seconds is not None for cell in cells):
            ours, published = ([cell.gram_seconds for cell in cells], [cell.published_seconds for cell in cells])
            kernels, title = _labels([cell.kernel for cell in cells]), _labels([dataset.name])[0]
            draw = partial(time_plot, kernels, ours, published if any(published) else None, title=title)
            what = "time of one Gram matrix"
            figures.append(Figure(f"{what} on {dataset.name}.".capitalize(), f"{dataset.name}: {what}.", draw))
    yield "figures", figures


def _fold_time(summary: Summary) -> Iterator[Block]:
    if any(cell.folds for cell in summary.cells):
        caption = (
            "Mean processor time of an outer fold: to choose inside it, to fit, and to predict. Gram matrices that all folds "
            "share, of kernels that learn nothing from data, are computed once and not included."
        )
        yield "table", _kernel_table(caption, summary, lambda cell: TableCell(duration(cell.fold_seconds)))


def _chosen(summary: Summary) -> Iterator[Block]:
    def show(cell: Cell) -> TableCell:
        if not cell.chosen:
            return TableCell(NONE)
        combination, count = cell.chosen[0]
        return TableCell(combination, remarks=(percent(count / sum(n for _, n in cell.chosen)),))

    if any(cell.chosen for cell in summary.cells):
        caption = "The most frequent choice of inner cross-validation, with its share of the outer folds."
        yield "table", replace(_kernel_table(caption, summary, show), kind="notes")


def _datasets(summary: Summary) -> Table:
    is_regression = summary.protocol.task == "regression"
    heads = ("targets", "mean ± deviation") if is_regression else ("classes", "largest class")
    return Table(
        "Nodes and edges are means per graph, attributes are numbers per node. Data sets with equal digests are equal.",
        ("data set", "graphs", *heads, "nodes", "edges", "attributes", "digest", "note"),
        tuple(_text_cells([one.name, *_facts(one), one.note]) for one in summary.datasets),
        "notes",
    )


def _facts(dataset: DatasetSummary) -> list[str]:
    facts = dataset.facts
    if facts is None:
        return [NONE] * 7
    if targets := facts.targets:
        about = [f"{targets['lowest']:.4g} to {targets['highest']:.4g}"]
        about.append(f"{targets['mean']:.4g} ± {targets['deviation']:.4g}")
    else:
        about = [str(len(facts.class_counts)), f"{dataset.baseline:.2f} %"]
    sizes = [f"{facts.mean_nodes:.1f}", f"{facts.mean_edges:.1f}", str(facts.n_attributes)]
    return [f"{facts.n_graphs:,}", *about, *sizes, facts.digest[:12]]


def _kernels(summary: Summary) -> Table:
    rows = (
        _text_cells([one.name, "\n".join(one.choices), _LEARNS_FROM[one.learns_from], one.note])
        for one in summary.kernels
    )
    caption = f"The choices of inner cross-validation, besides {summary.protocol.strengths[0]}."
    return Table(caption, ("kernel", "choices", "learns from", "note"), tuple(rows), "notes")


def _text_cells(texts: Iterable[str]) -> tuple[TableCell, ...]:
    return tuple(map(TableCell, texts))


# -------------------------------------------------------------------- tests


def _statistics(summary: Summary) -> Iterator[Block]:
    for comparison in summary.comparisons:
        yield from _comparison(comparison, main_metric(summary.protocol.task).plural)
    for pair in summary.pairs:
        yield from _pair(pair, summary.protocol.task)
    below = [sentences.below_baseline(summary, published=published) for published in (True, False)]
    if any(below):
        yield "bullets", below


def _comparison(comparison: ComparisonSummary, scores: str) -> Iterator[Block]:
    yield "heading", f"Ranks: {comparison.name}"
    said = []
    if comparison.published:
        said.append(sentences.ranking_verdict(comparison.published, "On the published table"))
        if comparison.dropped:
            said.append(f"This test leaves out {listed(comparison.dropped)}, for which not every number is published.")
    ours = comparison.ours
    said.append(sentences.ranking_verdict(ours, "On our table") if ours else sentences.missing(comparison))
    yield "bullets", said
    shown = {whose: one for whose, one in (("our", ours), ("published", comparison.published)) if one}
    if not shown:
        return
    ranks = [dict(zip(one.names, one.mean_ranks, strict=True)) for one in shown.values()]
    rows = (_text_cells([kernel, *(measured(one.get(kernel)) for one in ranks)]) for kernel in comparison.kernels)
    head = ("kernel", *(f"{whose} table" for whose in shown))
    yield "table", Table("Mean ranks over the data sets; 1 is best.", head, tuple(rows))
    yield "figures", [_rank_diagram(ranking, f"{whose} {scores}") for whose, ranking in shown.items()]


def _rank_diagram(ranking: Ranking, scores: str) -> Figure:
    ranks = sorted(zip(ranking.mean_ranks, ranking.names, strict=True))
    description = f"Mean ranks on {scores}: {', '.join(f'{kernel} {rank:.2f}' for rank, kernel in ranks)}."
    caption = f"Critical-difference diagram of {scores}: a bar joins kernels that Nemenyi's test does not separate."
    short = dict(zip(ranking.names, _labels(ranking.names), strict=True))
    groups = tuple(tuple(short[kernel] for kernel in group) for group in ranking.groups)
    shown = replace(ranking, names=tuple(short.values()), groups=groups)
    return Figure(description, caption, partial(critical_difference_diagram, shown))


def _pair(pair: PairSummary, task: str) -> Iterator[Block]:
    yield "heading", f"{pair.kernel} against {pair.baseline}"
    said = sentences.pair_verdicts(pair)
    said += [sentences.overall(pair, pair.published, "by the published numbers")] if pair.published else []
    said += [sentences.overall(pair, pair.ours, "by ours")] if pair.ours else []
    yield "bullets", said
    difference = f"{pair.kernel} minus {pair.baseline}, in points"
    if task == "regression":
        difference = (
            f"Errors of {pair.baseline} minus those of {pair.kernel}, in percent of the targets' standard deviation"
        )
    has_published = any(test.published for test in pair.tests)
    head = ("data set", *["published"] * has_published, "ours", "p-value", "p-value after Holm", "better, equal, worse")
    rows = tuple(_pair_row(test, pair, has_published=has_published) for test in pair.tests)
    yield "table", Table(f"{difference}, with 95 % intervals and two-sided p-values.", head, rows)


def _pair_row(test: PairTest, pair: PairSummary, *, has_published: bool) -> tuple[TableCell, ...]:
    outcomes, p = test.posterior, [test.corrected.p_value if test.corrected else None, test.holm]
    shares = (outcomes.first_better, outcomes.practically_equal, outcomes.second_better) if outcomes else ()
    ours = _difference(test.corrected)
    return (
        TableCell(test.dataset, remarks=(f"against {test.baseline}",) * (len(pair.baselines) > 1)),
        *([_difference(test.published)] if has_published else []),
        replace(ours, remarks=(*ours.remarks, counted(test.n_repeats, "repeat"))) if test.n_repeats else ours,
        *(TableCell(NONE if one is None else p_value(one).removeprefix("= ")) for one in p),
        TableCell(", ".join(map(percent, shares)) or NONE),
    )


def _difference(test: TTest | None) -> TableCell:
    if test is None:
        return TableCell(NONE)
    low, high = test.interval
    return TableCell(signed(test.difference), remarks=(f"{signed(low)} to {signed(high)}",))


# -------------------------------------------------------------------- pictures


def _labels(names: Iterable[str]) -> list[str]:
    """Shorten names so that they fit beside a picture, and stay different."""
    half, names = _MOST_CHARACTERS // 2 - 1, list(names)
    short = [name if len(name) <= _MOST_CHARACTERS else f"{name[:half]}…{name[-half:]}" for name in names]
    return short if len(set(short)) == len(names) else [f"{i} {name}" for i, name in enumerate(short, start=1)]


def _picture(figure: Figure) -> str:
    """Draw the figure; return it as the address of an SVG image inside the page."""
    with matplotlib_module("style").context(_STYLE), warnings.catch_warnings(), io.BytesIO() as file:
        # matplotlib measures text with its own font; a browser finds one that has the character.
        warnings.filterwarnings("ignore", r"Glyph .* missing from", UserWarning)
        figure.draw().figure.savefig(file, format="svg", metadata={"Date": None})
        return f"data:image/svg+xml;base64,{base64.b64encode(file.getvalue()).decode()}"


# -------------------------------------------------------------------- Markdown and plain text


def _markdown_text(value: str) -> str:
    """Return any text as one line in which nothing is markup; an underscore inside a word is none, and stays."""
    line = re.sub(r"<(?=[A-Za-z/!?])", "&lt;", visible(" ".join(value.split())).replace("&", "&amp;"))
    return re.sub(r"[\\`*\[\]|~#]|\b_|_\b", r"\\\g<0>", line)


def markdown_bullets(items: Iterable[str]) -> str:
    """Return a Markdown list of the items that are not empty."""
    return "\n".join(f"- {_markdown_text(item)}" for item in items if item)


def markdown_table(table: Table, *, compact: bool = False) -> str:
    """Return a Markdown table; a compact one has one line per cell: ``86.7 (92.8) ▼``."""
    show = _compact_cell if compact else _markdown_cell
    lines = [list(map(_markdown_text, table.head)), ["---"] * len(table.head)]
    lines += [list(map(show, row)) for row in table.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _markdown_cell(cell: TableCell) -> str:
    lines = [_markdown_text(line) for line in cell.text.split("\n")]
    if cell.is_best:
        lines[0] = f"**{lines[0]}**"
    if cell.published:
        change = f"**{_markdown_text(cell.change)}**" if cell.mark else _markdown_text(cell.change)
        lines.append(f"<sub>published {_markdown_text(cell.published)}{f', {change}' if change else ''}</sub>")
    return "<br>".join([*lines, *(f"<sub>{_markdown_text(remark)}</sub>" for remark in cell.remarks)])


def _compact_cell(cell: TableCell) -> str:
    published = f"({_markdown_text(cell.published)})" if cell.published else ""
    text = f"**{_markdown_text(cell.text)}**" if cell.is_best else _markdown_text(cell.text)
    return " ".join(filter(None, [text, published, _ARROWS[cell.mark]]))


def brief_text(summary: Summary) -> str:
    """Return the scores, and what they are means of, for a terminal.

    ``*`` marks a large difference from the published number, which is in the line below.
    """
    table = score_table(summary, decimals=1)
    lines = [*_text_table(replace(table, head=(main_metric(summary.protocol.task).title, *table.head[1:])))]
    metrics = other_metrics(summary.protocol.task)
    cells = [cell for cell in summary.cells if cell.repeats]
    if cells and len(summary.cells) <= _MOST_CELLS:
        show = partial(_other_score, summary=summary, decimals=1)
        rows = tuple(
            (*_text_cells([cell.kernel, cell.dataset]), *(show(cell, i) for i in range(len(metrics)))) for cell in cells
        )
        lines += _text_table(Table("", ("also", "data set", *(metric.title for metric in metrics)), rows))
    return "\n".join([*lines, *map(visible, sentences.below_the_table(summary))])


def _text_table(table: Table) -> Iterator[str]:
    lines = [list(table.head)]
    for name, *cells in table.rows:
        lines.append([name.text, *("-" if one.text == NONE else one.text + " *" * bool(one.mark) for one in cells)])
        if any(cell.published for cell in cells):
            lines.append(["  published", *(cell.published or "-" for cell in cells)])
    lines = [[visible(text) for text in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    head, *body = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
    yield from (head, rule, *body, rule)
