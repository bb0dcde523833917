"""Molecules through RDKit: parse them, and describe their atoms and bonds by labels and attributes. All chemistry is RDKit's.

RDKit is imported when it is first used, and kept quiet. Its contributions of atoms to logP, molar refractivity and polar
surface are those of a molecule with all its hydrogens. Where hydrogens are not nodes, their contributions go to the atom that
they are bound to, so that the sum over a graph is RDKit's value of the molecule.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from treegram._core.optional import optional_module
from treegram._core.types import Floats

__all__ = [
    "ATTRIBUTES",
    "LABELS",
    "Atoms",
    "InvalidMoleculeError",
    "attribute_columns",
    "describe_molecule",
    "descriptor_names",
    "import_rdkit",
    "is_molecule",
    "label_atoms",
    "label_bonds",
    "measure_atoms",
    "name_molecule",
    "parse_record",
    "quiet",
    "rdkit_errors",
    "show_molecule",
    "to_molecule",
    "to_smiles",
]

_SHOWN = 60  # characters of a molecule in a message
_LONGEST_REASON = 200  # characters of RDKit's own text
_EMBEDDING_SECONDS = 120  # RDKit cannot be interrupted, and some molecules would take hours
_LARGEST_DESCRIPTOR = 1e12  # the descriptor Ipc grows exponentially with the molecule
_INDEX = "_treegram_index"  # the property of an atom that holds its number in the molecule with all hydrogens

import_rdkit = partial(optional_module, "rdkit.Chem", "Molecules")


class InvalidMoleculeError(Exception):
    """A molecule that cannot become a graph; the text says why, and the caller adds which one."""


def quiet() -> contextlib.AbstractContextManager[Any]:
    """Silence RDKit's messages to stderr."""
    import_rdkit()
    from rdkit import rdBase

    return rdBase.BlockLogs()


@contextlib.contextmanager
def rdkit_errors() -> Iterator[None]:
    """Turn RDKit's errors about a molecule into an InvalidMoleculeError."""
    try:
        yield
    except (import_rdkit().MolSanitizeException, RuntimeError) as error:
        reason = " ".join(str(error).split())[:_LONGEST_REASON].rstrip(". ")
        raise InvalidMoleculeError(f"RDKit says: {reason}") from error


def is_molecule(value: Any) -> bool:
    """Return whether a value is an RDKit molecule."""
    return isinstance(value, import_rdkit().Mol)


def show_molecule(molecule: Any) -> str:
    """Return the SMILES of a molecule for a message, cut if it is long."""
    text = molecule
    if is_molecule(molecule):
        with contextlib.suppress(Exception):  # some invalid molecules have no SMILES
            text = import_rdkit().MolToSmiles(molecule)
    shown = repr(text) if isinstance(text, str) else type(text).__name__
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."


def to_smiles(mol: Any) -> str:
    """Return the SMILES of a molecule, without explicit hydrogens."""
    return str(import_rdkit().MolToSmiles(import_rdkit().RemoveHs(mol)))


def name_molecule(mol: Any) -> str:
    """Return the name of a molecule, as in the first line of an SDF record; empty if it has none."""
    return str(mol.GetProp("_Name")).strip() if mol.HasProp("_Name") else ""


# -------------------------------------------------------------------- parsing


def to_molecule(value: Any) -> Any:
    """Return the molecule of a SMILES, or an RDKit molecule, sanitized if necessary (as a copy)."""
    chem = import_rdkit()
    if isinstance(value, str):
        if not value.isprintable():  # RDKit would read the part before a line break, and fail on half a character
            raise InvalidMoleculeError("the SMILES has a line break or another character that cannot be printed")
        return _parse(lambda: chem.MolFromSmiles(value))
    if not is_molecule(value):
        raise InvalidMoleculeError(
            f"expected a SMILES or an RDKit molecule, got {value!r:.40} ({type(value).__name__})"
        )
    if not value.NeedsUpdatePropertyCache():
        return value
    copy = chem.Mol(value)
    with rdkit_errors():
        chem.SanitizeMol(copy)
    return copy


def parse_record(text: str) -> Any:
    """Return the molecule of one record of an SDF file, with its properties, coordinates and hydrogens."""
    supplier = import_rdkit().SDMolSupplier()

    def parse() -> Any:
        supplier.SetData(text, sanitize=True, removeHs=False)
        return next(iter(supplier), None)

    return _parse(parse)


def _parse(parse: Callable[[], Any]) -> Any:
    from rdkit import rdBase

    capture: Any = getattr(rdBase, "CaptureErrorLog", lambda: contextlib.nullcontext(SimpleNamespace(messages="")))
    with capture() as log:
        mol = parse()
    if mol is None:
        raise InvalidMoleculeError(_reason(log.messages))
    return mol


