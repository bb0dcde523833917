"""Tests of the explanation page in a real browser: hovering, class choice, sorting, filtering, and no script injection."""

import json
import re
import shutil
import subprocess
from html import escape, unescape

import numpy as np
import pytest

from treegram import (
    ODDCL,
    WL,
    WLOA,
    GraphGP,
    GraphRidge,
    Graphs,
    GraphSVC,
    KernelSum,
    MoleculeGraphs,
    StatisticsKernel,
    explain,
    make_molecules,
    make_motifs,
)

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine"),
]
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
HOSTILE = "\"><script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\">"
HARNESS = """<!doctype html><meta charset="utf-8"><body>
<iframe style="border:0;width:{width}px;height:900px" srcdoc="{page}"></iframe><script>
addEventListener("load", () => {{
  const page = document.querySelector("iframe").contentDocument, root = page.documentElement;
  const all = selector => [...page.querySelectorAll(selector)], one = selector => page.querySelector(selector);
  const text = selector => all(selector).filter(found => found.checkVisibility()).map(found => found.textContent.trim());
  const send = (target, type) => target.dispatchEvent(new (type.startsWith("pointer") ? PointerEvent : Event)(type, {{ bubbles: true }}));
  const found = {{}};
  {actions}
  found.fits = root.scrollWidth <= root.clientWidth;
  found.title = page.title;
  document.body.replaceChildren();
  document.body.textContent = JSON.stringify(found);
}});
</script>"""


def browse(page, actions, tmp_path, width=1200):
    """Run actions on a page; return their results and the console messages."""
    path = tmp_path / "harness.html"
    path.write_text(HARNESS.format(page=escape(page), actions=actions, width=width), encoding="utf-8")
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    found = re.search(r"<body>(.*?)</body>", done.stdout, re.DOTALL)[1]
    return json.loads(unescape(found)), console


@pytest.fixture(scope="module")
def three_classes():
    """Explain eight named graphs, two of them from the training data."""
    graphs, y, _ = make_motifs(45, motifs=("house", "cycle", "clique"), random_state=0)
    graphs = graphs.assign(
        graph_names=[f"motif {i}" for i in range(45)], node_names=[f"v{i}" for i in range(graphs.n_nodes)]
    )
    y = np.array(["house", "cycle", "clique"])[y]
    model = GraphSVC(KernelSum([WL(), StatisticsKernel()]), param_grid={}, C=1, cv=3).fit(graphs[::2], y[::2])
    chosen = [0, 1, 2, 3, 17, 19, 31, 33]
    return explain(model, graphs[chosen]), y[chosen]


