"""Tests of molecules as graphs: against RDKit, in pipelines, rotated and translated, and malformed."""

import re
import subprocess
import sys
import warnings
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem, rdBase
from rdkit.Chem import rdDepictor, rdDistGeom, rdMolDescriptors, rdMolTransforms
from scipy.spatial.transform import Rotation
from sklearn.base import clone
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline

import treegram as tg
from checks import rdkit_says
from treegram.graphs.molecules import ATTRIBUTES, LABELS, MoleculeGraphs

DRUGS = [
    "CC(=O)Oc1ccccc1C(=O)O",
    "CC(C)Cc1ccc(C(C)C(=O)O)cc1",
    "Cn1cnc2c1c(=O)n(C)c(=O)n2C",
    "C[C@H](N)C(=O)O",
    "CC(=O)Nc1ccc(O)cc1",
    "[Na+].[O-]C(=O)c1ccccc1",
    "FC(F)(F)c1ccc(Cl)cc1S(=O)(=O)N",
    "C#CCN1CC[C@@H]1O",
    "O",
    "[2H]C([2H])Cl",
]
INVARIANT = ["centroid_distance"]


@cache
def embedded(smiles, seed=1):
    mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
    assert rdDistGeom.EmbedMolecule(mol, randomSeed=seed) == 0
    return mol


def moved(mol, seed):
    """Return the molecule, rotated and translated at random."""
    rng = np.random.default_rng(seed)
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.random(random_state=rng).as_matrix()
    matrix[:3, 3] = rng.normal(scale=20, size=3)
    copy = Chem.Mol(mol)
    rdMolTransforms.TransformConformer(copy.GetConformer(), matrix)
    return copy


def sums(graphs):
    """Return the sum of each attribute over each graph."""
    return np.array([graph.attributes.sum(axis=0) for graph in graphs])


# -------------------------------------------------------------------- agreement with RDKit


@pytest.mark.parametrize("hydrogens", [False, True])
def test_atoms_bonds_and_labels_match_rdkit(hydrogens):
    graphs = tg.Graphs.from_smiles(DRUGS, hydrogens=hydrogens)
    for graph, smiles in zip(graphs, DRUGS, strict=True):
        mol = Chem.MolFromSmiles(smiles)
        mol = Chem.AddHs(mol) if hydrogens else mol
        found = sorted(graph.label_values[code] for code in graph.labels)
        assert found == sorted(atom.GetSymbol() for atom in mol.GetAtoms())
        bonds = sorted(graph.edge_label_values[code] for code in graph.edge_labels)
        assert bonds == sorted(2 * [str(bond.GetBondType()).lower() for bond in mol.GetBonds()])


def test_every_label_matches_rdkit():
    names = list(LABELS)
    graphs = tg.Graphs.from_smiles(["C[C@H](N)C(=O)[O-]"], labels=names)
    labels = [graphs.label_values[code] for code in graphs.labels]
    assert labels[1] == ("C", 3, 0, 0, 1, "SP3", 0, "S", "")
    assert labels[5] == ("O", 1, -1, 0, 0, "SP2", 0, "", "acceptor")
    ring = tg.Graphs.from_smiles(["c1cc[nH]c1"], labels=["aromatic", "in_ring", "hydrogens"])
    assert set(ring.label_values) == {(1, 1, 1)}


@pytest.mark.parametrize("hydrogens", [False, True])
def test_pharmacophores_match_rdkit(hydrogens):
    """The features of FCFP, atom by atom, and hydrophobes: carbon, sulfur and halogens without a bond to a polar atom."""
    smiles = [*DRUGS, *tg.make_molecules(40, random_state=3)[0], "CS(C)CC", "ClCCl", "FCBr", "CI", "C[Si](C)C"]
    graphs = tg.Graphs.from_smiles(smiles, labels="pharmacophore", hydrogens=hydrogens)
    for graph, text in zip(graphs, smiles, strict=True):
        mol = Chem.MolFromSmiles(text)
        mol = Chem.AddHs(mol) if hydrogens else mol
        features = rdMolDescriptors.GetFeatureInvariants(mol)
        for atom, code, feature in zip(mol.GetAtoms(), graph.labels, features, strict=True):
            words = graph.label_values[code].split()
            bits = [words.count(word) for word in ("donor", "acceptor", "aromatic", "halogen", "basic", "acidic")]
            assert sum(bit << i for i, bit in enumerate(bits)) == feature
            polar = {neighbor.GetAtomicNum() for neighbor in atom.GetNeighbors()} & {7, 8, 9, 15}
            is_greasy = atom.GetAtomicNum() in (6, 16, 17, 35, 53) and not atom.GetFormalCharge()
            assert ("hydrophobe" in words) == (is_greasy and not polar)


