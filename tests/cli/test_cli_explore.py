"""Tests of the commands that explore graphs without a model: map and similar."""

import csv
import re
from pathlib import Path

import pytest

from treegram import load_digits_graphs, make_molecules, save_tu, similar_graphs
from treegram.cli import main


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    graphs, y = load_digits_graphs()
    save_tu(graphs[:30], "DIGITS")
    smiles, numbers = make_molecules(25, random_state=0)
    lines = [f"m{i},{text},{number}" for i, (text, number) in enumerate(zip(smiles, numbers, strict=True))]
    Path("molecules.csv").write_text("\n".join(["id,smiles,y", *lines, ""]))
    return graphs[:30], y[:30]


def test_map_writes_a_page_with_names_and_targets(data, capsys):
    assert main(["map", "DIGITS", "-o", "map.html"]) == 0
    titles = re.findall(r"<title>(.*?)</title></circle>", Path("map.html").read_text())
    assert titles == [f"graph {i}: {digit}" for i, digit in enumerate(data[1])]
    assert main(["map", "molecules.csv", "--target", "y", "--kernel", "wl", "-o", "map.html", "--force"]) == 0
    assert re.search(r"<title>m3: -?[\d.]+</title></circle>", Path("map.html").read_text())
    assert main(["map", "DIGITS", "-o", "map.html"]) == 2
    assert "map.html exists already; use --force" in capsys.readouterr().err


def test_similar_writes_the_table(data, capsys):
    assert main(["similar", "DIGITS", "--to", "3,7", "-k", "2"]) == 0
    table = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    expected = similar_graphs(data[0], [3, 7], 2)
    assert [int(row["graph"]) for row in table] == expected["graph"].tolist()
    assert [row["to"] for row in table] == ["3", "3", "7", "7"]
    assert main(["similar", "molecules.csv", "--to", "m4", "-k", "3", "--kernel", "wl", "-o", "similar.csv"]) == 0
    table = list(csv.DictReader(Path("similar.csv").read_text().splitlines()))
    assert [row["name"] for row in table] == [f"m{row['graph']}" for row in table]
    capsys.readouterr()
    assert main(["similar", "molecules.csv", "--to", "4"]) == 2
    assert (
        "treegram similar: error: --to must name one graph of the collection; 0 are named '4'"
        in capsys.readouterr().err
    )


def test_similar_knows_names_with_commas_and_quotes_formulas(capsys):
    rows = ['"2,2-dimethylpropane",CC(C)(C)C', "=1+2,CCCC", "ethane,CC"]
    Path("names.csv").write_text("\n".join(["id,smiles", *rows, ""]))
    assert main(["similar", "names.csv", "--to", "2,2-dimethylpropane", "-k", "2", "--kernel", "wl"]) == 0
    table = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["to"] for row in table] == ["2,2-dimethylpropane"] * 2
    assert {row["name"] for row in table} == {"'=1+2'", "ethane"}
    assert main(["similar", "names.csv", "--to", "ethane,=1+2", "-k", "1", "--kernel", "wl"]) == 0
    table = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["to"] for row in table] == ["ethane", "'=1+2'"]
