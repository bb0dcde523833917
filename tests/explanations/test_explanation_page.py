"""Tests of the explanation page: numbers match the model, text is escaped, and errors keep an existing page."""

import re
from dataclasses import replace
from html import escape
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

import zoo
from treegram import (
    ODDCL,
    ODDST,
    WL,
    WLOA,
    FeatureMap,
    GraphClassifier,
    GraphGP,
    GraphRidge,
    Graphs,
    GraphSVC,
    KernelSum,
    MoleculeGraphs,
    Nystroem,
    ODDCLApprox,
    ScaleAttributes,
    ShortestPath,
    StatisticsKernel,
    explain,
    load_model,
    make_motifs,
    save_model,
)
from treegram._core.text import counted
from treegram.exceptions import InvalidGraphError, ParameterError
from treegram.explanations.drawing import draw_tree
from treegram.explanations.page import _percent
from treegram.graphs.drawing import MOST_HOPS, MOST_NODES, describe_positions, draw_graph, node_positions

SCRIPT = "<script>document.title = 'owned'</script>"


@pytest.fixture(scope="module")
def motifs():
    graphs, y, _ = make_motifs(30, random_state=0)
    return graphs, np.array(["a", f"b {SCRIPT}"])[y]


@pytest.fixture(scope="module")
def model(motifs):
    return GraphSVC(WLOA(), param_grid={}, C=1, cv=2).fit(*motifs)


def written(path, model, graphs, **options):
    explain(model, graphs).to_html(path / "page.html", **options)
    return (path / "page.html").read_text()


def numbers_after(words, text):
    found = re.findall(rf'{words} <span class="whole">([^<]*)</span>', text)
    return [float(one.replace("\N{MINUS SIGN}", "-")) for one in found]


@pytest.fixture(scope="module")
def half_model(motifs):
    """Return a model that was not fitted on every second graph."""
    graphs, y = motifs
    return GraphSVC(WLOA(), param_grid={}, C=1, cv=2).fit(graphs[::2], y[::2])


def test_page_shows_the_decisions_of_the_model(model, motifs, tmp_path):
    graphs, y = motifs
    named = graphs[[3, 20]].assign(graph_names=["three", "twenty"])
    page = written(tmp_path, model, named, y=y[[3, 20]])
    assert page.count("<article") == 2
    assert '<h3><a href="#graph-1">twenty</a></h3>' in page
    decisions = model.decision_function(graphs[[3, 20]])
    np.testing.assert_allclose(numbers_after("together", page), decisions, rtol=1e-5)
    assert re.search(r'decision is <b class="whole residual">(0|\de\N{MINUS SIGN}1\d)</b>', page)


@pytest.mark.parametrize(
    ("probability", "text"),
    [(0.25, "25.0 %"), (0.9994, "99.9 %"), (0.9995, "> 99.9 %"), (0.999999, "> 99.9 %"), (1.0, "100.0 %")],
)
def test_a_probability_is_not_rounded_up_to_certainty(probability, text):
    assert _percent(probability) == text


def test_the_page_has_the_probabilities_of_the_model(motifs, tmp_path):
    graphs, y = motifs
    model = GraphClassifier([WLOA()]).fit(graphs[:20], y[:20])
    (probability,) = model.predict_proba(graphs[20:21])[:, model.classes_ == model.predict(graphs[20:21])][0]
    assert probability < 0.999
    page = written(tmp_path, model, graphs[20:21], y=y[20:21])
    assert f'<span class="whole" title="probability">{100 * probability:.1f} %</span>' in page
    assert float(re.search(r'data-certainty="([^"]*)"', page)[1]) == probability
    with mock.patch.object(GraphClassifier, "predict_proba", return_value=np.array([[0.9996, 0.9996]])):
        page = written(tmp_path, model, graphs[20:21], y=y[20:21])
    assert '<span class="whole" title="probability">&gt; 99.9 %</span>' in page