@pytest.mark.parametrize("hydrogens", [False, True])
def test_atom_contributions_sum_to_the_molecule_descriptor_of_rdkit(hydrogens):
    graphs = tg.Graphs.from_smiles(DRUGS, attributes=["logp", "refractivity", "polar_surface"], hydrogens=hydrogens)
    mols = [Chem.MolFromSmiles(smiles) for smiles in DRUGS]
    expected = [[*rdMolDescriptors.CalcCrippenDescriptors(m), rdMolDescriptors.CalcTPSA(m)] for m in mols]
    np.testing.assert_allclose(sums(graphs), expected, atol=1e-9)


def test_contributions_of_hydrogens_that_come_first_go_to_their_own_atoms():
    names = ["logp", "refractivity", "polar_surface", "partial_charge", "mass"]
    for smiles in DRUGS:
        mol = Chem.MolFromSmiles(smiles)
        full = Chem.AddHs(mol)
        heavy = [atom.GetIdx() for atom in mol.GetAtoms()]
        others = list(range(len(heavy), full.GetNumAtoms()))
        last, first = (
            tg.Graphs.from_rdkit([Chem.RenumberAtoms(full, order)], attributes=names)
            for order in ([*heavy, *others], [*others[::-1], *heavy])
        )
        np.testing.assert_allclose(first.attributes, last.attributes, atol=1e-9)
        without = tg.Graphs.from_smiles([smiles], attributes=names)
        np.testing.assert_allclose(first.attributes, without.attributes, atol=1e-9)


@pytest.mark.parametrize("hydrogens", [False, True])
def test_partial_charges_and_masses(hydrogens):
    graphs = tg.Graphs.from_smiles(DRUGS, attributes=["partial_charge", "mass"], hydrogens=hydrogens)
    if hydrogens:
        charges = [Chem.GetFormalCharge(Chem.MolFromSmiles(smiles)) for smiles in DRUGS]
        np.testing.assert_allclose(sums(graphs)[:, 0], charges, atol=1e-3)
    masses = [rdMolDescriptors.CalcExactMolWt(Chem.MolFromSmiles("O")), graphs[8].attributes[:, 1].sum()]
    np.testing.assert_allclose(masses[1], masses[0] if hydrogens else 15.999, atol=0.02)
    oxygen = graphs[8].attributes[0, 0]
    assert oxygen == pytest.approx(-0.41, abs=0.01)


def test_input_molecule_is_not_modified():
    mol = Chem.MolFromSmiles(DRUGS[0], sanitize=False)
    before = mol.ToBinary(Chem.PropertyPickleOptions.AllProps)
    tg.Graphs.from_rdkit([mol], attributes=["partial_charge", "coordinates"])
    assert mol.ToBinary(Chem.PropertyPickleOptions.AllProps) == before


def test_smiles_and_molecules_give_the_same_graphs():
    attributes = ["partial_charge", "coordinates", "centroid_distance"]
    one = tg.Graphs.from_smiles(DRUGS, attributes=attributes)
    other = tg.Graphs.from_rdkit([Chem.MolFromSmiles(s) for s in DRUGS], attributes=attributes)
    assert other.graph_names.tolist() == [Chem.CanonSmiles(s) for s in DRUGS]
    assert one == other.assign(graph_names=DRUGS)
    assert MoleculeGraphs(attributes=attributes).transform(DRUGS) == one


def test_double_bond_stereo_is_distinguished():
    """E and Z isomers differ in their bond labels, and so in kernels that use these."""
    graphs = tg.Graphs.from_smiles(["C/C=C/C", "C/C=C\\C", "CC=CC"])
    assert graphs.edge_label_values == ("double", "double E", "double Z", "single")
    assert graphs[0].edge_labels[graphs[0]._edge_arcs()].tolist() == [3, 1, 3]
    gram = tg.WL(use_edge_labels=True).fit_transform(graphs)
    assert gram[0, 1] < 1
    assert gram[0, 2] < 1
    assert tg.WL().fit_transform(graphs)[0, 1] == pytest.approx(1)
    with_hydrogens = tg.Graphs.from_smiles(["C/C=C/C"], attributes=["logp"], hydrogens=True)
    assert "double E" in with_hydrogens.edge_label_values


