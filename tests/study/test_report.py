"""Tests of reports: content, escaping, and partial studies."""

import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from rows import make_row

from treegram._core.text import listed
from treegram.study import report
from treegram.study.plots import _short
from treegram.study.protocol import Comparison, KernelSpec, Pair, Protocol, Published, Study, StudyEntry, entry_key
from treegram.study.report import render_report
from treegram.study.report_tables import NONE, brief_text, duration, measured, p_value, percent, score_table, signed
from treegram.study.significance import friedman_nemenyi
from treegram.study.store import DatasetFacts, GramTime, Store
from treegram.study.study_file import read_study
from treegram.study.summary import summarize

HOSTILE = "<script>document.title='owned'</script>\" onload='x' | `a` $x_1$ & \\"
VOID = {"meta", "br", "img"}


def write_html(summary):
    return render_report(summary, ".html")


def write_markdown(summary):
    return render_report(summary, ".md")


def make_study(n_kernels=3, datasets=("D1", "D2"), published=True, **options):
    def entry(i):
        numbers = {"accuracy": {"D1": 70.0 + i}, "deviation": {"D1": 1.0}, "seconds": {"D1": 60.0}}
        numbers["accuracy"] |= {"D2": "out of memory"} if i == 0 else {"D2": 80.0 - i}
        choice = KernelSpec("wl", param_grid={"n_iterations": tuple(range(i + 1))})
        return StudyEntry(
            f"K{i}",
            (choice,),
            note=f"note of K{i}",
            published=Published(**numbers) if published else Published(),
        )

    names = tuple(f"K{i}" for i in range(n_kernels))
    if published and n_kernels > 3:
        options["comparisons"] = (Comparison("everything", names, datasets),)
        options["pairs"] = (Pair("K1", ("K2",), datasets),)
    return Study(
        name="example",
        title="An example",
        datasets=datasets,
        kernels=tuple(map(entry, range(n_kernels))),
        protocol=Protocol(repeats=3, outer_folds=4, inner_folds=2, C=(1.0, 10.0)),
        **options,
    )


def fill(store, study, repeats=3, skip=()):
    """Add rows for all cells; accuracies increase with the number of the kernel."""
    rng = np.random.default_rng(0)
    run = store.begin_run("treegram reproduce example").id
    for dataset in study.datasets:
        store.put_dataset(DatasetFacts(dataset, 40, {"a": 30, "b": 10}, 5.0, 4.0, 2, "d2"))
        for i, entry in enumerate(study.kernels):
            key = entry_key(study, entry, dataset)
            if (entry.name, dataset) in skip:
                continue
            store.add_gram_time(key, GramTime(dataset, entry.name, {}, 0.5, learns=False, run=run))
            for repeat in range(repeats):
                for fold in range(study.protocol.outer_folds):
                    value = 0.8 + 0.03 * i + 0.02 * float(rng.random())
                    chosen = {"kernel": "wl", "n_iterations": i, "C": 10.0}
                    store.add_row(key, make_row(dataset, entry.name, repeat, fold, value, chosen))


@pytest.fixture
def summary_of(tmp_path):
    def build(study, *, filled=True, **options):
        with Store.open(tmp_path / f"{len(list(tmp_path.iterdir()))}.sqlite") as store:
            if filled:
                fill(store, study, **options)
            return summarize(store, study)

    return build


