"""Tests of explanations as data: numbers read back from tables, B-factors and SDF files equal the contributions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

from treegram import (
    ODDCL,
    WL,
    FeatureMap,
    GraphClassifier,
    GraphRidge,
    Graphs,
    GraphSVC,
    MoleculeGraphs,
    Nystroem,
    ProteinGraphs,
    StatisticsKernel,
    explain,
    load_digits_graphs,
    make_motifs,
)
from treegram.exceptions import ParameterError
from treegram.explanations.words import column_words, feature_words

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def motifs():
    graphs, y, _ = make_motifs(24, random_state=0)
    names = [f"graph {i}" for i in range(24)]
    return graphs.assign(
        labels=np.arange(graphs.n_nodes) % 3, graph_names=names, node_names=[f"v{i}" for i in range(graphs.n_nodes)]
    ), y


@pytest.fixture(scope="module")
def three_outputs():
    graphs, y = load_digits_graphs(n_levels=3)
    graphs, y = graphs[y < 3][:60], y[y < 3][:60]
    graphs = graphs.assign(attributes=None, graph_names=[f"graph {i}" for i in range(60)])
    model = GraphClassifier([WL(1), StatisticsKernel()]).fit(graphs, np.where(np.arange(60) % 3, y, 0))
    assert len(model.weights_) == 2
    return explain(model, graphs[3:7])


# -------------------------------------------------------------------- tables


def test_rows_of_nodes_are_the_contributions_with_names_and_labels(motifs):
    graphs, y = motifs
    found = explain(GraphSVC(WL(2), param_grid={}, C=1, cv=2).fit(graphs, y), graphs[[5, 2]])
    table = found.to_frame()
    assert list(table) == ["graph", "graph_name", "node", "name", "label", "contribution"]
    for i, number in enumerate([5, 2]):
        rows = table[table["graph"] == i]
        np.testing.assert_array_equal(rows["contribution"], found.node_contributions[i])
        assert rows["node"].tolist() == list(range(graphs[number].n_nodes))
        assert rows["name"].tolist() == list(graphs[number].node_names)
        assert rows["label"].tolist() == [str(graphs.label_values[code]) for code in graphs[number].labels]
        assert set(rows["graph_name"]) == {f"graph {number}"}


def test_several_outputs_have_a_row_each(three_outputs):
    table = three_outputs.to_frame()
    assert table["output"].unique().tolist() == ["0", "1", "2"]
    for k, output in enumerate(["0", "1", "2"]):
        values = table.loc[table["output"] == output, "contribution"]
        np.testing.assert_array_equal(values, np.concatenate(three_outputs.node_contributions)[:, k])


def test_all_views_sum_to_the_decisions(three_outputs):
    def sums(by):
        table = three_outputs.to_frame(by).pivot_table("contribution", "graph", "output", "sum")
        return table.to_numpy()

    decisions = three_outputs.decisions - three_outputs.intercept
    np.testing.assert_allclose(sums("nodes") + sums("columns"), decisions, atol=1e-9)
    np.testing.assert_allclose(sums("graphs"), decisions, atol=1e-9)
    np.testing.assert_allclose(sums("features"), sums("nodes"), atol=1e-9)
    columns = three_outputs.to_frame("columns")
    assert set(columns["name"]) == set(three_outputs.column_names)
    assert columns["words"].tolist() == [column_words(name) for name in columns["name"]]


def test_rows_of_features_and_training_graphs_equal_the_arrays(three_outputs):
    names = three_outputs.feature_names
    for row in three_outputs.to_frame("features").sample(40, random_state=0).itertuples():
        values = three_outputs.feature_contributions[int(row.output)]
        assert values[row.graph, names.index(row.name)] == row.contribution
        assert row.words == feature_words(row.name)
    for row in three_outputs.to_frame("graphs").sample(20, random_state=0).itertuples():
        assert three_outputs.graph_contributions[row.graph, row.training_graph, int(row.output)] == row.contribution
        assert row.name == f"graph {row.training_graph}"
    similar = three_outputs.similar_graphs(1, 3)
    rows = three_outputs.to_frame("graphs").query("graph == 1 and output == '0'").set_index("training_graph")
    assert [rows.loc[item["index"], "similarity"] for item in similar] == [item["similarity"] for item in similar]


def test_features_whose_contributions_to_two_outputs_cancel_have_rows(motifs):
    graphs, y = motifs
    model = make_pipeline(FeatureMap(WL(1)), Ridge()).fit(graphs, np.stack([y, -y], axis=1))
    table = explain(model, graphs[:3]).to_frame("features")
    first, second = (table.loc[table["output"] == output, "contribution"].to_numpy() for output in ("0", "1"))
    np.testing.assert_array_equal(first, -second)
    decisions = model.predict(graphs[:3])[:, 0] - model[-1].intercept_[0]
    np.testing.assert_allclose(
        table[table["output"] == "0"].groupby("graph")["contribution"].sum(), decisions, atol=1e-9
    )


def test_training_graphs_of_nystroem_have_their_positions_among_all(motifs):
    graphs, y = motifs
    model = make_pipeline(Nystroem(WL(1), 6, random_state=0), LogisticRegression()).fit(graphs, y)
    numbers = model[0].component_indices_.tolist()
    assert numbers != list(range(len(numbers)))
    table = explain(model, graphs[:3]).to_frame("graphs")
    assert table["training_graph"].tolist() == numbers * 3
    assert table["name"].tolist() == [f"graph {number}" for number in numbers] * 3


def test_what_a_model_lacks_gives_an_empty_table_or_an_error(motifs):
    graphs, y = motifs
    linear = make_pipeline(FeatureMap(WL(2)), LogisticRegression()).fit(graphs, y)
    with pytest.raises(ParameterError, match="Use by='features'"):
        explain(linear, graphs).to_frame("graphs")
    assert len(explain(linear, graphs).to_frame("columns")) == 0
    with pytest.raises(
        ParameterError, match="by of to_frame must be 'nodes', 'columns', 'features', 'graphs'; got 'atoms'"
    ):
        explain(linear, graphs).to_frame("atoms")
    nothing = explain(linear, graphs[:0])
    assert [len(nothing.to_frame(by)) for by in ("nodes", "columns", "features")] == [0, 0, 0]


# -------------------------------------------------------------------- structures


def make_structure(gemmi, numbers, chains):
    """Make chains of residues of three atoms, with a hydrogen and a water each; numbers are (number, insertion code)."""
    structure, model = gemmi.Structure(), gemmi.Model(1)
    for shift, name in enumerate(chains):
        chain = gemmi.Chain(name)
        for i, (number, code) in enumerate([*numbers, (900, " ")]):
            residue = gemmi.Residue()
            residue.name = "HOH" if number == 900 else ["ALA", "GLY", "LEU", "SER"][i % 4]
            residue.seqid = gemmi.SeqId(number, code)
            for k, (atom_name, element) in enumerate([("N", "N"), ("CA", "C"), ("HA", "H"), ("C", "C")]):
                atom = gemmi.Atom()
                atom.name, atom.element, atom.occ, atom.b_iso = atom_name, gemmi.Element(element), 1.0, 7.0
                atom.aniso = gemmi.SMat33f(0.1, 0.2, 0.3, 0, 0, 0)
                atom.pos = gemmi.Position(3.8 * i + k / 3, 2.0 * (i % 2), 30.0 * shift)
                residue.add_atom(atom)
            chain.add_residue(residue)
        model.add_chain(chain)
    structure.add_model(model)
    structure.setup_entities()
    return structure


residue_numbers = st.lists(
    st.tuples(st.integers(1, 40), st.sampled_from(" AB")), min_size=2, max_size=8, unique=True
).map(sorted)


@settings(max_examples=15, deadline=None)
@given(
    residue_numbers,
    st.sampled_from(["A", "BA", "ABC"]),
    st.sampled_from(["cif", "pdb"]),
    st.sampled_from(["cif", "pdb"]),
)
def test_b_factors_read_back_are_the_contributions_of_their_residues(tmp_path_factory, numbers, chains, source, target):
    gemmi = pytest.importorskip("gemmi")
    folder = tmp_path_factory.mktemp("structures")
    structure = make_structure(gemmi, numbers, chains)
    path = folder / f"protein.{source}"
    if source == "cif":
        structure.make_mmcif_document().write_file(str(path))
    else:
        structure.write_pdb(str(path))
    others = [make_structure(gemmi, [(1, " "), (2, " "), (n, " ")], "A") for n in (3, 7)]
    model = make_pipeline(ProteinGraphs(), GraphRidge(ODDCL(depth=1), param_grid={}, alpha=0.1, cv=2))
    found = explain(model.fit([path, *others], [0.0, 1.0, 2.0]), [others[0], path])
    output = folder / f"colored.{target}"
    factor = found.to_structure(output, path, 1)
    assert (factor == 1) or target == "pdb"
    wanted = dict(zip(found.graphs[1].node_names, found.node_contributions[1], strict=True))
    places = 0
    for chain in gemmi.read_structure(str(output))[0]:
        for residue in chain:
            value = wanted.get(f"{chain.name}/{residue.seqid} {residue.name}", 0.0)
            places += residue.name != "HOH"
            for atom in residue:
                assert atom.b_iso == pytest.approx(factor * value, rel=1e-5, abs=0.00501 if target == "pdb" else 1e-9)
                assert not atom.aniso.nonzero()  # viewers would take it for the B-factor
    assert places == len(wanted) == len(numbers) * len(chains)
    if target == "pdb":
        assert f"B-FACTORS ARE CONTRIBUTIONS TIMES {factor:g}" in output.read_text()
        assert 9.99 <= factor * max(map(abs, wanted.values())) <= 99.99


def test_rows_of_residues_have_chain_and_number():
    gemmi = pytest.importorskip("gemmi")
    structures = [make_structure(gemmi, [(1, " "), (1, "B"), (n, " ")], "AC") for n in (3, 7)]
    graphs = Graphs.from_pdb(structures)
    table = explain(GraphRidge(WL(1), param_grid={}, alpha=0.1, cv=2).fit(graphs, [0.0, 1.0]), graphs).to_frame()
    assert list(table) == ["graph", "graph_name", "node", "name", "chain", "residue", "label", "contribution"]
    assert table["residue"].tolist() == ["1", "1B", "3"] * 2 + ["1", "1B", "7"] * 2
    assert table["chain"].tolist() == [*"AAACCC"] * 2


def test_wrong_structures_and_formats_raise_before_anything_is_written(tmp_path):
    gemmi = pytest.importorskip("gemmi")
    structures = [make_structure(gemmi, [(1, " "), (2, " "), (n, " ")], "A") for n in (3, 7, 8)]
    graphs = Graphs.from_pdb(structures)
    model = GraphRidge(WL(1), param_grid={}, alpha=0.1, cv=2).fit(graphs, [0.0, 1.0, 2.0])
    with pytest.raises(ParameterError, match="no amino acid A/3"):
        explain(model, graphs).to_structure(tmp_path / "a.pdb", structures[1], 0)
    with pytest.raises(ParameterError, match=r"path must end in .pdb"):
        explain(model, graphs).to_structure(tmp_path / "a.xyz", structures[0], 0)
    with pytest.raises(ParameterError, match="no names of residues"):
        explain(model, graphs.assign(node_names=None)).to_structure(tmp_path / "a.pdb", structures[0], 0)
    doubled = graphs.assign(node_names=["A/1 ALA", "A/1 ALA", "A/3 LEU"] * 3)
    with pytest.raises(ParameterError, match="two residues of one number in one chain"):
        explain(model, doubled).to_structure(tmp_path / "a.pdb", structures[0], 0)
    assert not list(tmp_path.iterdir())
    assert structures[0][0][0][0][0].b_iso == 7.0


# -------------------------------------------------------------------- molecules


@pytest.mark.parametrize("hydrogens", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_atoms_of_an_sdf_file_have_their_contributions(tmp_path, hydrogens, n_classes):
    chem = pytest.importorskip("rdkit.Chem")
    smiles = ["CCO", "CCN", "CC(C)O", "[2H]CC", "OCCC", "NCCC", "c1ccccc1O", "CC(=O)[O-]", "F"]
    shuffled = []
    for text in smiles:  # hydrogens stand before heavy atoms
        full = chem.AddHs(chem.MolFromSmiles(text))
        order = sorted(range(full.GetNumAtoms()), key=lambda i, full=full: full.GetAtomWithIdx(i).GetAtomicNum() != 1)
        shuffled.append(chem.RenumberAtoms(full, order))
    y = np.arange(9) % n_classes
    model = make_pipeline(MoleculeGraphs(hydrogens=hydrogens), GraphClassifier(["wl"])).fit(smiles, y)
    for molecules in (smiles, shuffled):
        found = explain(model, molecules)
        found.to_sdf(tmp_path / "atoms.sdf")
        read = list(chem.SDMolSupplier(str(tmp_path / "atoms.sdf"), removeHs=False))
        assert len(read) == 9
        names = [f"contribution to {k}" for k in range(3)] if n_classes == 3 else ["contribution"]
        for i, molecule in enumerate(read):
            values = np.array([[atom.GetDoubleProp(name) for name in names] for atom in molecule.GetAtoms()])
            wanted = found.node_contributions[i].reshape(-1, len(names))
            np.testing.assert_allclose(values, wanted, rtol=1e-4, atol=1e-9)
            graph = found.graphs[i]
            labels = [graph.label_values[code] for code in graph.labels]
            assert [atom.GetSymbol() for atom in molecule.GetAtoms()] == labels
            assert {tuple(sorted((b.GetBeginAtomIdx(), b.GetEndAtomIdx()))) for b in molecule.GetBonds()} == {
                tuple(edge) for edge in graph.edges().tolist()
            }
            assert molecule.GetProp("_Name") == graph.graph_names[0]


def test_molecules_keep_their_coordinates_and_need_no_names(tmp_path):
    chem = pytest.importorskip("rdkit.Chem")
    geometry = pytest.importorskip("rdkit.Geometry")
    molecules = [chem.MolFromSmiles(smiles) for smiles in ("CCO", "CCN", "CC")]
    for molecule in molecules[:2]:
        conformer = chem.Conformer(molecule.GetNumAtoms())
        for atom in range(molecule.GetNumAtoms()):
            conformer.SetAtomPosition(atom, geometry.Point3D(atom, 2.0, -3.5))
        molecule.AddConformer(conformer)
    graphs = MoleculeGraphs().fit_transform(molecules).assign(graph_names=None)
    found = explain(GraphRidge(WL(1), param_grid={}, alpha=0.1, cv=2).fit(graphs, [0.0, 1.0, 2.0]), graphs)
    found.to_sdf(tmp_path / "atoms.sdf", molecules=molecules)
    read = list(chem.SDMolSupplier(str(tmp_path / "atoms.sdf")))
    assert [molecule.GetProp("_Name") for molecule in read] == ["", "", ""]
    for molecule in read[:2]:
        assert molecule.GetConformer().GetPositions().tolist() == [[atom, 2.0, -3.5] for atom in range(3)]


def test_molecules_that_are_not_the_graphs_raise(tmp_path):
    pytest.importorskip("rdkit")
    graphs = Graphs.from_smiles(["CCO", "CCN", "CC"])
    found = explain(GraphRidge(WL(1), param_grid={}, alpha=0.1, cv=2).fit(graphs, [0.0, 1.0, 2.0]), graphs)
    found.to_sdf(tmp_path / "names.sdf")
    with pytest.raises(ValueError, match=r"molecules\[1\]"):
        found.to_sdf(tmp_path / "atoms.sdf", molecules=["CCO", "CCCC", "CC"])
    with pytest.raises(ParameterError, match="one entry per graph, 3; it has 1"):
        found.to_sdf(tmp_path / "atoms.sdf", molecules=["CCO"])
    assert not (tmp_path / "atoms.sdf").exists()
