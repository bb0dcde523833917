"""The committed results: pages and README say what the stores give, and the stores are of the studies that are shipped."""

import re
import runpy
import shutil
from pathlib import Path

import pytest

from treegram.experiments import Store, read_study, summarise
from treegram.experiments.report import build_document, render_html, render_markdown

ROOT = Path(__file__).resolve().parents[2]
STUDIES = {"paper": "paper", "beyond": "beyond", "other_folds": ROOT / "results" / "other_folds.toml"}

if not (ROOT / "results").is_dir():
    pytest.skip("no results/ here: it comes with the repository, not with the package", allow_module_level=True)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A copy of the results, as reading them may leave files beside them."""
    return shutil.copytree(ROOT / "results", tmp_path_factory.mktemp("copy") / "results")


@pytest.fixture(scope="module")
def tables():
    return runpy.run_path(str(ROOT / "benchmarks" / "result_tables.py"))


@pytest.fixture(scope="module", params=STUDIES)
def study(request):
    return request.param


@pytest.fixture(scope="module")
def document(study, results):
    with Store.open(results / f"{study}.sqlite", create=False) as store:
        return build_document(summarise(store))


def without_drawings(page):
    """The page; of each picture its description alone, as matplotlib's versions differ in where they put a letter."""
    return re.sub(r"(<svg [^>]*>).*?</svg>", r"\1</svg>", page, flags=re.DOTALL)


HINT = "run python benchmarks/result_tables.py"


def test_the_markdown_is_what_the_store_gives(study, document, results):
    assert (results / f"{study}.md").read_text() == render_markdown(document), HINT


def test_the_page_is_what_the_store_gives(study, document, results):
    committed = (results / f"{study}.html").read_text()
    assert without_drawings(committed) == without_drawings(render_html(document)), HINT
    assert committed.count("<svg ") == without_drawings(committed).count("</svg>") > 0


def test_a_store_is_of_the_study_that_is_shipped(study, results):
    with Store.open(results / f"{study}.sqlite", create=False) as store:
        assert store.study_text() == read_study(STUDIES[study]).text


def test_the_readme_shows_the_results(tables, results):
    readme = (ROOT / "README.md").read_text()
    assert readme.count("<!-- results: ") == readme.count("<!-- end of results -->") == 2
    assert tables["updated"](readme, results) == readme, HINT
    damaged = readme.replace("| largest class | 78.2 |", "| largest class | 98.2 |")
    assert damaged != readme
    assert tables["updated"](damaged, results) == readme


def test_the_readme_says_how_long_the_papers_kernel_took(tables, results):
    minutes = tables["minutes"]("paper", "ODDCL_ST", results)
    assert f"on all six data sets took {minutes:.1f} minutes of processor time" in (ROOT / "README.md").read_text()


def test_what_the_readme_says_about_tests_is_what_they_say(results):
    with Store.open(results / "paper.sqlite", create=False) as store:
        ranking = summarise(store).comparisons[0].ours
    assert (round(ranking.p_value, 3), len(ranking.names), ranking.n_datasets) == (0.049, 10, 6)
    assert max(ranking.mean_ranks) - min(ranking.mean_ranks) < ranking.critical_difference  # no pair is separated