def test_the_page_shows_shares_of_kernels_by_name_with_the_largest_first(motifs, tmp_path):
    graphs, y = motifs
    model = GraphClassifier([WL(1), WLOA(), ShortestPath()]).fit(graphs[:20], y[:20])
    page = written(tmp_path, model, graphs[20:21], y=y[20:21])
    records = [record for record in model.search_results_ if record["weight"] is not None]
    records.sort(key=lambda record: -record["weight"])
    shares = "; ".join(f"{100 * record['weight']:.1f} % {record['candidate']}" for record in records)
    assert len(records) > 1
    assert f"<dt>weights</dt><dd>{shares}</dd>" in page
    single = GraphSVC(WL(), param_grid={}, C=1, cv=2).fit(graphs, y)
    assert "<dt>weights</dt>" not in written(tmp_path, single, graphs[:1], y=y[:1])


def test_predictions_for_training_graphs_are_not_counted_as_correct(half_model, motifs, tmp_path):
    graphs, y = motifs
    page = written(tmp_path, half_model, graphs[:5], y=y[:5])
    n_correct = (half_model.predict(graphs[[1, 3]]) == y[[1, 3]]).sum()
    about = f"3 of 5 were in the training data and cannot show how good the model is; {n_correct} of 2 predictions for the others are correct."
    assert about in page
    assert page.count('<span class="change seen">training graph</span>') == 3
    assert page.count('<span class="change up">correct</span>') == n_correct
    page = written(tmp_path, half_model, graphs[::2], y=y[::2])
    assert "15 of 15" in page
    assert "are correct" not in page
    page = written(tmp_path, half_model, graphs[[1, 3]], y=y[[1, 3]])
    assert "training data" not in page
    assert f"{n_correct} of 2 predictions are correct" in page


def test_most_similar_training_graphs_are_shown(half_model, motifs, tmp_path):
    graphs, y = motifs
    page = written(tmp_path, half_model, graphs[:2], y=y[:2])
    shown = [
        [int(one) for one in re.findall(r"<figcaption><b title=.*?>Training graph (\d+)<", card)]
        for card in page.split("<article")[1:]
    ]
    similarities = half_model.kernel_.transform(graphs[:2])
    similarities[0, 0] = -1  # the graph itself
    assert shown == np.argsort(-similarities, axis=1, kind="stable")[:, :6].tolist()
    contributions = explain(half_model, graphs[:2]).graph_contributions
    found = re.findall(r'contribution <span class="whole">([^<]*)<', page)
    expected = [contributions[i, graph] for i in (0, 1) for graph in shown[i]]
    np.testing.assert_allclose([float(one.replace("\N{MINUS SIGN}", "-")) for one in found], expected, rtol=0.01)
    named = graphs.assign(graph_names=[f"motif {i}" for i in range(len(graphs))])
    model = GraphSVC(WL(normalize=False), param_grid={}, C=1, cv=2).fit(named[::2], y[::2])
    page = written(tmp_path, model, named[[1]], y=y[[1]])
    similarities = re.findall(r'similarity <span class="whole">([^<]*)<', page)
    assert all(0 <= float(one) <= 1 for one in similarities)
    assert ">motif 1</a></h3>" in page
    names = re.findall(r"<figcaption><b title=.*?>motif (\d+)<", page)
    assert len(names) == 6
    assert all(int(name) % 2 == 0 for name in names)  # names of training graphs


@pytest.mark.parametrize("n_classes", [2, 3])
def test_model_file_keeps_the_classes_of_similar_training_graphs(tmp_path, n_classes):
    graphs, y, _ = make_motifs(30, motifs=("house", "cycle", "clique")[:n_classes], random_state=0)
    names = np.array(["one", "two", "three"])[y]
    bare = graphs.assign(targets=None)
    model = GraphClassifier(["wl", "wloa"]).fit(bare[::2], names[::2])
    save_model(model, tmp_path / "model.tgm")
    loaded = load_model(tmp_path / "model.tgm")
    found = explain(loaded, bare[[1]]).similar_graphs(0)
    assert [one["target"] for one in found] == [names[::2][one["index"]] for one in found]
    page = written(tmp_path, loaded, bare[[1]])
    assert re.findall(r"</b>class (\w+)<br>", page) == [one["target"] for one in found]


