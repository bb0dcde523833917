"""From user data to results in a limited number of lines; imports do not count.

The PyTorch Geometric test is skipped if torch is not installed, as in ``make test``; see CONTRIBUTING.md.
The command-line variant (``treegram fit molecules.csv``, then ``predict``) is in ``test_molecule_files.py`` and in
``docs/molecules.md``, whose commands ``test_docs.py`` runs.
"""

import textwrap
from typing import Any

import numpy as np
import pytest

from treegram import make_motifs, make_synthetic


def run(journey, most, **names):
    """Run a program of at most ``most`` lines."""
    program = textwrap.dedent(journey).strip()
    lines = [line for line in program.splitlines() if line and not line.startswith(("import ", "from "))]
    assert len(lines) <= most
    exec(compile(program, "journey", "exec"), names)
    return names


def test_smiles_to_cross_validated_accuracy_in_5_lines():
    pytest.importorskip("rdkit")
    chains = ["C", "CC", "CCC", "CC(C)", "CCCC", "C(C)CC"]
    names = run(
        """
        import treegram as tg
        from sklearn.model_selection import cross_val_score
        graphs = tg.Graphs.from_smiles(smiles, attributes=["partial_charge", "logp"])
        scores = cross_val_score(tg.GraphSVC(cv=2), graphs, y, cv=3)
        print(scores.mean())
        """,
        5,
        smiles=[chain + end for end in "ON" for chain in chains],
        y=["alcohol"] * 6 + ["amine"] * 6,
    )
    assert names["scores"].mean() > 0.9


def test_pyg_data_set_to_a_gram_matrix_in_3_lines():
    torch = pytest.importorskip("torch")
    data = pytest.importorskip("torch_geometric.data")
    InMemoryDataset: Any = data.InMemoryDataset
    graphs, y = make_synthetic(10, random_state=0)
    items = []
    for graph, target in zip(graphs, y, strict=True):
        sources = np.repeat(np.arange(graph.n_nodes), graph.degrees)
        hot = np.eye(graphs.degrees.max() + 1)[graph.degrees]
        items.append(
            data.Data(
                x=torch.tensor(np.hstack([graph.attributes, hot])),
                edge_index=torch.tensor(np.stack([sources, graph.indices])),
                y=torch.tensor([int(target)]),
            )
        )

    class Few(InMemoryDataset):
        def __init__(self):
            super().__init__(None)
            self.data, self.slices = self.collate(items)

    names = run(
        """
        import treegram as tg
        graphs = tg.Graphs.from_pyg(dataset)
        graphs = graphs.assign(labels=graphs.attributes[:, 1:].argmax(axis=1), attributes=graphs.attributes[:, :1])
        K = tg.ODDCL(depth=2).fit_transform(graphs)
        """,
        3,
        dataset=Few(),
    )
    assert names["K"].shape == (10, 10)
    assert names["graphs"].targets.tolist() == y.tolist()
    assert names["graphs"].n_attributes == graphs.n_attributes


def test_tables_to_a_fitted_model_in_4_lines(tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    graphs, y = make_synthetic(20, random_state=0)
    monkeypatch.chdir(tmp_path)
    local = np.arange(graphs.n_nodes) - graphs.offsets[graphs.graph_ids]
    pandas.DataFrame(
        {
            "graph": graphs.graph_ids,
            "node": local,
            "kind": graphs.degrees,
            "x": graphs.attributes[:, 0],
            "class": y[graphs.graph_ids],
        }
    ).to_csv("nodes.csv", index=False)
    edges = graphs.edges()
    pandas.DataFrame(
        {"graph": graphs.graph_ids[edges[:, 0]], "source": local[edges[:, 0]], "target": local[edges[:, 1]]}
    ).to_csv("edges.csv", index=False)
    names = run(
        """
        import pandas as pd
        import treegram as tg
        nodes, edges = pd.read_csv("nodes.csv"), pd.read_csv("edges.csv")
        graphs = tg.Graphs.from_tables(nodes, edges, label="kind", attributes=["x"], targets="class")
        model = tg.GraphSVC(tg.WL(n_iterations=1), cv=2)
        model.fit(graphs, graphs.targets)
        """,
        4,
    )
    assert names["model"].predict(names["graphs"]).shape == (20,)


@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
def test_networkx_to_an_explanation_figure_in_5_lines(tmp_path, monkeypatch):
    pytest.importorskip("networkx")
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    motifs, y, _ = make_motifs(20, random_state=0)
    given = motifs.to_networkx()
    for graph, target in zip(given, y.tolist(), strict=True):
        graph.graph["target"] = target
    monkeypatch.chdir(tmp_path)
    run(
        """
        import treegram as tg
        graphs = tg.Graphs.from_networkx(my_graphs, targets="target")
        model = tg.GraphSVC(tg.WLOA(), param_grid={}, C=1, cv=2).fit(graphs, graphs.targets)
        explanation = tg.explain(model, graphs)
        ax = tg.plot_explanation(explanation, 12)
        ax.figure.savefig("explanation.png")
        """,
        5,
        my_graphs=given,
    )
    assert (tmp_path / "explanation.png").stat().st_size > 1000
    matplotlib.pyplot.close("all")
