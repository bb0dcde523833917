"""From finished numbers to the report: what is said, in which order, in which tables. No format is known here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import median

from treegram._core.text import counted

from treegram.study.diagrams import score_plot, time_plot
from treegram.study.metrics import Metric, main_metric, other_metrics
from treegram.study.store import DatasetFacts
from treegram.study.report import sentences
from treegram.study.report.build_statistics import statistics_blocks
from treegram.study.report.document import (
    Block,
    Bullets,
    Details,
    Document,
    Facts,
    Figure,
    Paragraph,
    Section,
    Table,
    TableCell,
    Tiles,
)
from treegram.study.report.figures import labels
from treegram.study.report.format import (
    NONE,
    change,
    duration,
    factor,
    fingerprint,
    measured,
    repeats,
    share,
    signed,
)
from treegram.study.summary import Cell, DatasetSummary, Histogram, Summary

__all__ = ["brief_blocks", "build_document", "score_table"]

_TARGETS = {
    "classification": ("classes", "largest class"),
    "regression": ("targets", "mean ± deviation"),
}  # heads of columns
_MOST_CELLS = 20  # whose other scores a terminal shows

_LEARNS_FROM = {None: NONE, "": "nothing", "training": "training graphs", "all": "all graphs"}


def build_document(summary: Summary) -> Document:
    """The whole report."""
    sections = {
        main_metric(summary.protocol.task).name.capitalize(): _scores(summary),
        "Other scores": _other_scores(summary),
        "Time of one Gram matrix": _time(summary),
        "Time of one fold": _fold_time(summary),
        "Statistics": statistics_blocks(summary),
        "Chosen parameters": _chosen(summary),
        "Data sets": [_datasets(summary)],
        "Kernels": [_kernels(summary)],
        "Every fold": _folds(summary),
        "Definitions": [Bullets(tuple(sentences.definitions(summary)))],
        "Provenance": [Facts(tuple(sentences.provenance(summary)))],
    }
    filled = ((title, tuple(blocks)) for title, blocks in sections.items())
    latest = max((run.started[:10] for run in summary.runs), default="nothing run yet")
    return Document(
        title=summary.title,
        origin=f"treegram report · study {summary.study} · {latest}",
        head=tuple(_head(summary)),
        sections=tuple(Section(title, blocks) for title, blocks in filled if blocks),
    )


def brief_blocks(summary: Summary) -> list[Block]:
    """What a terminal shows after a run: the scores, and what they are means of."""
    table = score_table(summary, decimals=1)
    table = replace(table, head=(main_metric(summary.protocol.task).title, *table.head[1:]))
    others = _brief_others(summary) if len(summary.cells) <= _MOST_CELLS else []
    return [table, *others, *map(Paragraph, sentences.below_the_table(summary))]


def _brief_others(summary: Summary) -> list[Block]:
    """The other scores, one line for each cell that has any."""
    metrics = other_metrics(summary.protocol.task)
    rows = tuple(
        (TableCell(cell.kernel), TableCell(cell.dataset), *_measured_cells(cell, decimals=1))
        for cell in summary.cells
        if cell.repeats
    )
    return [Table("", ("also", "data set", *(metric.title for metric in metrics)), rows)] if rows else []


def _measured_cells(cell: Cell, *, decimals: int) -> Iterator[TableCell]:
    metrics = {metric.name: metric for name in ("classification", "regression") for metric in other_metrics(name)}
    for one in cell.others:
        digits = metrics[one.name].decimals_of(one.mean, decimals)
        yield TableCell(measured(one.mean, one.deviation, decimals=digits))


def _head(summary: Summary) -> Iterator[Block]:
    if summary.reference:
        yield Paragraph(summary.reference, "reference")
    yield Paragraph(sentences.progress(summary), "lead")
    yield Tiles(tuple(_tiles(summary)))
    findings = (sentences.agreement(summary), sentences.best(summary), sentences.speed(summary))
    yield from (Paragraph(finding) for finding in findings if finding)
    if summary.about:
        yield Paragraph(summary.about, "about")


def _tiles(summary: Summary) -> Iterator[tuple[str, str]]:
    """The main findings as numbers."""
    if compared := summary.compared:
        agreeing = sum(not cell.mark for cell in compared)
        yield f"{agreeing} of {len(compared)}", "accuracies within two standard deviations of the published ones"
        yield signed(median(cell.difference or 0.0 for cell in compared)), "points, median difference to published"
    if ratios := summary.speed_ups:
        yield factor(median(ratios)), "as fast as published, one Gram matrix, median"
    yield f"{summary.n_folds:,}", f"outer folds; {sentences.fits(summary)}"


# -------------------------------------------------------------------- scores and times


def _kernel_table(caption: str, summary: Summary, show: Callable[[Cell], TableCell], kind: str) -> Table:
    """One row per kernel, one column per data set."""
    rows = ((TableCell(kernel.name), *map(show, summary.row(kernel.name))) for kernel in summary.kernels)
    return Table(caption, ("kernel", *(dataset.name for dataset in summary.datasets)), tuple(rows), kind)


def score_table(summary: Summary, *, decimals: int = 2, deviations: bool = True) -> Table:
    """The main score of every kernel on every data set, that of no learning first: accuracy, or mean absolute error.

    Without deviations there are also no words that are published instead of a number. ``decimals`` are those of percentages.
    """
    has_rivals = len(summary.kernels) > 1
    metric = main_metric(summary.protocol.task)

    def number(mean: float | None, deviation: float | None = None, words: str = "") -> str:
        digits = metric.decimals_of(mean, decimals)
        return measured(mean, deviation if deviations else None, words if deviations else "", decimals=digits)

    def show(cell: Cell) -> TableCell:
        published = number(cell.published, cell.published_deviation, cell.published_words)
        few = repeats(cell, summary.protocol.repeats)
        return TableCell(
            text=number(cell.mean, cell.deviation),
            published="" if published == NONE else published,
            change=change(cell),
            mark=cell.mark,
            remarks=(few,) if few else (),
            warning=f"{counted(cell.n_unconverged, 'fit')} not converged" if cell.n_unconverged else "",
            is_best=has_rivals and sentences.is_best(cell, summary, decimals),
        )

    caption = [
        f"{metric.name.capitalize()}{' in percent' if metric.in_percent else ''}, mean ± standard deviation over repeats.",
        "Below it the published number and the difference; ▲ and ▼ mark differences of more than two standard deviations."
        if summary.has_published
        else "",
        f"Bold: our {'highest' if metric.higher_is_better else 'lowest'} number." if has_rivals else "",
    ]
    table = _kernel_table(" ".join(filter(None, caption)), summary, show, "numbers")
    baselines = (TableCell(number(dataset.baseline)) for dataset in summary.datasets)
    name = _baseline_name(summary)
    return replace(table, rows=((TableCell(name, remarks=("always answered",)), *baselines), *table.rows))


def _baseline_name(summary: Summary) -> str:
    return "largest class" if summary.protocol.task == "classification" else "mean of targets"


def _other_scores(summary: Summary) -> Iterator[Block]:
    """One table for each score that any fold has."""
    for i, metric in enumerate(other_metrics(summary.protocol.task)):
        if sentences.has_score(summary, metric):
            caption = f"{metric.title.replace(', %', ' in percent')}, mean ± standard deviation over repeats."
            caption = caption[0].upper() + caption[1:]
            yield _kernel_table(caption, summary, partial(_other_score, number=i), "numbers")
    if missing := sentences.not_measured(summary):
        yield Bullets((missing,))


def _other_score(cell: Cell, number: int) -> TableCell:
    return list(_measured_cells(cell, decimals=2))[number]


def _scores(summary: Summary) -> Iterator[Block]:
    metric = main_metric(summary.protocol.task)
    yield score_table(summary)
    remarks = (*summary.remarks, sentences.unconverged(summary))
    if any(remarks):
        yield Bullets(remarks)
    for i, dataset in enumerate(summary.datasets):
        cells = summary.column(dataset.name)
        if any(cell.mean is not None for cell in cells):
            published = [cell.published for cell in cells] if any(cell.published for cell in cells) else None
            numbers = [cell.mean for cell in cells], [cell.deviation for cell in cells], published
            spread = [cell.published_deviation for cell in cells]
            names, title = labels([cell.kernel for cell in cells]), labels([dataset.name])[0]
            yield Figure(
                f"accuracy{i}",
                f"{metric.name.capitalize()} of each kernel on {dataset.name}; the table has the numbers.",
                f"{dataset.name}: mean {metric.name.removeprefix('mean ')}; bars are standard deviations over repeats.",
                partial(
                    score_plot,
                    names,
                    *numbers,
                    spread,
                    baseline=_baseline_mark(dataset, summary),
                    label=metric.title,
                    title=title,
                ),
            )


def _baseline_mark(dataset: DatasetSummary, summary: Summary) -> tuple[str, float] | None:
    """The name and the score of no learning."""
    return None if dataset.baseline is None else (_baseline_name(summary), dataset.baseline)


def _time(summary: Summary) -> Iterator[Block]:
    if not any(cell.gram_seconds for cell in summary.cells):
        return
    has_published = any(cell.published_seconds for cell in summary.cells)
    caption = "Processor time of one full Gram matrix on one thread" + (
        "; below it the published time, and how many times as fast ours is." if has_published else "."
    )
    table = _kernel_table(caption, summary, _time_cell, "numbers")
    names = (TableCell(kernel.name, remarks=(kernel.timed,) * bool(kernel.timed)) for kernel in summary.kernels)
    yield replace(table, rows=tuple((name, *row[1:]) for name, row in zip(names, table.rows, strict=True)))
    for i, dataset in enumerate(summary.datasets):
        cells = summary.column(dataset.name)
        if any(cell.gram_seconds is not None for cell in cells):
            seconds, published = ([cell.gram_seconds for cell in cells], [cell.published_seconds for cell in cells])
            kernels, title = labels([cell.kernel for cell in cells]), labels([dataset.name])[0]
            yield Figure(
                f"time{i}",
                f"Time of one Gram matrix of each kernel on {dataset.name}; the table has the numbers.",
                f"{dataset.name}: time of one Gram matrix, on a logarithmic axis.",
                partial(time_plot, kernels, seconds, published if any(published) else None, title=title),
            )


def _fold_time(summary: Summary) -> Iterator[Block]:
    if any(cell.folds for cell in summary.cells):
        caption = (
            "Mean processor time of an outer fold: to choose inside it, to fit, and to predict. Gram matrices that all folds "
            "share, those of kernels that learn nothing from data, are computed once and not in it."
        )
        yield _kernel_table(caption, summary, lambda cell: TableCell(duration(cell.fold_seconds)), "numbers")


def _time_cell(cell: Cell) -> TableCell:
    published = duration(cell.published_seconds) if cell.published_seconds else ""
    return TableCell(duration(cell.gram_seconds), published, factor(cell.speed_up))


# -------------------------------------------------------------------- what was chosen


def _chosen(summary: Summary) -> Iterator[Block]:
    if not any(cell.chosen for cell in summary.cells):
        return
    caption = "What inner cross-validation chose most often, with its share of the outer folds."
    yield _kernel_table(caption, summary, _favorite, "phrases")
    by_kernel = ([cell for cell in summary.row(kernel.name) if cell.chosen] for kernel in summary.kernels)
    tables = tuple((cells[0].kernel, _histograms(cells)) for cells in by_kernel if cells)
    yield Details(tables, "How often each value was chosen")


def _favorite(cell: Cell) -> TableCell:
    if not cell.chosen:
        return TableCell(NONE)
    combination, count = cell.chosen[0]
    return TableCell(combination, remarks=(share(count / sum(n for _, n in cell.chosen)),))


def _histograms(cells: Sequence[Cell]) -> Table:
    """How often each value of each parameter of a kernel was chosen, by data set."""
    by_cell = [{one.parameter: one for one in cell.histograms} for cell in cells]
    names = dict.fromkeys(name for found in by_cell for name in found)
    rows = ((TableCell(name), *(_bars(found.get(name)) for found in by_cell)) for name in names)
    caption = f"{cells[0].kernel}: number of outer folds by chosen value."
    return Table(caption, ("", *(cell.dataset for cell in cells)), tuple(rows))


def _bars(histogram: Histogram | None) -> TableCell:
    if histogram is None:  # what chooses by itself may choose other parameters on other data
        return TableCell(NONE)
    return TableCell("", bars=tuple(zip(histogram.values, histogram.counts, strict=True)))


# -------------------------------------------------------------------- what there was, and every fold


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _plain_cells(texts: Iterable[str]) -> tuple[TableCell, ...]:
    return tuple(map(TableCell, texts))


def _datasets(summary: Summary) -> Table:
    return Table(
        "Nodes and edges are means per graph, attributes are numbers per node. Only equal graphs with equal "
        f"{'classes' if summary.protocol.task == 'classification' else 'targets'} have equal digests.",
        ("data set", "graphs", *_TARGETS[summary.protocol.task], "nodes", "edges", "attributes", "digest", "note"),
        tuple(_plain_cells([one.name, *_facts(one), _one_line(one.note)]) for one in summary.datasets),
    )


def _facts(dataset: DatasetSummary) -> list[str]:
    facts = dataset.facts
    if facts is None:
        return [NONE] * 7
    sizes = [f"{facts.mean_nodes:.1f}", f"{facts.mean_edges:.1f}", str(facts.n_attributes)]
    return [f"{facts.n_graphs:,}", *_target_facts(dataset, facts), *sizes, fingerprint(facts.digest)]


def _target_facts(dataset: DatasetSummary, facts: DatasetFacts) -> list[str]:
    if not (numbers := facts.targets):
        return [str(len(facts.class_counts)), f"{dataset.baseline:.2f} %"]
    return [
        f"{numbers['lowest']:.4g} to {numbers['highest']:.4g}",
        f"{numbers['mean']:.4g} ± {numbers['deviation']:.4g}",
    ]


def _kernels(summary: Summary) -> Table:
    rows = (
        _plain_cells([one.name, "\n".join(one.choices), _LEARNS_FROM[one.learns_from], _one_line(one.note)])
        for one in summary.kernels
    )
    caption = f"What inner cross-validation chooses from, besides {summary.protocol.strengths[0]}."
    return Table(caption, ("kernel", "candidates", "learns from", "note"), tuple(rows))


def _folds(summary: Summary) -> Iterator[Block]:
    for dataset in summary.datasets:
        if cells := [cell for cell in summary.column(dataset.name) if cell.folds]:
            metric = main_metric(summary.protocol.task)
            yield Details(tuple((cell.kernel, _fold_table(cell, metric)) for cell in cells), dataset.name)


def _fold_table(cell: Cell, metric: Metric) -> Table:
    def shown(value: float, decimals: int) -> str:
        return measured(value, decimals=metric.decimals_of(value, decimals))

    rows = (
        _plain_cells([str(repeat + 1), *(shown(fold, 1) for fold in folds), shown(sum(folds) / len(folds), 2)])
        for repeat, folds in zip(cell.repeats, cell.folds, strict=True)
    )
    head = ("repeat", *(str(fold + 1) for fold in range(len(cell.folds[0]))), "mean")
    unit = " in percent" if metric.in_percent else ""
    caption = f"{cell.kernel} on {cell.dataset}: {metric.name} of each outer fold{unit}."
    return Table(caption, head, tuple(rows), "numbers")
