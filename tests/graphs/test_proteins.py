import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treegram import ODDCL, Graphs, GraphStatistics, GraphSVC
from treegram.exceptions import DatasetError, InvalidGraphError, ParameterError

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
    for item in atoms:
        made.add_atom(item)
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
            for item in extra:
                chain.add_residue(item)
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
    np.testing.assert_allclose(graphs.positions, HELIX)
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
        np.testing.assert_allclose(graph.positions, HELIX, atol=1e-3)  # what the file formats can hold
    np.testing.assert_allclose(ODDCL(depth=1).fit_transform(graphs), 1.0, atol=1e-5)


def test_coordinates_are_attributes_only_on_request():
    graphs = Graphs.from_pdb(structure(), attributes="coordinates")
    np.testing.assert_allclose(graphs.attributes, HELIX)
    assert graphs.attribute_names == ("x", "y", "z")
    assert Graphs.from_pdb(structure(), attributes=None).attributes is None
    assert Graphs.from_pdb(structure()).n_attributes == 5


def column(graphs, name):
    return graphs.attributes[:, graphs.attribute_names.index(name)]


def naive_invariants(places, follows):
    """Compute the attributes as the documentation says them, residue by residue."""
    rows = []
    for i, place in enumerate(places):
        gaps = [other - place for j, other in enumerate(places) if j != i]
        weights = [np.clip((12 - np.linalg.norm(gap)) / 4, 0, 1) / 10 for gap in gaps]
        known = {k: i + k for k in (-1, 1, 2) if 0 <= i + k < len(places)}
        has_previous, has_next = -1 in known and follows[i], 1 in known and follows[i + 1]
        side, turn = np.zeros(3), (0.0, 0.0)
        if has_previous and has_next:
            before, after = place - places[i - 1], places[i + 1] - place
            side = before / np.linalg.norm(before) - after / np.linalg.norm(after)
            if 2 in known and follows[i + 2]:
                last = places[i + 2] - places[i + 1]
                lengths = np.linalg.norm(before) * np.linalg.norm(after), np.linalg.norm(after) * np.linalg.norm(last)
                a, b = np.cross(before, after) / lengths[0], np.cross(after, last) / lengths[1]
                turn = (a @ b, np.linalg.norm(np.cross(a, b)) * np.sign(before @ b))
        inward = sum(weight * (gap @ side) / np.linalg.norm(gap) for weight, gap in zip(weights, gaps, strict=True))
        center = np.linalg.norm(place - places.mean(axis=0))
        rows.append(
            [sum(weights), inward, center / np.sqrt(((places - places.mean(axis=0)) ** 2).sum(1).mean()), *turn]
        )
    return np.array(rows)


def chain_with_gap(rng, n=40, gap=17):
    """Return a random compact chain, and residues whose numbers jump before one of them."""
    places = np.cumsum(rng.normal(size=(n, 3)), axis=0)
    places *= 3.8 / np.linalg.norm(np.diff(places, axis=0), axis=1).mean()
    numbers = np.arange(n) + 5 * (np.arange(n) >= gap)
    residues = [
        residue(NAMES[i % 8], int(number), atom("CA", place))
        for i, (number, place) in enumerate(zip(numbers, places, strict=True))
    ]
    return places, structure([], [], extra=residues)


def test_invariant_attributes_equal_their_definition():
    places, made = chain_with_gap(np.random.default_rng(0))
    follows = np.arange(40) != 17
    follows[0] = False
    np.testing.assert_allclose(Graphs.from_pdb(made).attributes, naive_invariants(places, follows), atol=1e-12)


def test_helix_and_strand_have_the_documented_turns():
    strand = np.array([[3.4 * i, 0.9 * (-1) ** i, 0.2 * np.sin(i)] for i in range(8)])
    for places, turn in ((HELIX, (0.64, 0.77)), (strand, (-0.68, -0.1))):
        graphs = Graphs.from_pdb(structure(places))
        inner = np.column_stack([column(graphs, "turn cosine"), column(graphs, "turn sine")])[1:-2]
        np.testing.assert_allclose(inner.mean(axis=0), turn, atol=0.2)
    left = Graphs.from_pdb(structure(HELIX * [1, 1, -1]))
    np.testing.assert_allclose(column(left, "turn sine")[1:-2], -0.77, atol=0.02)


