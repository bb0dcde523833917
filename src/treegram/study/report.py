"""Write the report of a study: a page or Markdown, and for a paper LaTeX tables, figures, every fold as CSV, and references."""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from statistics import median
from typing import Any

from treegram._core.files import replacing
from treegram._core.html import render
from treegram._core.optional import matplotlib_module
from treegram._core.text import counted, listed, visible
from treegram.study import tables
from treegram.study.metrics import main_metric, other_metrics
from treegram.study.plots import plot_ranks, plot_scores, plot_times
from treegram.study.protocol import CONTROLS, SPLITS, entry_key
from treegram.study.statistics import Posterior, Ranking, TTest, holm
from treegram.study.store import Store
from treegram.study.summary import ROPE, ComparisonSummary, PairSummary, Summary, stored_study
from treegram.study.tables import LEVEL, duration, is_best, measured, p_value, percent, signed

_MAX_NAMED = 6  # cells in a sentence
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "treegram",  # otherwise ids are random
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],  # the second is as wide, where the first is missing
    "text.parse_math": False,  # a dollar in a kernel's name is a dollar
    "pdf.fonttype": 42,  # journals refuse the default, Type 3
}


def write_report(summary: Summary, path: str | os.PathLike[str]) -> None:
    """Write the report of a study as one page.

    Parameters
    ----------
    summary : Summary
        The numbers, from :func:`~treegram.study.summarize`.
    path : str or path
        The file: ``.html`` for a page with pictures that needs no network, ``.md`` for Markdown without pictures. An existing
        file is replaced.

    Raises
    ------
    ImportError
        If the page needs matplotlib, and it is not installed.
    """
    if Path(path).suffix not in (".html", ".md"):
        raise ValueError(f"A report must end in .html or .md; got {os.fspath(path)!r}.")
    _write(Path(path), render_report(summary, Path(path).suffix).encode())


def render_report(summary: Summary, ending: str) -> str:
    """Return the report as ``.html`` or ``.md``. Names and notes of the study are text in it, never markup."""
    from markupsafe import Markup

    return render(
        "treegram.study",
        f"report{ending}",
        summary=summary,
        latest=max((run.started[:10] for run in summary.runs), default="nothing run yet"),
        paragraphs=[text for text in (progress(summary), agreement(summary), best(summary)) if text],
        sections=[(title, blocks) for title, blocks in _sections(summary).items() if blocks],
        text=tables.markdown_text,
        table=lambda table: Markup(tables.markdown_table(table)),  # several lines
        picture=_picture,
    )


# -------------------------------------------------------------------- blocks of the report


@dataclass(frozen=True)
class Figure:
    """A picture, drawn when it is written. Markdown leaves it out: a table has the same numbers."""

    name: str  # of its file
    description: str  # for those who cannot see it
    caption: str
    draw: Callable[[], Any]  # returns matplotlib's axes


# ("heading", text), ("bullets", texts), ("facts", pairs), ("table", Table) or ("figures", Figures)
Block = tuple[str, Any]


def _sections(summary: Summary) -> dict[str, list[Block]]:
    has_folds = any(cell.folds for cell in summary.cells)
    has_times = any(cell.gram_seconds for cell in summary.cells)
    metric = main_metric(summary.protocol)
    return {
        metric.name.capitalize(): [
            ("table", tables.score_table(summary)),
            ("bullets", [*summary.remarks, tables.unconverged(summary)]),
            ("figures", _score_figures(summary)),
        ],
        "Other scores": [("table", table) for table in tables.other_tables(summary)],
        "Time of one Gram matrix": [("table", tables.gram_time_table(summary)), ("figures", _time_figures(summary))]
        if has_times
        else [],
        "Time of one fold": [("table", tables.fold_time_table(summary))] if has_folds else [],
        "Statistics": list(_statistics(summary)),
        "Chosen parameters": [("table", tables.chosen_table(summary))] if has_folds else [],
        "Data sets": [("table", tables.dataset_table(summary))],
        "Kernels": [("table", tables.kernel_table(summary))],
        "Definitions": [("bullets", _definitions(summary))],
        "Provenance": [("facts", _provenance(summary))],
    }