def test_any_other_class_can_be_chosen_in_multiclass(tmp_path):
    graphs, y, _ = make_motifs(45, motifs=("house", "cycle", "clique"), random_state=0)
    model = GraphSVC(WL(), param_grid={}, C=1, cv=3).fit(graphs[::2], y[::2])
    found = explain(model, graphs[[1]])
    page = written(tmp_path, model, graphs[[1]], y=y[[1]])
    contrasts = list(found._contrasts(0))
    assert page.count("<option>") == 1 + 1 + 2  # filters by prediction and result, and a choice of two other classes
    together = [found._node_values_of(0, one).sum() + found.intercept @ one.combine for one in contrasts]
    np.testing.assert_allclose(numbers_after("together", page), together, rtol=1e-5)
    values = re.search(r'data-values="([^"]*)"', page)[1].split(";")
    for one, numbers in zip(contrasts, values, strict=True):
        expected = found._node_values_of(0, one)
        np.testing.assert_allclose([float(number) for number in numbers.split()], expected, rtol=1e-3)


def test_nodes_show_names_labels_attributes_and_contributions(tmp_path):
    graphs = Graphs.from_edges(
        [[(0, 1), (1, 2)], [(0, 1)]],
        labels=[[("C", 1), ("C", 1), ("O", 0)], [("C", 1), ("O", 0)]],
        attributes=[[[0.5, -1.0], [1.5, 0.0], [0.0, 2.0]], [[0.0, 1.0], [1.0, 1.0]]],
        graph_names=["first", "second"],
        node_names=[["A/1 CYS", "A/2 GLY", "A/3 ALA"], ["B/1 CYS", "B/2 GLY"]],
        attribute_names=["charge", "mass"],
    )
    model = GraphRidge(ODDCL(depth=1), param_grid={}, alpha=0.1, cv=2).fit(graphs, [0.0, 1.0])
    found = explain(model, graphs)
    page = written(tmp_path, model, graphs)
    value = f"{found.node_contributions[0][0]:+.3g}".replace("-", "\N{MINUS SIGN}")
    lines = ["A/1 CYS", "label: C (1)", "charge: 0.5", "mass: \N{MINUS SIGN}1", f"contribution: {value}"]
    assert f"<title>{'&#10;'.join(lines)}</title>" in page
    assert ">first</a></h3>" in page
    assert re.search(r"A/\d \w{3} C \(1\)", found._repr_html_())


def test_page_lists_columns_and_overall_importance(tmp_path):
    graphs, y, _ = make_motifs(20, n_attributes=2, random_state=0)
    kernel = KernelSum([StatisticsKernel(), WL(), ODDCL(depth=1)])
    model = GraphRidge(kernel, param_grid={}, alpha=0.1, cv=2).fit(graphs, y)
    found = explain(model, graphs[:3])
    page = written(tmp_path, model, graphs[:3])
    assert page.count("<h4>Numbers of the whole graph</h4>") == 3 + 1
    np.testing.assert_allclose(numbers_after("together", page), model.predict(graphs[:3]), rtol=1e-5, atol=1e-6)
    lists = page.partition('id="matters"')[2].partition("</section>")[0]
    assert re.findall("<h4>(.*?)</h4>", lists) == ["Features", "Numbers of the whole graph"]
    for record in found.summary(8):
        assert f"{escape(record['words'])}</span>" in lists
        assert f"in {counted(record['n_graphs'], 'graph')}, mean size {record['mean_absolute']:.3g}" in lists


def test_numbers_use_minus_signs_and_do_not_wrap(half_model, motifs, tmp_path):
    page = (
        written(tmp_path, half_model, motifs[0][:4], y=motifs[1][:4])
        .partition("</style>")[2]
        .partition('id="provenance"')[0]
    )
    page = re.sub(r'data-\w+="[^"]*"', "", page)
    text = re.sub(r"<svg.*?</svg>|<[^>]*>", " ", page, flags=re.DOTALL)
    assert "\N{MINUS SIGN}" in text
    assert not re.search(r"-\d", text)
    for element in re.findall(r'<(?:span|b)(?: class="([^"]*)")?>[+\N{MINUS SIGN}][\d.]+', page):
        assert "whole" in element.split()


