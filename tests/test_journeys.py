"""Tests of the journeys of the gallery, from raw data to the final table, page or file: their length and their results."""

import csv
import re
import runpy
from pathlib import Path

import matplotlib
import pandas as pd
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "6_journeys"
# Most lines, imports included, and packages that a journey needs besides treegram's own.
JOURNEYS = {
    "plot_networks.py": (10, ["networkx"]),
    "plot_proteins.py": (8, ["gemmi"]),
    "plot_molecules.py": (8, ["rdkit"]),
    "from_grakel.py": (8, ["grakel"]),
    "from_pyg.py": (6, ["torch_geometric"]),
    "plot_paper.py": (4, []),
}


def whole_journey(name):
    text = (FOLDER / name).read_text(encoding="utf-8")
    (cell,) = re.findall(r"# The whole journey\n.*?\n\n(.*?)\n# %%", text, re.DOTALL)
    return [line for line in cell.splitlines() if line.strip()]


@pytest.mark.parametrize("name", JOURNEYS)
def test_journey_takes_few_lines(name):
    lines = whole_journey(name)
    assert 2 <= len(lines) <= JOURNEYS[name][0]
    assert max(map(len, lines)) <= 88
    assert not any(";" in line for line in lines)


@pytest.fixture
def journey(request):
    """Run a journey, and return its variables."""
    for package in JOURNEYS[request.param][1]:
        pytest.importorskip(package, reason=f"{package} is not installed")
    matplotlib.use("Agg")
    return runpy.run_path(str(FOLDER / request.param))


def runs(name):
    return pytest.mark.parametrize("journey", [name], indirect=True)


@runs("plot_networks.py")
def test_networks_fall_into_their_three_groups(journey):
    kinds = [name[:-2] for name in journey["graphs"].graph_names]
    table = pd.crosstab(kinds, journey["groups"])
    assert (table.max(axis=1) >= 18).all()
    assert table.idxmax(axis=1).nunique() == 3
    similar = pd.read_csv(journey["folder"] / "similar.csv")
    assert len(similar) == 5
    assert all(name.startswith("hubs") for name in similar["name"])
    assert "hubs03" in (journey["folder"] / "map.html").read_text()


@runs("plot_proteins.py")
def test_page_of_proteins_names_the_binding_site(journey):
    assert "A/112 HIS" in (journey["folder"] / "page.html").read_text()
    assert "ATOM" in (journey["folder"] / "colored.pdb").read_text()
    assert journey["model"].score(journey["graphs"][40:], journey["y"][40:]) == 1.0


@runs("plot_molecules.py")
def test_table_of_molecules_has_error_bars_that_hold(journey):
    with (journey["folder"] / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row[""] for row in rows] == [f"M{i}" for i in range(200, 260)]
    bars = [(float(row["solubility"]), 2 * float(row["error"])) for row in rows]
    inside = [abs(mean - y) <= bar for (mean, bar), y in zip(bars, journey["y_new"], strict=True)]
    assert sum(inside) > 0.85 * len(rows)
    assert {row["verdict"] for row in rows} <= {"inside", "at the edge", "outside"}


@runs("from_grakel.py")
def test_tables_of_a_user_of_grakel(journey):
    tables = journey["folder"] / "tables"
    assert r"wloa & " in (tables / "scores.tex").read_text()
    assert "shervashidze" in (tables / "references.bib").read_text().lower()
    assert "<!doctype html>" in (journey["folder"] / "motifs.html").read_text()
    assert journey["difference"] < 1e-12
    assert min(cell.mean for cell in journey["summary"].cells) > 80


@runs("from_pyg.py")
def test_contributions_for_a_user_of_pytorch_geometric(journey):
    assert journey["accuracy"] > 0.9
    table = pd.read_csv(f"{journey['folder']}/nodes.csv")
    assert table["graph"].nunique() == 40
    assert table["contribution"].notna().all()


@pytest.mark.slow
@runs("plot_paper.py")
def test_table_of_a_paper_is_ready_for_latex(journey):
    assert r"\toprule" in (journey["folder"] / "files" / "scores.tex").read_text()