def _score_figures(summary: Summary) -> list[Figure]:
    metric = main_metric(summary.protocol)
    return [
        Figure(
            f"scores {name}",
            f"{metric.name.capitalize()} of each kernel on {name}.",
            f"{name}: mean {metric.name.removeprefix('mean ')}; bars are standard deviations over repeats.",
            partial(plot_scores, summary, name),
        )
        for name in (dataset.name for dataset in summary.datasets)
        if any(cell.mean is not None for cell in summary.column(name))
    ]


def _time_figures(summary: Summary) -> list[Figure]:
    return [
        Figure(
            f"times {name}",
            f"Time of one Gram matrix on {name}.",
            f"{name}: time of one Gram matrix.",
            partial(plot_times, summary, name),
        )
        for name in (dataset.name for dataset in summary.datasets)
        if any(cell.gram_seconds is not None for cell in summary.column(name))
    ]


def _statistics(summary: Summary) -> Iterator[Block]:
    for comparison in summary.comparisons:
        yield from _comparison(comparison, main_metric(summary.protocol).plural)
    for pair in summary.pairs:
        yield "heading", f"{pair.kernel} against {pair.baseline}"
        overalls = ((pair.published, "by the published numbers"), (pair.ours, "by ours"))
        yield "bullets", pair_verdicts(pair) + [overall(pair, one, where) for one, where in overalls if one]
        yield "table", tables.pair_table(pair, main_metric(summary.protocol))
    if len(summary.kernels) > 2 and summary.pairwise:
        yield "heading", "All pairs"
        yield "table", tables.win_table(summary)


def _comparison(comparison: ComparisonSummary, scores: str) -> Iterator[Block]:
    yield "heading", f"Ranks: {comparison.name}"
    said, ours, published = [], comparison.ours, comparison.published
    if published:
        said.append(ranking_verdict(published, "On the published table"))
        if comparison.dropped:
            said.append(f"This test leaves out {listed(comparison.dropped)}, for which not every number is published.")
    said.append(
        ranking_verdict(ours, "On our table")
        if ours
        else f"Our numbers cannot be ranked yet: there is no complete repeat of {_named(comparison.missing)}."
    )
    yield "bullets", said
    if ours or published:
        yield "table", tables.rank_table(comparison)
        shown = [(ours, "our"), (published, "published")]
        yield "figures", [_rank_figure(one, f"{whose} {scores}", comparison.name) for one, whose in shown if one]


def _named(cells: Sequence[tuple[str, str]]) -> str:
    """Name some cells, or give their number if they are many."""
    if len(cells) > _MAX_NAMED:
        return f"{len(cells)} cells"
    return listed([f"{kernel} on {dataset}" for kernel, dataset in cells])


def _rank_figure(ranking: Ranking, scores: str, name: str) -> Figure:
    ranks = sorted(zip(ranking.mean_ranks, ranking.names, strict=True))
    description = f"Mean ranks on {scores}: {', '.join(f'{kernel} {rank:.2f}' for rank, kernel in ranks)}."
    caption = f"Critical-difference diagram of {scores}: a bar joins kernels that Nemenyi's test does not separate."
    return Figure(f"ranks {name} {scores.split()[0]}", description, caption, partial(plot_ranks, ranking))