def test_class_names_and_labels_are_escaped(model, motifs, tmp_path):
    page = written(tmp_path, model, motifs[0], title=SCRIPT, y=motifs[1])
    labeled = Graphs.from_edges(
        [[(0, 1)], [(0, 1), (1, 2)]],
        labels=[[SCRIPT, '"><u>'], ["C", SCRIPT, "C"]],
        attributes=[[[0], [1]], [[2], [3], [4]]],
        graph_names=[SCRIPT, '"><u>'],
        node_names=[[SCRIPT, '"><u>'], ["</title>", SCRIPT, "C"]],
        attribute_names=[f"</title>{SCRIPT}"],
    )
    page += written(tmp_path, GraphRidge(WL(), param_grid={}, alpha=1.0, cv=2).fit(labeled, [0.0, 1.0]), labeled)
    assert '"><u>' not in page
    assert page.count("<script") == 2  # the script of each page
    assert "&lt;script&gt;" in page
    assert "http://" not in page
    assert "https://" not in page


def test_targets_of_the_graphs_are_used_if_present(motifs, tmp_path):
    graphs, _ = motifs
    model = GraphSVC(WLOA(), param_grid={}, C=1, cv=2).fit(graphs, graphs.targets)
    assert 'class="truth"' in written(tmp_path, model, graphs[:1])
    two_targets = replace(graphs[:1], targets=np.zeros((1, 2)))
    assert 'class="truth"' not in written(tmp_path, model, two_targets)
    bare = Graphs.from_edges([one.edges().tolist() for one in graphs[:2]], n_nodes=[25, 25])
    assert 'class="truth"' not in written(tmp_path, model, bare)


def test_regressors_and_linear_models(tmp_path):
    graphs, y, _ = make_motifs(20, n_attributes=2, random_state=0)
    process = GraphGP(ODDCL(depth=1), param_grid={}).fit(graphs, y + 0.5)
    page = written(tmp_path, process, graphs[:1])
    assert "± " in page
    assert "a higher prediction" in page
    np.testing.assert_allclose(numbers_after("together", page), process.predict(graphs[0]), rtol=1e-5)
    ridge = GraphRidge(KernelSum([WL(), ODDST(depth=1)]), param_grid={}, cv=2).fit(graphs, y)
    assert "WL: " in written(tmp_path, ridge, graphs[:1])
    linear = make_pipeline(FeatureMap(WL()), LogisticRegression()).fit(graphs, y)
    page = written(tmp_path, linear, graphs[:1])
    assert "Most similar training graphs" not in page
    np.testing.assert_allclose(numbers_after("together", page), linear.decision_function(graphs[0]), rtol=1e-5)
    many = make_pipeline(FeatureMap(WL()), LogisticRegression()).fit(graphs, np.arange(20) % 3)
    assert re.search(
        r"<b class=.for.>\d</b> rather than <b class=.against.>\d</b>", written(tmp_path, many, graphs[:1])
    )


def test_models_with_several_numbers_show_one_at_a_time(tmp_path):
    graphs, y, _ = make_motifs(20, random_state=0)
    model = make_pipeline(FeatureMap(WL()), Ridge()).fit(graphs[:16], np.column_stack([y, 1 - y, y])[:16])
    page = written(tmp_path, model, graphs[14:], y=y[14:])
    assert page.count("<option>") == 6 * 3 + 1  # the outputs of each graph, and a result
    assert "mean absolute error" not in page
    assert page.count('<span class="change seen">training graph</span>') == 2
    np.testing.assert_allclose(
        numbers_after("together", page), model.predict(graphs[14:]).ravel(), rtol=1e-5, atol=1e-6
    )


def test_linear_models_on_features_of_trees_and_attributes(tmp_path):
    graphs, y, _ = make_motifs(20, n_attributes=2, random_state=0)
    linear = make_pipeline(FeatureMap(ODDCL(1), n_features=None), LogisticRegression()).fit(graphs, y)
    page = written(tmp_path, linear, graphs[:1])
    assert "Most similar training graphs" not in page
    np.testing.assert_allclose(numbers_after("together", page), linear.decision_function(graphs[0]), rtol=1e-5)


