"""What a molecule's graph says about atoms and bonds: labels and attributes by name. All chemistry is RDKit's.

RDKit's own contributions of atoms to logP, molar refractivity and polar surface are those of a molecule with all its
hydrogens. Where hydrogens are not nodes, what they add goes to the atom that they are bound to, so that the sum over a graph is
RDKit's value of the molecule.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from treegram._core.types import Floats
from treegram.graphs.rdkit import BadMoleculeError, embed, import_rdkit

__all__ = ["ATTRIBUTES", "LABELS", "Atoms", "label_atoms", "label_bonds", "measure_atoms"]

_PLACE = "_treegram_place"


@dataclass(frozen=True)
class Atoms:
    """A molecule twice: ``nodes`` has the atoms that become nodes, ``full`` all hydrogens as well."""

    nodes: Any
    full: Any

    @classmethod
    def of(cls, mol: Any, *, hydrogens: bool, full: bool, embedded: bool, seed: int) -> Atoms:
        """Both forms of a molecule, which is not changed.

        ``full=False`` if attributes are not asked for: adding and removing hydrogens is slow for large molecules. With
        ``embedded`` there are 3D coordinates, the molecule's own or new ones.
        """
        chem = import_rdkit()
        if not full and not hydrogens:
            nodes = chem.RemoveHs(mol)
            return cls(nodes, nodes)
        has_own = mol.GetNumConformers() > 0 and mol.GetConformer().Is3D()
        complete = chem.AddHs(mol, addCoords=has_own)
        if embedded and not has_own and complete.GetNumAtoms():
            embed(complete, seed)
        for i, atom in enumerate(complete.GetAtoms()):
            atom.SetIntProp(_PLACE, i)
        return cls(complete if hydrogens else chem.RemoveHs(complete), complete)

    def places(self) -> list[int]:
        """Which atom of ``full`` each node is."""
        return [atom.GetIntProp(_PLACE) for atom in self.nodes.GetAtoms()]

    def pick(self, values: Floats) -> Floats:
        """The rows of those atoms of ``full`` that are nodes."""
        return values[self.places()]

    def gather(self, values: Floats) -> Floats:
        """As :meth:`pick`, with the rows of the other atoms, hydrogens, added to that of their neighbor."""
        places = self.places()
        gathered = values.copy()
        for i in sorted(set(range(len(values))) - set(places)):
            neighbors = [atom.GetIdx() for atom in self.full.GetAtomWithIdx(i).GetNeighbors()]
            gathered[neighbors[0]] += values[i]
        return gathered[places]

    def positions(self) -> Floats:
        """3D coordinates of the nodes."""
        if not self.full.GetNumAtoms():
            return np.empty((0, 3))
        return self.pick(np.asarray(self.full.GetConformer().GetPositions(), dtype=np.float64))


# -------------------------------------------------------------------- labels

# Each takes an atom.
LABELS: dict[str, Callable[[Any], Hashable]] = {
    "element": lambda atom: str(atom.GetSymbol()),
    "degree": lambda atom: int(atom.GetDegree()),
    "formal_charge": lambda atom: int(atom.GetFormalCharge()),
    "aromatic": lambda atom: int(atom.GetIsAromatic()),
    "hydrogens": lambda atom: int(atom.GetTotalNumHs(includeNeighbors=True)),
    "hybridization": lambda atom: str(atom.GetHybridization()),
    "in_ring": lambda atom: int(atom.IsInRing()),
    "chirality": lambda atom: str(atom.GetProp("_CIPCode")) if atom.HasProp("_CIPCode") else "",
}


def label_atoms(atoms: Atoms, names: Sequence[str]) -> list[Hashable]:
    """One label per node: a value, or a tuple where several names are given."""
    if "chirality" in names:
        import_rdkit().AssignStereochemistry(atoms.nodes, cleanIt=True, force=True)
    rows = [tuple(LABELS[name](atom) for name in names) for atom in atoms.nodes.GetAtoms()]
    return [row[0] for row in rows] if len(names) == 1 else list(rows)


def label_bonds(mol: Any) -> tuple[list[tuple[int, int]], list[str]]:
    """The bonds as pairs of atoms, and the type of each: single, double, triple, aromatic and rare ones."""
    bonds = list(mol.GetBonds())
    return [(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in bonds], [str(b.GetBondType()).lower() for b in bonds]


# -------------------------------------------------------------------- attributes


def _partial_charges(atoms: Atoms) -> Floats:
    from rdkit.Chem import rdPartialCharges

    rdPartialCharges.ComputeGasteigerCharges(atoms.full)
    full = list(atoms.full.GetAtoms())
    charges = np.array([atom.GetDoubleProp("_GasteigerCharge") for atom in full])
    if not np.isfinite(charges).all():
        raise BadMoleculeError(_why_no_charges(atoms.full, charges))
    return atoms.pick(charges[:, None])


def _why_no_charges(mol: Any, charges: Floats) -> str:
    """Which atom RDKit has no Gasteiger parameters for: not finite charges spread from it to its neighbors."""
    from rdkit.Chem import rdPartialCharges

    unknown = ""
    try:
        rdPartialCharges.ComputeGasteigerCharges(import_rdkit().Mol(mol), 12, True)  # noqa: FBT003 (positional in RDKit)
    except ValueError as error:
        unknown = str(error).partition("Element: ")[2].split(" ")[0]
    places = np.flatnonzero(~np.isfinite(charges)).tolist()
    atom = next((i for i in places if mol.GetAtomWithIdx(i).GetSymbol() == unknown), places[0])
    return (
        f"the partial charge of atom {atom} ({mol.GetAtomWithIdx(atom).GetSymbol()}) is not a number: Gasteiger's method has no "
        "parameters for this element in this state. Leave 'partial_charge' out of the attributes, or leave the molecule out"
    )


def _masses(atoms: Atoms) -> Floats:
    return np.array([[atom.GetMass()] for atom in atoms.nodes.GetAtoms()])


def _crippen(atoms: Atoms, column: int) -> Floats:
    from rdkit.Chem import rdMolDescriptors

    rows = np.array(rdMolDescriptors._CalcCrippenContribs(atoms.full)).reshape(-1, 2)
    return atoms.gather(rows[:, [column]])


def _polar_surfaces(atoms: Atoms) -> Floats:
    from rdkit.Chem import rdMolDescriptors

    return atoms.gather(np.array(rdMolDescriptors._CalcTPSAContribs(atoms.full), dtype=np.float64)[:, None])


def _centroid_distances(atoms: Atoms) -> Floats:
    positions = atoms.positions()
    return np.linalg.norm(positions - positions.mean(axis=0, keepdims=True), axis=1, keepdims=True)


def _distance_profiles(atoms: Atoms) -> Floats:
    """Mean, standard deviation and maximum of a node's distances to all others; zeros where there are none."""
    positions = atoms.positions()
    distances = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    others = distances[~np.eye(len(positions), dtype=bool)].reshape(len(positions), -1)
    if not others.size:
        return np.zeros((len(positions), 3))
    return np.column_stack([others.mean(axis=1), others.std(axis=1), others.max(axis=1)])


