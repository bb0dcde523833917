"""Tables of a summary, and tables as LaTeX and plain text.

A table is built once and has four forms: these two, and those in the templates of the pages, HTML and Markdown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from treegram._core.html import render
from treegram._core.text import counted, visible
from treegram.study.metrics import Metric, other_metrics
from treegram.study.protocol import KernelSpec, estimator_text
from treegram.study.significance import LEVEL, TTest
from treegram.study.summary import Cell, ComparisonSummary, PairSummary, PairTest, Summary, value_text

NONE = "\N{EN DASH}"  # where there is no number
_UNITS = (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3))
_ARROWS = {"up": "▲", "down": "▼", "": ""}
_LEARNS_FROM = {None: NONE, "": "nothing", "training": "training graphs", "all": "all graphs"}
_MAX_CELLS = 20  # a terminal shows the other scores of at most this many
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$", "|": r"$|$", '"': "''",
    "±": r"$\pm$", "\N{MINUS SIGN}": "$-$", "\N{EN DASH}": "--", "\N{MULTIPLICATION SIGN}": r"$\times$", "²": "$^2$",
    "▲": r"$\blacktriangle$", "▼": r"$\blacktriangledown$", "χ": r"$\chi$", "√": r"$\surd$", "…": r"\dots{}",
}  # fmt: skip


# -------------------------------------------------------------------- numbers


def measured(mean: float | None, deviation: float | None = None, *, decimals: int = 2) -> str:
    """Return ``83.01 ± 1.95`` or, with one decimal, ``83.0 ±1.9``."""
    if mean is None:
        return NONE
    space = " " if decimals > 1 else ""
    return f"{mean:.{decimals}f}" + ("" if deviation is None else f" ±{space}{deviation:.{decimals}f}")


def signed(value: float) -> str:
    """Return a difference with its sign; a value that rounds to zero has no sign."""
    text = f"{abs(value):.2f}"
    sign = "" if float(text) == 0 else "\N{MINUS SIGN}" if value < 0 else "+"
    return sign + text


def duration(seconds: float | None) -> str:
    """Return a time with two or three digits, in a suitable unit."""
    if seconds is None:
        return NONE
    name, unit = next((candidate for candidate in _UNITS if seconds >= candidate[1]), _UNITS[-1])
    value = seconds / unit
    return f"{value:.0f} {name}" if value >= 100 else f"{value:.3g} {name}" if value >= 10 else f"{value:.2g} {name}"


def p_value(p: float) -> str:
    """Return ``= 0.008`` or ``< 0.001``."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}" if p < 0.1 else f"= {p:.2f}"


def percent(probability: float) -> str:
    """Return a probability in percent; 0 and 100 only if they are exact."""
    if 0 < probability < 0.005:
        return "< 1 %"
    return "> 99 %" if 0.995 < probability < 1 else f"{100 * probability:.0f} %"


# -------------------------------------------------------------------- tables


@dataclass(frozen=True)
class TableCell:
    """One cell. A line break in its text is a line break."""

    text: str
    published: str = ""  # the number that it is compared with
    mark: str = ""  # ▲ or ▼ where the difference is large
    notes: tuple[str, ...] = ()  # small lines below the text
    is_best: bool = False


