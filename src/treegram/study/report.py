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
from treegram.study.tables import LEVEL, Table, duration, p_value, percent, signed

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
    from markupsafe import Markup

    return render(
        "treegram.study",
        f"report{ending}",
        summary=summary,
        latest=max((run.started[:10] for run in summary.runs), default="nothing run yet"),
        paragraphs=_lines("lead.txt", summary),
        sections=list(_sections(summary)),
        text=tables.markdown_text,
        table=lambda table: Markup(tables.markdown_table(table)),  # several lines
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
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()


def _sections(summary: Summary) -> Iterator[Section]:
    metric = main_metric(summary.protocol)
    names = [dataset.name for dataset in summary.datasets]
    scores = [
        Figure(
            f"scores {name}",
            f"{name}: {metric.name} of each kernel; bars are standard deviations over repeats.",
            partial(plot_scores, summary, name),
        )
        for name in names
        if any(cell.mean is not None for cell in summary.column(name))
    ]
    yield Section(metric.name.capitalize(), tables=[tables.score_table(summary)], figures=scores)
    if remarks := [*filter(None, [*summary.remarks, tables.unconverged(summary)])]:
        yield Section("Remarks", remarks)
    if others := list(tables.other_tables(summary)):
        yield Section("Other scores", tables=others)
    if any(cell.folds for cell in summary.cells):
        times = [
            Figure(
                f"times {name}", f"{name}: time of one Gram matrix of each kernel.", partial(plot_times, summary, name)
            )
            for name in names
            if any(cell.gram_seconds for cell in summary.column(name))
        ]
        yield Section("Time", tables=[tables.time_table(summary)], figures=times)
    for comparison in summary.comparisons:
        yield _comparison(comparison)
    for pair in summary.pairs:
        table = tables.pair_table(pair, higher_is_better=metric.higher_is_better)
        overalls = ((pair.published, "by the published numbers"), (pair.ours, "by ours"))
        sentences = pair_verdicts(pair) + [overall(pair, one, where) for one, where in overalls if one]
        yield Section(f"{pair.kernel} against {pair.baseline}", sentences, [table])
    if len(summary.kernels) > 2 and summary.pairwise:
        yield Section("All pairs", tables=[tables.win_table(summary)])
    if any(cell.folds for cell in summary.cells):
        yield Section("Chosen parameters", tables=[tables.chosen_table(summary)])
    yield Section("Data sets", tables=[tables.dataset_table(summary)])
    yield Section("Kernels", tables=[tables.kernel_table(summary)])
    yield Section("Definitions", _lines("definitions.txt", summary))
    yield Section("Provenance", _lines("provenance.txt", summary))


def _comparison(comparison: ComparisonSummary) -> Section:
    sentences, figures = [], []
    if published := comparison.published:
        sentences.append(ranking_verdict(published, "On the published table"))
        if comparison.dropped:
            sentences.append(
                f"This test leaves out {listed(comparison.dropped)}, for which not every number is published."
            )
    if ours := comparison.ours:
        sentences.append(ranking_verdict(ours, "On our table"))
    else:
        missing = [f"{kernel} on {dataset}" for kernel, dataset in comparison.missing]
        sentences.append(
            f"Our numbers cannot be ranked yet: there is no complete repeat of {listed(missing[:5])}"
            f"{' and others' if len(missing) > 5 else ''}."
        )
    for whose, ranking in (("our", ours), ("published", published)):
        if ranking:
            caption = f"Mean ranks on {whose} numbers: a bar joins kernels that Nemenyi's test does not separate."
            figures.append(Figure(f"ranks {comparison.name} {whose}", caption, partial(plot_ranks, ranking)))
    ranks = [tables.rank_table(comparison)] if figures else []
    return Section(f"Ranks: {comparison.name}", sentences, ranks, figures)


# -------------------------------------------------------------------- sentences


def _lines(template: str, summary: Summary) -> list[str]:
    """Render a template of sentences about a summary; return its lines."""
    text = render(
        "treegram.study",
        template,
        summary=summary,
        protocol=summary.protocol,
        metric=main_metric(summary.protocol),
        others=other_metrics(summary.protocol),
        rope=f"{ROPE:g}",
        controls=CONTROLS,
        splits=SPLITS,
        counted=counted,
        duration=duration,
        listed=listed,
        median=median,
        signed=signed,
    )
    return list(filter(None, text.split("\n")))


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
    """State the results of the t-tests of two kernels after Holm's correction, on the published numbers, then on ours."""
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
    """State on which data sets the kernels differ significantly, by p-values after Holm's correction."""
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
    """State on which data sets the kernel is as good as the best of the others."""
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


# -------------------------------------------------------------------- files


@contextmanager
def _style() -> Iterator[None]:
    with matplotlib_module("style").context(_STYLE), warnings.catch_warnings():
        # matplotlib measures text with its own font; a browser will find one that has the character.
        warnings.filterwarnings("ignore", r"Glyph .* missing from", UserWarning)
        yield


def _drawn(figure: Figure, ending: str) -> bytes:
    """Draw the figure as ``svg`` or ``pdf``, without its date."""
    with _style(), io.BytesIO() as file:
        figure.draw().figure.savefig(
            file, format=ending, metadata={"CreationDate" if ending == "pdf" else "Date": None}
        )
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