@dataclass(frozen=True)
class _Attribute:
    """How an attribute is made, how many columns it has, and whether it needs coordinates."""

    measure: Callable[[Atoms], Floats]
    n_columns: int = 1
    needs_coordinates: bool = False


ATTRIBUTES: dict[str, _Attribute] = {
    "partial_charge": _Attribute(_partial_charges),
    "mass": _Attribute(_masses),
    "logp": _Attribute(lambda atoms: _crippen(atoms, 0)),
    "refractivity": _Attribute(lambda atoms: _crippen(atoms, 1)),
    "polar_surface": _Attribute(_polar_surfaces),
    "coordinates": _Attribute(Atoms.positions, 3, needs_coordinates=True),
    "centroid_distance": _Attribute(_centroid_distances, 1, needs_coordinates=True),
    "distance_profile": _Attribute(_distance_profiles, 3, needs_coordinates=True),
}


def measure_atoms(atoms: Atoms, names: Sequence[str]) -> Floats:
    """One row per node: the columns of each name, in the order of the names."""
    if not names or not atoms.nodes.GetNumAtoms():
        return np.empty((atoms.nodes.GetNumAtoms(), sum(ATTRIBUTES[name].n_columns for name in names)))
    columns = [ATTRIBUTES[name].measure(atoms) for name in names]
    for name, values in zip(names, columns, strict=True):
        is_wrong = ~np.isfinite(values).all(axis=1)
        if is_wrong.any():
            raise BadMoleculeError(f"{name!r} of atom {is_wrong.argmax()} is not a finite number")
    return np.hstack(columns)
