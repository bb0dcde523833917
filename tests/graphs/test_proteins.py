import numpy as np
import pytest

from treegram import ODDCL, DatasetError, Graphs, InvalidGraphError, ParameterError

gemmi = pytest.importorskip("gemmi")

HELIX = np.array([[2.3 * np.cos(1.745 * i), 2.3 * np.sin(1.745 * i), 1.5 * i] for i in range(8)])
NAMES = ["ALA", "GLY", "LEU", "MSE", "LYS", "ALA", "PHE", "GLU"]


def atom(name, place, element="C", occupancy=1.0, altloc="\0"):
    made = gemmi.Atom()
    made.name, made.element, made.occ, made.altloc = name, gemmi.Element(element), occupancy, altloc
    made.pos = gemmi.Position(*place)
    return made


def residue(name, number, *atoms):
    made = gemmi.Residue()
    made.name, made.seqid = name, gemmi.SeqId(number, " ")
    for one in atoms:
        made.add_atom(one)
    return made


def structure(places=HELIX, names=NAMES, chains=("A",), models=1, extra=()):
    made = gemmi.Structure()
    made.name = "helix"
    for number in range(models):
        model = gemmi.Model(number + 1)
        for i, name in enumerate(chains):
            chain = gemmi.Chain(name)
            for j, (kind, place) in enumerate(zip(names, places, strict=True)):
                shifted = np.asarray(place) + np.array([0.0, 100.0 * i, 0.0])
                chain.add_residue(
                    residue(kind, j + 1, atom("N", shifted + 0.5, "N"), atom("CA", shifted), atom("C", shifted - 0.5))
                )
            for one in extra:
                chain.add_residue(one)
            model.add_chain(chain)
        made.add_model(model)
    made.setup_entities()
    return made


def close_pairs(places, contact):
    return [
        [i, j]
        for i in range(len(places))
        for j in range(i + 1, len(places))
        if np.linalg.norm(places[i] - places[j]) <= contact
    ]


@pytest.mark.parametrize("contact", [4.0, 6.0, 8.0, 100.0])
def test_residues_are_nodes_and_contacts_are_edges(contact):
    graphs = Graphs.from_pdb(structure(), contact=contact, targets=[1])
    assert [graphs.label_values[code] for code in graphs.labels] == NAMES
    np.testing.assert_allclose(graphs.attributes, HELIX)
    assert graphs.edges().tolist() == close_pairs(HELIX, contact)
    assert graphs.targets.tolist() == [1]


def test_files_and_structures_give_the_same_graphs(tmp_path):
    made = structure()
    made.write_pdb(str(tmp_path / "helix.pdb"))
    made.make_mmcif_document().write_file(str(tmp_path / "helix.cif"))
    graphs = Graphs.from_pdb([tmp_path / "helix.pdb", str(tmp_path / "helix.cif"), made])
    assert len(graphs) == 3
    for graph in graphs:
        assert graph.labels.tolist() == graphs[0].labels.tolist()
        assert graph.edges().tolist() == graphs[0].edges().tolist()
        np.testing.assert_allclose(graph.attributes, HELIX, atol=1e-3)  # what the file formats can hold
    np.testing.assert_allclose(ODDCL(depth=1, gamma=0.01).fit_transform(graphs), 1.0, atol=1e-3)


def test_invariant_attributes_are_invariant_under_rotation():
    turn, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))
    first, second = (Graphs.from_pdb(structure(p), attributes="invariant") for p in (HELIX, HELIX @ turn + 7.0))
    np.testing.assert_allclose(first.attributes, second.attributes, atol=1e-9)
    assert first.edges().tolist() == second.edges().tolist()
    steps = np.linalg.norm(np.diff(HELIX, axis=0), axis=1)
    expected = np.linalg.norm(HELIX - HELIX.mean(axis=0), axis=1)
    np.testing.assert_allclose(first.attributes, np.stack([expected, [0, *steps], [*steps, 0]], axis=1), atol=1e-9)
    assert Graphs.from_pdb(structure(), attributes=None).attributes is None


def test_chains_can_be_selected_and_the_first_model_is_used():
    made = structure(chains=("A", "B"), models=2)
    assert Graphs.from_pdb(made).n_nodes == 16
    assert Graphs.from_pdb(made, chains=["B"]).n_nodes == 8
    np.testing.assert_allclose(Graphs.from_pdb(made, chains="B").attributes, HELIX + np.array([0, 100, 0]))
    with pytest.raises(InvalidGraphError, match="there is no chain 'C'; there are 'A', 'B'"):
        Graphs.from_pdb(made, chains=["A", "C"])


def test_water_and_ligands_are_not_nodes():
    water = residue("HOH", 90, atom("O", (0, 0, 0), "O"))
    calcium = residue("CA", 91, atom("CA", (1, 1, 1), "Ca"))
    assert Graphs.from_pdb(structure(extra=[water, calcium])).n_nodes == 8


def test_missing_atoms_are_reported():
    bare = residue("SER", 20, atom("N", (0, 0, 0), "N"))
    with pytest.raises(
        InvalidGraphError, match=r"1 residue without a CA atom, the first is SER 20 of chain A. Pass missing"
    ):
        Graphs.from_pdb(structure(extra=[bare]))
    with pytest.warns(
        UserWarning, match=r"without a CA atom are skipped: Structure 0 .*: 1, the first is SER 20 of chain A"
    ) as caught:
        assert Graphs.from_pdb([structure(extra=[bare])], missing="skip").n_nodes == 8
    assert len(caught) == 1
    only = structure(places=[], names=[], extra=[bare])
    with pytest.raises(InvalidGraphError, match="no amino acid with a CA atom"):
        Graphs.from_pdb(only, missing="skip")


def test_most_occupied_alternate_location_is_used():
    double = residue(
        "SER", 20, atom("CA", (1, 2, 3), occupancy=0.3, altloc="A"), atom("CA", (4, 5, 6), occupancy=0.7, altloc="B")
    )
    graphs = Graphs.from_pdb(structure(extra=[double]))
    assert graphs.n_nodes == 9
    assert graphs.attributes[-1].tolist() == [4, 5, 6]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"attributes": "charges"},
            "attributes of ProteinGraphs must be one of 'coordinates', 'invariant' or None; got 'charges'",
        ),
        ({"missing": "ignore"}, "missing of ProteinGraphs must be one of 'error', 'skip'"),
        ({"contact": -1.0}, "contact of ProteinGraphs must be a number greater than 0"),
        ({"contact": float("nan")}, "contact of ProteinGraphs must be a number greater than 0"),
    ],
)
def test_invalid_options_raise(options, message):
    with pytest.raises(ParameterError, match=message):
        Graphs.from_pdb(structure(), **options)


def test_invalid_files_raise(tmp_path):
    (tmp_path / "broken.cif").write_text("data_x\nloop_\n_atom_site.id\n'unfinished")
    for path in (tmp_path / "nowhere.pdb", tmp_path / "broken.cif"):
        with pytest.raises(DatasetError, match=f"{path.name}: the file cannot be read as PDB or mmCIF"):
            Graphs.from_pdb(path)
    (tmp_path / "empty.pdb").write_text("END\n")
    with pytest.raises((DatasetError, InvalidGraphError), match=r"empty.pdb"):
        Graphs.from_pdb(tmp_path / "empty.pdb")
