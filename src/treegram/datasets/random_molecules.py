"""Generated molecules: common fragments joined at random, with a computed solubility."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from treegram._core.optional import optional_module
from treegram._core.parallel import track
from treegram._core.params import SEED, Allowed, Number, Whole, check_value
from treegram._core.types import Floats

__all__ = ["make_molecules"]

_rdkit_chem = partial(optional_module, "rdkit.Chem", "The molecules of make_molecules")
_ALLOWED: dict[str, Allowed] = {"n_molecules": (Whole(0),), "noise": (Number(0),), "random_state": SEED}
_CORES = (
    "c1ccccc1",
    "c1ccncc1",
    "c1ccsc1",
    "c1ccc2ccccc2c1",
    "C1CCCCC1",
    "C1CCOC1",
    "C1CCNCC1",
    "CCCC",
    "CC(C)C",
    "C=CC",
    "CC(=O)C",
    "CCOCC",
)
_GROUPS = (
    "C",
    "CC",
    "O",
    "N",
    "Cl",
    "F",
    "Br",
    "C#N",
    "C(=O)O",
    "C(N)=O",
    "OC",
    "S",
    "C(F)(F)F",
    "c1ccccc1",
    "CC(C)C",
    "CO",
)
_MOST_GROUPS = 4
_MOST_TRIES = 1000  # to find a new molecule


def make_molecules(
    n_molecules: int = 400, *, noise: float = 0.5, random_state: int | np.random.RandomState | None = None
) -> tuple[list[str], Floats]:
    """Generate molecules with a computed solubility. Needs RDKit.

    Up to four common groups are joined to a common core at random. The target is Delaney's ESOL equation on RDKit's descriptors,
    with normal noise; results on it say nothing about measured data.

    Parameters
    ----------
    n_molecules : int, default=400
        Number of molecules, all different.
    noise : float, default=0.5
        Standard deviation of the noise; repeated measurements differ by 0.5 to 0.7.
    random_state : int, RandomState instance or None, default=None
        Seed; the same number gives the same molecules, with the same version of RDKit.

    Returns
    -------
    smiles : list of str
        The molecules.
    y : ndarray of shape (n_molecules,)
        The logarithm of the computed solubility in mol/l.

    References
    ----------
    J. S. Delaney: ESOL: estimating aqueous solubility directly from molecular structure. Journal of Chemical Information and
    Computer Sciences 44(3), 2004.

    Examples
    --------
    >>> from treegram import make_molecules
    >>> smiles, y = make_molecules(100, random_state=0)
    >>> len(set(smiles)), y.shape
    (100, (100,))
    """
    for name, value in {"n_molecules": n_molecules, "noise": noise, "random_state": random_state}.items():
        check_value(name, "make_molecules", value, _ALLOWED[name])
    random = check_random_state(random_state)
    found: dict[str, float] = {}
    for _ in track(range(n_molecules), n_molecules, "molecules"):
        mol, smiles = _new_molecule(found, random)
        found[smiles] = _solubility(mol)
    return list(found), np.array(list(found.values())) + noise * random.standard_normal(n_molecules)


def _new_molecule(found: dict[str, float], random: np.random.RandomState) -> tuple[Any, str]:
    chem = _rdkit_chem()
    for _ in range(_MOST_TRIES):
        mol = _assemble(random)
        smiles = chem.MolToSmiles(mol)
        if smiles not in found:
            return mol, smiles
    raise ValueError(f"n_molecules is too large: no new molecule was found after {len(found)}.")


def _assemble(random: np.random.RandomState) -> Any:
    chem = _rdkit_chem()
    mol = chem.MolFromSmiles(_CORES[random.randint(len(_CORES))])
    for _ in range(random.randint(_MOST_GROUPS + 1)):
        group = chem.MolFromSmiles(_GROUPS[random.randint(len(_GROUPS))])
        ends = _free_atom(mol, random), mol.GetNumAtoms() + _free_atom(group, random)
        joined = chem.RWMol(chem.CombineMols(mol, group))
        joined.AddBond(*ends, chem.BondType.SINGLE)
        mol = joined.GetMol()
        chem.SanitizeMol(mol)
    return mol


def _free_atom(mol: Any, random: np.random.RandomState) -> int:
    """Return a random atom with a hydrogen that a bond can replace; every fragment has one, and keeps one."""
    free = [atom.GetIdx() for atom in mol.GetAtoms() if atom.GetNumImplicitHs()]
    return free[random.randint(len(free))]


def _solubility(mol: Any) -> float:
    """Compute Delaney's equation."""
    from rdkit.Chem import rdMolDescriptors

    log_p = rdMolDescriptors.CalcCrippenDescriptors(mol)[0]
    weight = rdMolDescriptors._CalcMolWt(mol)
    rotatable = rdMolDescriptors.CalcNumRotatableBonds(mol)
    aromatic = sum(atom.GetIsAromatic() for atom in mol.GetAtoms()) / mol.GetNumHeavyAtoms()
    return float(0.16 - 0.63 * log_p - 0.0062 * weight + 0.066 * rotatable - 0.74 * aromatic)