# -------------------------------------------------------------------- coordinates


@pytest.mark.parametrize("hydrogens", [False, True])
def test_coordinates_of_the_molecule_are_used(hydrogens):
    mol = embedded(DRUGS[0])
    graphs = tg.Graphs.from_rdkit([mol], attributes="coordinates", hydrogens=hydrogens)
    positions = mol.GetConformer().GetPositions()
    np.testing.assert_array_equal(graphs.attributes, positions if hydrogens else positions[:13])


def test_flat_drawings_are_not_used_as_coordinates():
    mol = Chem.MolFromSmiles("CC(C)(C)C")
    rdDepictor.Compute2DCoords(mol)
    graphs = tg.Graphs.from_rdkit([mol], attributes="coordinates")
    assert np.ptp(graphs.attributes, axis=0).min() > 0.5  # newly embedded, and not flat


def test_embedded_coordinates_are_always_the_same():
    once, again = (tg.Graphs.from_smiles(DRUGS[:3], attributes="coordinates").attributes for _ in range(2))
    np.testing.assert_array_equal(once, again)


@settings(deadline=None, max_examples=50)
@given(st.sampled_from(DRUGS), st.integers(0, 2**32 - 1), st.booleans())
def test_invariant_attributes_are_invariant_under_rotation(smiles, seed, hydrogens):
    mol = embedded(smiles)
    turned = moved(mol, seed)
    one, other = (tg.Graphs.from_rdkit([m], attributes=INVARIANT, hydrogens=hydrogens) for m in (mol, turned))
    np.testing.assert_allclose(one.attributes, other.attributes, atol=1e-9)


def test_coordinates_change_under_rotation():
    mol = embedded(DRUGS[0])
    one, other = (tg.Graphs.from_rdkit([m], attributes="coordinates") for m in (mol, moved(mol, 0)))
    assert np.abs(one.attributes - other.attributes).max() > 1


def test_distances_match_the_coordinates():
    graphs = tg.Graphs.from_smiles(DRUGS[:3], attributes=["coordinates", *INVARIANT])
    for graph in graphs:
        x = graph.attributes[:, :3]
        for atom, row in zip(x, graph.attributes[:, 3:], strict=True):
            np.testing.assert_allclose(row, [np.linalg.norm(atom - x.mean(axis=0))])


# -------------------------------------------------------------------- invalid molecules


BAD = {
    "C1CC": "unclosed ring",
    "CC(": "syntax error around position 3",
    "CO(C)C": "Explicit valence for atom # 1 O, 3, is greater than permitted",
    "c1cccc1": "Can't kekulize mol",
    "CC\nO": "line break",
    "[Xx]": "syntax error",
    "CC\0O": "cannot be printed",
}


@pytest.mark.parametrize(("smiles", "reason"), BAD.items())
def test_invalid_molecule_raises_with_the_reason_of_rdkit(smiles, reason, capfd):
    reasons = f"({re.escape(reason)}|{rdkit_says(re.escape(reason))})"
    with pytest.raises(tg.exceptions.InvalidGraphError, match=rf"^Molecule 1 \(.*{reasons}.*on_error='skip'"):
        tg.Graphs.from_smiles(["CCO", smiles])
    assert capfd.readouterr() == ("", "")


def test_older_rdkit_finds_invalid_molecules_without_a_reason(monkeypatch, capfd):
    from rdkit import rdBase

    monkeypatch.delattr(rdBase, "CaptureErrorLog", raising=False)
    assert tg.invalid_molecules(["CCO", "C1CC"]) == {1: "RDKit cannot read it"}
    assert capfd.readouterr() == ("", "")


