"""Write the results in results/*.sqlite into the Markdown next to them and into docs/results.md: ``python benchmarks/result_tables.py``.

docs/results.md has blocks between marks such as ``<!-- results: paper -->`` and ``<!-- end of results -->``: tables of
accuracies; ``<!-- cells: paper, readings -->``, the verdict on each published number; and ``<!-- tests: wide -->``, the tests of
a study in words; ``<!-- criteria: wide2, wide2_large -->``, the registered criteria of the second wide study; and
``<!-- folds: published_folds -->``, what published_folds.py wrote. Two figures of ranks are drawn beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import hypot
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from treegram._core.html import render
from treegram.study import Store, Summary, plot_ranks, summarize, write_report
from treegram.study.report import pair_verdicts, ranking_verdict
from treegram.study.report_tables import markdown_text, score_table
from treegram.study.significance import Ranking, friedman_nemenyi
from treegram.study.summary import Cell

ROOT = Path(__file__).parents[1]
STUDIES = (
    "paper",
    "beyond",
    "other_folds",
    "readings",
    "design_sets",
    "design_cuneiform",
    "wide",
    "wide_edges",
    "wide2",
    "wide2_large",
)
# Remarks of study files, which stay as they were registered, and what the results page says instead.
CORRECTIONS = {
    "Nobody had computed anything on them.": "Nobody had computed anything with their targets, but 90 % of the graphs of Tox21_MMP and 86 % of "
    "those of Tox21_ARE are also in Tox21_AHR, of the explored tier.",
    "are those of P2K without them (results/readings.toml), those of DHFR and SYNTHETICnew of neither.": "agree with P2K without them "
    "(results/readings.toml); that reading misses DHFR by 4 points and SYNTHETICnew by 15.",
}
CLEAN = ("GREC", "Tox21_MMP", "Tox21_ARE")  # of the second wide study: nobody had computed anything on these
# Data sets of the wide study that share graphs or molecules with data sets on which "auto" was designed.
RELATED = ("PROTEINS_full", "BZR_MD", "COX2_MD")
PICTURES = {"paper": "ranks.png", "wide": "wide_ranks.png"}


def summary_of(path: Path) -> Summary:
    with Store.open(path, create=False) as store:
        return summarize(store)


def markdown_bullets(items: Iterable[str]) -> str:
    """Return a Markdown list of the items that are not empty."""
    return "\n".join(f"- {markdown_text(item)}" for item in items if item)


def accuracies(summaries: Sequence[Summary]) -> str:
    """Return the accuracies of some studies over the same data sets in one table, and the remarks of the first study."""
    tables = [score_table(summary, decimals=1, deviations=False) for summary in summaries]
    first, *others = tables
    # The largest class heads each table, and is shown once.
    table = replace(first, rows=first.rows + tuple(row for other in others for row in other.rows[1:]))
    remarks = markdown_bullets(summaries[0].study.remarks)
    for registered, corrected in CORRECTIONS.items():
        remarks = remarks.replace(registered, corrected)
    # In a compact table, a cell is one line: ``86.7 (92.8) ▼``.
    text = render("treegram.study", "table.md", table=table, compact=True, text=markdown_text)
    return f"{text}\n\n{remarks}\n"


# -------------------------------------------------------------------- the published numbers, one by one


def agrees(cell: Cell, published: Cell) -> bool:
    """Return whether a cell is within two standard deviations, 2 sqrt(s^2 + p^2), of the number published for another."""
    if cell.mean is None or published.published is None or len(cell.repeats) < cell.n_planned:
        return False
    margin = 2 * hypot(cell.deviation or 0.0, published.published_deviation or 0.0)
    return abs(cell.mean - published.published) <= margin


def is_reading(name: str, row: str) -> bool:
    """Return whether a name is that of another reading of a row: ``ROW, words`` or ``ROW (words)``."""
    return name.startswith((f"{row}, ", f"{row} ("))


def difference(cell: Cell, published: Cell) -> float:
    """Return the points from the number published for another cell to this one."""
    return (cell.mean or 0.0) - (published.published or 0.0)


def verdict(cell: Cell, others: Sequence[Cell]) -> str:
    """Return whether a published number is reproduced, reproduced under the nearest of the other readings, or not."""
    if cell.published is None or cell.mean is None:
        return cell.published_words or "\N{EN DASH}"
    points = f"{difference(cell, cell):+.1f}"
    if agrees(cell, cell):
        return f"yes ({points})"
    nearest = min((cell, *others), key=lambda one: (not agrees(one, cell), abs(difference(one, cell))))
    if nearest is cell:
        return f"**no** ({points})"
    words, nearer = nearest.kernel.removeprefix(cell.kernel).strip(" ,()"), f"{difference(nearest, cell):+.1f}"
    return f"{words} ({nearer})" if agrees(nearest, cell) else f"**no** ({points}; {words} {nearer})"


def published_cells(summaries: Sequence[Summary]) -> list[tuple[Cell, list[Cell]]]:
    """Return each cell of the first study with a published number, with those of all other readings of its row."""
    every = [cell for summary in summaries for cell in summary.cells if cell.repeats]
    return [
        (cell, [one for one in every if one.dataset == cell.dataset and is_reading(one.kernel, cell.kernel)])
        for cell in summaries[0].cells
        if cell.published is not None
    ]


def one_by_one(summaries: Sequence[Summary]) -> str:
    """Return a table of verdicts, the number of each, and how well each reading agrees."""
    first, pairs = summaries[0], published_cells(summaries)
    others = {(cell.kernel, cell.dataset): readings for cell, readings in pairs}
    lines = [["kernel", *first.study.datasets], ["---"] * (1 + len(first.study.datasets))]
    for kernel in dict.fromkeys(cell.kernel for cell, _ in pairs):
        row = first.row(kernel)
        lines.append([kernel, *(verdict(cell, others.get((kernel, cell.dataset), ())) for cell in row)])
    table = _markdown(lines)
    facts = [below_largest_class(first), *reaches(pairs)]
    return f"{counts(pairs)}\n\n{table}\n\n{markdown_bullets(facts)}\n"


def below_largest_class(summary: Summary) -> str:
    """Name the published accuracies that are lower than always predicting the largest class."""
    by_dataset: dict[str, list[str]] = {}
    for cell in summary.cells:
        if cell.published is not None and cell.published < (summary.baseline(cell.dataset) or 0.0):
            by_dataset.setdefault(cell.dataset, []).append(f"{cell.kernel} {cell.published:.1f}")
    n = sum(map(len, by_dataset.values()))
    sets = (f"{name}, {summary.baseline(name):.1f}: {', '.join(cells)}" for name, cells in by_dataset.items())
    return f"{n} published accuracies are below the share of the largest class ({'; '.join(sets)})."


def counts(pairs: Sequence[tuple[Cell, list[Cell]]]) -> str:
    """Count the published numbers of each verdict."""
    yes = sum(agrees(cell, cell) for cell, _ in pairs)
    other = sum(not agrees(cell, cell) and any(agrees(one, cell) for one in some) for cell, some in pairs)
    return (
        f"Of {len(pairs)} published accuracies {yes} are reproduced, {other} are reproduced under another reading, and "
        f"{len(pairs) - yes - other} are not."
    )


def reaches(pairs: Sequence[tuple[Cell, list[Cell]]]) -> tuple[str, ...]:
    """Say for each reading of a row that is not fully reproduced where it agrees, and how far it is off."""
    open_rows = {cell.kernel for cell, _ in pairs if not agrees(cell, cell)}
    readings: dict[str, list[tuple[Cell, Cell]]] = {}
    for cell, some in pairs:
        for other in some:
            if cell.kernel in open_rows:
                readings.setdefault(other.kernel, []).append((other, cell))
    return tuple(
        f"{name}: agrees on {sum(agrees(*one) for one in found)} of {len(found)} "
        f"({', '.join(other.dataset for other, _ in found)}); {mean(abs(difference(*one)) for one in found):.1f} points off "
        f"on average, {found[0][1].kernel} itself {mean(abs(difference(cell, cell)) for _, cell in found):.1f}."
        for name, found in readings.items()
    )


# -------------------------------------------------------------------- the figures


def rankings(study: str, results: Path) -> dict[str, Ranking]:
    """Return the mean ranks that the figure of a study shows, by title."""
    found = summary_of(results / f"{study}.sqlite").comparisons
    if study == "paper":
        shown = {"By the published numbers": found[0].published, "By our runs": found[0].ours}
    else:
        shown = {f"{one.name[:1].upper()}{one.name[1:]}": one.ours for one in found}
    return {title: ranking for title, ranking in shown.items() if ranking}


def ranks_in_words(study: str, results: Path) -> str:
    """Describe the figure in text, for readers who cannot see it; a test compares it with the stores."""
    ranked = (
        f"{title}: {', '.join(f'{name} {rank:.2f}' for rank, name in sorted(zip(one.mean_ranks, one.names, strict=True)))}; "
        f"critical difference {one.critical_difference:.2f}."
        for title, one in rankings(study, results).items()
    )
    return " ".join(["Mean ranks.", *ranked])


def draw_ranks(study: str, results: Path, path: Path) -> None:
    """Draw two diagrams of ranks, one below the other, as PNG with a description."""
    from matplotlib import rcParams
    from matplotlib.colors import same_color
    from matplotlib.figure import Figure

    shown = rankings(study, results)
    n_names = max(len(ranking.names) for ranking in shown.values())
    figure = Figure(figsize=(7.2, 2.0 + 0.38 * n_names), layout="constrained")
    figure.get_layout_engine().set(hspace=0.08)
    for axes, (title, ranking) in zip(figure.subplots(len(shown), squeeze=False)[:, 0], shown.items(), strict=True):
        plot_ranks(ranking, axes)
        axes.set_title(title, loc="left", fontsize=11, fontweight="bold", pad=12)
    artist: Any
    for artist in figure.findobj(lambda artist: hasattr(artist, "get_color")):  # black on a dark page is not visible
        if same_color(artist.get_color(), "#222222"):
            artist.set_color(rcParams["text.color"])
    figure.savefig(path, dpi=130, metadata={"Description": ranks_in_words(study, results), "Software": None})


# -------------------------------------------------------------------- verdicts of the tests


def shortfalls(summary: Summary) -> list[tuple[float, str, str, float]]:
    """Return for each entry its largest shortfall to the best of all, the data set of it, and the mean over all; best first."""
    best = {name: max(cell.mean or 0.0 for cell in summary.column(name)) for name in summary.study.datasets}
    found = []
    for kernel in summary.study.kernels:
        below = [(best[cell.dataset] - (cell.mean or 0.0), cell.dataset) for cell in summary.row(kernel.name)]
        found.append((*max(below), kernel.name, mean(points for points, _ in below)))
    return sorted((most, name, dataset, average) for most, dataset, name, average in found)


def tests_in_words(summaries: Sequence[Summary]) -> str:
    """Return the verdicts of a study's tests, all after correction for their number; of many pairs, those with several baselines."""
    (summary,) = summaries
    said = [ranking_verdict(one.ours, f"By our numbers ({one.name})") for one in summary.comparisons if one.ours]
    pairs = [pair for pair in summary.pairs if len(pair.baselines) > 1] or summary.pairs
    if summary.study.name == "wide":
        said = [shortfall_in_words(summary), *said, unrelated_ranks(summary)]
    for pair in pairs:
        said += pair_verdicts(pair)
    return f"{markdown_bullets(said)}\n"


