"""The page of explanations: its numbers are the model's, its text is text, and nothing is written unless all is well."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import zoo
from treegram import (
    ODDCL,
    ODDST,
    WL,
    WLOA,
    FeatureMap,
    GraphGP,
    GraphRidge,
    Graphs,
    GraphSVC,
    KernelSum,
    Nystroem,
    ODDCLApprox,
    ODDCLFeatures,
    ScaleAttributes,
    explain,
    make_motifs,
    write_explanation_page,
)
from treegram._core.errors import InvalidGraphError, ParameterError
from treegram.explanations.page.drawings import MOST_NODES, draw_graph, draw_tree
from treegram.explanations.page.views import read_views

SCRIPT = "<script>document.title = 'owned'</script>"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def motifs():
    graphs, y, _ = make_motifs(30, random_state=0)
    return graphs, np.array(["a", f"b {SCRIPT}"])[y]


@pytest.fixture(scope="module")
def model(motifs):
    return GraphSVC(WLOA(), grid={}, C=1, cv=2, probability=True).fit(*motifs)


def written(path, *args, **options):
    write_explanation_page(*args[:2], path / "page.html", **options)
    return (path / "page.html").read_text()


def numbers_after(words, text):
    found = re.findall(rf"{words} ([+−][0-9.e+−]+)[,.]?(?= |<)", text)  # noqa: RUF001 (a minus sign)
    return [float(one.rstrip(".,").replace("\N{MINUS SIGN}", "-")) for one in found]


def test_the_page_has_the_decisions_of_the_model(model, motifs, tmp_path):
    graphs, y = motifs
    page = written(tmp_path, model, graphs, y=y, chosen=[3, 20, 3])
    assert page.count("<article") == 2
    decisions = model.decision_function(graphs[[3, 20]])
    np.testing.assert_allclose(numbers_after("together", page), decisions, rtol=1e-5)
    np.testing.assert_allclose(numbers_after("By fitted graphs", page), decisions, rtol=1e-5)
    np.testing.assert_allclose(numbers_after("By features", page), decisions, rtol=1e-5)
    probability = model.predict_proba(graphs[3]).max()
    assert f"<td>{100 * probability:.1f} %</td>" in page
    assert (
        page.count('<span class="change up">right</span>') == 2 * (model.predict(graphs[[3, 20]]) == y[[3, 20]]).sum()
    )
    assert "28 more of the data set are not on this page" in page
    assert page.count("SHA-256 ") == 2


def test_names_of_classes_and_labels_are_text(model, motifs, tmp_path):
    page = written(tmp_path, model, *motifs, title=SCRIPT, source=SCRIPT, y=motifs[1])
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "http://" not in page
    assert "https://" not in page


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_a_browser_shows_the_page_without_a_complaint(model, motifs, tmp_path):
    written(tmp_path, model, *motifs, title=SCRIPT, y=motifs[1], chosen=[0])
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--no-first-run"]
    command = [CHROMIUM, *flags, f"--user-data-dir={tmp_path}", "--dump-dom", (tmp_path / "page.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "<title>&lt;script&gt;" in done.stdout
    assert not [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    assert done.stdout.count('role="img"') >= 1 + 6  # the graph, and fitted ones for and against


def test_by_default_the_first_twenty_are_shown(model, motifs, tmp_path):
    assert written(tmp_path, model, motifs[0], y=motifs[1]).count("<article") == 20


def test_the_targets_of_the_graphs_are_used_if_there_are_any(motifs, tmp_path):
    graphs, _ = motifs
    model = GraphSVC(WLOA(), grid={}, C=1, cv=2).fit(graphs, graphs.targets)
    assert '<th scope="col">true</th>' in written(tmp_path, model, graphs, chosen=[0])
    bare = Graphs.from_edges([one.edges().tolist() for one in graphs[:2]], n_nodes=[25, 25])
    assert '<th scope="col">true</th>' not in written(tmp_path, model, bare)


def test_views_of_many_classes_are_the_predicted_one_against_the_next():
    graphs, y, _ = make_motifs(45, motifs=("house", "cycle", "clique"), random_state=0)
    model = GraphSVC(WL(), grid={}, C=1, cv=3).fit(graphs, y)
    found, pairs = explain(model, graphs), [(0, 1), (0, 2), (1, 2)]
    for i, view in enumerate(read_views(model, graphs, np.arange(45), y, spread=False)):
        first, second = int(view.direction.above), int(view.direction.below)
        assert first == model.predict(graphs[i])[0]
        assert second == np.argsort(model.decision_function(graphs[i])[0])[-2]
        sign = 1 if first < second else -1
        expected = sign * found.decisions[i, pairs.index((min(first, second), max(first, second)))]
        assert view.decision == pytest.approx(expected, abs=1e-9)
        assert all(value == pytest.approx(expected, abs=1e-9) for value in view.sums.values())
        for one in view.speaking_for:
            assert y[one.number] == int(one.target)
            assert one.share > 0


def test_regressors_and_linear_models(tmp_path):
    graphs, y, _ = make_motifs(20, n_attributes=2, random_state=0)
    process = GraphGP(ODDCL(depth=1), grid={}).fit(graphs, y + 0.5)
    page = written(tmp_path, process, graphs, chosen=[0])
    assert "± " in page
    assert "a higher prediction" in page
    np.testing.assert_allclose(numbers_after("together", page), process.predict(graphs[0]), rtol=1e-5)
    ridge = GraphRidge(KernelSum([WL(), ODDST(depth=1)]), grid={}, cv=2).fit(graphs, y)
    assert "WL: " in written(tmp_path, ridge, graphs, chosen=[0])
    linear = make_pipeline(FeatureMap(WL()), LogisticRegression()).fit(graphs, y)
    page = written(tmp_path, linear, graphs, chosen=[0])
    assert "Fitted graphs that speak" not in page
    np.testing.assert_allclose(numbers_after("By features", page), linear.decision_function(graphs[0]), rtol=1e-5)
    many = make_pipeline(FeatureMap(WL()), LogisticRegression()).fit(graphs, np.arange(20) % 3)
    assert "the other 2 classes" in written(tmp_path, many, graphs, chosen=[0])


def test_linear_models_on_trees_and_vectors(tmp_path):
    graphs, y, _ = make_motifs(20, n_attributes=2, random_state=0)
    linear = make_pipeline(ODDCLFeatures(depth=1, n_features=None), LogisticRegression()).fit(graphs, y)
    page = written(tmp_path, linear, graphs, chosen=[0], spread=True)
    assert "Fitted graphs that speak" not in page
    np.testing.assert_allclose(numbers_after("By features", page), linear.decision_function(graphs[0]), rtol=1e-5)


def test_pipelines_that_end_in_a_model_or_in_landmarks(tmp_path):
    graphs, y, _ = make_motifs(20, n_attributes=2, random_state=0)
    process = make_pipeline(ScaleAttributes(), GraphGP(ODDCL(depth=1), grid={})).fit(graphs, y + 0.5)
    page = written(tmp_path, process, graphs, chosen=[0])
    assert "± " in page
    assert "chosen" in page
    np.testing.assert_allclose(numbers_after("together", page), process.predict(graphs[0]), rtol=1e-5)
    svc = make_pipeline(ScaleAttributes(), GraphSVC(ODDCL(depth=1), grid={}, C=1, cv=2)).fit(graphs, y)
    assert written(tmp_path, svc, graphs, chosen=[0]).count("Fitted graphs that speak") == 2
    landmarks = make_pipeline(Nystroem(WL(), 5), LogisticRegression()).fit(graphs, y)
    page = written(tmp_path, landmarks, graphs, chosen=[0])
    assert "Fitted graphs that speak" in page
    np.testing.assert_allclose(numbers_after("together", page), landmarks.decision_function(graphs[0]), rtol=1e-5)


def test_empty_graphs_and_graphs_that_are_too_large_are_told(model, tmp_path):
    graphs = Graphs.from_edges([[], [(i, i + 1) for i in range(MOST_NODES)]], n_nodes=[0, MOST_NODES + 1])
    page = written(tmp_path, model, graphs)
    assert "This graph has no nodes." in page
    assert f"This graph has {MOST_NODES + 1} nodes, too many to be drawn." in page


@pytest.mark.parametrize("collection", zoo.LAWS_HOLD_ON)
def test_any_graph_can_be_drawn(collection):
    for graph in zoo.LAWS_HOLD_ON[collection].pack():
        picture = draw_graph(graph, np.linspace(-1, 1, graph.n_nodes), "a graph")
        assert picture.count("<circle") == graph.n_nodes


def test_trees_are_drawn_where_names_are_trees():
    assert draw_tree("C(N,C(O))").count("<rect") == 4
    assert ">1</text>" in draw_tree("C(1:N)")
    assert draw_tree('C("a(b",N) #2').count("<rect") == 3
    assert draw_tree("C") is None
    assert draw_tree("C((") is None
    assert draw_tree("C(" + ",".join("N" * 30) + ")") is None


# -------------------------------------------------------------------- molecules


def _colors(before, text):
    return np.array([list(bytes.fromhex(digits)) for digits in re.findall(before + "#([0-9a-fA-F]{6})", text)], int)


def test_molecules_are_drawn_by_rdkit(tmp_path):
    pytest.importorskip("rdkit")
    graphs = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1)]], labels=[["C", "C", "O"], ["C", "O"]])
    model = GraphRidge(WL(), grid={}, alpha=0.1, cv=2).fit(graphs, [0.0, 1.0])
    page = written(tmp_path, model, graphs, molecules=["CCO", "CO"])
    assert page.count('class="molecule"') == 2
    assert "xmlns" not in page
    picture, _, rest = page.partition('class="scale"')
    end, *_ = _colors("background:", rest)
    assert picture.count('class="note"') == 3  # the number of each atom that the lists speak of
    atoms = _colors("fill:", picture)
    assert np.abs(atoms - end).max(axis=1).min() <= 1  # the strongest atom; RDKit rounds another way
    with pytest.raises(ValueError, match=r"molecules\[0\]: its atom 0 is O, but the node's label is 'C'"):
        written(tmp_path, model, graphs, molecules=["OCC", "CO"])
    with pytest.raises(
        ValueError, match=r"molecules\[1\] must have the 2 nodes of its graph as atoms; it has 1 atoms, and 5"
    ):
        written(tmp_path, model, graphs, molecules=["CCO", "C"])
    with pytest.raises(ValueError, match=r"molecules\[0\] must have its atoms in the order .* such as \(0, 2\)"):
        written(tmp_path, model, graphs, molecules=["C(O)C", "CO"])
    with pytest.raises(
        ValueError, match=r"must be an RDKit molecule or a SMILES string that RDKit can read; got 'C\('"
    ):
        written(tmp_path, model, graphs, molecules=["C(", "CO"])
    with pytest.raises(ParameterError, match="molecules must have one entry per graph, 2; it has 1"):
        written(tmp_path, model, graphs, molecules=["CCO"])


def test_hydrogens_are_added_where_the_graph_has_them(tmp_path):
    chem = pytest.importorskip("rdkit.Chem")
    water = chem.AddHs(chem.MolFromSmiles("O"))
    graphs = Graphs.from_edges([[(0, 1), (0, 2)], [(0, 1)]], labels=[["O", "H", "H"], ["C", "O"]])
    model = GraphRidge(WL(), grid={}, alpha=0.1, cv=2).fit(graphs, [0.0, 1.0])
    assert 'class="molecule"' in written(tmp_path, model, graphs, molecules=["O", "CO"], chosen=[0])
    assert 'class="molecule"' in written(tmp_path, model, graphs, molecules=[water, None], chosen=[0])


def test_without_rdkit_the_error_names_the_extra(model, motifs, monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "rdkit.Chem", None)
    monkeypatch.setitem(__import__("sys").modules, "rdkit", None)
    with pytest.raises(ImportError, match=r"pip install 'treegram\[molecules\]'"):
        written(tmp_path, model, motifs[0], molecules=["C"] * 30)


# -------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chosen": [30]}, "chosen must have numbers of graphs from 0 to 29; got 30"),
        ({"chosen": [-1]}, "got -1"),
        ({"chosen": []}, "chosen must be a list of whole numbers of graphs, at least one"),
        ({"chosen": [0.5]}, "chosen must be a list of whole numbers"),
        ({"y": [1, 2]}, r"y must have one entry per graph, shape \(30,\); got shape \(2,\)"),
    ],
)
def test_wrong_options_are_refused_and_nothing_is_written(model, motifs, tmp_path, options, message):
    with pytest.raises(ParameterError, match=message):
        written(tmp_path, model, motifs[0], **options)
    assert list(tmp_path.iterdir()) == []


def test_graphs_and_models_that_do_not_fit_leave_an_older_page(model, motifs, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("older")
    labeled = Graphs.from_edges([[(0, 1)]], labels=[["C", "O"]])
    with pytest.raises(
        InvalidGraphError,
        match=r"The nodes of the new graphs \(X\) have labels, but WLOA was fitted on nodes without labels",
    ):
        written(tmp_path, model, labeled)
    with pytest.raises(ParameterError, match="X must have at least one graph to explain"):
        written(tmp_path, model, motifs[0][:0])
    approximate = GraphSVC(ODDCLApprox(), grid={}, C=1, cv=2).fit(*motifs)
    with pytest.raises(ParameterError, match="ODDCLApprox cannot be explained node by node"):
        written(tmp_path, approximate, motifs[0])
    with pytest.raises(ParameterError, match="must be a GraphSVC, GraphRidge or GraphGP"):
        written(tmp_path, WL().fit(motifs[0]), motifs[0])
    with pytest.raises(FileNotFoundError, match="does not exist; create it first"):
        write_explanation_page(model, motifs[0], tmp_path / "no" / "page.html")
    assert page.read_text() == "older"
    assert [Path(path).name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_class_that_was_never_fitted_is_shown_as_wrong(model, motifs, tmp_path):
    with pytest.warns(
        UserWarning, match=r"y has a class that the model was never fitted on, .*: 'never'; it was fitted on 'a'"
    ):
        page = written(tmp_path, model, motifs[0], y=["never"] * 30, chosen=[0])
    assert "<td>never</td>" in page
    assert "0 of 1" in page


def test_a_graph_without_nodes_has_no_colors_and_one_node_does_not_fill_the_picture(tmp_path):
    graphs = Graphs.from_edges([[], [], [(0, 1)]], n_nodes=[0, 1, 2], labels=[[], ["C"], ["C", "N"]])
    model = GraphRidge(WL(), grid={}, alpha=1.0, cv=2).fit(graphs, [0.0, 1.0, 2.0])
    page = written(tmp_path, model, graphs)
    assert "This graph has no nodes." in page
    assert page.count('class="scale"') == 2
    assert 'viewBox="-50.0 ' in page


def test_labels_that_are_all_the_same_are_not_written(tmp_path):
    graphs = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]], labels=[["C"] * 2, ["C"] * 3])
    page = written(tmp_path, GraphRidge(WL(), grid={}, alpha=1.0, cv=2).fit(graphs, [0.0, 1.0]), graphs)
    assert "label in parentheses" not in page
    assert ">C</text>" not in page.partition("Features that add most")[0]


def test_a_probability_below_that_of_another_class_names_it(motifs, model, tmp_path, monkeypatch):
    graphs, y = motifs
    sure = GraphSVC(WLOA(), grid={}, C=1, cv=2, probability=True).fit(graphs, y)
    monkeypatch.setattr(sure, "sigmoids_", -sure.sigmoids_)
    page = written(tmp_path, sure, graphs, y=y, chosen=[0])
    assert re.search(r"\d %  ?\(b &lt;script|\d %  ?\(a: ", page)