def test_side_chains_at_the_surface_point_outward():
    rng = np.random.default_rng(1)
    ball = rng.normal(size=(300, 3))
    ball *= 14 * rng.uniform(size=(300, 1)) ** (1 / 3) / np.linalg.norm(ball, axis=1)[:, None]
    bend = np.array([[15.0, -3.0, 0.0], [17.0, 0.0, 0.0], [15.0, 3.0, 0.0]])  # its middle points away from the ball
    residues = [residue("ALA", 10 * i, atom("CA", place)) for i, place in enumerate(ball)]
    for first, places in ((5000, bend), (6000, bend - [22.0, 0, 0])):
        residues += [residue("LYS", first + i, atom("CA", place)) for i, place in enumerate(places)]
    graphs = Graphs.from_pdb(structure([], [], extra=residues))
    outer, inner = 301, 304
    assert column(graphs, "side chain inward")[outer] < -0.5
    assert column(graphs, "burial")[inner] > 2 * column(graphs, "burial")[outer]
    assert column(graphs, "distance to centroid")[outer] > 1.2 > column(graphs, "distance to centroid")[inner]


@pytest.mark.parametrize("places", [[[1, 2, 3]], [[0, 0, 0]] * 5, [[3.8 * i, 0, 0] for i in range(12)]])
def test_attributes_of_degenerate_chains_are_finite(places):
    graphs = Graphs.from_pdb(structure(np.array(places, dtype=float), ["ALA"] * len(places)))
    assert np.isfinite(graphs.attributes).all()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_rigid_motions_change_nothing(seed):
    """The law of structures: a graph and all predictions depend on the shape, not on the frame of the file."""
    rng = np.random.default_rng(seed)
    chains = [chain_with_gap(rng, 30) for _ in range(12)]
    moved = []
    for places, made in chains:
        turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        places = places @ (turn * np.sign(np.linalg.det(turn))) + 30 * rng.normal(size=3)
        moved.append(made.clone())
        for item, place in zip(moved[-1][0][0], places, strict=True):
            item[0].pos = gemmi.Position(*place)
    graphs, others = Graphs.from_pdb([made for _, made in chains]), Graphs.from_pdb(moved)
    assert graphs.edges().tolist() == others.edges().tolist()
    assert graphs.labels.tolist() == others.labels.tolist()
    np.testing.assert_allclose(graphs.attributes, others.attributes, atol=1e-9)
    y = np.arange(12) % 2
    kernel = ODDCL(depth=1)
    model = GraphSVC(kernel, C=1, cv=2).fit(graphs, y)
    np.testing.assert_allclose(model.decision_function(graphs), model.decision_function(others), atol=1e-6)
    rows = GraphStatistics().fit(graphs)
    np.testing.assert_allclose(rows.transform(graphs), rows.transform(others), rtol=1e-8, atol=1e-8)


def test_chains_can_be_selected_and_the_first_model_is_used():
    made = structure(chains=("A", "B"), models=2)
    assert Graphs.from_pdb(made).n_nodes == 16
    assert Graphs.from_pdb(made, chains=["B"]).n_nodes == 8
    np.testing.assert_allclose(Graphs.from_pdb(made, chains="B").positions, HELIX + np.array([0, 100, 0]))
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
    assert graphs.positions[-1].tolist() == [4, 5, 6]


@pytest.mark.parametrize("shares", [(0.3, 0.7), (0.7, 0.3), (0.5, 0.5)])
def test_residue_with_two_names_has_that_of_the_higher_occupancy(shares, tmp_path):
    extra = [
        residue(name, 20, atom("CA", (i, 2, 3), occupancy=share, altloc="AB"[i]))
        for i, (name, share) in enumerate(zip(("SER", "THR"), shares, strict=True))
    ]
    made = structure(extra=[*extra, residue("GLY", 21, atom("CA", (5, 2, 3)))])
    made.write_pdb(str(tmp_path / "two.pdb"))
    expected = int(shares[1] > shares[0])
    for graphs in (Graphs.from_pdb(made), Graphs.from_pdb(tmp_path / "two.pdb")):
        assert graphs.n_nodes == 10
        assert graphs.node_names[8] == f"A/20 {('SER', 'THR')[expected]}"
        assert graphs.positions[8].tolist() == [expected, 2, 3]


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
    (tmp_path / "empty.pdb").write_text("END\n")
    for name in ("broken.cif", "empty.pdb"):
        with pytest.raises(DatasetError, match=f"{name}: the file cannot be read as PDB or mmCIF"):
            Graphs.from_pdb(tmp_path / name)
    with pytest.raises(DatasetError, match=r"nowhere.pdb: the file cannot be read \(No such file"):
        Graphs.from_pdb(tmp_path / "nowhere.pdb")