def test_invalid_molecules_are_dropped_with_their_targets():
    smiles = ["CCO", *BAD, "CN"]
    targets = np.arange(len(smiles)) / 2
    with pytest.warns(UserWarning, match=r"^7 molecules of 9 skipped: Molecule 1 \('C1CC'\): .*; and 2 more\.$"):
        graphs = tg.Graphs.from_smiles(smiles, targets=targets, on_error="skip")
    assert graphs.targets.tolist() == [0.0, 4.0]
    assert graphs.labels.tolist() == [0, 0, 2, 0, 1]
    assert list(tg.invalid_molecules(smiles)) == list(range(1, 8))


def test_non_molecules_count_as_invalid():
    bad = tg.invalid_molecules([None, float("nan"), 7, "CCO", Chem.MolFromSmiles("C(C)(C)(C)(C)C", sanitize=False)])
    assert list(bad) == [0, 1, 2, 4]
    assert bad[0] == "expected a SMILES or an RDKit molecule, got None (NoneType)"
    assert bad[4] == "RDKit says: Explicit valence for atom # 0 C, 5, is greater than permitted"
    with pytest.raises(tg.exceptions.InvalidGraphError, match=r"Molecule 0 .NoneType.: .* got None"):
        tg.Graphs.from_rdkit([None])


def test_nan_charges_are_explained():
    with pytest.raises(
        tg.exceptions.InvalidGraphError,
        match=r"'partial_charge' of atom 1 \(Pt\) is not a number: RDKit has no parameters.*Leave it out",
    ):
        tg.Graphs.from_smiles(["CCO", "C[Pt]C"], attributes=["partial_charge"])
    assert tg.invalid_molecules(["C[Pt]C"], attributes=["mass"]) == {}


def test_failed_embedding_is_explained():
    with pytest.raises(
        tg.exceptions.InvalidGraphError, match=r"Molecule 0 \('C1#CC1'\): RDKit found no 3D coordinates: "
    ):
        tg.Graphs.from_smiles(["C1#CC1"], attributes=["coordinates"])


def test_empty_molecules_salts_and_duplicates_are_accepted():
    graphs = tg.Graphs.from_smiles(["", "[Na+].[Cl-]", "CCO", "CCO", "[H][H]", "*C"], attributes=["mass", *INVARIANT])
    assert np.diff(graphs.offsets).tolist() == [0, 2, 3, 3, 2, 2]
    assert graphs.n_attributes == 2
    np.testing.assert_array_equal(graphs[2].attributes, graphs[3].attributes)
    assert len(tg.Graphs.from_smiles([])) == 0


@pytest.mark.parametrize(
    ("molecules", "message"),
    [
        ("CCO", "must be a list"),
        (Chem.MolFromSmiles("C"), "must be a list"),
        (3, "a list of SMILES or RDKit molecules; got int"),
        (pd.DataFrame({"a": ["C"]}), "a table with 'a': set smiles_column"),
    ],
)
def test_non_lists_raise(molecules, message):
    with pytest.raises(tg.exceptions.InvalidGraphError, match=message):
        tg.Graphs.from_smiles(molecules)


@pytest.mark.parametrize("options", [{"attributes": ["mas"]}, {"attributes": []}, {"labels": ["element", "element"]}])
def test_unknown_names_raise_and_list_the_known_ones(options):
    with pytest.raises(
        tg.exceptions.ParameterError, match=r"of MoleculeGraphs must be one of '.*'(partial_charge|element)', "
    ):
        tg.Graphs.from_smiles(["C"], **options)


def test_targets_of_wrong_length_raise():
    with pytest.raises(tg.exceptions.InvalidGraphError, match=r"one entry per molecule, 2; got the shape \(3,\)"):
        tg.Graphs.from_smiles(["C", "CC"], targets=[1, 2, 3])
    with pytest.raises(
        tg.exceptions.ParameterError, match=r"on_error of Graphs\.from_smiles must be one of 'raise', 'skip'"
    ):
        tg.Graphs.from_smiles(["C"], on_error="ignore")


@settings(deadline=None, max_examples=50)
@given(st.lists(st.text(alphabet="CNOc1()=[]+-#@.H ", max_size=8), max_size=6))
def test_any_text_is_a_graph_or_reported_as_invalid(smiles):
    bad = tg.invalid_molecules(smiles)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graphs = tg.Graphs.from_smiles(smiles, on_error="skip", targets=np.arange(len(smiles)))
    assert graphs.targets.tolist() == [i for i in range(len(smiles)) if i not in bad]


