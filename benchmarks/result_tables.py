"""Write what the stores in results/ say to the report pages beside them and into docs/results.md: ``python benchmarks/result_tables.py``.

docs/results.md has parts between marks such as ``<!-- results: paper -->`` and ``<!-- end of results -->``: tables of
accuracies, ``<!-- cells: paper, readings -->``, which says of each published number whether it is reproduced, and
``<!-- tests: wide -->``, which has the tests of a study in words. Beside it are two pictures of ranks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import hypot
from pathlib import Path
from statistics import mean

from treegram.study import Store, Summary, summarize, write_report
from treegram.study.diagrams import critical_difference_diagram
from treegram.study.report import render_block, render_compact_table, score_table, sentences
from treegram.study.report.document import Bullets
from treegram.study.statistics import Ranking
from treegram.study.summary import Cell

ROOT = Path(__file__).parents[1]
STUDIES = ("paper", "beyond", "other_folds", "readings", "design_sets", "design_cuneiform", "wide")
PICTURES = {"paper": "ranks.png", "wide": "wide_ranks.png"}


def summary_of(path: Path) -> Summary:
    with Store.open(path, create=False) as store:
        return summarize(store)


def accuracies(summaries: Sequence[Summary]) -> str:
    """The accuracies of some studies over the same data sets in one table, and what a reader should know about them."""
    tables = [score_table(summary, decimals=1, deviations=False) for summary in summaries]
    first, *others = tables
    # The largest class heads each table, and is shown once.
    table = replace(first, rows=first.rows + tuple(row for other in others for row in other.rows[1:]))
    shown = re.sub(r" \[\d+ repeats?\]", "", render_compact_table(table))  # the remarks say where there are fewer
    return f"{shown}\n{render_block(Bullets(summaries[0].remarks))}\n"


# -------------------------------------------------------------------- the published numbers, one by one


def agrees(cell: Cell, published: Cell) -> bool:
    """Whether a cell is within two standard deviations of the number that is published for another: 2 sqrt(s^2 + p^2)."""
    if cell.mean is None or published.published is None or len(cell.repeats) < cell.n_planned:
        return False
    margin = 2 * hypot(cell.deviation or 0.0, published.published_deviation or 0.0)
    return abs(cell.mean - published.published) <= margin


def is_reading(name: str, row: str) -> bool:
    """Whether a name is that of another reading of a row: ``ROW, words`` or ``ROW (words)``."""
    return name.startswith((f"{row}, ", f"{row} ("))


def difference(cell: Cell, published: Cell) -> float:
    """Points from the number that is published for another cell to this one."""
    return (cell.mean or 0.0) - (published.published or 0.0)


def verdict(cell: Cell, others: Sequence[Cell]) -> str:
    """What became of one published number: reproduced, reproduced under the nearest of the other readings, or not."""
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
    """Each cell of the first study that has a published number, with those of all other readings of its row."""
    every = [cell for summary in summaries for cell in summary.cells if cell.repeats]
    return [
        (cell, [one for one in every if one.dataset == cell.dataset and is_reading(one.kernel, cell.kernel)])
        for cell in summaries[0].cells
        if cell.published is not None
    ]


def one_by_one(summaries: Sequence[Summary]) -> str:
    """A table of verdicts, how many there are of each, and how far each reading goes."""
    first, pairs = summaries[0], published_cells(summaries)
    others = {(cell.kernel, cell.dataset): readings for cell, readings in pairs}
    lines = [["kernel", *(dataset.name for dataset in first.datasets)], ["---"] * (1 + len(first.datasets))]
    for kernel in dict.fromkeys(cell.kernel for cell, _ in pairs):
        row = first.row(kernel)
        lines.append([kernel, *(verdict(cell, others.get((kernel, cell.dataset), ())) for cell in row)])
    table = re.sub(r"-(?=\d)", "\N{MINUS SIGN}", "\n".join(f"| {' | '.join(line)} |" for line in lines))
    return f"{counts(pairs)}\n\n{table}\n\n{render_block(Bullets(reaches(pairs)))}\n"


def counts(pairs: Sequence[tuple[Cell, list[Cell]]]) -> str:
    """How many published numbers there are of each verdict."""
    yes = sum(agrees(cell, cell) for cell, _ in pairs)
    other = sum(not agrees(cell, cell) and any(agrees(one, cell) for one in some) for cell, some in pairs)
    return (
        f"Of {len(pairs)} published accuracies {yes} are reproduced, {other} are reproduced under another reading, and "
        f"{len(pairs) - yes - other} are not."
    )


def reaches(pairs: Sequence[tuple[Cell, list[Cell]]]) -> tuple[str, ...]:
    """For each other reading of a row that is not reproduced everywhere: on how many data sets it agrees, and how far it is off."""
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


# -------------------------------------------------------------------- the picture


def rankings(study: str, results: Path) -> dict[str, Ranking]:
    """The mean ranks that the picture of a study shows, by title."""
    found = summary_of(results / f"{study}.sqlite").comparisons
    if study == "paper":
        shown = {"By the published numbers": found[0].published, "By our runs": found[0].ours}
    else:
        shown = {f"{one.name[:1].upper()}{one.name[1:]}": one.ours for one in found}
    return {title: ranking for title, ranking in shown.items() if ranking}


def ranks_in_words(study: str, results: Path) -> str:
    """What the picture shows, for those who cannot see it; a test holds it equal to the stores."""
    ranked = (
        f"{title}: {', '.join(f'{name} {rank:.2f}' for rank, name in sorted(zip(one.mean_ranks, one.names, strict=True)))}; "
        f"critical difference {one.critical_difference:.2f}."
        for title, one in rankings(study, results).items()
    )
    return " ".join(["Mean ranks.", *ranked])


def draw_ranks(study: str, results: Path, path: Path) -> None:
    """Two diagrams of ranks, one below the other, as PNG that says in words what it shows."""
    from matplotlib.figure import Figure

    shown = rankings(study, results)
    n_names = max(len(ranking.names) for ranking in shown.values())
    figure = Figure(figsize=(7.2, 2.0 + 0.38 * n_names), layout="constrained")
    figure.get_layout_engine().set(hspace=0.08)
    for axes, (title, ranking) in zip(figure.subplots(len(shown), squeeze=False)[:, 0], shown.items(), strict=True):
        critical_difference_diagram(ranking, axes)
        axes.set_title(title, loc="left", fontsize=11, fontweight="bold", pad=12)
    figure.savefig(path, dpi=130, metadata={"Description": ranks_in_words(study, results), "Software": None})


# -------------------------------------------------------------------- the tests, in words


def shortfalls(summary: Summary) -> list[tuple[float, str, str, float]]:
    """How far each entry is below the best of all on the data set that suits it least, which that is, and the mean over all; best first."""
    best = {
        dataset.name: max(cell.mean or 0.0 for cell in summary.column(dataset.name)) for dataset in summary.datasets
    }
    found = []
    for kernel in summary.kernels:
        below = [(best[cell.dataset] - (cell.mean or 0.0), cell.dataset) for cell in summary.row(kernel.name)]
        found.append((*max(below), kernel.name, mean(points for points, _ in below)))
    return sorted((most, name, dataset, average) for most, dataset, name, average in found)


def tests_in_words(summaries: Sequence[Summary]) -> str:
    """What the report of one study says about its ranks, and about its first kernel against the best of several."""
    (summary,) = summaries
    (most, first, where, average), (other_most, second, other_where, other_average), *_ = shortfalls(summary)
    said = [
        f"{first} is at most {most:.1f} points below the best of all on a data set ({where}), and {average:.1f} on average. Next is "
        f"{second}: at most {other_most:.1f} ({other_where}), and {other_average:.1f} on average."
    ]
    said += [f"{sentences.ranking_verdict(one.ours, f'Ranks {one.name}:')}" for one in summary.comparisons if one.ours]
    for pair in summary.pairs:
        if len(pair.baselines) > 1:
            said += [
                *sentences.pair_verdicts(pair),
                *([sentences.overall(pair, pair.ours, "by ours")] if pair.ours else []),
            ]
    return f"{render_block(Bullets(tuple(said)))}\n"


PARTS = {"results": accuracies, "cells": one_by_one, "tests": tests_in_words}


def updated(page: str, results: Path) -> str:
    """The page with what the stores give."""

    def part(found: re.Match[str]) -> str:
        summaries = [summary_of(results / f"{name}.sqlite") for name in found[3].split(", ")]
        return f"{found[1]}\n\n{PARTS[found[2]](summaries)}\n{found[4]}"

    return re.sub(r"(<!-- (results|cells|tests): (.*?) -->)\n.*?(<!-- end of results -->)", part, page, flags=re.DOTALL)


def minutes(name: str, kernel: str, results: Path) -> float:
    """Processor time of all folds of a kernel, on all data sets together."""
    return sum(cell.cpu_seconds for cell in summary_of(results / f"{name}.sqlite").row(kernel)) / 60


if __name__ == "__main__":
    for study in STUDIES:
        for ending in (".html", ".md"):
            write_report(
                summary_of(ROOT / "results" / f"{study}.sqlite"), ROOT / "results" / f"{study}{ending}", overwrite=True
            )
    page = ROOT / "docs" / "results.md"
    page.write_text(updated(page.read_text(), ROOT / "results"))
    for study, picture in PICTURES.items():
        draw_ranks(study, ROOT / "results", ROOT / "docs" / "_static" / picture)
    print(f"ODDCL_ST: {minutes('paper', 'ODDCL_ST', ROOT / 'results'):.1f} minutes of processor time")