def test_packed_file_is_read_to_its_end(tmp_path):
    """A stream that was cut may still begin with whole residues, and its last bytes are a checksum."""
    text = structure().make_pdb_string().encode()
    path = tmp_path / "1abc.pdb.gz"
    path.write_bytes(gzip.compress(text))
    graphs = Graphs.from_pdb(path)
    assert (graphs.n_nodes, graphs.graph_names.tolist()) == (8, ["1abc"])
    content = path.read_bytes()
    for damaged in (*(content[:n] for n in range(2, len(content))), content[:-8] + bytes(4) + content[-4:]):
        path.write_bytes(damaged)
        with pytest.raises(DatasetError, match=r"1abc.pdb.gz: the compressed file is damaged or was cut"):
            Graphs.from_pdb(path)


@pytest.mark.parametrize("text", ["********", "        ", "   1.2x3", "     1_0", "     nan", "   1e300"])
def test_ca_atom_without_a_position_is_refused_with_its_line(text, tmp_path):
    lines = structure().make_pdb_string().splitlines()
    number = next(i for i, line in enumerate(lines) if line[12:16] == " CA " and line[22:26] == "   5")
    lines[number] = lines[number][:38] + text + lines[number][46:]
    (tmp_path / "bad.pdb").write_text("\n".join(lines))
    with pytest.raises(
        (DatasetError, InvalidGraphError), match=rf"bad.pdb:({number + 1}: expected the position| a residue or)"
    ):
        Graphs.from_pdb(tmp_path / "bad.pdb")


def test_residue_without_a_number_is_refused(tmp_path):
    text = structure().make_pdb_string()
    (tmp_path / "bad.pdb").write_text(text.replace("LEU A   3 ", "LEU A     "))
    with pytest.raises(
        InvalidGraphError, match=r"bad.pdb: a residue or an atom cannot be used \(LEU of chain A has no number\)"
    ):
        Graphs.from_pdb(tmp_path / "bad.pdb")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("kind", ["pdb", "cif"])
def test_every_kind_of_line_end_is_read(end, kind, tmp_path):
    made = structure()
    text = made.make_pdb_string() if kind == "pdb" else made.make_mmcif_document().as_string()
    (tmp_path / f"x.{kind}").write_bytes(text.replace("\n", end).encode())
    assert Graphs.from_pdb(tmp_path / f"x.{kind}").n_nodes == 8


def test_positions_stay_with_their_nodes():
    graphs = Graphs.from_pdb([structure(), structure(HELIX + 5)])
    np.testing.assert_allclose(graphs[1].positions, HELIX + 5)
    np.testing.assert_allclose(graphs.subgraph([1, 9]).positions, [HELIX[1], HELIX[1] + 5])
    np.testing.assert_allclose((graphs[1] + graphs[0]).positions, np.vstack([HELIX + 5, HELIX]))
    assert (graphs + graphs.assign(positions=None)).positions is None
    with pytest.raises(
        InvalidGraphError, match="part 0 has positions with 3 columns, part 1 has positions with 2 columns"
    ):
        graphs + graphs.assign(positions=graphs.positions[:, :2])
    with pytest.raises(InvalidGraphError, match="positions must have two or three columns"):
        graphs.assign(positions=graphs.positions[:, :1])
    with pytest.raises(
        InvalidGraphError, match=r"Graph 0 \('helix'\): the positions of its node 0 \('A/1 ALA'\) are not finite"
    ):
        graphs.assign(positions=graphs.positions * np.nan)


@pytest.mark.parametrize("text", ["?", ".", "x", "1e300"])
def test_ca_atom_of_an_mmcif_file_without_a_position_is_refused(text, tmp_path):
    document = structure().make_mmcif_document()
    rows = document.sole_block().find(["_atom_site.label_atom_id", "_atom_site.Cartn_x"])
    next(row for row in rows if row[0] == "CA")[1] = text
    document.write_file(str(tmp_path / "bad.cif"))
    with pytest.raises(
        InvalidGraphError, match=r"bad.cif: a residue or an atom cannot be used \(ALA 1 of chain A has its CA"
    ):
        Graphs.from_pdb(tmp_path / "bad.cif")
