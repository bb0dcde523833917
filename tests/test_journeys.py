"""Tests of the three journeys of the gallery: their length and their results."""

import re
import runpy
from pathlib import Path

import matplotlib
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "6_journeys"
LIMITS = {"plot_proteins.py": 6, "plot_molecules.py": 6, "plot_paper.py": 4}
ENDS = {
    "plot_proteins.py": lambda found: "A/112 HIS" in (found["folder"] / "page.html").read_text(),
    "plot_molecules.py": lambda found: found["inside"].mean() > 0.85 and found["std"].min() > 0,
    "plot_paper.py": lambda found: r"\toprule" in (found["folder"] / "tables" / "scores.tex").read_text(),
}


@pytest.mark.parametrize("name", LIMITS)
def test_journey_takes_few_lines(name):
    text = (FOLDER / name).read_text(encoding="utf-8")
    (cell,) = re.findall(r"# The whole journey\n.*?\n\n(.*?)\n# %%", text, re.DOTALL)
    lines = [line for line in cell.splitlines() if line.strip()]
    assert 2 <= len(lines) <= LIMITS[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", LIMITS)
def test_journey_gives_its_result(name, monkeypatch):
    pytest.importorskip("rdkit")
    pytest.importorskip("gemmi")
    matplotlib.use("Agg")
    found = runpy.run_path(str(FOLDER / name))
    assert ENDS[name](found)