def shortfall_in_words(summary: Summary) -> str:
    """Say how far the best two entries are below the best of all on the data sets that suit them least."""
    (most, first, where, average), (other_most, second, other_where, other_average), *_ = shortfalls(summary)
    return (
        f"{first} is at most {most:.1f} points below the best of all on a data set ({where}), and {average:.1f} on average. Next is "
        f"{second}: at most {other_most:.1f} ({other_where}), and {other_average:.1f} on average."
    )


def unrelated_ranks(summary: Summary) -> str:
    """Rank the entries of the first comparison on the data sets that are not related to those of the design."""
    kernels = summary.comparisons[0].kernels
    datasets = [name for name in summary.study.datasets if name not in RELATED]
    means = {(cell.dataset, cell.kernel): cell.mean for cell in summary.cells}
    ranking = friedman_nemenyi([[means[name, kernel] for kernel in kernels] for name in datasets], kernels)
    (rank, first), (next_rank, second), *_ = sorted(zip(ranking.mean_ranks, ranking.names, strict=True))
    return (
        f"On the {len(datasets)} data sets that share neither graphs nor molecules with those of the design "
        f"({', '.join(datasets)}), {first} has the best mean rank, {rank:.2f}; next is {second} with {next_rank:.2f}."
    )


def _markdown(lines: Sequence[Sequence[str]]) -> str:
    """Return rows as a table, with minus signs."""
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return re.sub(r"(?<=[ (])-(?=[ \d])", "\N{MINUS SIGN}", text)


