"""Check that type checkers see mistakes in a user's program, and the types of what it gets."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import treegram as tg
from treegram import exceptions, study

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
tg.ScaleAttributes().fit_transform(graphs).n_node  # attr-defined
tg.explain(model, graphs).node_contribution  # attr-defined
model.applicability(graphs).to_fram()  # attr-defined
"""
# Files, figures and tables of other packages are Any: treegram works without these packages. So is a model from a file.
UNTYPED = {"gram_to_zarr", "load_model", "plot_explanation", "plot_gram", "plot_graph", "plot_map", "plot_tree", "similar_graphs"}  # fmt: skip
UNTYPED |= {"plot_ranks", "plot_scores", "plot_times", "get_metadata_routing", "to_frame"}
UNTYPED |= {"FeatureMap.fit_transform", "GraphStatistics.fit_transform"}  # arrays, or data frames after set_output


def check(program, folder):
    """Return what mypy says about each line: codes of errors, and revealed types."""
    (folder / "program.py").write_text(program)
    options = ["--strict", "--follow-imports=silent", "--cache-dir", str(folder / "cache"), "program.py"]
    run = subprocess.run(
        [sys.executable, "-m", "mypy", *options],
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        int(line): code or revealed
        for line, code, revealed in re.findall(
            r'^program.py:(\d+): (?:error: .*\[(.*)\]|note: Revealed type is "(.*)")$', run.stdout, re.MULTILINE
        )
    }


@pytest.mark.slow
def test_mypy_finds_the_mistakes_of_a_program_and_nothing_else(tmp_path):
    pytest.importorskip("mypy", reason="mypy is in the dependency group lint")
    lines = enumerate(PROGRAM.splitlines(), start=1)
    expected = {number: line.partition("  # ")[2] for number, line in lines if "  # " in line}
    assert check(PROGRAM, tmp_path) == expected


@pytest.mark.slow
def test_mypy_knows_the_methods_parameters_and_results_of_all_public_names(tmp_path):
    """For every name: mistakes are errors, and what a method or function returns is not Any."""
    pytest.importorskip("mypy", reason="mypy is in the dependency group lint")
    mistakes, calls = [], []
    for name in tg.__all__:
        value = getattr(tg, name)
        mistakes.append(f"tg.{name}(no_such_parameter=1)")
        if not inspect.isclass(value):
            calls.append(f"tg.{name}")
            continue
        mistakes.append(f"tg.{name}.no_such_method")
        for method, member in inspect.getmembers(value, callable):
            if not method.startswith("_"):
                calls.append(f"tg.{name}.{method}")
            if method.startswith("from_"):
                mistakes.append(f"tg.{name}.{method}(no_such_parameter=1)")
                assert inspect.ismethod(member), "a constructor is a class method"
    calls += [f"study.{name}" for name in study.__all__]
    mistakes += [f"{module}.no_such_name" for module in ("tg", "tg.study", "tg.exceptions", "study")]
    mistakes += [f"exceptions.{name}().no_such_name" for name in exceptions.__all__]
    reveals = [f"reveal_type({call})" for call in calls]
    program = "\n".join(["import treegram as tg", "from treegram import exceptions, study", *mistakes, *reveals])
    said = check(program, tmp_path)
    first = 3
    answers = {text: said.get(first + i, "") for i, text in enumerate([*mistakes, *calls])}
    assert [text for text in mistakes if answers[text] not in {"attr-defined", "call-arg", "call-overload"}] == []
    returned = {call: answers[call].rpartition("-> ")[2] for call in calls}
    untyped = {call for call, result in returned.items() if result in {"", "Any"}}
    assert [call for call in untyped if UNTYPED.isdisjoint({call.removeprefix("tg."), call.rpartition(".")[2]})] == []