def test_lone_surrogate_is_not_a_molecule():
    assert list(tg.invalid_molecules(["C\ud800", "C"])) == [0]


def test_missing_rdkit_error_names_the_extra():
    program = "import sys; sys.modules['rdkit'] = None; import treegram; treegram.Graphs.from_smiles(['C'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install rdkit" in done.stderr.splitlines()[-1]


# -------------------------------------------------------------------- pipelines


ALCOHOLS = ["CO", "CCO", "CC(C)O", "OCCC", "OC1CC1", "CCCCO"]
AMINES = ["CN", "CCN", "CC(C)N", "NCCC", "NC1CC1", "CCCCN"]
CLASSES = ["alcohol"] * 6 + ["amine"] * 6


def test_pipeline_on_smiles_can_be_cloned_and_saved(tmp_path):
    model = make_pipeline(
        tg.MoleculeGraphs(attributes=["partial_charge", "mass"]),
        tg.GraphSVC(tg.ODDCL(depth=1), param_grid={}, C=1, cv=2),
    )
    model = clone(model).fit(ALCOHOLS + AMINES, CLASSES)
    assert model.predict(["CCCCCO", "CCCCCN"]).tolist() == ["alcohol", "amine"]
    tg.save_model(model, tmp_path / "model.tgm")
    loaded = tg.load_model(tmp_path / "model.tgm")
    assert loaded[0].get_params() == model[0].get_params()
    np.testing.assert_array_equal(
        loaded.decision_function(np.array(["CCCCCO", "OCC"])), model.decision_function(["CCCCCO", "OCC"])
    )
    with pytest.raises(tg.exceptions.InvalidGraphError, match="A pipeline step must return one graph per molecule"):
        model.predict(["CCO", "C1CC"])


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame])
def test_columns_of_tables_are_accepted(table):
    model = make_pipeline(tg.MoleculeGraphs(smiles_column="smiles"), tg.GraphSVC(tg.WL(), param_grid={}, C=1, cv=2))
    model.fit(table({"name": ["?"] * 12, "smiles": ALCOHOLS + AMINES}), CLASSES)
    assert model.predict(table({"smiles": ["CCO"]})).tolist() == ["alcohol"]
    with pytest.raises(
        tg.exceptions.InvalidGraphError,
        match="smiles_column: molecules: no column is called 'smiles'; there are 'SMILE'; did you mean SMILE",
    ):
        model.predict(table({"SMILE": ["CCO"]}))


def test_scaffolds_keep_their_molecules_together():
    smiles = [f"{group}c1ccccc1" for group in ("C", "CC", "O", "N")] + ["C1CC1C", "OC1CC1", "CCO", "CCN"]
    groups = tg.scaffold_groups(smiles)
    assert groups.tolist() == ["c1ccccc1"] * 4 + ["C1CC1"] * 2 + [""] * 2
    mols = [Chem.MolFromSmiles(s, sanitize=False) for s in smiles]
    assert tg.scaffold_groups(mols).tolist() == groups.tolist()
    y = np.arange(8) % 2
    model = tg.GraphSVC(tg.WL(), param_grid={}, C=1, cv=GroupKFold(3))
    assert model.fit(tg.Graphs.from_smiles(smiles), y, groups=groups).classes_.tolist() == [0, 1]
    with pytest.raises(tg.exceptions.InvalidGraphError, match=rf"Molecule 1 .'C1CC'.: {rdkit_says('unclosed ring')}"):
        tg.scaffold_groups(["C", "C1CC"])


@pytest.mark.parametrize("function", [tg.Graphs.from_smiles, tg.Graphs.from_rdkit, tg.invalid_molecules])
def test_unknown_option_raises_in_the_called_function(function):
    with pytest.raises(
        TypeError, match=rf"{function.__name__} got an unexpected .* 'attribute'; did you mean attributes"
    ):
        function(["CCO"], attribute=["mass"])
    with pytest.raises(TypeError, match="'color'; it takes labels, attributes, hydrogens"):
        function(["CCO"], color=1)


def test_every_name_is_documented():
    text = tg.MoleculeGraphs.__doc__
    assert [name for name in (*LABELS, *ATTRIBUTES) if f'"{name}"' not in text] == []


# -------------------------------------------------------------------- descriptors


