"""Write the report of a study: a page or Markdown, and for a paper LaTeX tables, figures, every fold as CSV, and references."""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from treegram.study import report_tables as tables
from treegram.study.metrics import main_metric, other_metrics
from treegram.study.plots import plot_ranks, plot_scores, plot_times
from treegram.study.protocol import SPLITS, entry_key, estimator_text
from treegram.study.report_tables import ReportTable, duration, p_value, percent, signed
from treegram.study.significance import LEVEL, Ranking, TTest, holm
from treegram.study.store import Store
from treegram.study.summary import ROPE, ComparisonSummary, PairSummary, Summary, stored_study

_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "treegram",  # otherwise ids are random
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],  # the second is as wide, if the first is missing
    "text.parse_math": False,  # a dollar sign in a kernel's name is just that
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
    """Return the report as ``.html`` or ``.md``. Names and notes of the study are treated as text, never as markup."""
    return render(
        "treegram.study",
        f"report{ending}",
        summary=summary,
        title=summary.study.title or f"Study {summary.study.name}",
        latest=max((run.started[:10] for run in summary.runs), default="nothing run yet"),
        paragraphs=_lines("lead.txt", summary),
        sections=list(_sections(summary)),
        text=tables.markdown_text,
        picture=_picture,
    )


# -------------------------------------------------------------------- sections of the report


@dataclass(frozen=True)
class Figure:
    """A picture, drawn when it is written. Markdown omits it: a table has the same numbers."""

    name: str  # of its file
    caption: str
    draw: Callable[[], Any]  # returns matplotlib's axes


@dataclass(frozen=True)
class Section:
    """A part of the report: sentences, then tables, then figures."""

    title: str
    sentences: Sequence[str] = ()
    tables: Sequence[ReportTable] = ()
    figures: Sequence[Figure] = ()


def _sections(summary: Summary) -> Iterator[Section]:
    study, metric = summary.study, summary.metric
    has_results = any(cell.folds for cell in summary.cells)
    yield Section(
        metric.name.capitalize(),
        tables=[tables.score_table(summary)],
        figures=[
            Figure(
                f"scores {name}",
                f"{name}: {metric.name} of each kernel; bars are standard deviations over repeats.",
                partial(plot_scores, summary, name),
            )
            for name in study.datasets
            if any(cell.mean is not None for cell in summary.column(name))
        ],
    )
    if remarks := [*filter(None, [*study.remarks, tables.unconverged(summary)])]:
        yield Section("Remarks", remarks)
    if other_tables := tables.other_tables(summary):
        yield Section("Other scores", tables=other_tables)
    if has_results:
        times = [
            Figure(
                f"times {name}", f"{name}: time of one Gram matrix of each kernel.", partial(plot_times, summary, name)
            )
            for name in study.datasets
            if any(cell.gram_seconds for cell in summary.column(name))
        ]
        yield Section("Time", tables=[tables.time_table(summary)], figures=times)
    for comparison in summary.comparisons:
        yield _comparison(comparison)
    for pair in summary.pairs:
        table = tables.pair_table(pair, higher_is_better=metric.higher_is_better)
        yield Section(f"{pair.kernel} against {pair.baseline}", pair_verdicts(pair), [table])
    if len(study.kernels) > 2 and summary.pairwise:
        yield Section("All pairs", tables=[tables.win_table(summary)])
    if has_results:
        yield Section("Chosen parameters", tables=[tables.chosen_table(summary)])
    yield Section("Data sets", tables=[tables.dataset_table(summary)])
    yield Section("Kernels", tables=[tables.kernel_table(summary)])
    yield Section("Definitions", _lines("definitions.txt", summary))
    yield Section("Provenance", _lines("provenance.txt", summary))