@pytest.fixture(scope="module")
def page(three_classes, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    explanation, y = three_classes
    explanation.to_html(path, y=y, title="Motifs")
    return path.read_text()


@pytest.mark.parametrize("width", [400, 1200])
def test_page_renders_without_errors_and_fits(page, tmp_path, width):
    actions = """
    found.cards = text('article h3'); found.pictures = all('svg').length; found.controls = text('#shown');
    for (const details of all('details')) details.open = true;
    """
    found, console = browse(page, actions, tmp_path, width)
    assert console == []
    assert found["fits"]
    assert found["title"] == "Motifs"
    assert found["cards"] == [f"motif {i}" for i in (0, 1, 2, 3, 17, 19, 31, 33)]
    assert found["controls"] == ["8 of 8 shown"]
    assert found["pictures"] >= 8 * 7


def test_hovering_over_a_node_shows_its_details(three_classes, page, tmp_path):
    actions = """
    const node = one("#graph-1 .explained .node");
    found.before = one("#tip").hidden; found.titles = all("svg title").length;
    send(node, "pointerenter"); found.tip = one("#tip").textContent;
    send(node, "pointerleave"); found.after = one("#tip").hidden;
    """
    found, _ = browse(page, actions, tmp_path)
    assert found["before"]
    assert found["after"]
    assert found["titles"] == 0  # the browser's own tooltip would cover it
    explanation, _ = three_classes
    value = explanation._node_values_of(1, explanation._contrast(1))[0]
    assert found["tip"].splitlines() == ["v25", f"contribution: {value:+.3g}".replace("-", "\N{MINUS SIGN}")]


def test_choosing_a_class_changes_lists_and_colors(three_classes, page, tmp_path):
    actions = """
    const card = one("#graph-2"), select = card.querySelector("select.contrast");
    card.querySelector("details").open = true;
    const look = () => ({ decision: text("#graph-2 .decision"), checks: text("#graph-2 .check").length,
      fills: all("#graph-2 .explained circle").map(node => getComputedStyle(node).fill) });
    found.first = look(); found.options = [...select.options].map(option => option.text);
    select.selectedIndex = 1; send(select, "change"); found.second = look();
    send(all("#graph-2 .explained .node")[3], "pointerenter"); found.tip = one("#tip").textContent;
    """
    found, console = browse(page, actions, tmp_path)
    assert console == []
    explanation, _ = three_classes
    contrasts = list(explanation._contrasts(2))
    assert found["options"] == [contrast.below for contrast in contrasts]
    for look, contrast in zip((found["first"], found["second"]), contrasts, strict=True):
        assert look["checks"] == 1
        assert look["decision"][0].startswith(f"{contrast.above} rather than {contrast.below}: decision")
        values = explanation._node_values_of(2, contrast)
        strongest = np.abs(values).argmax()
        shares = map(float, re.findall(r"[\d.]+", look["fills"][strongest])[:3])  # color(srgb 0.698 0.0941 0.169)
        assert [round(255 * share) for share in shares] == ([178, 24, 43] if values[strongest] > 0 else [33, 102, 172])
    value = explanation._node_values_of(2, contrasts[1])[3]
    shown = re.search(r"contribution: (.*)$", found["tip"])[1].replace("\N{MINUS SIGN}", "-")
    assert float(shown) == pytest.approx(value, rel=0.01)


def test_graphs_can_be_ordered_by_decision_certainty_and_name(three_classes, page, tmp_path):
    actions = """
    const order = one("#order");
    const look = value => { order.value = value; send(order, "change"); return text("article h3"); };
    found.down = look("decision -1"); found.up = look("decision 1"); found.names = look("name 1"); found.given = look("index 1");
    found.sizes = look("size -1"); found.options = [...order.options].map(option => option.text);
    """
    found, console = browse(page, actions, tmp_path)
    assert console == []
    explanation, _ = three_classes
    contrasts = [explanation._contrast(i) for i in range(8)]
    decisions = [own @ contrast.combine for own, contrast in zip(explanation.decisions, contrasts, strict=True)]
    names = explanation.graphs.graph_names.tolist()
    assert found["up"] == [names[i] for i in np.argsort(decisions)]
    assert found["down"] == found["up"][::-1]
    assert found["given"] == names
    assert found["names"] == sorted(names, key=lambda name: int(name.split()[1]))
    assert found["sizes"] == [names[i] for i in np.argsort(-explanation.graphs.sizes, kind="stable")]
    assert "largest error first" not in found["options"]  # only for numbers


def test_pictures_come_before_features_and_these_before_the_proof(page, tmp_path):
    actions = """
    const top = selector => one(selector).getBoundingClientRect().top;
    found.order = [top("#cards"), top("#matters"), top("#provenance")];
    found.columns = new Set(all("article").map(card => card.getBoundingClientRect().left)).size;
    """
    found, console = browse(page, actions, tmp_path)
    assert console == []
    assert found["order"] == sorted(found["order"])
    assert found["order"][0] < 300  # pixels
    assert found["columns"] == 4


def test_a_link_to_a_graph_opens_its_details(page, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(page, encoding="utf-8")
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", f"{path.as_uri()}#graph-3"]
    dump = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    cards = dump.split("<article ")[1:]
    assert ["<details open" in card for card in cards] == [False, False, False, True, False, False, False, False]


def test_details_have_the_width_of_the_page(page, tmp_path):
    actions = """
    const card = one("#graph-3");
    found.lists = text("#graph-3 h4").length; card.querySelector("details").open = true;
    found.open = text("#graph-3 h4").length; found.widths = [card.offsetWidth, one("#cards").offsetWidth];
    const name = one("[data-filter]"); name.value = "motif 1"; send(name, "input"); found.filtered = card.checkVisibility();
    """
    found, console = browse(page, actions, tmp_path)
    assert console == []
    assert found["lists"] == 0
    assert found["open"] == 4  # nodes, features, numbers of the whole graph, similar graphs
    assert found["widths"][0] == found["widths"][1]
    assert not found["filtered"]


def test_graphs_can_be_filtered_by_name_prediction_and_result(three_classes, page, tmp_path):
    actions = """
    const [name, prediction, result] = all("[data-filter]");
    const look = () => ({ cards: text("article h3"), shown: text("#shown")[0] });
    name.value = "MOTIF 3"; send(name, "input"); found.name = look();
    name.value = ""; result.value = "training graph"; send(result, "input"); found.result = look();
    result.value = ""; prediction.selectedIndex = 1; send(prediction, "input"); found.prediction = look();
    found.chosen = prediction.value;
    """
    found, console = browse(page, actions, tmp_path)
    assert console == []
    explanation, _ = three_classes
    assert found["name"] == {"cards": ["motif 3", "motif 31", "motif 33"], "shown": "3 of 8 shown"}
    assert found["result"]["cards"] == ["motif 0", "motif 2"]
    expected = explanation.graphs.graph_names[explanation.predictions == found["chosen"]]
    assert found["prediction"]["cards"] == expected.tolist()


def test_nothing_from_the_data_is_executed(tmp_path):
    """Without the content security policy, so that escaping alone must work; also in the tooltip that the script fills."""
    graphs = Graphs.from_edges(
        [[(0, 1)], [(0, 1), (1, 2)], [(0, 1)]],
        labels=[[HOSTILE, "C"], ["C", HOSTILE, "C"], ["C", "C"]],
        attributes=[[[0.0], [1.0]], [[2.0], [3.0], [4.0]], [[1.0], [2.0]]],
        graph_names=[HOSTILE, "</title></svg>", "plain"],
        node_names=[[HOSTILE, "b"], ["c", HOSTILE, "</title>"], ["d", "e"]],
        attribute_names=[HOSTILE],
    )
    twice = Graphs.concatenate([graphs, graphs])
    model = GraphSVC(KernelSum([WL(), ODDCL()]), param_grid={}, C=1, cv=2).fit(twice, [HOSTILE, "b", "c"] * 2)
    explain(model, graphs).to_html(tmp_path / "page.html", y=[HOSTILE, "b", "c"], title="Safe")
    page = (tmp_path / "page.html").read_text()
    unprotected = re.sub(r'<meta http-equiv="Content-Security-Policy[^>]*>', "", page)
    assert unprotected != page
    actions = """
    for (const node of all(".node")) send(node, "pointerenter");
    send(all("#graph-0 .explained .node")[0], "pointerenter"); found.tip = one("#tip").textContent;
    for (const select of all("select")) { select.selectedIndex = 1; send(select, "change"); send(select, "input"); }
    for (const button of all("button")) button.click();
    found.scripts = all("script").length; found.images = all("img").length;
    """
    for content in (page, unprotected):
        found, console = browse(content, actions, tmp_path)
        assert console == []
        assert found["title"] == "Safe"
        assert found["scripts"] == 1
        assert found["images"] == 0
        assert found["tip"].splitlines()[:3] == [HOSTILE, f"label: {HOSTILE}", f"{HOSTILE}: 0"]
    infected = unprotected.replace("<h1>Safe</h1>", f"<h1>{HOSTILE}</h1>")  # shows that the test can fail
    found, _ = browse(infected, "", tmp_path)
    assert found["title"] == "owned"
    found, console = browse(page.replace("<h1>Safe</h1>", f"<h1>{HOSTILE}</h1>"), "", tmp_path)  # the policy alone
    assert found["title"] == "Safe"
    assert len(console) >= 1


def test_atoms_of_molecules_can_be_hovered(tmp_path):
    pytest.importorskip("rdkit")
    smiles = ["CO", "CCO", "OCCC", "CN", "CCN", "NCCC"]
    graphs = MoleculeGraphs().fit_transform(smiles)
    model = GraphRidge(WL(), param_grid={}, alpha=0.1, cv=2).fit(graphs, np.arange(6.0))
    explain(model, graphs[:2]).to_html(tmp_path / "page.html", molecules=smiles[:2])
    actions = """
    const atoms = all("#graph-1 .molecule .node"); found.atoms = atoms.length;
    send(atoms[2], "pointerenter"); found.tip = one("#tip").textContent;
    """
    found, console = browse((tmp_path / "page.html").read_text(), actions, tmp_path, 400)
    assert console == []
    assert found["fits"]
    assert found["atoms"] == 3
    assert found["tip"].splitlines()[:2] == ["atom 2", "label: O"]


def test_twenty_molecules_take_at_most_five_screens(tmp_path):
    pytest.importorskip("rdkit")
    smiles, y = make_molecules(60, random_state=0)
    graphs = Graphs.from_smiles(smiles, labels=["element", "pharmacophore"])
    model = GraphGP(WLOA(use_edge_labels=True), param_grid={}).fit(graphs[:40], y[:40])
    explain(model, graphs[40:]).to_html(tmp_path / "page.html", y=y[40:], molecules=smiles[40:])
    actions = """
    found.height = root.scrollHeight; found.grid = one("#matters").getBoundingClientRect().top;
    found.cards = text("article h3").length;
    const order = one("#order"); order.value = "error -1"; send(order, "change");
    found.errors = all("article").map(card => Number(card.dataset.error));
    """
    found, console = browse((tmp_path / "page.html").read_text(), actions, tmp_path, 1280)
    assert console == []
    assert found["cards"] == 20
    assert found["height"] <= 5 * 800
    assert found["grid"] <= 3 * 800
    assert found["errors"] == sorted(np.abs(model.predict(graphs[40:]) - y[40:]).tolist(), reverse=True)