def test_descriptors_are_graph_attributes_with_names():
    from rdkit.Chem import Descriptors

    graphs = tg.Graphs.from_smiles(DRUGS[:3], descriptors="rdkit2d")
    names = [name for name, _ in Descriptors.descList]
    assert graphs.graph_attribute_names == tuple(f"rdkit2d: {name}" for name in names)
    for row, text in zip(graphs.graph_attributes, DRUGS, strict=False):
        mol = Chem.MolFromSmiles(text)
        for name, compute in Descriptors.descList:
            if name in ("MolWt", "TPSA"):
                assert row[names.index(name)] == compute(mol)
    explicit = [Chem.AddHs(Chem.MolFromSmiles(text)) for text in DRUGS[:3]]
    np.testing.assert_array_equal(
        tg.Graphs.from_rdkit(explicit, descriptors="rdkit2d").graph_attributes, graphs.graph_attributes
    )
    assert MoleculeGraphs(descriptors="rdkit2d").transform(DRUGS[:3]) == graphs
    assert tg.Graphs.from_smiles(DRUGS[:3]).graph_attributes is None
    with pytest.raises(tg.exceptions.ParameterError, match="descriptors"):
        tg.Graphs.from_smiles(DRUGS[:3], descriptors="rdkit3d")


def test_undefined_descriptors_are_zero_and_huge_ones_are_clipped():
    """Uranium has no Gasteiger parameters, and Ipc grows exponentially."""
    graphs = tg.Graphs.from_smiles(["[U]", "C" * 400, "[H][H]"], descriptors="rdkit2d")
    assert np.isfinite(graphs.graph_attributes).all()
    assert np.abs(graphs.graph_attributes).max() == 1e12
    column = dict(zip(graphs.graph_attribute_names, graphs.graph_attributes.T, strict=True))
    assert column["rdkit2d: BCUT2D_CHGHI"][0] == 0


def test_descriptors_equal_those_of_rdkit_bit_for_bit():
    from rdkit.Chem import Descriptors

    smiles = [*DRUGS, *tg.make_molecules(60, random_state=1)[0], "[U]", "[Na+].[Cl-]", "C", "", "[H][H]"]
    graphs = tg.Graphs.from_smiles(smiles, descriptors="rdkit2d")
    with rdBase.BlockLogs():
        mols = [Chem.RemoveHs(Chem.MolFromSmiles(text)) for text in smiles]
        expected = [list(Descriptors.CalcMolDescriptors(mol, missingVal=np.nan).values()) for mol in mols]
    expected = np.clip(np.nan_to_num(np.array(expected, dtype=float), nan=0.0), -1e12, 1e12)
    np.testing.assert_array_equal(graphs.graph_attributes, expected)


def test_erg_columns_are_named_by_pairs_of_points_and_their_distance():
    """Two hydroxyl groups four bonds apart: each is a donor and an acceptor."""
    from rdkit.Chem import rdReducedGraphs

    smiles = ["OCCCO", "c1ccccc1CCc1ccccc1", "[O-]CC[N+](C)(C)C", "CC(C)CC(C)C", "", *DRUGS]
    graphs = tg.Graphs.from_smiles(smiles, descriptors=["erg"])
    names = [name.removeprefix("erg: ") for name in graphs.graph_attribute_names]
    for row, text in zip(graphs.graph_attributes, smiles, strict=True):
        np.testing.assert_array_equal(row, rdReducedGraphs.GetErGFingerprint(Chem.MolFromSmiles(text)))
    largest = [
        {name: value for name, value in zip(names, row, strict=True) if value >= 1} for row in graphs.graph_attributes
    ]
    assert largest[0] == {"donor donor 4": 1, "donor acceptor 4": 2, "acceptor acceptor 4": 1}
    assert largest[1] == {"aromatic aromatic 5": 1}
    assert largest[2] == {"acceptor positive 3": 1}
    assert largest[3] == {"hydrophobe hydrophobe 2": 1}
    assert largest[4] == {}


