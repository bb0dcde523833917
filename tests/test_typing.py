"""Check that type checkers see mistakes in a user's program, and the types of what it gets."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[1] / "src"
PROGRAM = """
import treegram as tg

graphs, y = tg.load_digits_graphs()
tg.GraphClasifier()  # attr-defined
tg.GraphClassifier(kernel="auto")  # call-arg
tg.WL(dept=3)  # call-arg
tg.ScaleAttributes().fit_trasform(graphs)  # attr-defined
tg.Graphs.from_edgs([])  # attr-defined
model = tg.GraphClassifier().fit(graphs, y)
model.predct(graphs)  # attr-defined
model.set_params(kernels="auto").predct(graphs)  # attr-defined
model.score(graphs, y).real
tg.GraphRegressor().fit(graphs, y).predict(graphs).mean()
tg.GraphGP().predict(graphs, return_std=True).mean()  # attr-defined
mean, std = tg.GraphRegressor().fit(graphs, y).predict(graphs, return_std=True)
std.men()  # attr-defined
tg.WLOA().fit_transform(graphs).men()  # attr-defined
"""


@pytest.mark.slow
def test_mypy_finds_the_mistakes_of_a_program_and_nothing_else(tmp_path):
    pytest.importorskip("mypy", reason="mypy is in the dependency group lint")
    (tmp_path / "program.py").write_text(PROGRAM)
    options = ["--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache"), "program.py"]
    run = subprocess.run(
        [sys.executable, "-m", "mypy", *options],
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        check=False,
    )
    mistakes = {
        int(line): code for line, code in re.findall(r"^program.py:(\d+): error: .*\[(.*)\]$", run.stdout, re.M)
    }
    lines = enumerate(PROGRAM.splitlines(), start=1)
    assert mistakes == {number: line.partition("  # ")[2] for number, line in lines if "  # " in line}, run.stdout
