"""The documentation: it names all that is public, its links lead somewhere, and its Python runs.

Data sets of the public collection are replaced by small ones of the same name, so that every block runs, on any machine.
"""

import re
import runpy
from pathlib import Path

import networkx as nx
import pytest

import treegram as tg
from treegram.cli import main

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
IDS = [str(page.relative_to(ROOT)) for page in PAGES]
DATA_SETS = ["BZR", "COX2", "DHFR", "ENZYMES", "PROTEINS", "SYNTHETICnew"]


def python_blocks(page):
    """The text of each block that is marked as Python, with the number of its first line."""
    text = page.read_text()
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield text.count("\n", 0, block.start(1)) + 1, block.group(1)


def compiled(page, line, block):
    """The block as code whose tracebacks name the page's lines."""
    return compile("\n" * (line - 1) + block, str(page), "exec")


@pytest.fixture(scope="module")
def data_sets(tmp_path_factory):
    """A folder with small data sets, and a file that the command has made of one."""
    folder = tmp_path_factory.mktemp("docs")
    graphs, y = tg.load_digits_graphs(n_levels=3)
    few = graphs[y < 2][:40]  # two classes, labels and vectors
    for name in DATA_SETS:
        tg.save_tu(few, folder / name)
    options = "--depth 1 --method qmc --n-components 64 --random-state 0 --chunk 20"
    assert main(["features", str(folder / "PROTEINS"), *options.split(), "-o", str(folder / "Z.npz")]) == 0
    return folder


@pytest.fixture
def molecule():
    """A graph as the README's reader has it."""
    graph = nx.path_graph(3)
    for node in graph:
        graph.nodes[node].update(element="C", x=0.0, y=1.0 * node, z=0.0)
    return graph


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_every_python_block_runs(page, data_sets, molecule, monkeypatch):
    monkeypatch.chdir(data_sets)
    monkeypatch.setenv("TREEGRAM_DATA", str(data_sets))
    monkeypatch.setenv("TREEGRAM_MIRROR", (data_sets / "nowhere").as_uri())  # nothing is downloaded
    names = {"my_graphs": [molecule, molecule]}
    for line, block in python_blocks(page):
        exec(compiled(page, line, block), names)


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_links_to_files_lead_to_files(page):
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    made = {"reference.rst"}  # by docs/make_reference.py
    assert [link for link in links if link not in made and not (page.parent / link).exists()] == []


def test_the_reference_lists_every_public_name_once():
    page = runpy.run_path(str(ROOT / "docs" / "make_reference.py"))["reference_page"]()
    listed = re.findall(r"^   (\w+)$", page, re.MULTILINE)
    assert sorted(listed) == sorted(tg.__all__)