@dataclass(frozen=True)
class ReportTable:
    """Rows of cells; the first cell of a row is its name."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    layout: str = "numbers"  # nothing wraps; "numbers narrow": many columns; "notes": text wraps


def _text_cells(texts: Iterable[str]) -> tuple[TableCell, ...]:
    return tuple(map(TableCell, texts))


def _by_kernel(
    caption: str, summary: Summary, show: Callable[[Cell], TableCell], layout: str = "numbers"
) -> ReportTable:
    """Build a table with one row per kernel and one column per data set."""
    rows = ((TableCell(entry.name), *map(show, summary.row(entry.name))) for entry in summary.study.kernels)
    return ReportTable(caption, ("kernel", *summary.study.datasets), tuple(rows), layout)


def score_table(summary: Summary, *, decimals: int = 2, deviations: bool = True) -> ReportTable:
    """Build the table of the main score of every kernel on every data set; the first row is the baseline without learning.

    Without deviations, text that is published instead of a number is also left out. ``decimals`` applies to percentages.
    """
    has_rivals = len(summary.study.kernels) > 1
    metric = summary.metric

    def number(mean: float | None, deviation: float | None = None) -> str:
        return measured(mean, deviation if deviations else None, decimals=metric.decimals_of(mean, decimals))

    def show(cell: Cell) -> TableCell:
        published = cell.published_words if deviations else ""
        if cell.published is not None:
            published = number(cell.published, cell.published_deviation)
        mark = _ARROWS[cell.mark]
        failed = f"{counted(cell.n_unconverged, 'fit')} not converged" if cell.n_unconverged else ""
        difference = "" if cell.difference is None else f"{mark} {signed(cell.difference)}".strip()
        compared = ", ".join(filter(None, [published, difference]))
        notes = [compared, _repeats(cell, summary.study.protocol.repeats), failed]
        is_best = has_rivals and cell.mean is not None and number(cell.mean) == best[cell.dataset]
        return TableCell(number(cell.mean, cell.deviation), published, mark, tuple(filter(None, notes)), is_best)

    best = {name: number(summary.best_mean(name)) for name in summary.study.datasets}
    caption = [
        _score_caption(metric),
        "Small or in parentheses: the published number. ▲ and ▼ mark differences of more than two standard deviations."
        if summary.has_published
        else "",
        f"Bold: our {'highest' if metric.higher_is_better else 'lowest'} number." if has_rivals else "",
    ]
    table = _by_kernel(" ".join(filter(None, caption)), summary, show)
    baselines = (TableCell(number(summary.baseline(name))) for name in summary.study.datasets)
    return replace(table, rows=((TableCell(summary.baseline_name), *baselines), *table.rows))


def _score_caption(metric: Metric) -> str:
    unit = " in percent" if metric.in_percent else ""
    return f"{metric.name[0].upper()}{metric.name[1:]}{unit}, mean ± standard deviation over repeats."


def _repeats(cell: Cell, n_planned: int) -> str:
    """Return ``3 of 10 repeats`` if some are missing; ``2 repeats`` if the study plans fewer for this cell."""
    if not cell.repeats or len(cell.repeats) == n_planned:
        return ""
    done = "" if len(cell.repeats) == cell.n_planned else f"{len(cell.repeats)} of "
    return f"{done}{counted(cell.n_planned, 'repeat')}"


def other_tables(summary: Summary) -> list[ReportTable]:
    """Build a table for each other score that any fold has."""
    return [
        _by_kernel(_score_caption(metric), summary, partial(_other_score, metric))
        for metric in other_metrics(summary.study.protocol)
        if any(cell.other_scores[metric.name][0] is not None for cell in summary.cells)
    ]


def _other_score(metric: Metric, cell: Cell, decimals: int = 2) -> TableCell:
    mean, deviation = cell.other_scores[metric.name]
    return TableCell(measured(mean, deviation, decimals=metric.decimals_of(mean, decimals)))


def time_table(summary: Summary) -> ReportTable:
    """Build the table of the times of one Gram matrix and of one outer fold."""

    def show(cell: Cell) -> TableCell:
        published = f"published {duration(cell.published_seconds)}" if cell.published_seconds else ""
        n_folds = sum(map(len, cell.folds))
        fold = f"fold {duration(cell.cpu_seconds / n_folds)}" if n_folds else ""
        return TableCell(duration(cell.gram_seconds), notes=tuple(filter(None, [published, fold])))

    caption = (
        "Processor time of one full Gram matrix on one thread. Below it the mean time of an outer fold: to choose inside it, to "
        "fit, and to predict, without Gram matrices that all folds share."
    )
    return _by_kernel(caption, summary, show)


def chosen_table(summary: Summary) -> ReportTable:
    """Build the table of the most frequent choices."""

    def show(cell: Cell) -> TableCell:
        if not cell.chosen:
            return TableCell(NONE)
        combination, count = cell.chosen[0]
        return TableCell(combination, notes=(percent(count / sum(n for _, n in cell.chosen)),))

    caption = "The most frequent choice of inner cross-validation, with its share of the outer folds."
    return _by_kernel(caption, summary, show, "notes")


def dataset_table(summary: Summary) -> ReportTable:
    """Build the table of data sets."""
    is_regression = summary.study.protocol.task == "regression"
    heads = ("targets", "mean ± deviation") if is_regression else ("classes", "largest class")
    notes = summary.study.dataset_notes
    return ReportTable(
        "Nodes and edges are means per graph, attributes are numbers per node. Data sets with equal digests are equal.",
        ("data set", "graphs", *heads, "nodes", "edges", "attributes", "digest", "note"),
        tuple(_text_cells([name, *_facts(summary, name), notes.get(name, "")]) for name in summary.study.datasets),
        "notes",
    )


def _facts(summary: Summary, dataset: str) -> list[str]:
    facts = summary.facts.get(dataset)
    if facts is None:
        return [NONE] * 7
    if targets := facts.targets:
        about = [f"{targets['lowest']:.4g} to {targets['highest']:.4g}"]
        about.append(f"{targets['mean']:.4g} ± {targets['deviation']:.4g}")
    else:
        largest = max(facts.class_counts.values()) / facts.n_graphs
        about = [str(len(facts.class_counts)), f"{100 * largest:.2f} %"]
    sizes = [f"{facts.mean_nodes:.1f}", f"{facts.mean_edges:.1f}", str(facts.n_attributes)]
    return [f"{facts.n_graphs:,}", *about, *sizes, facts.digest[:12]]


def kernel_table(summary: Summary) -> ReportTable:
    """Build the table of kernels, with the choices of inner cross-validation and the parameters of the timed Gram matrix."""
    rows = []
    for entry in summary.study.kernels:
        choices = list(map(describe, entry.choices)) or [f"the estimator {estimator_text(entry.estimator)}"]
        timed = ", ".join(f"{name} {value_text(value)}" for name, value in entry.timed.items())
        name = TableCell(entry.name, notes=(f"timed with {timed}",) if timed else ())
        texts = ["\n".join(choices), _LEARNS_FROM[summary.learns_from(entry)], entry.note]
        rows.append((name, *_text_cells(texts)))
    caption = f"The choices of inner cross-validation, besides {summary.study.protocol.strengths[0]}."
    return ReportTable(caption, ("kernel", "choices", "learns from", "note"), tuple(rows), "notes")


def describe(spec: KernelSpec) -> str:
    """Describe kernel, fixed parameters, attributes and grid."""
    fixed = ", ".join(f"{name} = {value_text(value)}" for name, value in spec.parameters.items())
    scaled = f"attributes {', then '.join(spec.attributes)}" if spec.attributes else ""
    grid = "; ".join(f"{name} in {{{value_text(values)}}}" for name, values in spec.param_grid.items())
    terms = " + ".join(f"({describe(term)})" for term in spec.sum)
    return "; ".join(filter(None, [terms or spec.kernel, fixed, scaled, grid]))


# -------------------------------------------------------------------- tables of tests


def rank_table(comparison: ComparisonSummary) -> ReportTable:
    """Build the table of mean ranks."""
    rankings = {"our table": comparison.ours, "published table": comparison.published}
    ranks = {
        title: dict(zip(ranking.names, ranking.mean_ranks, strict=True))
        for title, ranking in rankings.items()
        if ranking
    }
    rows = (
        _text_cells([kernel, *(measured(by_kernel.get(kernel)) for by_kernel in ranks.values())])
        for kernel in comparison.kernels
    )
    return ReportTable(f"Mean ranks, {comparison.name}; 1 is best.", ("kernel", *ranks), tuple(rows))


def pair_table(pair: PairSummary, *, higher_is_better: bool) -> ReportTable:
    """Build the table of the tests of one pair, data set by data set."""
    difference = f"{pair.kernel} minus {pair.baseline}, in points"
    if not higher_is_better:
        difference = (
            f"Errors of {pair.baseline} minus those of {pair.kernel}, in percent of the targets' standard deviation"
        )
    has_published = any(test.published for test in pair.tests)
    head = (
        "data set",
        *(["published"] if has_published else []),
        "ours",
        "p-value",
        "p-value after Holm",
        "better, equal, worse",
    )
    rows = tuple(_pair_row(test, pair, has_published=has_published) for test in pair.tests)
    return ReportTable(f"{difference}, with 95 % intervals and two-sided p-values.", head, rows)


def _pair_row(test: PairTest, pair: PairSummary, *, has_published: bool) -> tuple[TableCell, ...]:
    outcomes, p = test.posterior, [test.corrected.p_value if test.corrected else None, test.holm]
    shares = (outcomes.first_better, outcomes.practically_equal, outcomes.second_better) if outcomes else ()
    return (
        TableCell(test.dataset, notes=(f"against {test.baseline}",) if len(pair.baselines) > 1 else ()),
        *([_difference(test.published)] if has_published else []),
        _difference(test.corrected, counted(test.n_repeats, "repeat")),
        *(TableCell(NONE if value is None else p_value(value).removeprefix("= ")) for value in p),
        TableCell(", ".join(map(percent, shares)) or NONE),
    )


def _difference(test: TTest | None, *notes: str) -> TableCell:
    if test is None:
        return TableCell(NONE)
    low, high = test.interval
    return TableCell(signed(test.difference), notes=(f"{signed(low)} to {signed(high)}", *notes))


_PAIRWISE = f"corrected resampled t-test, level {LEVEL}, p-values after Holm's correction for all pairs of kernels on the data set"


def win_table(summary: Summary) -> ReportTable:
    """Build the table that counts the data sets on which each kernel is significantly better and worse than each other one."""
    names = [entry.name for entry in summary.study.kernels]
    wins: Counter[tuple[str, str]] = Counter()
    for test in summary.pairwise:
        pair = (test.kernel, test.baseline) if _points(test) > 0 else (test.baseline, test.kernel)
        wins[pair] += _is_significant(test)
        wins[pair[::-1]] += 0

    def show(pair: tuple[str, str]) -> TableCell:
        n_wins, n_losses = wins[pair], wins[pair[::-1]]
        return TableCell(f"{n_wins} / {n_losses}" if pair in tested else NONE, is_best=n_wins > n_losses)

    tested = set(wins)
    rows = (
        (TableCell(f"{i} {name}"), *(show((name, other)) for other in names)) for i, name in enumerate(names, start=1)
    )
    caption = (
        "Number of data sets on which the kernel of the row is significantly better / worse than the kernel with the number of the "
        f"column ({_PAIRWISE}). Bold: more often better than worse."
    )
    return ReportTable(caption, ("kernel", *map(str, range(1, len(names) + 1))), tuple(rows), "numbers narrow")


def pairwise_table(summary: Summary) -> ReportTable:
    """Build the table of the differences of all pairs of kernels on all data sets, significant ones in bold."""
    by_pair: dict[tuple[str, str], dict[str, TableCell]] = {}
    for test in summary.pairwise:
        text = f"{signed(_points(test))} (p {p_value(test.holm or 0.0)})"
        by_pair.setdefault((test.kernel, test.baseline), {})[test.dataset] = TableCell(
            text, is_best=_is_significant(test)
        )
    rows = (
        (
            TableCell(f"{kernel} \N{EN DASH} {other}"),
            *(by_dataset.get(name, TableCell(NONE)) for name in summary.study.datasets),
        )
        for (kernel, other), by_dataset in by_pair.items()
    )
    caption = f"Differences of all pairs of kernels, first minus second, in points: {_PAIRWISE}. Bold: significant."
    return ReportTable(caption, ("pair", *summary.study.datasets), tuple(rows))


def _points(test: PairTest) -> float:
    return test.corrected.difference if test.corrected else 0.0


def _is_significant(test: PairTest) -> bool:
    return test.holm is not None and test.holm < LEVEL


# -------------------------------------------------------------------- Markdown and LaTeX


def markdown_text(value: str) -> str:
    """Return any text as one line without markup; an underscore inside a word is not markup, and stays."""
    line = re.sub(r"<(?=[A-Za-z/!?])", "&lt;", visible(" ".join(value.split())).replace("&", "&amp;"))
    return re.sub(r"[\\`*\[\]|~#]|\b_|_\b", r"\\\g<0>", line)


def latex_text(value: str) -> str:
    """Escape any text for LaTeX; characters that are missing from standard fonts become question marks."""
    return "".join(_LATEX.get(c, c if ord(c) < 0x180 else "?") for c in visible(" ".join(value.split())))


LATEX_TABLES: dict[str, Callable[[Summary], list[ReportTable]]] = {
    "scores": lambda summary: [score_table(summary)],
    "ranks": lambda summary: [rank_table(ranks) for ranks in summary.comparisons if ranks.ours or ranks.published],
    "wins": lambda summary: [win_table(summary)] if summary.pairwise else [],
    "pairs": lambda summary: [pairwise_table(summary)] if summary.pairwise else [],
}


def to_latex(summary: Summary, name: str) -> str:
    """Return the tables with this name; see :meth:`Summary.to_latex`."""
    if name not in LATEX_TABLES:
        raise ValueError(f"table must be one of {', '.join(map(repr, LATEX_TABLES))}; got {name!r}.")
    return "\n".join(
        render("treegram.study", "table.tex", table=table, label=f"tab:{name}{i or ''}", text=latex_text)
        for i, table in enumerate(LATEX_TABLES[name](summary))
    )


# -------------------------------------------------------------------- plain text


def brief_text(summary: Summary) -> str:
    """Return the scores, and what they are averages of, for a terminal.

    ``*`` marks a large difference from the published number, which is in the line below.
    """
    table = score_table(summary, decimals=1)
    lines = [*_text_table(replace(table, head=(summary.metric.title, *table.head[1:])))]
    protocol = summary.study.protocol
    metrics = other_metrics(protocol)
    cells = [cell for cell in summary.cells if cell.repeats]
    if cells and len(summary.cells) <= _MAX_CELLS:
        rows = (
            (*_text_cells([cell.kernel, cell.dataset]), *(_other_score(metric, cell, 1) for metric in metrics))
            for cell in cells
        )
        lines += _text_table(ReportTable("", ("also", "data set", *(metric.title for metric in metrics)), tuple(rows)))
    planned = protocol.repeats
    spread = f"mean ± standard deviation over {planned} repeats of" if planned > 1 else "mean over one"
    lines.append(f"{spread} {protocol.outer_folds}-fold cross-validation")
    if any(cell.mark for cell in summary.cells):
        lines.append("* differs from the published number by more than two standard deviations")
    if few := sum(0 < len(cell.repeats) < planned for cell in summary.cells):
        lines.append(f"{few} of {counted(len(summary.cells), 'cell')} with fewer than {counted(planned, 'repeat')}")
    return "\n".join([*lines, *filter(None, [unconverged(summary)])])


def _text_table(table: ReportTable) -> Iterator[str]:
    lines = [list(table.head)]
    for name, *cells in table.rows:
        texts = ("-" if cell.text == NONE else f"{cell.text} *" if cell.mark else cell.text for cell in cells)
        lines.append([name.text, *texts])
        if any(cell.published for cell in cells):
            lines.append(["  published", *(cell.published or "-" for cell in cells)])
    lines = [[visible(text) for text in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    head, *body = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
    yield from (head, rule, *body, rule)


def unconverged(summary: Summary) -> str:
    """State how many fits did not converge; empty if all did."""
    n_failed = sum(cell.n_unconverged for cell in summary.cells)
    return f"{n_failed:,} of {counted(summary.n_fits, 'fit')} did not converge." if n_failed else ""
