"""Tests of output for papers: LaTeX that compiles, references of everything used, and folds as CSV."""

import csv
import re
import shutil
import subprocess
from dataclasses import replace
from importlib import resources

import numpy as np
import pytest
from rows import make_row

from treegram.kernels.registry import AUTO
from treegram.study import Store, plot_ranks, read_study, summarize, write_figures, write_folds, write_latex
from treegram.study.protocol import KernelSpec, Protocol, Study, StudyEntry, entry_key
from treegram.study.report import bibliography
from treegram.study.report_tables import LATEX_TABLES, latex_text

HOSTILE = 'a_b & 50 % \\input{x} $y$ #1 ~ ^ {z} <|> " ü ± χ² ▲ – − × … 漢'  # noqa: RUF001
NAMES = ("ODDCL_ST", "WL", HOSTILE)
PDFLATEX = shutil.which("pdflatex")


@pytest.fixture(scope="module")
def study():
    entries = tuple(StudyEntry(name, (KernelSpec("wl", {"n_iterations": i}),)) for i, name in enumerate(NAMES))
    return Study("paper", ("ENZYMES", "BZR"), entries, Protocol(repeats=2, outer_folds=2, inner_folds=2))


@pytest.fixture
def store(study, tmp_path):
    """Return a store with rows for all cells; the first kernel is by far the best."""
    rng = np.random.default_rng(0)
    with Store.open(tmp_path / "paper.sqlite") as store:
        store.put_study(study.name, study.text)
        store.begin_run("treegram reproduce paper")
        for i, entry in enumerate(study.kernels):
            for dataset in study.datasets:
                for repeat in range(2):
                    for fold in range(2):
                        accuracy = 0.9 - 0.2 * i + 0.01 * float(rng.random())
                        row = make_row(dataset, entry.name, repeat, fold, accuracy, {"C": 1.0})
                        store.add_row(entry_key(study, entry, dataset), row)
        yield store


def parse(text):
    """Check braces and environments, and return the cells of each row of each table."""
    assert not re.sub(r"\\[{}]", "", text).count("{") - re.sub(r"\\[{}]", "", text).count("}")
    assert re.findall(r"\\begin\{(\w+)\}", text) == re.findall(r"\\end\{(\w+)\}", text)[::-1]
    columns = len(re.search(r"\\begin\{(?:tabular|longtable)\}\{(\w+)\}", text)[1])
    body = text.split(r"\toprule")[1].split(r"\bottomrule")[0].replace(r"\midrule", "").replace(r"\endhead", "")
    rows = [re.split(r"(?<!\\) & ", row.strip()) for row in body.split(" \\\\\n")[:-1]]
    assert {len(row) for row in rows} == {columns}
    return rows


def test_tables_match_the_summary(store):
    summary = summarize(store)
    scores = parse(summary.to_latex())
    assert scores[0] == ["kernel", "ENZYMES", "BZR"]
    cell = summary.row("WL")[0]
    assert scores[3][:2] == ["WL", rf"{cell.mean:.2f} $\pm$ {cell.deviation:.2f}"]
    assert scores[2][1].startswith(r"\textbf{")
    ranks = parse(summary.to_latex("ranks"))
    assert [row[1] for row in ranks[1:]] == ["1.00", "2.00", "3.00"]
    wins = parse(summary.to_latex("wins"))
    assert wins[0] == ["kernel", "1", "2", "3"]
    assert wins[1] == [r"1 ODDCL\_ST", "--", r"\textbf{2 / 0}", r"\textbf{2 / 0}"]
    assert wins[2][1:] == ["0 / 2", "--", r"\textbf{2 / 0}"]
    pairs = parse(summary.to_latex("pairs"))
    assert len(pairs) == 1 + 3
    assert pairs[1][0] == r"ODDCL\_ST -- WL"
    assert pairs[1][1].startswith(r"\textbf{+")
    with pytest.raises(ValueError, match="table must be one of 'scores', 'ranks', 'wins', 'pairs'; got 'score'"):
        summary.to_latex("score")


def test_tables_without_numbers_are_empty(study, tmp_path):
    with Store.open(tmp_path / "empty.sqlite") as store:
        summary = summarize(store, study)
    assert [bool(summary.to_latex(name)) for name in LATEX_TABLES] == [True, False, False, False]


def test_long_table_uses_longtable(store):
    summary = summarize(store)
    kernels = tuple(replace(summary.study.kernels[0], name=f"K{i}") for i in range(11))
    cells = tuple(replace(cell, kernel=one.name) for one in kernels for cell in summary.row("WL"))
    text = replace(summary, study=replace(summary.study, kernels=kernels), cells=cells).to_latex("pairs")
    assert r"\begin{longtable}" in text
    assert len(parse(text)) == 1 + 55