def _reason(messages: str) -> str:
    """Shorten RDKit's message, for example to ``syntax error around position 3``."""
    lines = [re.sub(r"^\[[\d:]+\] *((SMILES Parse )?(Error|ERROR):)? *", "", line) for line in messages.splitlines()]
    first = next((line for line in lines if line), "")
    if not first:
        return "RDKit cannot read it"
    first = re.split(r" while parsing: | for input: ", first)[0].rstrip(". :")
    position = re.search(r"around position \d+", messages)
    return f"RDKit says: {first}{' ' + position.group() if position else ''}"


# -------------------------------------------------------------------- atoms, with and without hydrogens


@dataclass(frozen=True)
class Atoms:
    """A molecule in two forms: ``nodes`` has the atoms that become nodes, ``full`` has all hydrogens as well."""

    nodes: Any
    full: Any

    @classmethod
    def of(cls, mol: Any, *, hydrogens: bool, full: bool, embedded: bool, seed: int) -> Atoms:
        """Return both forms of a molecule, which is not changed.

        ``full=False`` skips the second form, which only attributes need. With ``embedded`` there are 3D coordinates, those
        of the molecule or new ones.
        """
        chem = import_rdkit()
        if not full and not hydrogens:
            nodes = chem.RemoveHs(mol)
            return cls(nodes, nodes)
        has_coordinates = mol.GetNumConformers() > 0 and mol.GetConformer().Is3D()
        complete = chem.AddHs(mol, addCoords=has_coordinates)
        if embedded and not has_coordinates and complete.GetNumAtoms():
            _embed(complete, seed)
        for i, atom in enumerate(complete.GetAtoms()):
            atom.SetIntProp(_INDEX, i)
        return cls(complete if hydrogens else chem.RemoveHs(complete), complete)

    def indices(self) -> list[int]:
        """Return the index in ``full`` of each node."""
        return [atom.GetIntProp(_INDEX) for atom in self.nodes.GetAtoms()]

    def add_hydrogens(self, values: Floats) -> Floats:
        """Return the rows of the nodes, each with those of its hydrogens that are not nodes added."""
        indices = self.indices()
        sums = values.copy()
        for i in sorted(set(range(len(values))) - set(indices)):
            sums[self.full.GetAtomWithIdx(i).GetNeighbors()[0].GetIdx()] += values[i]
        return sums[indices]

    def positions(self) -> Floats:
        """Return the 3D coordinates of the nodes."""
        if not self.full.GetNumAtoms():
            return np.empty((0, 3))
        return np.asarray(self.full.GetConformer().GetPositions(), dtype=np.float64)[self.indices()]


def _embed(mol: Any, seed: int) -> None:
    """Compute 3D coordinates of a molecule with explicit hydrogens by ETKDG; a second try starts from random ones."""
    from rdkit.Chem import rdDistGeom

    parameters: Any = rdDistGeom.ETKDGv3()
    parameters.randomSeed = seed
    if hasattr(parameters, "timeout"):
        parameters.timeout = _EMBEDDING_SECONDS
    for parameters.useRandomCoords in (False, True):
        if rdDistGeom.EmbedMolecule(mol, parameters) >= 0:
            return
    raise InvalidMoleculeError(
        "RDKit found no 3D coordinates: its rings or stereo centers may be impossible. Leave out the attributes that need "
        "coordinates, or provide coordinates in an SDF file"
    )


# -------------------------------------------------------------------- labels

# Each function takes an atom.
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
_STEREO = {"STEREOE": " E", "STEREOZ": " Z"}


def label_atoms(atoms: Atoms, names: Sequence[str]) -> list[Hashable]:
    """Return one label per node: a value, or a tuple if there are several names."""
    if "chirality" in names:
        import_rdkit().AssignStereochemistry(atoms.nodes, cleanIt=True, force=True)
    rows = [tuple(LABELS[name](atom) for name in names) for atom in atoms.nodes.GetAtoms()]
    return [row[0] for row in rows] if len(names) == 1 else list(rows)


def label_bonds(mol: Any) -> tuple[list[tuple[int, int]], list[str]]:
    """Return the bonds as pairs of atoms, and their types: single, double, double E, double Z, triple, aromatic and so on."""
    bonds = list(mol.GetBonds())
    labels = [str(bond.GetBondType()).lower() + _STEREO.get(str(bond.GetStereo()), "") for bond in bonds]
    return [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in bonds], labels


# -------------------------------------------------------------------- descriptors of the whole molecule


def descriptor_names() -> list[str]:
    """Return the names of RDKit's 2D descriptors."""
    from rdkit.Chem import Descriptors

    return [name for name, _ in Descriptors.descList]