# -------------------------------------------------------------------- sentences


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
        f"{'once' if protocol.repeats == 1 else f'repeated {protocol.repeats} times with other splits'}: {state}.{control}"
    )


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
    found, metric = [], main_metric(summary.protocol)
    for dataset in summary.datasets:
        cells = [cell for cell in summary.column(dataset.name) if is_best(cell, summary)]
        if cells:
            few = any(len(cell.repeats) < cell.n_planned for cell in cells)
            after = f" after {counted(min(len(cell.repeats) for cell in cells), 'repeat')}" if few else ""
            deviation, decimals = cells[0].deviation if len(cells) == 1 else None, metric.decimals_of(cells[0].mean)
            number = measured(cells[0].mean, deviation, decimals=decimals)
            found.append(f"on {dataset.name}, {listed([cell.kernel for cell in cells])} with {number}{after}")
    what = f"highest mean {metric.name}" if metric.higher_is_better else f"lowest {metric.name}"
    return f"The {what}: {'; '.join(found)}." if found else ""


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
        sign = "not" if p >= LEVEL else "better" if test.difference > 0 else "worse"
        groups.setdefault(sign, []).append(f"{name} (p {p_value(p)})" if sign != "not" else name)
    words = {
        "better": f"is significantly better than {pair.baseline} on",
        "worse": f"is significantly worse than {pair.baseline} on",
        "not": f"does not differ significantly from {pair.baseline} on",
    }
    said = [f"{words[sign]} {listed(groups[sign])}" for sign in words if sign in groups]
    return f"{pair.kernel} {listed(said)} (level {LEVEL}, p-values after Holm's correction)."


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


def _definitions(summary: Summary) -> list[str]:
    """Define the numbers of the report."""
    strength, values = summary.protocol.strengths
    sources = {"training": "the training graphs of each outer fold", "all": "all graphs, never from their classes"}
    text = render(
        "treegram.study",
        "definitions.txt",
        summary=summary,
        protocol=summary.protocol,
        metric=main_metric(summary.protocol),
        others=other_metrics(summary.protocol),
        model=_model(summary),
        strength=strength,
        values=", ".join(f"{one:g}" for one in sorted(values)),
        learned=[
            (listed([kernel.name for kernel in summary.kernels if kernel.learns_from == source]), graphs)
            for source, graphs in sources.items()
        ],
        rope=f"{ROPE:g}",
        splits=SPLITS,
    )
    return list(filter(None, text.splitlines()))


def _model(summary: Summary) -> str:
    return "a support vector machine" if summary.protocol.task == "classification" else "kernel ridge regression"


def _provenance(summary: Summary) -> list[tuple[str, str]]:
    """Return the origin of the numbers, as names and values."""
    runs = summary.runs
    dates = sorted(run.started for run in runs)
    machines = [", ".join(f"{name} {value}" for name, value in run.machine.items()) for run in runs]
    versions = [", ".join(f"{name} {value}" for name, value in run.versions.items()) for run in runs]
    others = " or a baseline" * any(kernel.is_baseline for kernel in summary.kernels)
    n_failed = sum(cell.n_unconverged for cell in summary.cells)
    found = [
        ("study", f"{summary.study}, seed {summary.protocol.seed}"),
        ("study file", f"SHA-256 {summary.digest}"),
        ("runs", f"{len(runs)}, started {' to '.join(dict.fromkeys([dates[0], dates[-1]]))}" if runs else "none"),
        ("commands", "; ".join(dict.fromkeys(run.command for run in runs))),
        ("machine", "; ".join(dict.fromkeys(machines))),
        ("versions", "; ".join(dict.fromkeys(versions))),
        ("outer folds", f"{sum(len(repeat) for cell in summary.cells for repeat in cell.folds):,}"),
        ("fits", f"{summary.n_fits:,} of {_model(summary)}{others}, {n_failed:,} not converged"),
        ("processor time of the folds", duration(sum(cell.cpu_seconds for cell in summary.cells))),
    ]
    return [(name, value) for name, value in found if value]


# -------------------------------------------------------------------- pictures


@contextmanager
def _style() -> Iterator[None]:
    with matplotlib_module("style").context(_STYLE), warnings.catch_warnings():
        # matplotlib measures text with its own font; a browser finds one that has the character.
        warnings.filterwarnings("ignore", r"Glyph .* missing from", UserWarning)
        yield


def _picture(figure: Figure) -> str:
    """Draw the figure; return it as the address of an SVG image inside the page."""
    with _style(), io.BytesIO() as file:
        figure.draw().figure.savefig(file, format="svg", metadata={"Date": None})
        return f"data:image/svg+xml;base64,{base64.b64encode(file.getvalue()).decode()}"


# -------------------------------------------------------------------- for a paper