def test_pipelines_ending_in_a_model_or_nystroem(tmp_path):
    graphs, y, _ = make_motifs(20, n_attributes=2, random_state=0)
    process = make_pipeline(ScaleAttributes(), GraphGP(ODDCL(depth=1), param_grid={})).fit(graphs, y + 0.5)
    page = written(tmp_path, process, graphs[:1])
    assert "± " in page
    np.testing.assert_allclose(numbers_after("together", page), process.predict(graphs[0]), rtol=1e-5)
    svc = make_pipeline(ScaleAttributes(), GraphSVC(ODDCL(depth=1), param_grid={}, C=1, cv=2)).fit(graphs, y)
    assert written(tmp_path, svc, graphs[:1]).count("Most similar training graphs") == 1
    landmarks = make_pipeline(Nystroem(WL(), 5), LogisticRegression()).fit(graphs, y)
    page = written(tmp_path, landmarks, graphs[:1])
    assert "Most similar training graphs" in page
    np.testing.assert_allclose(numbers_after("together", page), landmarks.decision_function(graphs[0]), rtol=1e-5)


def test_empty_and_too_large_graphs_are_described(model, tmp_path):
    star = [(0, i) for i in range(1, MOST_HOPS + 1)]
    chain = [(i, i + 1) for i in range(MOST_NODES)]
    graphs = Graphs.from_edges(
        [[], star, chain, chain[:MOST_HOPS]], n_nodes=[0, MOST_HOPS + 1, MOST_NODES + 1, MOST_HOPS + 1]
    )
    page = written(tmp_path, model, graphs)
    assert "This graph has no nodes." in page
    assert f"This graph has {MOST_HOPS + 1} nodes, too many to draw." in page
    assert f"This graph has {MOST_NODES + 1:,} nodes, too many to draw." in page
    assert page.count("Nodes are in rows, in their order in the graph.") == 1


def test_any_graph_can_be_drawn():
    for collection in zoo.LAWS_HOLD_ON.values():
        for graph in collection.pack():
            picture = draw_graph(graph, "a graph", strengths=np.linspace(-1, 1, graph.n_nodes))
            circles = drawn_circles(picture)
            assert len(circles) == graph.n_nodes
            assert ("<polygon" in picture) == (graph.directed and bool(len(graph.indices)))
            if len(circles) > 1:  # nodes do not overlap
                assert pdist(circles[:, :2]).min() > 1.9 * circles[0, 2]


def drawn_circles(picture):
    """Return the center and radius of each node."""
    found = re.findall(r'<circle cx="([\d.-]+)" cy="([\d.-]+)" r="([\d.]+)"', picture)
    return np.array(found, dtype=float).reshape(-1, 3)


def test_nodes_do_not_overlap_in_projected_coordinates():
    turns = np.arange(150)
    helix = np.column_stack([2.3 * np.cos(1.745 * turns), 2.3 * np.sin(1.745 * turns), 1.5 * turns])
    graph = Graphs.from_edges([[(i, i + 1) for i in range(149)]], attributes=[helix], attribute_names=["x", "y", "z"])
    assert describe_positions(graph).startswith("Nodes are at their coordinates, projected to")
    circles = drawn_circles(draw_graph(graph, "a helix"))
    assert pdist(circles[:, :2]).min() > 1.9 * circles[0, 2]
    assert circles[0, 2] > 0.6  # and are visible


def test_features_that_are_trees_are_drawn():
    assert re.findall(r'class="in"[^>]*>([^<]*)<', draw_tree("C(N,C(O))")) == ["N", "O", "C", "C"]
    assert re.findall(r'class="mark"[^>]*>([^<]*)<', draw_tree("C(1:N)")) == ["1"]
    assert draw_tree('C("a(b",N) #2').count("<rect") == 3
    for name in ("C", "C((", "C(" + ",".join("N" * 30) + ")"):
        assert draw_tree(name) is None


# -------------------------------------------------------------------- molecules