def describe_molecule(mol: Any) -> Floats:
    """Return RDKit's 2D descriptors: 0 for those that do not exist for the molecule, and none beyond 1e12."""
    from rdkit.Chem import Descriptors

    calculate: Any = Descriptors.CalcMolDescriptors
    known = calculate(import_rdkit().RemoveHs(mol), missingVal=np.nan, silent=True)
    values = np.array([known[name] for name in descriptor_names()], dtype=np.float64)
    return np.clip(np.nan_to_num(values, nan=0.0), -_LARGEST_DESCRIPTOR, _LARGEST_DESCRIPTOR)


# -------------------------------------------------------------------- attributes


def _partial_charges(atoms: Atoms) -> Floats:
    from rdkit.Chem import rdPartialCharges

    rdPartialCharges.ComputeGasteigerCharges(atoms.full)
    charges = np.array([atom.GetDoubleProp("_GasteigerCharge") for atom in atoms.full.GetAtoms()])
    if not np.isfinite(charges).all():
        # Such charges spread to neighbors; the cause is an unusual element, mostly the heaviest.
        wrong = [atoms.full.GetAtomWithIdx(i) for i in np.flatnonzero(~np.isfinite(charges)).tolist()]
        atom = max(wrong, key=lambda atom: atom.GetAtomicNum())
        raise InvalidMoleculeError(
            f"the partial charge of atom {atom.GetIdx()} ({atom.GetSymbol()}) is not a number: Gasteiger's method has no "
            "parameters for this element in this state. Leave 'partial_charge' out of the attributes, or leave the molecule out"
        )
    return charges[atoms.indices(), None]


def _masses(atoms: Atoms) -> Floats:
    return np.array([[atom.GetMass()] for atom in atoms.nodes.GetAtoms()])


def _crippen(atoms: Atoms, column: int) -> Floats:
    from rdkit.Chem import rdMolDescriptors

    rows = np.array(rdMolDescriptors._CalcCrippenContribs(atoms.full)).reshape(-1, 2)
    return atoms.add_hydrogens(rows[:, [column]])


def _polar_surfaces(atoms: Atoms) -> Floats:
    from rdkit.Chem import rdMolDescriptors

    return atoms.add_hydrogens(np.array(rdMolDescriptors._CalcTPSAContribs(atoms.full), dtype=np.float64)[:, None])


def _centroid_distances(atoms: Atoms) -> Floats:
    positions = atoms.positions()
    return np.linalg.norm(positions - positions.mean(axis=0, keepdims=True), axis=1, keepdims=True)


def _distance_profiles(atoms: Atoms) -> Floats:
    """Return the mean, standard deviation and maximum of each node's distances to all others; zeros for a single node."""
    positions = atoms.positions()
    distances = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    others = distances[~np.eye(len(positions), dtype=bool)].reshape(len(positions), -1)
    if not others.size:
        return np.zeros((len(positions), 3))
    return np.column_stack([others.mean(axis=1), others.std(axis=1), others.max(axis=1)])


@dataclass(frozen=True)
class _Attribute:
    measure: Callable[[Atoms], Floats]
    columns: tuple[str, ...] = ()  # names, if there are several columns
    needs_coordinates: bool = False


ATTRIBUTES: dict[str, _Attribute] = {
    "partial_charge": _Attribute(_partial_charges),
    "mass": _Attribute(_masses),
    "logp": _Attribute(lambda atoms: _crippen(atoms, 0)),
    "refractivity": _Attribute(lambda atoms: _crippen(atoms, 1)),
    "polar_surface": _Attribute(_polar_surfaces),
    "coordinates": _Attribute(Atoms.positions, ("x", "y", "z"), needs_coordinates=True),
    "centroid_distance": _Attribute(_centroid_distances, needs_coordinates=True),
    "distance_profile": _Attribute(_distance_profiles, ("mean", "deviation", "maximum"), needs_coordinates=True),
}


def attribute_columns(names: Sequence[str]) -> list[str]:
    """Return the names of the columns, such as "mass" and "coordinates x"."""
    return [f"{name} {column}".rstrip() for name in names for column in ATTRIBUTES[name].columns or ("",)]


def measure_atoms(atoms: Atoms, names: Sequence[str]) -> Floats:
    """Return one row per node: the columns of each name, in the order of the names."""
    if not names or not atoms.nodes.GetNumAtoms():
        return np.empty((atoms.nodes.GetNumAtoms(), len(attribute_columns(names))))
    columns = [ATTRIBUTES[name].measure(atoms) for name in names]
    for name, values in zip(names, columns, strict=True):
        is_wrong = ~np.isfinite(values).all(axis=1)
        if is_wrong.any():
            raise InvalidMoleculeError(f"{name!r} of atom {is_wrong.argmax()} is not a finite number")
    return np.hstack(columns)