@pytest.mark.slow
@pytest.mark.skipif(PDFLATEX is None, reason="no pdflatex on this machine")
def test_tables_figures_and_references_compile(store, tmp_path):
    summary = summarize(store)
    tables, figures = write_latex(summary, tmp_path / "tables"), write_figures(summary, tmp_path / "figures")
    inputs = "".join(rf"\input{{tables/{path.stem}}}" for path in tables if path.suffix == ".tex")
    pictures = "".join(
        rf"\includegraphics[width=5cm]{{figures/{path.name}}}" for path in figures if path.suffix == ".pdf"
    )
    (tmp_path / "paper.tex").write_text(
        r"\documentclass{article}\usepackage[T1]{fontenc}\usepackage{booktabs,amssymb,longtable,graphicx}\begin{document}"
        rf"{inputs}{pictures}\nocite{{*}}\bibliographystyle{{plain}}\bibliography{{tables/references}}\end{{document}}"
    )
    for command in (
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error"],
        ["bibtex"],
        ["pdflatex", "-halt-on-error"],
    ):
        done = subprocess.run(
            [*command, "paper"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stdout[-2000:]
        assert "Warning--" not in done.stdout.replace("Warning--empty year in treegram", "")


def test_any_text_is_escaped_in_latex():
    text = latex_text(HOSTILE)
    assert r"a\_b \& 50 \% \textbackslash{}input\{x\} \$y\$ \#1" in text
    assert "漢" not in text
    assert text.isprintable()


def test_csv_has_one_line_per_fold(store, tmp_path):
    write_folds(store, tmp_path / "folds.csv")
    with (tmp_path / "folds.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    rows = {(row.dataset, row.kernel, row.repeat, row.fold): row for row in store.rows()}
    assert len(lines) == len(rows) == 24
    for line in lines:
        row = rows[line["data set"], line["kernel"], int(line["repeat"]), int(line["fold"])]
        assert float(line["accuracy"]) == 100 * row.score
        assert line["ROC AUC"] == ""
        assert line["chosen"] == '{"C": 1.0}'


# -------------------------------------------------------------------- references


def entries():
    text = resources.files("treegram.study").joinpath("references.bib").read_text("utf-8")
    return re.findall(r"^@\w+\{(\w+),\n  treegram = \{(.*)\},\n((?:  \w+ = \{.*\},\n)+)\}$", text, re.MULTILINE)


def test_references_are_well_formed_and_complete():
    text = resources.files("treegram.study").joinpath("references.bib").read_text("utf-8")
    found = entries()
    assert len(found) == text.count("\n@")
    assert len({key for key, _, _ in found}) == len(found)
    for key, _, fields in found:
        assert {"author", "title"} <= set(re.findall(r"  (\w+) =", fields)), key
        assert fields.count("{") == fields.count("}")
    named = {name for _, names, _ in found for name in names.split(", ")}
    studies = [read_study(name) for name in ("paper", "beyond", "wide", "wide2", "wide2_large")]
    datasets = {name for study in studies for name in study.datasets}
    kernels = {term.kernel for study in studies for one in study.kernels for spec in one.choices for term in spec.terms}
    estimators = {entry.estimator for study in studies for entry in study.kernels if entry.estimator}
    assert (kernels | datasets | estimators) - {AUTO} <= named


def test_kernels_without_a_reference_are_listed(store):
    summary = summarize(store)
    own = replace(summary.study.kernels[0], choices=(KernelSpec("mine"), KernelSpec("wl")))
    assert bibliography(replace(summary, study=replace(summary.study, kernels=(own,)))).startswith(
        "% No reference is known for: mine\n\n@"
    )
    assert "known" not in bibliography(summary)


def test_bibliography_has_only_what_the_study_uses(store):
    summary = summarize(store)
    keys = re.findall(r"^@\w+\{(\w+),", bibliography(summary), re.MULTILINE)
    assert {
        "shervashidze2011weisfeiler",
        "morris2020tudataset",
        "sutherland2003spline",
        "treegram",
        "harris2020array",
    } < {*keys}
    assert {"demsar2006statistical", "nadeau2003inference"} < {*keys}
    assert not {"kriege2016valid", "paszke2019pytorch", "debnath1991structure"} & {*keys}
    assert "treegram =" not in bibliography(summary)


def test_plot_ranks_of_a_summary_shows_the_first_comparison(store):
    summary = summarize(store)
    assert plot_ranks(summary).texts[0].get_text() == plot_ranks(summary.comparisons[0].ours).texts[0].get_text()