def test_molecules_come_before_features_and_show_predictions_with_errors(tmp_path):
    pytest.importorskip("rdkit")
    smiles = ["CO", "CCO", "CC(C)O", "OCCC", "CN", "CCN", "CC(C)N", "NCCC"]
    graphs = Graphs.from_smiles(smiles, labels=["element", "pharmacophore"])
    model = GraphGP(WLOA(use_edge_labels=True), param_grid={}).fit(graphs[:6], np.arange(6.0))
    page = written(tmp_path, model, graphs[6:], y=[6.0, 7.0], molecules=smiles[6:])
    assert page.index('class="molecule"') < page.index('id="matters"') < page.index("nothing is sampled")
    predictions, deviations = model.predict(graphs[6:], return_std=True)
    shown = re.findall(r'class="prediction">(.*?)</b> <span .*?>± (.*?)</span>', page)
    digits = [max(0, 1 - int(np.floor(np.log10(deviation)))) for deviation in deviations]
    assert shown == [
        (f"{value:.{n}f}".replace("-", "\N{MINUS SIGN}"), f"{deviation:.{n}f}")
        for value, deviation, n in zip(predictions, deviations, digits, strict=True)
    ]
    assert [float(text) for text in re.findall('data-error="(.*?)"', page)] == np.abs(predictions - [6, 7]).tolist()
    assert f"2 molecules; mean absolute error: {np.abs(predictions - [6, 7]).mean():.3g}." in page
    assert "Atoms that contribute most" in page
    assert re.search(r"at least one N \(donor.*?\) with a single bond to ", page)


def test_molecules_are_drawn_by_rdkit(tmp_path):
    pytest.importorskip("rdkit")
    graphs = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1)]], labels=[["C", "C", "O"], ["C", "O"]])
    model = GraphRidge(WL(), param_grid={}, alpha=0.1, cv=2).fit(graphs, [0.0, 1.0])
    page = written(tmp_path, model, graphs, molecules=["CCO", "CO"])
    assert page.count('class="molecule"') == 2
    assert "xmlns" not in page
    picture = page.partition('class="molecule"')[2].partition("</figure>")[0]
    assert picture.count('class="note"') == 3  # the number of each atom in the lists
    contributions = explain(model, graphs).node_contributions[0]
    sides = ["for" if value > 0 else "against" for value in contributions]
    strengths = [f"{100 * abs(value):.0f}" for value in contributions / np.abs(contributions).max()]
    assert re.findall(r'class="node (\w+)" style="--s:(\d+)%"', picture) == list(zip(sides, strengths, strict=True))
    with pytest.raises(ValueError, match=r"molecules\[0\]: its atom 0 is O, but the node's label is 'C'"):
        written(tmp_path, model, graphs, molecules=["OCC", "CO"])
    for other in ("CO", "C(O)C"):
        with pytest.raises(
            ValueError, match=r"molecules\[0\] must have the nodes of its graph as atoms, in their order"
        ):
            written(tmp_path, model, graphs, molecules=[other, "CO"])
    with pytest.raises(
        ValueError, match=r"must be an RDKit molecule or a SMILES string that RDKit can read; got 'C\('"
    ):
        written(tmp_path, model, graphs, molecules=["C(", "CO"])
    with pytest.raises(ParameterError, match="molecules must have one entry per graph, 2; it has 1"):
        written(tmp_path, model, graphs, molecules=["CCO"])


def test_hydrogens_are_drawn_if_the_graph_has_them(tmp_path):
    chem = pytest.importorskip("rdkit.Chem")
    water = chem.AddHs(chem.MolFromSmiles("O"))
    graphs = Graphs.from_edges([[(0, 1), (0, 2)], [(0, 1)]], labels=[["O", "H", "H"], ["C", "O"]])
    model = GraphRidge(WL(), param_grid={}, alpha=0.1, cv=2).fit(graphs, [0.0, 1.0])
    assert 'class="molecule"' in written(tmp_path, model, graphs[:1], molecules=["O"])
    assert 'class="molecule"' in written(tmp_path, model, graphs[:1], molecules=[water])


def test_hydrogens_are_not_drawn_if_the_graph_does_not_have_them(tmp_path):
    chem = pytest.importorskip("rdkit.Chem")
    molecules = [chem.AddHs(chem.MolFromSmiles(smiles)) for smiles in ("CO", "CCO", "CN", "CCN")]
    hydrogens_first = chem.RenumberAtoms(molecules[0], [*range(2, molecules[0].GetNumAtoms()), 0, 1])
    model = make_pipeline(MoleculeGraphs(), GraphRidge(WL(), param_grid={}, cv=2)).fit(molecules, np.arange(4.0))
    page = written(tmp_path, model, [hydrogens_first, molecules[3]])
    assert page.count('class="molecule"') >= 2
    assert len(re.findall('class="node (?:for|against)"', page)) == 2 + 3


