"""Tables of a summary, and tables as Markdown, LaTeX and plain text.

A table is made once and has four forms: those here, and the one of the page's template.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from treegram._core.text import counted, visible
from treegram.study.metrics import Metric, main_metric, other_metrics
from treegram.study.statistics import TTest
from treegram.study.summary import Cell, ComparisonSummary, DatasetSummary, PairSummary, PairTest, Summary

LATEX_TABLES = ("scores", "ranks", "wins", "pairs")
NONE = "\N{EN DASH}"  # where there is no number
LEVEL = 0.05  # of significance, in tests of pairs
_UNITS = (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3))
_ARROWS = {"up": "▲", "down": "▼", "": ""}
_LEARNS_FROM = {None: NONE, "": "nothing", "training": "training graphs", "all": "all graphs"}
_MAX_CELLS = 20  # whose other scores a terminal shows
_MAX_ROWS = 45  # of a LaTeX table on one page
_MAX_NAMED = 6  # cells in a sentence; of more, only the number is given
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$", "|": r"$|$", '"': "''",
    "±": r"$\pm$", "\N{MINUS SIGN}": "$-$", "\N{EN DASH}": "--", "\N{MULTIPLICATION SIGN}": r"$\times$", "²": "$^2$",
    "▲": r"$\blacktriangle$", "▼": r"$\blacktriangledown$", "χ": r"$\chi$", "√": r"$\surd$", "…": r"\dots{}",
}  # fmt: skip


# -------------------------------------------------------------------- numbers


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


# -------------------------------------------------------------------- tables


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
    kind: str = "numbers"  # nothing wraps; "numbers narrow": many columns; "notes": text wraps


def _text_cells(texts: Iterable[str]) -> tuple[TableCell, ...]:
    return tuple(map(TableCell, texts))


def _by_kernel(caption: str, summary: Summary, show: Callable[[Cell], TableCell]) -> Table:
    """Build a table with one row per kernel and one column per data set."""
    rows = ((TableCell(kernel.name), *map(show, summary.row(kernel.name))) for kernel in summary.kernels)
    return Table(caption, ("kernel", *(dataset.name for dataset in summary.datasets)), tuple(rows))


def score_table(summary: Summary, *, decimals: int = 2, deviations: bool = True) -> Table:
    """Build the table of the main score of every kernel on every data set, after that of the baseline without learning.

    Without deviations, words that are published instead of a number are left out, too. ``decimals`` are those of percentages.
    """
    has_rivals = len(summary.kernels) > 1
    metric = main_metric(summary.protocol)

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
            is_best=has_rivals and is_best(cell, summary, decimals),
        )

    caption = [
        f"{metric.name.capitalize()}{' in percent' if metric.in_percent else ''}, mean ± standard deviation over repeats.",
        "Below it the published number and the difference; ▲ and ▼ mark differences of more than two standard deviations."
        if summary.has_published
        else "",
        f"Bold: our {'highest' if metric.higher_is_better else 'lowest'} number." if has_rivals else "",
    ]
    table = _by_kernel(" ".join(filter(None, caption)), summary, show)
    baselines = (TableCell(number(dataset.baseline)) for dataset in summary.datasets)
    return replace(table, rows=((TableCell(summary.baseline_name), *baselines), *table.rows))


def is_best(cell: Cell, summary: Summary, decimals: int = 2) -> bool:
    """Return whether no other kernel has a better printed number on the data set."""
    metric = main_metric(summary.protocol)

    def printed(mean: float) -> float:
        return round(mean, metric.decimals_of(mean, decimals))

    means = [printed(one.mean) for one in summary.column(cell.dataset) if one.mean is not None]
    return cell.mean is not None and printed(cell.mean) == (max if metric.higher_is_better else min)(means)


def _repeats(cell: Cell, n_planned: int) -> str:
    """Return ``3 of 10 repeats`` where some are missing; ``2 repeats`` where the study plans fewer for this cell."""
    if not cell.repeats or len(cell.repeats) == n_planned:
        return ""
    done = "" if len(cell.repeats) == cell.n_planned else f"{len(cell.repeats)} of "
    return f"{done}{counted(cell.n_planned, 'repeat')}"


def other_tables(summary: Summary) -> Iterator[Table]:
    """Build a table for each other score that any fold has."""
    for i, metric in enumerate(other_metrics(summary.protocol)):
        if any(cell.others[i].mean is not None for cell in summary.cells):
            name = f"{metric.name[0].upper()}{metric.name[1:]}{' in percent' * metric.in_percent}"
            caption = f"{name}, mean ± standard deviation over repeats."
            yield _by_kernel(caption, summary, partial(_other_score, i=i, metric=metric, decimals=2))


def _other_score(cell: Cell, i: int, metric: Metric, decimals: int) -> TableCell:
    one = cell.others[i]
    return TableCell(measured(one.mean, one.deviation, decimals=metric.decimals_of(one.mean, decimals)))


def gram_time_table(summary: Summary) -> Table:
    """Build the table of the times of one Gram matrix, with published ones."""
    has_published = any(cell.published_seconds for cell in summary.cells)
    caption = "Processor time of one full Gram matrix on one thread" + (
        "; below it the published time, and how many times as fast ours is." if has_published else "."
    )

    def show(cell: Cell) -> TableCell:
        published = duration(cell.published_seconds) if cell.published_seconds else ""
        return TableCell(duration(cell.gram_seconds), published, factor(cell.speed_up))

    table = _by_kernel(caption, summary, show)
    names = (TableCell(kernel.name, remarks=(kernel.timed,) * bool(kernel.timed)) for kernel in summary.kernels)
    return replace(table, rows=tuple((name, *row[1:]) for name, row in zip(names, table.rows, strict=True)))


def fold_time_table(summary: Summary) -> Table:
    """Build the table of the times of one outer fold."""
    caption = (
        "Mean processor time of an outer fold: to choose inside it, to fit, and to predict. Gram matrices that all folds "
        "share, of kernels that learn nothing from data, are computed once and not included."
    )
    return _by_kernel(caption, summary, lambda cell: TableCell(duration(cell.fold_seconds)))


def chosen_table(summary: Summary) -> Table:
    """Build the table of the most frequent choices."""

    def show(cell: Cell) -> TableCell:
        if not cell.chosen:
            return TableCell(NONE)
        combination, count = cell.chosen[0]
        return TableCell(combination, remarks=(percent(count / sum(n for _, n in cell.chosen)),))

    caption = "The most frequent choice of inner cross-validation, with its share of the outer folds."
    return replace(_by_kernel(caption, summary, show), kind="notes")


def dataset_table(summary: Summary) -> Table:
    """Build the table of data sets."""
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


def kernel_table(summary: Summary) -> Table:
    """Build the table of kernels, with what inner cross-validation chooses from."""
    rows = (
        _text_cells([one.name, "\n".join(one.choices), _LEARNS_FROM[one.learns_from], one.note])
        for one in summary.kernels
    )
    caption = f"The choices of inner cross-validation, besides {summary.protocol.strengths[0]}."
    return Table(caption, ("kernel", "choices", "learns from", "note"), tuple(rows), "notes")


# -------------------------------------------------------------------- tables of tests


def rank_table(comparison: ComparisonSummary) -> Table:
    """Build the table of mean ranks."""
    shown = {
        f"{whose} table": one for whose, one in (("our", comparison.ours), ("published", comparison.published)) if one
    }
    ranks = [dict(zip(one.names, one.mean_ranks, strict=True)) for one in shown.values()]
    rows = (_text_cells([kernel, *(measured(one.get(kernel)) for one in ranks)]) for kernel in comparison.kernels)
    return Table(f"Mean ranks, {comparison.name}; 1 is best.", ("kernel", *shown), tuple(rows))


def pair_table(pair: PairSummary, metric: Metric) -> Table:
    """Build the table of the tests of one pair, data set by data set."""
    difference = f"{pair.kernel} minus {pair.baseline}, in points"
    if not metric.higher_is_better:
        difference = (
            f"Errors of {pair.baseline} minus those of {pair.kernel}, in percent of the targets' standard deviation"
        )
    has_published = any(test.published for test in pair.tests)
    head = ("data set", *["published"] * has_published, "ours", "p-value", "p-value after Holm", "better, equal, worse")
    rows = tuple(_pair_row(test, pair, has_published=has_published) for test in pair.tests)
    return Table(f"{difference}, with 95 % intervals and two-sided p-values.", head, rows)


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


_PAIRWISE = f"corrected resampled t-test, level {LEVEL}, p-values after Holm's correction for all pairs of kernels on the data set"


def win_table(summary: Summary) -> Table:
    """Build the table that counts on how many data sets each kernel is significantly better and worse than each other one."""
    names = [kernel.name for kernel in summary.kernels]
    counts: dict[tuple[str, str], list[int]] = {}
    for one in summary.pairwise:
        is_win, is_loss = (one.p_value < LEVEL and sign * one.test.difference > 0 for sign in (1, -1))
        for pair, added in (((one.kernel, one.other), (is_win, is_loss)), ((one.other, one.kernel), (is_loss, is_win))):
            counts[pair] = [before + more for before, more in zip(counts.get(pair, (0, 0)), added, strict=True)]
    shown = {pair: TableCell(f"{wins} / {losses}", is_best=wins > losses) for pair, (wins, losses) in counts.items()}
    rows = (
        (TableCell(f"{i} {name}"), *(shown.get((name, other), TableCell(NONE)) for other in names))
        for i, name in enumerate(names, start=1)
    )
    caption = (
        "Number of data sets on which the kernel of the row is significantly better / worse than the kernel with the number of the "
        f"column ({_PAIRWISE}). Bold: more often better than worse."
    )
    return Table(caption, ("kernel", *map(str, range(1, len(names) + 1))), tuple(rows), "numbers narrow")


def pairwise_table(summary: Summary) -> Table:
    """Build the table of the differences of all pairs of kernels on all data sets, significant ones in bold."""
    shown = {
        (one.kernel, one.other, one.dataset): TableCell(
            f"{signed(one.test.difference)} (p {p_value(one.p_value)})", is_best=one.p_value < LEVEL
        )
        for one in summary.pairwise
    }
    datasets = [dataset.name for dataset in summary.datasets]
    rows = (
        (
            TableCell(f"{kernel} \N{EN DASH} {other}"),
            *(shown.get((kernel, other, name), TableCell(NONE)) for name in datasets),
        )
        for kernel, other in dict.fromkeys((one.kernel, one.other) for one in summary.pairwise)
    )
    caption = f"Differences of all pairs of kernels, first minus second, in points: {_PAIRWISE}. Bold: significant."
    return Table(caption, ("pair", *datasets), tuple(rows))


# -------------------------------------------------------------------- Markdown


def markdown_text(value: str) -> str:
    """Return any text as one line in which nothing is markup; an underscore inside a word is none, and stays."""
    line = re.sub(r"<(?=[A-Za-z/!?])", "&lt;", visible(" ".join(value.split())).replace("&", "&amp;"))
    return re.sub(r"[\\`*\[\]|~#]|\b_|_\b", r"\\\g<0>", line)


def markdown_bullets(items: Iterable[str]) -> str:
    """Return a Markdown list of the items that are not empty."""
    return "\n".join(f"- {markdown_text(item)}" for item in items if item)


def markdown_table(table: Table, *, compact: bool = False) -> str:
    """Return a Markdown table; a compact one has one line per cell: ``86.7 (92.8) ▼``."""
    show = partial(_compact_cell, text=markdown_text, bold="**{}**") if compact else _markdown_cell
    lines = [list(map(markdown_text, table.head)), ["---"] * len(table.head)]
    lines += [list(map(show, row)) for row in table.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _markdown_cell(cell: TableCell) -> str:
    lines = [markdown_text(line) for line in cell.text.split("\n")]
    if cell.is_best:
        lines[0] = f"**{lines[0]}**"
    if cell.published:
        change = f"**{markdown_text(cell.change)}**" if cell.mark else markdown_text(cell.change)
        lines.append(f"<sub>published {markdown_text(cell.published)}{f', {change}' if change else ''}</sub>")
    return "<br>".join([*lines, *(f"<sub>{markdown_text(remark)}</sub>" for remark in cell.remarks)])


def _compact_cell(cell: TableCell, text: Callable[[str], str], bold: str) -> str:
    published = f"({text(cell.published)})" if cell.published else ""
    shown = bold.format(text(cell.text)) if cell.is_best else text(cell.text)
    return " ".join(filter(None, [shown, published, text(_ARROWS[cell.mark])]))


# -------------------------------------------------------------------- LaTeX


def latex_text(value: str) -> str:
    """Return any text as LaTeX that prints it; characters that no standard font has become question marks."""
    known = (_LATEX.get(c, c if ord(c) < 0x180 else "?") for c in visible(" ".join(value.split())))
    return "".join(known)


def latex_table(table: Table, label: str) -> str:
    """Return a table with caption and label for the packages booktabs and amssymb; one that is too long for a page needs longtable."""
    show = partial(_compact_cell, text=latex_text, bold=r"\textbf{{{}}}")
    lines = [[latex_text(name) for name in table.head], *(list(map(show, row)) for row in table.rows)]
    head, *body = (f"{' & '.join(line)} \\\\" for line in lines)
    caption = latex_text(table.caption.replace("Below it the published number", "In parentheses the published number"))
    caption, columns = rf"\caption{{{caption}}}\label{{{label}}}", "l" + "r" * (len(table.head) - 1)
    if len(body) > _MAX_ROWS:
        packages, begin, end = "booktabs,amssymb,longtable", rf"\begin{{longtable}}{{{columns}}}", r"\end{longtable}"
        begin, end_of_head = f"{begin}\n{caption} \\\\", "\n\\endhead"
    else:
        packages, end, end_of_head = "booktabs,amssymb", "\\end{tabular}\n\\end{table}", ""
        begin = f"\\begin{{table}}\n\\centering\n{caption}\n\\begin{{tabular}}{{{columns}}}"
    return "\n".join(
        [
            f"% Needs \\usepackage{{{packages}}}; written by treegram report.",
            begin,
            r"\toprule",
            head,
            rf"\midrule{end_of_head}",
            *body,
            r"\bottomrule",
            end,
            "",
        ]
    )


def to_latex(summary: Summary, name: str) -> str:
    """Return the tables of a name, see :meth:`Summary.to_latex`."""
    if name not in LATEX_TABLES:
        raise ValueError(f"table must be one of {', '.join(map(repr, LATEX_TABLES))}; got {name!r}.")
    has_pairs = bool(summary.pairwise)
    found = {
        "scores": [score_table(summary)],
        "ranks": [rank_table(one) for one in summary.comparisons if one.ours or one.published],
        "wins": [win_table(summary)] if has_pairs else [],
        "pairs": [pairwise_table(summary)] if has_pairs else [],
    }[name]
    return "\n".join(latex_table(table, f"tab:{name}{i or ''}") for i, table in enumerate(found))


# -------------------------------------------------------------------- plain text


def brief_text(summary: Summary) -> str:
    """Return the scores, and what they are means of, for a terminal.

    ``*`` marks a large difference from the published number, which is in the line below.
    """
    table = score_table(summary, decimals=1)
    lines = [*_text_table(replace(table, head=(main_metric(summary.protocol).title, *table.head[1:])))]
    metrics = other_metrics(summary.protocol)
    cells = [cell for cell in summary.cells if cell.repeats]
    if cells and len(summary.cells) <= _MAX_CELLS:
        rows = (
            (
                *_text_cells([cell.kernel, cell.dataset]),
                *(_other_score(cell, i, one, 1) for i, one in enumerate(metrics)),
            )
            for cell in cells
        )
        lines += _text_table(Table("", ("also", "data set", *(metric.title for metric in metrics)), tuple(rows)))
    return "\n".join([*lines, *map(visible, _below_the_table(summary))])


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


def _below_the_table(summary: Summary) -> Iterator[str]:
    """Explain the numbers of a table in a terminal."""
    planned, folds = summary.protocol.repeats, summary.protocol.outer_folds
    spread = f"mean ± standard deviation over {planned} repeats of" if planned > 1 else "mean over one"
    yield f"{spread} {folds}-fold cross-validation"
    if any(cell.mark for cell in summary.cells):
        yield "* differs from the published number by more than two standard deviations"
    few = [cell for cell in summary.cells if 0 < len(cell.repeats) < planned]
    if len(few) > _MAX_NAMED:
        yield f"{len(few)} of {len(summary.cells)} cells have fewer than {counted(planned, 'repeat')}"
    elif few:
        yield f"fewer repeats: {', '.join(f'{cell.kernel} on {cell.dataset} ({_repeats(cell, planned)})' for cell in few)}"
    if sentence := unconverged(summary):
        yield sentence


def unconverged(summary: Summary) -> str:
    """Say how many fits did not converge; empty if all did."""
    n_failed = sum(cell.n_unconverged for cell in summary.cells)
    return f"{n_failed:,} of {counted(summary.n_fits, 'fit')} did not converge." if n_failed else ""