def criteria(summaries: Sequence[Summary]) -> str:
    """Compare "auto" with what the second wide study registered, for the clean tier and for the explored one."""
    cells = {(cell.dataset, cell.kernel): cell for summary in summaries for cell in summary.cells}
    names = [name for summary in summaries for name in summary.study.datasets]
    kernels = [one.name for one in summaries[0].study.kernels if all((name, one.name) in cells for name in names)]
    texts = []
    for tier, some in {"Clean": CLEAN, "Explored": [name for name in names if name not in CLEAN]}.items():
        ranking = friedman_nemenyi([[cells[name, kernel].mean for kernel in kernels] for name in some], kernels)
        ranks = ", ".join(
            f"{name} {rank:.2f}" for rank, name in sorted(zip(ranking.mean_ranks, ranking.names, strict=True))
        )
        lines = [
            ["", "auto", "best other", "auto - best other", "auto - random forest", "auto - boosting"],
            ["---"] * 6,
        ]
        for name in some:
            own = cells[name, "auto"]
            others = [cell for (dataset, kernel), cell in cells.items() if dataset == name and kernel != "auto"]
            best = max((cell for cell in others if cell.mean is not None), key=lambda cell: cell.mean or 0.0)
            rivals = [best, cells[name, "random forest"], cells[name, "boosting"]]
            shown = [f"{own.mean:.1f}", f"{best.kernel} {best.mean:.1f}", *(_advantage(own, one) for one in rivals)]
            lines.append([name, *shown])
        table = _markdown(lines)
        verdict = markdown_bullets([ranking_verdict(ranking, f"{tier} tier")])
        texts.append(f"{tier} tier, mean ranks of the entries that both parts have: {ranks}.\n\n{verdict}\n\n{table}\n")
    return "\n".join(texts)