def test_missing_rdkit_error_names_the_extra(model, motifs, monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "rdkit.Chem", None)
    monkeypatch.setitem(__import__("sys").modules, "rdkit", None)
    with pytest.raises(ImportError, match=r"pip install rdkit"):
        written(tmp_path, model, motifs[0], molecules=["C"] * 30)


# -------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": [1, 2]}, r"y must have one entry per graph, shape \(30,\); got shape \(2,\)"),
    ],
)
def test_invalid_options_raise_and_write_nothing(model, motifs, tmp_path, options, message):
    with pytest.raises(ParameterError, match=message):
        written(tmp_path, model, motifs[0], **options)
    assert list(tmp_path.iterdir()) == []


def test_incompatible_graphs_and_models_keep_the_existing_page(model, motifs, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("older")
    labeled = Graphs.from_edges([[(0, 1)]], labels=[["C", "O"]])
    with pytest.raises(
        InvalidGraphError,
        match=r"The nodes of the new graphs \(X\) have labels, but WLOA was fitted on nodes without labels",
    ):
        written(tmp_path, model, labeled)
    with pytest.raises(ParameterError, match="X of explain must have at least one graph"):
        written(tmp_path, model, motifs[0][:0])
    approximate = GraphSVC(ODDCLApprox(), param_grid={}, C=1, cv=2).fit(*motifs)
    with pytest.raises(ParameterError, match="ODDCLApprox cannot be explained"):
        written(tmp_path, approximate, motifs[0])
    with pytest.raises(ParameterError, match="must be a model of graphs"):
        written(tmp_path, WL().fit(motifs[0]), motifs[0])
    with pytest.raises(FileNotFoundError, match="does not exist; create it first"):
        explain(model, motifs[0]).to_html(tmp_path / "no" / "page.html")
    assert page.read_text() == "older"
    assert [Path(path).name for path in tmp_path.iterdir()] == ["page.html"]


def test_unseen_class_is_shown_as_wrong(half_model, motifs, tmp_path):
    with pytest.warns(UserWarning, match="y has 1 class that the model was not fitted on, such as 'never': "):
        page = written(tmp_path, half_model, motifs[0][[1]], y=["never"])
    assert "true: <b>never</b>" in page
    assert "0 of 1 predictions are correct" in page


def test_empty_graph_has_no_colors_and_a_single_node_does_not_fill_the_drawing(tmp_path):
    graphs = Graphs.from_edges([[], [], [(0, 1)]], n_nodes=[0, 1, 2], labels=[[], ["C"], ["C", "N"]])
    model = GraphRidge(WL(), param_grid={}, alpha=1.0, cv=2).fit(graphs, [0.0, 1.0, 2.0])
    page = written(tmp_path, model, graphs)
    assert "This graph has no nodes." in page
    assert page.count('class="node ') == 3
    assert 'viewBox="-50.0 ' in page


def test_labels_that_are_all_equal_are_omitted(tmp_path):
    graphs = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]], labels=[["C"] * 2, ["C"] * 3])
    page = written(tmp_path, GraphRidge(WL(), param_grid={}, alpha=1.0, cv=2).fit(graphs, [0.0, 1.0]), graphs)
    assert "in parentheses" not in page
    assert ">C</text>" not in page.partition('id="graphs"')[2].partition("Features that contribute most")[0]