def _comparison(comparison: ComparisonSummary) -> Section:
    sentences, figures = [], []
    for whose, ranking in (("published", comparison.published), ("our", comparison.ours)):
        if ranking:
            sentences.append(ranking_verdict(ranking, f"By {whose} numbers"))
            caption = f"Mean ranks on {whose} numbers: a bar joins kernels that Nemenyi's test does not separate."
            figures.append(Figure(f"ranks {comparison.name} {whose}", caption, partial(plot_ranks, ranking)))
    if comparison.published and comparison.dropped:
        sentences.append(f"The published numbers of {listed(comparison.dropped)} are incomplete and not ranked.")
    if comparison.missing:
        cells = [f"{kernel} on {dataset}" for kernel, dataset in comparison.missing[:5]]
        more = " and others" if len(comparison.missing) > 5 else ""
        sentences.append(f"Our numbers cannot be ranked yet: there is no complete repeat of {listed(cells)}{more}.")
    ranks = [tables.rank_table(comparison)] if figures else []
    return Section(f"Ranks: {comparison.name}", sentences, ranks, figures)


# -------------------------------------------------------------------- sentences


def _lines(template: str, summary: Summary) -> list[str]:
    """Render a template of sentences about a summary; return its lines."""
    entries = summary.study.kernels
    text = render(
        "treegram.study",
        template,
        summary=summary,
        protocol=summary.study.protocol,
        metric=summary.metric,
        other_metrics=other_metrics(summary.study.protocol),
        learners={
            source: [entry.name for entry in entries if summary.learns_from(entry) == source]
            for source in ("training", "all")
        },
        rope=f"{ROPE:g}",
        splits=SPLITS,
        counted=counted,
        duration=duration,
        listed=listed,
        median=median,
        signed=signed,
    )
    return list(filter(None, text.split("\n")))


def ranking_verdict(ranking: Ranking, where: str) -> str:
    """State the results of Friedman's and Nemenyi's tests; ``where`` begins the sentence."""
    ordered = sorted(zip(ranking.mean_ranks, ranking.names, strict=True))
    best = [name for rank, name in ordered if rank == ordered[0][0]]
    leads = f"{where}, {listed(best)} {'has' if len(best) == 1 else 'share'} the best mean rank, {ordered[0][0]:.2f}"
    friedman = f"Friedman's test: χ² = {ranking.statistic:.2f}, p {p_value(ranking.p_value)}"
    leads += f", of {len(ranking.names)} kernels on {ranking.n_datasets} data sets."
    if ranking.p_value >= LEVEL:
        return f"{leads} No difference between kernels is significant ({friedman})."
    worse = {
        name: [rival for place, rival in ordered if place - rank >= ranking.critical_difference]
        for rank, name in ordered
    }
    claims = [f"{name} is significantly better than {listed(rivals)}" for name, rivals in worse.items() if rivals]
    nemenyi = f"Nemenyi's test: mean ranks must differ by {ranking.critical_difference:.2f}"
    if not claims:
        return f"{leads} The kernels are not all equal ({friedman}), but no two differ significantly ({nemenyi})."
    return f"{leads} The kernels are not all equal ({friedman}): {'; '.join(claims)} ({nemenyi})."


def pair_verdicts(pair: PairSummary) -> list[str]:
    """State the results of the tests of two kernels, on the published numbers and on ours."""
    published = {test.dataset: test.published for test in pair.tests if test.published}
    corrected = {test.dataset: test.corrected for test in pair.tests if test.corrected}
    sentences = []
    if published:
        sentences.append(_verdict(pair, published, "Welch's t-test on the published means and deviations"))
    if corrected:
        sentences.append(_verdict(pair, corrected, "corrected resampled t-test on our folds"))
    if corrected and len(pair.baselines) > 1:
        sentences.append(_within_rope(pair))
    if overall := pair.posterior:
        sentences.append(
            f"On all these data sets together, {pair.kernel} is better than {pair.baseline} with probability "
            f"{percent(overall.first_better)}, worse with {percent(overall.second_better)}, and within {ROPE:g} point of it with "
            f"{percent(overall.practically_equal)} (Bayesian signed-rank test on our numbers)."
        )
    return sentences


def _verdict(pair: PairSummary, tests: Mapping[str, TTest], name_of_test: str) -> str:
    """State on which data sets the kernels differ significantly, by p-values after Holm's correction."""
    better: list[str] = []
    worse: list[str] = []
    undecided: list[str] = []
    for (name, test), p in zip(tests.items(), holm([test.p_value for test in tests.values()]), strict=True):
        if p >= LEVEL:
            undecided.append(name)
        else:
            (better if test.difference > 0 else worse).append(f"{name} (p {p_value(p)})")
    claims = [
        f"is significantly {word} than {pair.baseline} on {listed(names)}"
        for word, names in (("better", better), ("worse", worse))
        if names
    ]
    if undecided:
        where = listed(undecided) if claims else f"any of {counted(len(undecided), 'data set')}"
        claims.append(f"does not differ significantly from {pair.baseline} on {where}")
    return f"{pair.kernel} {listed(claims)} ({name_of_test}, level {LEVEL} after Holm's correction)."