def _advantage(own: Cell, other: Cell) -> str:
    """Return the difference of two cells, and its standard error over folds; bold if it is below -1 and below minus that."""
    differences = np.subtract(own.folds, other.folds).ravel()  # in points
    error = differences.std(ddof=1) / np.sqrt(len(differences))
    text = f"{differences.mean():+.1f} ± {error:.1f}"
    return f"**{text}**" if differences.mean() < -max(1.0, error) else text


def beside(summaries: Sequence[Summary]) -> str:
    """Return the accuracies of an addendum next to those of "auto", of CSM, and of the best entry of the study."""
    study, addendum = summaries
    names = addendum.study.datasets
    rows = {kernel: [cell for cell in study.row(kernel) if cell.dataset in names] for kernel in ("auto", "CSM")}
    rows["the best of the wide study"] = [max(study.column(name), key=lambda cell: cell.mean or 0.0) for name in names]
    rows |= {kernel.name: list(addendum.row(kernel.name)) for kernel in addendum.study.kernels}
    lines = [["kernel", *names], ["---"] * (1 + len(names))]
    lines += [[name, *map(_mean_and_deviation, cells)] for name, cells in rows.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _mean_and_deviation(cell: Cell) -> str:
    if cell.mean is None:
        return "\N{EN DASH}"
    return f"{cell.mean:.1f}" if cell.deviation is None else f"{cell.mean:.1f} ± {cell.deviation:.1f}"


BLOCKS = {
    "results": accuracies,
    "cells": one_by_one,
    "tests": tests_in_words,
    "edges": beside,
    "criteria": criteria,
}


def updated(page: str, results: Path) -> str:
    """Return the page with its blocks computed from the stores, and the table of published folds from its file."""

    def block(found: re.Match[str]) -> str:
        if found[2] == "folds":
            _, _, text = (results / f"{found[3]}.md").read_text().partition("\n\n")  # without its title
            return f"{found[1]}\n\n{text}\n{found[4]}"
        summaries = [summary_of(results / f"{name}.sqlite") for name in found[3].split(", ")]
        return f"{found[1]}\n\n{BLOCKS[found[2]](summaries)}\n{found[4]}"

    return re.sub(
        r"(<!-- (results|cells|tests|edges|criteria|folds): (.*?) -->)\n.*?(<!-- end of results -->)",
        block,
        page,
        flags=re.DOTALL,
    )


def minutes(name: str, kernel: str, results: Path) -> float:
    """Return the processor time of all folds of a kernel, on all data sets together."""
    return sum(cell.cpu_seconds for cell in summary_of(results / f"{name}.sqlite").row(kernel)) / 60


if __name__ == "__main__":
    from matplotlib import style

    for study in STUDIES:
        summary = summary_of(ROOT / "results" / f"{study}.sqlite")
        write_report(summary, ROOT / "results" / f"{study}.md")
    page = ROOT / "docs" / "results.md"
    page.write_text(updated(page.read_text(), ROOT / "results"))
    with style.context(ROOT / "docs" / "figures.mplstyle"):
        for study, picture in PICTURES.items():
            draw_ranks(study, ROOT / "results", ROOT / "docs" / "_static" / picture)
    print(f"ODDCL_ST: {minutes('paper', 'ODDCL_ST', ROOT / 'results'):.1f} minutes of processor time")