def test_page_says_which_scale_contributions_add_up_on_and_shows_units_of_the_target(tmp_path):
    graphs, motif, _ = make_motifs(30, random_state=0)
    y = np.exp(3.0 * motif + np.arange(30) / 30)
    model = GraphRidge(WL(normalize=False), param_grid={}).fit(graphs, y)
    page = written(tmp_path, model, graphs[:1])
    explanation = explain(model, graphs[:1])
    assert f"the scale of the targets, {model.target_scale_}; in brackets" in page
    strongest = max(explanation.node_contributions[0], key=abs)
    shown = re.search(r'class="value whole">\+?(\S+) \(\+?(\S+)\)<', page).groups()
    numbers = [float(text.replace("\N{MINUS SIGN}", "-")) for text in shown]
    np.testing.assert_allclose(numbers, [strongest, strongest * explanation.slopes[0]], rtol=1e-2)
    np.testing.assert_allclose(numbers_after("together", page), explanation.decisions, rtol=1e-5)
    np.testing.assert_allclose(numbers_after("which is the prediction", page), explanation.predictions, rtol=1e-3)
    assert "on the scale of the targets: normal scores" in explanation._repr_html_()
    plain = GraphRidge(WL(normalize=False), param_grid={}, target_transform=None).fit(graphs, y)
    assert "scale of the targets" not in written(tmp_path, plain, graphs[:1])


# -------------------------------------------------------------------- proteins


@pytest.fixture(scope="module")
def proteins():
    """Return two helices side by side, with a gap in the numbers of the first, and one helix alone."""
    turns = np.arange(24)
    helix = np.column_stack([2.3 * np.cos(1.745 * turns), 2.3 * np.sin(1.745 * turns), 1.5 * turns])
    places = [np.concatenate([helix, helix + np.array([9.0, 0, 0])]), helix]
    names = [f"A/{number} LYS" for number in [*range(3, 15), *range(25, 37)]] + [f"B/{n}B GLU" for n in turns + 1]
    edges = [np.argwhere(np.triu(squareform(pdist(place)) < 8, 1)).tolist() for place in places]
    graphs = Graphs.from_edges(
        edges,
        n_nodes=[48, 24],
        labels=[[name[-3:] for name in names], ["LYS"] * 24],
        node_names=[names, [f"A/{number} MSE" for number in turns - 5]],
        positions=places,
    )
    return graphs, GraphRidge(WL(), param_grid={}, cv=2).fit(graphs, [0.0, 1.0])


def test_chains_are_moved_apart_and_named(proteins):
    graphs, _ = proteins
    places, chains = node_positions(graphs[0]), np.repeat([0, 1], 24)
    across = np.linalg.norm(places[:, None] - places[None], axis=2)[chains == 0][:, chains == 1]
    assert across.min() >= 0.09 * np.ptp(places, axis=0).max()
    shift = (places[24:] - places[:24]).std(axis=0)  # chains keep their shape
    assert shift.max() < 0.05 * np.ptp(places, axis=0).max()
    assert re.findall(">(chain .)</text>", draw_graph(graphs[0], "")) == ["chain A", "chain B"]
    assert "chain A" not in draw_graph(graphs[1], "")
    assert "the chains moved apart" in describe_positions(graphs[0])


def test_sequence_has_a_cell_for_each_residue_with_its_color(proteins, tmp_path):
    graphs, model = proteins
    page = written(tmp_path, model, graphs)
    strips = [part.partition('<div class="result">')[0] for part in page.split('<div class="strip">')[1:]]
    assert re.findall("<b>chain (.)</b>", strips[0]) == ["A", "B"]
    assert "<b>" not in strips[1]
    assert re.findall("<small>(.*?)</small>", strips[0]) == ["3", "11", "25", "31", "1B", "11B", "21B"]
    assert re.findall("<small>(.*?)</small>", strips[1]) == ["-5", "1", "11"]
    for strip, contributions in zip(strips, explain(model, graphs).node_contributions, strict=True):
        cells = re.findall(r'<i class="node (\w+)[ \w]*" style="--s:(\d+)%" data-node="(\d+)">(\w)</i>', strip)
        sides, strengths, nodes, letters = zip(*cells, strict=True)
        assert [int(node) for node in nodes] == list(range(len(contributions)))
        assert [side == "for" for side in sides] == (contributions > 0).tolist()
        expected = 100 * np.abs(contributions) / np.abs(contributions).max()
        np.testing.assert_allclose([float(strength) for strength in strengths], expected, atol=0.51)
        assert set(letters) == ({"K", "E"} if len(contributions) == 48 else {"M"})
    assert "Residues that contribute most" in page