def write_latex(summary: Summary, folder: str | os.PathLike[str]) -> list[Path]:
    """Write LaTeX tables into a folder, and ``references.bib`` with the references of everything used.

    Parameters
    ----------
    summary : Summary
        The numbers, from :func:`~treegram.study.summarize`.
    folder : str or path
        The folder, which is created if there is none; files in it are replaced. The tables are those of
        :meth:`Summary.to_latex`, as ``scores.tex`` and so on; those without numbers are left out.

    Returns
    -------
    list of Path
        The files. The tables need the LaTeX packages booktabs and amssymb.
    """
    texts = {f"{name}.tex": summary.to_latex(name) for name in tables.LATEX_TABLES}
    texts["references.bib"] = bibliography(summary)
    return [_write(Path(folder) / name, text.encode()) for name, text in texts.items() if text]


def write_figures(summary: Summary, folder: str | os.PathLike[str]) -> list[Path]:
    """Write all figures of the report as PDF and SVG into a folder.

    Parameters
    ----------
    summary : Summary
        The numbers, from :func:`~treegram.study.summarize`.
    folder : str or path
        The folder, which is created if there is none; files in it are replaced.

    Returns
    -------
    list of Path
        The files: ranks of each comparison, and for each data set scores and times of one Gram matrix.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    blocks = [block for blocks in _sections(summary).values() for block in blocks]
    written = []
    with _style():
        for figure in (figure for kind, figures in blocks if kind == "figures" for figure in figures):
            drawn, name = figure.draw().figure, re.sub(r"[^\w.-]+", "_", figure.name)
            for ending, date in (("pdf", "CreationDate"), ("svg", "Date")):
                with io.BytesIO() as file:
                    drawn.savefig(file, format=ending, metadata={date: None})
                    written.append(_write(Path(folder) / f"{name}.{ending}", file.getvalue()))
    return written


def write_folds(store: Store, path: str | os.PathLike[str]) -> None:
    """Write every outer fold of the study in a store as a line of a CSV file.

    Parameters
    ----------
    store : Store
        The store.
    path : str or path
        The file, which is replaced if there is one. Scores are as in the report: percentages, or in the unit of the targets.
    """
    study = stored_study(store)
    metrics = [main_metric(study.protocol), *other_metrics(study.protocol)]
    with io.StringIO(newline="") as text:
        writer = csv.writer(text)
        names = [metric.name for metric in metrics]
        writer.writerow(
            ["data set", "kernel", "repeat", "fold", "test graphs", *names, "chosen", "inner score", "fits", "seconds"]
        )
        for entry, dataset in ((entry, name) for entry in study.kernels for name in study.datasets):
            for row in store.rows([entry_key(study, entry, dataset)]):
                chosen = json.dumps(dict(row.chosen), ensure_ascii=False)
                place = [dataset, entry.name, row.repeat, row.fold, len(row.actual)]
                scores = ["" if (value := metric.value(row)) is None else value for metric in metrics]
                writer.writerow([*place, *scores, chosen, row.inner_score, row.n_fits, row.seconds])
        _write(Path(path), text.getvalue().encode())


def bibliography(summary: Summary) -> str:
    """Return the BibTeX entries of the kernels, data sets, tests and software of a study; a comment lists what has none."""
    cited = {name for kernel in summary.kernels for name in kernel.kernels} | {one.name for one in summary.datasets}
    used = cited | {name for run in summary.runs for name in run.versions}
    used |= {name for name, has_any in (("ranks", summary.comparisons), ("pairs", summary.pairwise)) if has_any}
    found, known = [], set()
    for entry in resources.files("treegram.study").joinpath("references.bib").read_text("utf-8").split("\n\n"):
        names = re.search(r"\n  treegram = \{(.*)\},", entry)
        if names and used & set(names[1].split(", ")):
            known |= set(names[1].split(", "))
            found.append(entry.replace(names[0], "").strip())
    unknown = sorted(cited - known - {"auto"})
    comment = [f"% No reference is known for: {', '.join(map(visible, unknown))}"] if unknown else []
    return "\n\n".join(comment + found) + "\n"


def _write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(content)
    return path
