"""Tests of generated molecules: valid, distinct, with solubility by Delaney's equation."""

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors

import treegram as tg


def test_molecules_are_valid_and_distinct():
    smiles, y = tg.make_molecules(200, random_state=3)
    mols = [Chem.MolFromSmiles(text) for text in smiles]
    assert all(mol is not None for mol in mols)
    assert len({Chem.MolToSmiles(mol) for mol in mols}) == len(y) == 200
    assert all("." not in text for text in smiles)
    assert tg.invalid_molecules(smiles, attributes=["partial_charge", "logp"]) == {}


def test_targets_match_the_documented_formula():
    smiles, y = tg.make_molecules(30, noise=0, random_state=0)
    for text, target in zip(smiles, y, strict=True):
        mol = Chem.MolFromSmiles(text)
        log_p, _ = rdMolDescriptors.CalcCrippenDescriptors(mol)
        weight = sum(atom.GetMass() for atom in Chem.AddHs(mol).GetAtoms())
        aromatic = len(mol.GetAromaticAtoms()) / mol.GetNumAtoms()
        rotatable = rdMolDescriptors.CalcNumRotatableBonds(mol)
        assert target == pytest.approx(0.16 - 0.63 * log_p - 0.0062 * weight + 0.066 * rotatable - 0.74 * aromatic)


def test_noise_and_seed():
    exact = tg.make_molecules(300, noise=0, random_state=0)
    noisy = tg.make_molecules(300, random_state=0)
    assert noisy[0] == exact[0] == tg.make_molecules(300, random_state=0)[0]
    assert np.std(noisy[1] - exact[1]) == pytest.approx(0.5, abs=0.08)
    assert tg.make_molecules(5, random_state=1)[0] != exact[0][:5]


@pytest.mark.parametrize("options", [{"n_molecules": -1}, {"noise": -0.1}, {"random_state": "x"}])
def test_invalid_parameters_raise(options):
    with pytest.raises(tg.exceptions.ParameterError, match=f"{next(iter(options))} of make_molecules must be"):
        tg.make_molecules(**options)