def test_groups_of_the_user_stand_beside_descriptors_and_follow_their_molecules(tmp_path):
    smiles, bits = ["CCO", "C1CC", "CCN"], np.array([[1, 0], [2, 0], [3, 1]])
    with pytest.warns(UserWarning, match="1 molecule of 3 skipped"):
        graphs = tg.Graphs.from_smiles(smiles, descriptors="erg", graph_attributes={"mine": bits}, on_error="skip")
    assert graphs.graph_attribute_names[-2:] == ("mine: 0", "mine: 1")
    np.testing.assert_array_equal(graphs.graph_attributes[:, -2:], bits[[0, 2]])
    alone = tg.Graphs.from_smiles(["CCO", "CCN"], descriptors="erg")
    np.testing.assert_array_equal(graphs.graph_attributes[:, :-2], alone.graph_attributes)
    path = tmp_path / "molecules.csv"
    path.write_text("smiles,y\nCCO,1\nC1CC,2\nCCN,3\n")
    with pytest.warns(UserWarning, match="skipped"):
        loaded, y = tg.load_molecules(path, target="y", graph_attributes={"mine": bits}, on_error="skip")
    assert loaded.graph_attributes.tolist() == [[1, 0], [3, 1]]
    assert y.tolist() == [1, 3]
    with pytest.raises(tg.exceptions.InvalidGraphError, match="must be a dictionary of named arrays"):
        tg.Graphs.from_smiles(["CCO"], graph_attributes=[[1]])
    with pytest.raises(tg.exceptions.InvalidGraphError, match="has the group 'erg', which descriptors also make"):
        tg.Graphs.from_smiles(["CCO"], descriptors="erg", graph_attributes={"erg": [[1]]})
    with pytest.raises(tg.exceptions.InvalidGraphError, match="one row per molecule"):
        tg.Graphs.from_smiles(["CCO"], graph_attributes={"mine": bits})


# -------------------------------------------------------------------- processes


def test_processes_give_the_same_graphs_and_the_same_errors(monkeypatch):
    monkeypatch.setattr("treegram.graphs.molecules._BATCH", 5)
    smiles = tg.make_molecules(23, random_state=2)[0]
    options = {"labels": ["element", "pharmacophore"], "attributes": "coordinates", "descriptors": ["rdkit2d", "erg"]}
    assert tg.Graphs.from_smiles(smiles, n_jobs=2, **options) == tg.Graphs.from_smiles(smiles, **options)
    doubtful = [*smiles[:8], "C1CC", *smiles[8:], "CO(C)C"]
    assert tg.invalid_molecules(doubtful, n_jobs=2) == tg.invalid_molecules(doubtful)
    with pytest.raises(tg.exceptions.InvalidGraphError, match=r"Molecule 8 \('C1CC'\): RDKit says: unclosed ring"):
        tg.Graphs.from_smiles(doubtful, n_jobs=2)
    mols = [Chem.MolFromSmiles(text) for text in smiles]  # stay in this process
    assert tg.Graphs.from_rdkit(mols, n_jobs=2) == tg.Graphs.from_rdkit(mols)


def test_rich_labels_become_elements_in_a_pipeline():
    rich = tg.Graphs.from_smiles(DRUGS, labels=["element", "degree", "aromatic"])
    elements = tg.Graphs.from_smiles(DRUGS)
    assert tg.SelectLabels().fit_transform(rich) == elements
    assert tg.SelectLabels([0, 1]).fit_transform(rich) == tg.Graphs.from_smiles(DRUGS, labels=["element", "degree"])
    assert tg.SelectLabels(-1).fit_transform(rich) == tg.Graphs.from_smiles(DRUGS, labels="aromatic")
    assert tg.SelectLabels().fit_transform(elements) == elements
    bare = tg.Graphs.from_smiles(DRUGS, labels=None)
    assert tg.SelectLabels().fit_transform(bare) == bare


def test_selected_parts_equal_labels_selected_one_by_one():
    labels: list[list[object]] = [[("C", 1, 2), "N", ("O",)], [("C", 1, 3), 4, ()]]
    graphs = tg.Graphs.from_edges([[], []], labels=labels)
    for parts in (0, 1, -1, 5, [0], [0, 2], [2, 0]):
        expected = [[select_part(label, parts) for label in of_graph] for of_graph in labels]
        assert tg.SelectLabels(parts).fit_transform(graphs) == tg.Graphs.from_edges([[], []], labels=expected)


def select_part(label, parts):
    if not isinstance(label, tuple):
        return label
    known = dict(enumerate(label)) | {i - len(label): part for i, part in enumerate(label)}
    return tuple(known[i] for i in parts if i in known) if isinstance(parts, list) else known.get(parts, ())