class Page(HTMLParser):
    """Parse a page into elements and text; fail if an element is not closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def count(self, tag):
        return sum(name == tag for name, _ in self.elements)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).replace("\N{NO-BREAK SPACE}", " ").split())


# -------------------------------------------------------------------- numbers and verdicts


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (measured(83.014, 1.949), "83.01 ± 1.95"),
        (measured(83.0), "83.00"),
        (measured(None), NONE),
        (signed(-0.6), "\N{MINUS SIGN}0.60"),
        (signed(1.234), "+1.23"),
        (signed(-0.004), "0.00"),
        (duration(0.0177), "17.7 ms"),
        (duration(0.5), "500 ms"),
        (duration(1.285), "1.3 s"),
        (duration(2100), "35 min"),
        (duration(665280), "7.7 d"),
        (duration(0), "0 ms"),
        (duration(None), NONE),
        (p_value(0.00001), "< 0.001"),
        (p_value(0.0081), "= 0.008"),
        (p_value(0.487), "= 0.49"),
        (percent(0.001), "< 1 %"),
        (percent(0.9999), "> 99 %"),
        (percent(1.0), "100 %"),
        (listed(["A", "B", "C"]), "A, B and C"),
        (listed(["A"]), "A"),
    ],
)
def test_numbers_are_formatted(written, expected):
    assert written == expected


def test_ranking_verdict_names_significant_differences_only():
    scores = np.tile([3.0, 2.0, 1.0], (12, 1))
    said = report.ranking_verdict(friedman_nemenyi(scores, ["A", "B", "C"]), "Here")
    assert said == (
        "Here, A has the best mean rank, 1.00, of 3 kernels on 12 data sets. The kernels are not all equal (Friedman's test: "
        "χ² = 24.00, p < 0.001): A is significantly better than B and C; B is significantly better than C (Nemenyi's test: mean "
        "ranks must differ by 0.96)."
    )
    scores[:6] = scores[:6, ::-1]
    said = report.ranking_verdict(friedman_nemenyi(scores, ["A", "B", "C"]), "Here")
    assert said.startswith(
        "Here, A, B and C share the best mean rank, 2.00, of 3 kernels on 12 data sets. No difference"
    )


def test_report_checks_the_claims_of_the_paper(summary_of):
    summary = summary_of(read_study("paper"), filled=False)
    markdown = write_markdown(summary)
    assert "χ² = 22.25, p = 0.008" in markdown
    assert "p = 0.008): ODDCL_ST is significantly better than P2K (Nemenyi's test" in markdown
    assert "No difference between kernels is significant (Friedman's test: χ² = 10.49, p = 0.49)." in markdown
    assert "The published numbers of CSM are incomplete and not ranked." in markdown
    assert (
        "ODDCL_ST is significantly better than WL on BZR (p < 0.001) and ENZYMES (p < 0.001) and does not differ significantly "
        "from WL on COX2 and DHFR (Welch's t-test on the published means and deviations" in markdown
    )


def test_headline_counts_runs_and_agreements(summary_of):
    summary = summary_of(make_study(4))
    counts, agreement = report._lines("lead.txt", summary)
    assert counts.endswith("all 24 runs done.")
    # Published: 7 numbers. On D1 70, 71, 72, 73 ± 1; on D2 79, 78, 77 without deviation. Ours: 81, 84, 87, 90.
    assert agreement.startswith(
        "Of 7 published accuracies, ours agree with 0 within two standard deviations; 7 of ours are higher and 0 lower."
    )


def test_all_tied_best_kernels_are_bold(summary_of):
    summary = summary_of(make_study(3))
    shared = [
        replace(cell, mean=90.0 + 1e-9 * i if i else 80.0, repeats=(0,) if i else cell.repeats)
        for i, cell in enumerate(summary.row(name)[0] for name in ("K0", "K1", "K2"))
    ]
    summary = replace(summary, cells=(*shared, *(cell for cell in summary.cells if cell.dataset != "D1")))
    column = [row[1] for row in score_table(summary).rows]  # below the largest class
    assert [cell.is_best for cell in column] == [False, False, True, True]


def test_plot_labels_are_short_and_distinct():
    assert _short(["WL", "ODDCL_ST"]) == ["WL", "ODDCL_ST"]
    found = _short(["a" * 99 + "1", "a" * 99 + "2", "a" * 50 + "b" + "a" * 98 + "2"])
    assert len(set(found)) == 3
    assert max(map(len, found)) < 36


def test_pair_verdicts_use_holm_correction(summary_of):
    """A p-value of 0.018 is significant alone, but not as one of three."""
    study = make_study(published=False, datasets=("D1", "D2", "D3"), pairs=(Pair("K1", "K2", ("D1", "D2", "D3")),))
    (pair,) = summary_of(study).pairs
    tests = [
        replace(test, corrected=replace(test.corrected, p_value=p, difference=-1.0))
        for test, p in zip(pair.tests, (0.018, 0.5, 0.6), strict=True)
    ]
    said = report.pair_verdicts(replace(pair, tests=tuple(tests)))
    assert said[0] == (
        "K1 does not differ significantly from K2 on any of 3 data sets (corrected resampled t-test on our folds, level 0.05 "
        "after Holm's correction)."
    )
    assert said[1].startswith("On all these data sets together, K1 is better than K2 with probability")


# -------------------------------------------------------------------- text


def test_text_table_has_our_numbers_above_the_published_ones(summary_of):
    lines = brief_text(summary_of(make_study(4), skip={("K1", "D2")})).splitlines()
    assert lines[0].split() == ["accuracy,", "%", "D1", "D2"]
    assert lines[2].split() == ["largest", "class", "75.0", "75.0"]
    rows = {line[:4].strip(): i for i, line in reversed([*enumerate(lines)])}  # the first table
    first = rows["K0"]
    assert re.fullmatch(r"K0 +8\d\.\d ±\d\.\d \* +8\d\.\d ±\d\.\d", lines[first])
    assert lines[first + 1].split(maxsplit=3) == ["published", "70.0", "±1.0", "out of memory"]
    assert lines[rows["K1"]].endswith(" -")
    assert max(map(len, lines)) < 80


def test_text_table_without_published_numbers_has_only_ours(summary_of):
    table = brief_text(summary_of(make_study(2, published=False), repeats=1))
    assert "published" not in table
    assert "*" not in table
    assert "4 of 4 cells with fewer than 3 repeats" in table


@pytest.mark.parametrize("published", [True, False])
def test_pairs_have_a_published_column_if_there_are_published_numbers(summary_of, published):
    study = make_study(published=published, pairs=(Pair("K1", ("K2",), ("D1", "D2")),))
    heads = [line for line in write_markdown(summary_of(study)).splitlines() if line.startswith("| data set |")]
    tested = [head for head in heads if "p-value after Holm" in head]
    assert len(tested) == 1
    assert ("| published |" in tested[0]) == published


def test_unconverged_fits_are_reported_in_every_format(summary_of):
    summary = summary_of(make_study(1, ("D1",)))
    (cell,) = summary.cells
    summary = replace(summary, cells=(replace(cell, n_unconverged=2),))
    assert brief_text(summary).endswith("2 of 108 fits did not converge.")
    assert "2 of 108 fits did not converge." in write_markdown(summary)
    assert "2 fits not converged" in write_html(summary)


# -------------------------------------------------------------------- Markdown


def tables(markdown):
    """Return the cells of each row of each table."""
    blocks = [block.splitlines() for block in markdown.split("\n\n") if block.startswith("|")]
    return [[re.split(r"(?<!\\)\|", line)[1:-1] for line in block] for block in blocks]


def test_markdown_tables_are_well_formed(summary_of):
    markdown = write_markdown(summary_of(make_study(4), skip={("K1", "D2")}, repeats=2))
    found = tables(markdown)
    assert len(found) >= 5
    for table in found:
        assert len({len(row) for row in table}) == 1
        assert set(map(str.strip, table[1])) == {"---"}
    accuracies = {row[0].strip(): row for row in found[0]}
    assert "70.00 ± 1.00, ▲ +1" in accuracies["K0"][1]
    assert "2 of 3 repeats" in accuracies["K0"][1]
    assert "out of memory" in accuracies["K0"][2]
    assert accuracies["K1"][2].strip().startswith(NONE)
    assert "note of K2" in markdown
    assert "treegram reproduce example" in markdown


def test_hostile_text_is_escaped_in_markdown(summary_of):
    study = make_study(3, datasets=("D1",))
    study = replace(study, title=HOSTILE, kernels=(replace(study.kernels[0], name=HOSTILE, note=HOSTILE + "\n\n# x"),))
    markdown = write_markdown(summary_of(study))
    assert "<script" not in markdown
    assert "\n# x" not in markdown
    for table in tables(markdown):
        assert len({len(row) for row in table}) == 1


# -------------------------------------------------------------------- HTML


def test_page_has_all_sections_and_numbers(summary_of):
    summary = summary_of(make_study(4), repeats=2, skip={("K1", "D2")})
    html = write_html(summary)
    page = Page(html)
    titles = ["Accuracy", "Time", "Ranks: everything", "K1 against K2", "All pairs", "Chosen parameters", "Provenance"]
    for title in titles:
        assert f"<h2>{title}</h2>" in html
    assert (
        page.count("img") == 2 + 2 + 1
    )  # accuracy, times, ranks of K1 to K3 as published; K1 on D2 is missing in ours
    cell = summary.row("K0")[0]
    assert f"{cell.mean:.2f} ± {cell.deviation:.2f}" in page.text
    assert f"70.00 ± 1.00, ▲ {signed(cell.difference)} 2 of 3 repeats" in page.text
    assert "largest class 75.00 75.00" in page.text
    assert "Our numbers cannot be ranked yet: there is no complete repeat of K1 on D2." in page.text
    assert "n_iterations 3, C 10 100 %" in page.text
    assert f"study file: SHA-256 {summary.study.digest}" in page.text


def test_complete_page_has_diagrams_of_both_rankings(summary_of):
    study = make_study(4)
    study = replace(study, comparisons=(Comparison("without K0", ("K1", "K2", "K3"), study.datasets),))
    page = Page(write_html(summary_of(study)))
    labels = [attributes["alt"] for tag, attributes in page.elements if tag == "img"]
    assert sum(label.startswith("Mean ranks on our numbers:") for label in labels) == 1
    assert sum(label.startswith("Mean ranks on published numbers:") for label in labels) == 1


def test_page_is_self_contained(summary_of):
    html = write_html(summary_of(make_study(4)))
    page = Page(html)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    used = re.findall(r'href="#([^")]+)', html)
    assert used
    assert set(used) <= set(ids)
    assert page.count("script") == page.count("link") == 0
    assert all(a["src"].startswith("data:image/svg+xml;base64,") for tag, a in page.elements if tag == "img")
    assert "http://" not in html
    assert "https://" not in html
    policies = [a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policies[0].startswith("default-src 'none'; style-src 'unsafe-inline'")


def test_hostile_text_is_escaped_in_html(summary_of):
    study = make_study(3, datasets=("D1", HOSTILE), published=False, about=HOSTILE, reference=HOSTILE)
    entries = tuple(
        replace(entry, name=HOSTILE + str(i), note=HOSTILE, published=Published(accuracy={"D1": HOSTILE}))
        for i, entry in enumerate(study.kernels)
    )
    study = replace(study, title=HOSTILE, name=HOSTILE, kernels=entries, dataset_notes={"D1": HOSTILE})
    page = Page(write_html(summary_of(study)))
    assert page.count("script") == 0
    assert not [attributes for _, attributes in page.elements if "onload" in attributes]
    assert page.text.count("document.title='owned'") > 20


def test_same_summary_gives_the_same_page(summary_of):
    summary = summary_of(make_study(2, ("D1",)))
    assert write_html(summary) == write_html(summary)


@pytest.mark.parametrize(
    ("n_kernels", "datasets", "published", "filled"),
    [
        (1, ("D1",), False, False),
        (1, ("D1",), False, True),
        (2, ("D1",), True, False),
        (2, ("D1",), False, True),
        (3, ("D1", "D2"), True, True),
    ],
)
def test_partial_studies_give_a_report(summary_of, n_kernels, datasets, published, filled):
    summary = summary_of(make_study(n_kernels, datasets, published), filled=filled)
    page = Page(write_html(summary))
    assert "K0" in page.text
    assert ("mean time of an outer fold" in page.text) is filled
    assert write_markdown(summary).count("K0") >= 2
    assert brief_text(summary)


def test_missing_matplotlib_error_says_what_to_install(summary_of, monkeypatch):
    summary = summary_of(make_study(1, ("D1",)))
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install matplotlib"):
        write_html(summary)
    assert write_markdown(summary)