def _within_rope(pair: PairSummary) -> str:
    """State on which data sets the kernel is as good as the best of the others."""
    tested = [(test, test.corrected.difference) for test in pair.tests if test.corrected]
    lower = [f"{test.dataset} ({signed(points)} to {test.baseline})" for test, points in tested if points < -ROPE]
    but = f"; it is lower by more than {ROPE:g} point on {listed(lower)}" if lower else ""
    return (
        f"{pair.kernel} is within {ROPE:g} point of the best of the others, or above it, on {len(tested) - len(lower)} of "
        f"{counted(len(tested), 'data set')}{but}. The best of the others is chosen on each data set in hindsight, which favors it."
    )


# -------------------------------------------------------------------- files


def _drawn(figure: Figure, ending: str) -> bytes:
    """Draw the figure as ``svg`` or ``pdf``, without its date."""
    metadata = {"CreationDate" if ending == "pdf" else "Date": None}
    with matplotlib_module("style").context(_STYLE), warnings.catch_warnings(), io.BytesIO() as file:
        # matplotlib measures text with its own font; a browser will find one that has the character.
        warnings.filterwarnings("ignore", r"Glyph .* missing from", UserWarning)
        figure.draw().figure.savefig(file, format=ending, metadata=metadata)
        return file.getvalue()


def _picture(figure: Figure) -> str:
    """Return the figure as an SVG data URL."""
    return f"data:image/svg+xml;base64,{base64.b64encode(_drawn(figure, 'svg')).decode()}"


def write_latex(summary: Summary, folder: str | os.PathLike[str]) -> list[Path]:
    """Write LaTeX tables into a folder, and ``references.bib`` with the references of everything used.

    Parameters
    ----------
    summary : Summary
        The numbers, from :func:`~treegram.study.summarize`.
    folder : str or path
        The folder, which is created if it does not exist; files in it are replaced. The tables are those of
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
        The folder, which is created if it does not exist; files in it are replaced.

    Returns
    -------
    list of Path
        The files: ranks of each comparison, and for each data set scores and times of one Gram matrix.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    written = []
    for figure in (figure for section in _sections(summary) for figure in section.figures):
        name = re.sub(r"[^\w.-]+", "_", figure.name)
        written += [_write(Path(folder) / f"{name}.{ending}", _drawn(figure, ending)) for ending in ("pdf", "svg")]
    return written


def write_folds(store: Store, path: str | os.PathLike[str]) -> None:
    """Write every outer fold of the study in a store as a line of a CSV file.

    Parameters
    ----------
    store : Store
        The store.
    path : str or path
        The file, which is replaced if it exists. Scores are as in the report: percentages, or in the unit of the targets.
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
    """Return BibTeX entries for the kernels, data sets, tests and software of a study; a comment lists those without one."""
    cited = set(summary.study.datasets) | {
        estimator_text(entry.estimator) for entry in summary.study.kernels if entry.estimator
    }
    cited |= {term.kernel for entry in summary.study.kernels for spec in entry.choices for term in spec.terms}
    used = cited | {name for run in summary.runs for name in run.versions}
    used |= {name for name, has_any in (("ranks", summary.comparisons), ("pairs", summary.pairwise)) if has_any}
    references, covered = [], {"auto"}
    for reference in resources.files("treegram.study").joinpath("references.bib").read_text("utf-8").split("\n\n"):
        names = re.search(r"\n  treegram = \{(.*)\},", reference)
        if names and used & set(names[1].split(", ")):
            covered |= set(names[1].split(", "))
            references.append(reference.replace(names[0], "").strip())
    unknown = sorted(cited - covered)
    comment = [f"% No reference is known for: {', '.join(map(visible, unknown))}"] if unknown else []
    return "\n\n".join(comment + references) + "\n"


def _write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(content)
    return path
