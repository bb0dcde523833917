"""A store from elsewhere gives a summary or an error of one line, whatever it contains."""

import shutil
import sqlite3

import numpy as np
import pytest

from treegram import make_synthetic
from treegram.cli import main
from treegram.exceptions import TreegramError
from treegram.study import Store, Study, run_study, summarize, write_folds
from treegram.study.protocol import KernelSpec, Protocol, StudyEntry
from treegram.study.report import render_report
from treegram.study.report_tables import brief_text

TABLES = {
    "run": ("id", "started", "command", "versions", "machine"),
    "study": ("name", "text"),
    "dataset": ("name", "n_graphs", "class_counts", "mean_nodes", "mean_edges", "n_attributes", "digest", "targets"),
    "result": (
        *("key", "dataset", "kernel", "repeat", "fold", "actual", "predicted", "chosen", "inner_score", "n_fits"),
        *("n_unconverged", "seconds", "run", "roc_auc"),
    ),
    "gram_time": ("key", "dataset", "kernel", "parameters", "seconds", "learns", "run"),
}
VALUES = {
    "nothing": None,
    "text": "many",
    "below zero": -5,
    "zero": 0,
    "large": 2**62,
    "infinite": float("inf"),
    "bytes": b"\x00\xff",
    "objects": b"O" + b"\xff" * 16,
    "not a number": b"d" + b"\xff" * 16,
    "deep table": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "deep list": "[" * 100_000,
    "400 digits": '{"a": ' + "9" * 400 + "}",
    "5000 digits": '{"a": ' + "9" * 5000 + "}",
    "text as a count": '{"a": "many"}',
    "list as a count": '{"a": [1, [2]]}',
    "empty table": "{}",
    "table in a table": '{"a": {"b": {"c": 1}}}',
    "control characters": '{"\\u001b[31m": "\\u001b]0;x"}',
    "long text": "9" * 100_000,
}


@pytest.fixture(scope="module", params=["classification", "regression"])
def store(request, tmp_path_factory):
    """Return the path of a store of three kernels on two data sets."""
    path = tmp_path_factory.mktemp("valid") / "s.sqlite"
    data = {name: make_synthetic(24, n_nodes=12, n_edges=18, random_state=i) for i, name in enumerate("AB")}
    if request.param == "regression":
        data = {name: (graphs, np.arange(24.0) ** 2) for name, (graphs, _) in data.items()}
    entries = tuple(StudyEntry(name, (KernelSpec(name),)) for name in ("wl", "oddst", "nspdk"))
    protocol = Protocol(repeats=1, outer_folds=2, inner_folds=2, task=request.param)
    run_study(Study("s", ("A", "B"), entries, protocol), path, data)
    return path


def forge(valid, path, table, column, value):
    """Write a store in which the first row of a table has this value; return False if SQLite refuses it."""
    shutil.copy(valid, path)
    connection = sqlite3.connect(path)
    condition = "fold = 0 AND dataset = 'A'" if table == "result" else "true" if table == "study" else "run = 1"
    condition = {"run": "id = 1", "dataset": "name = 'A'"}.get(table, condition)
    try:
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {condition}", (value,))
        connection.commit()
    except sqlite3.Error:  # of a key, for example
        return False
    finally:
        connection.close()
    return True


@pytest.mark.sampled
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("table", TABLES)
def test_forged_values_give_a_summary_or_an_error(store, tmp_path, table, name):
    path = tmp_path / "forged.sqlite"
    for column in TABLES[table]:
        if not forge(store, path, table, column, VALUES[name]):
            continue
        try:
            with Store.open(path, create=False) as opened:
                summary = summarize(opened)
                write_folds(opened, tmp_path / "folds.csv")
            assert "\x1b" not in brief_text(summary)
            assert "\x1b" not in render_report(summary, ".md")
        except TreegramError as error:
            message = str(error)
            assert "\n" not in message
            assert len(message) < 400 + len(str(path))


NUMBERS = ["9" * 400, "1e999", "-1", "nan", '"many"', "[1]", "{ a = 1 }", "1000000000"]


@pytest.mark.parametrize("number", NUMBERS)
def test_forged_protocols_give_a_summary_or_an_error(store, tmp_path, number, capsys):
    path = tmp_path / "forged.sqlite"
    for key in (
        "repeats",
        "outer_folds",
        "inner_folds",
        "seed",
        "C",
        "alpha",
        "metric",
        "task",
        "class_weight",
        "split",
    ):
        text = f'datasets = ["A"]\n[protocol]\n{key} = {number}\n[[kernels]]\nname = "wl"\nkernel = "wl"\n'
        assert forge(store, path, "study", "text", text)
        assert main(["report", str(path), "--force"]) in (0, 1, 2)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        assert err.count("\n") <= 1
        assert out or err
