"""Molecules as graphs: atoms are nodes, bonds are edges. All chemistry is RDKit's, which is imported when first used.

RDKit's contributions of atoms to logP, molar refractivity and polar surface are those of a molecule with all its hydrogens.
Where hydrogens are not nodes, their contributions go to the atom that they are bonded to, so that the sum over a graph
is RDKit's value for the molecule.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache, partial
from itertools import chain, combinations_with_replacement
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike

from treegram._core.parallel import run_in_processes, track
from treegram._core.params import FLAG, NOTHING, Allowed, Instance, Whole, Words, check_value, parameters
from treegram._core.text import counted, warn_user
from treegram._core.types import Array, Floats
from treegram.exceptions import DatasetError, InvalidGraphError, TreegramError
from treegram.graphs import Graphs
from treegram.graphs.cells import table_of
from treegram.graphs.check import GROUP_END, check_names, join_groups
from treegram.graphs.graph_table import GraphTable
from treegram.graphs.molecule_files import (
    InvalidMoleculeError,
    Record,
    import_rdkit,
    parse_molecule,
    read_molecule_rows,
)
from treegram.graphs.tables import list_names
from treegram.graphs.transforms import Source, make_source

__all__ = ["MoleculeGraphs", "invalid_molecules", "load_molecules", "scaffold_groups"]

# The user's groups of graph attributes side by side, and the names of their columns.
Groups: TypeAlias = tuple[Floats, list[str]]

_SHOWN = 60  # characters of a molecule in a message
_LONGEST_REASON = 200  # characters of RDKit's own text
_EMBEDDING_SECONDS = 120  # RDKit cannot be interrupted, and some molecules would take hours
_LARGEST_DESCRIPTOR = 1e12  # the descriptor Ipc grows exponentially with the molecule
_INDEX = "_treegram_index"  # the property of an atom that holds its number in the molecule with all hydrogens
_ON_ERROR: Allowed = (Words("raise", "skip"),)
_BATCH = 256  # molecules that a process converts at once
_MOST_NAMED = 5  # skipped molecules in a warning
_ADVICE = "Correct it, or skip invalid molecules with on_error='skip'."
_ADVICE_IN_PIPELINES = (
    "A pipeline step must return one graph per molecule and cannot skip any: find invalid molecules with invalid_molecules, "
    "or convert with Graphs.from_smiles(..., on_error='skip') before the pipeline."
)


@contextlib.contextmanager
def _rdkit_errors() -> Iterator[None]:
    """Turn RDKit's errors about a molecule into an InvalidMoleculeError."""
    try:
        yield
    except (import_rdkit().MolSanitizeException, RuntimeError) as error:
        reason = " ".join(str(error).split())[:_LONGEST_REASON].rstrip(". ")
        raise InvalidMoleculeError(f"RDKit says: {reason}") from error


def _is_molecule(value: Any) -> bool:
    return isinstance(value, import_rdkit().Mol)


def _to_molecule(value: Any) -> Any:
    """Return the molecule of a SMILES, or the RDKit molecule itself, sanitized if necessary (as a copy)."""
    chem = import_rdkit()
    if isinstance(value, str):
        if not value.isprintable():  # RDKit would read the part before a line break, and fail on a lone surrogate
            raise InvalidMoleculeError("the SMILES has a line break or another character that cannot be printed")
        return parse_molecule(chem.MolFromSmiles, value)
    if not _is_molecule(value):
        raise InvalidMoleculeError(
            f"expected a SMILES or an RDKit molecule, got {value!r:.40} ({type(value).__name__})"
        )
    if not value.NeedsUpdatePropertyCache():
        return value
    copy = chem.Mol(value)
    with _rdkit_errors():
        chem.SanitizeMol(copy)
    return copy


def _show_molecule(molecule: Any) -> str:
    """Return a SMILES for a message, cut if it is long, or the type of anything else."""
    shown = repr(molecule) if isinstance(molecule, str) else type(molecule).__name__
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."


# -------------------------------------------------------------------- atoms, with and without hydrogens


class _Atoms:
    """A molecule in two forms: ``nodes`` has the atoms that become nodes, ``full`` has all hydrogens as well.

    ``indices`` has the position in ``full`` of each node.
    """

    def __init__(self, mol: Any, *, hydrogens: bool, embedded: bool) -> None:
        """Make both forms of a molecule, which is not changed; ``embedded`` computes 3D coordinates if it has none."""
        chem = import_rdkit()
        has_coordinates = mol.GetNumConformers() > 0 and mol.GetConformer().Is3D()
        self.full = chem.AddHs(mol, addCoords=has_coordinates)
        if embedded and not has_coordinates and self.full.GetNumAtoms():
            _embed(self.full)
        for i, atom in enumerate(self.full.GetAtoms()):
            atom.SetIntProp(_INDEX, i)
        self.nodes = self.full if hydrogens else chem.RemoveHs(self.full)
        self.indices = [atom.GetIntProp(_INDEX) for atom in self.nodes.GetAtoms()]

    def add_hydrogens(self, values: Any) -> Floats:
        """Return the values of the nodes, plus those of their hydrogens that are not nodes."""
        sums = np.array(values, dtype=np.float64)
        for i in sorted(set(range(len(sums))) - set(self.indices)):
            sums[self.full.GetAtomWithIdx(i).GetNeighbors()[0].GetIdx()] += sums[i]
        return sums[self.indices]

    def positions(self) -> Floats:
        """Return the 3D coordinates of the nodes."""
        return np.asarray(self.full.GetConformer().GetPositions(), dtype=np.float64)[self.indices]


def _embed(mol: Any) -> None:
    """Compute 3D coordinates of a molecule with explicit hydrogens by ETKDG; a second try starts from random ones."""
    from rdkit.Chem import rdDistGeom

    parameters: Any = rdDistGeom.ETKDGv3()
    parameters.randomSeed = 0
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

_FEATURES = ("donor", "acceptor", "aromatic", "halogen", "basic", "acidic")  # the bits of RDKit's feature invariants
_HYDROPHOBE = "[#6,#16,#17,#35,#53;+0;!$(*~[#7,#8,#9,#15])]"  # no bond to a polar atom


def _read_atoms(read: Callable[[Any], Hashable]) -> Callable[[Any], list[Hashable]]:
    """Return a function that reads each atom of a molecule."""
    return lambda mol: [read(atom) for atom in mol.GetAtoms()]


def _find_pharmacophores(mol: Any) -> list[Hashable]:
    """Return what each atom may do in a binding site, in words."""
    from rdkit.Chem import rdMolDescriptors

    matches = mol.GetSubstructMatches(_hydrophobe(), maxMatches=mol.GetNumAtoms() + 1)
    hydrophobes = {atom for (atom,) in matches}
    labels: list[Hashable] = []
    for i, code in enumerate(rdMolDescriptors.GetFeatureInvariants(mol)):
        words = [word for bit, word in enumerate(_FEATURES) if code >> bit & 1]
        labels.append(" ".join([*words, "hydrophobe"] if i in hydrophobes else words))
    return labels


@cache
def _hydrophobe() -> Any:
    return import_rdkit().MolFromSmarts(_HYDROPHOBE)


# Each function takes a molecule and returns one value per atom.
LABELS: dict[str, Callable[[Any], list[Hashable]]] = {
    "element": _read_atoms(lambda atom: str(atom.GetSymbol())),
    "degree": _read_atoms(lambda atom: int(atom.GetDegree())),
    "formal_charge": _read_atoms(lambda atom: int(atom.GetFormalCharge())),
    "aromatic": _read_atoms(lambda atom: int(atom.GetIsAromatic())),
    "hydrogens": _read_atoms(lambda atom: int(atom.GetTotalNumHs(includeNeighbors=True))),
    "hybridization": _read_atoms(lambda atom: str(atom.GetHybridization())),
    "in_ring": _read_atoms(lambda atom: int(atom.IsInRing())),
    "chirality": _read_atoms(lambda atom: str(atom.GetProp("_CIPCode")) if atom.HasProp("_CIPCode") else ""),
    "pharmacophore": _find_pharmacophores,
}
_STEREO = {"STEREOE": " E", "STEREOZ": " Z"}


def _label_atoms(mol: Any, names: Sequence[str]) -> list[Hashable]:
    """Return one label per atom: a value, or a tuple if there are several names."""
    if "chirality" in names:
        import_rdkit().AssignStereochemistry(mol, cleanIt=True, force=True)
    if not names:
        return [()] * mol.GetNumAtoms()
    columns = [LABELS[name](mol) for name in names]
    return columns[0] if len(names) == 1 else list(zip(*columns, strict=True))


def _label_bond(bond: Any) -> str:
    """Return the type of a bond: single, double, double E, double Z, triple, aromatic and so on."""
    return str(bond.GetBondType()).lower() + _STEREO.get(str(bond.GetStereo()), "")


# -------------------------------------------------------------------- descriptors of the whole molecule


_ESTATE = ("MaxAbsEStateIndex", "MaxEStateIndex", "MinAbsEStateIndex", "MinEStateIndex")
# Of points of the ErG fingerprint.
_PROPERTIES = ("donor", "acceptor", "positive", "negative", "hydrophobe", "aromatic")
_ERG_DISTANCES = 15


def _name_rdkit2d() -> list[str]:
    from rdkit.Chem import Descriptors

    return [name for name, _ in Descriptors.descList]


def _compute_rdkit2d(mol: Any) -> Floats:
    """Return RDKit's 2D descriptors, those of ``CalcMolDescriptors``: NaN for those that do not exist for the molecule."""
    from rdkit.Chem import Descriptors

    values = []
    for name, calculate in Descriptors.descList:
        try:
            # Otherwise RDKit computes the indices of all atoms four times.
            value = calculate(mol, force=False) if name in _ESTATE else calculate(mol)
        except Exception:
            value = np.nan
        values.append(value)
    return np.array(values, dtype=np.float64)


def _name_erg() -> list[str]:
    pairs = combinations_with_replacement(_PROPERTIES, 2)
    return [f"{a} {b} {distance}" for a, b in pairs for distance in range(1, _ERG_DISTANCES + 1)]


def _compute_erg(mol: Any) -> Floats:
    """Return for each pair of properties and each number of bonds how many such pairs of points the molecule has, smoothed."""
    from rdkit.Chem import rdReducedGraphs

    return np.asarray(rdReducedGraphs.GetErGFingerprint(mol, maxPath=_ERG_DISTANCES), dtype=np.float64)


class _Descriptors(NamedTuple):
    columns: Callable[[], list[str]]  # their names
    compute: Callable[[Any], Floats]


DESCRIPTORS = {"rdkit2d": _Descriptors(_name_rdkit2d, _compute_rdkit2d), "erg": _Descriptors(_name_erg, _compute_erg)}


def _descriptor_columns(groups: Sequence[str]) -> list[str]:
    """Return the names of the columns, such as "rdkit2d: MolWt"."""
    return [f"{group}{GROUP_END}{column}" for group in groups for column in DESCRIPTORS[group].columns()]


def _describe_molecule(mol: Any, groups: Sequence[str]) -> Floats:
    """Return the columns of each group: 0 for those that do not exist for the molecule, others limited to ±1e12."""
    if not groups:
        return np.empty(0)
    mol = import_rdkit().RemoveHs(mol)
    values = np.concatenate([DESCRIPTORS[group].compute(mol) for group in groups])
    return np.clip(np.nan_to_num(values, nan=0.0), -_LARGEST_DESCRIPTOR, _LARGEST_DESCRIPTOR)


# -------------------------------------------------------------------- attributes


def _partial_charges(atoms: _Atoms) -> Floats:
    from rdkit.Chem import rdPartialCharges

    rdPartialCharges.ComputeGasteigerCharges(atoms.full)
    charges = np.array([atom.GetDoubleProp("_GasteigerCharge") for atom in atoms.full.GetAtoms()])
    return charges[atoms.indices]


def _crippen(atoms: _Atoms, column: int) -> Floats:
    from rdkit.Chem import rdMolDescriptors

    return atoms.add_hydrogens([row[column] for row in rdMolDescriptors._CalcCrippenContribs(atoms.full)])


def _polar_surfaces(atoms: _Atoms) -> Floats:
    from rdkit.Chem import rdMolDescriptors

    return atoms.add_hydrogens(rdMolDescriptors._CalcTPSAContribs(atoms.full))


def _centroid_distances(atoms: _Atoms) -> Floats:
    positions = atoms.positions()
    return np.linalg.norm(positions - positions.mean(axis=0, keepdims=True), axis=1)


class _Attribute(NamedTuple):
    measure: Callable[[_Atoms], Floats]
    columns: tuple[str, ...] = ("",)  # names, if there are several columns
    needs_coordinates: bool = False


ATTRIBUTES: dict[str, _Attribute] = {
    "partial_charge": _Attribute(_partial_charges),
    "mass": _Attribute(lambda atoms: np.array([atom.GetMass() for atom in atoms.nodes.GetAtoms()])),
    "logp": _Attribute(partial(_crippen, column=0)),
    "refractivity": _Attribute(partial(_crippen, column=1)),
    "polar_surface": _Attribute(_polar_surfaces),
    "coordinates": _Attribute(_Atoms.positions, ("x", "y", "z"), needs_coordinates=True),
    "centroid_distance": _Attribute(_centroid_distances, needs_coordinates=True),
}


def _attribute_columns(names: Sequence[str]) -> list[str]:
    """Return the names of the columns, such as "mass" and "coordinates x"."""
    return [f"{name} {column}".rstrip() for name in names for column in ATTRIBUTES[name].columns]


def _measure_atoms(mol: Any, names: Sequence[str], *, hydrogens: bool) -> tuple[Any, Floats]:
    """Return the molecule whose atoms are the nodes, and a row for each atom with the columns of each name."""
    if not names and not hydrogens:
        nodes = import_rdkit().RemoveHs(mol)
        return nodes, np.empty((nodes.GetNumAtoms(), 0))
    embedded = any(ATTRIBUTES[name].needs_coordinates for name in names)
    atoms = _Atoms(mol, hydrogens=hydrogens, embedded=embedded)
    if not names or not atoms.indices:
        return atoms.nodes, np.empty((len(atoms.indices), len(_attribute_columns(names))))
    columns = np.column_stack([ATTRIBUTES[name].measure(atoms) for name in names])
    wrong, places = np.nonzero(~np.isfinite(columns))
    if len(wrong):
        # A charge that is not a number spreads to neighbors; the cause is usually the heaviest atom.
        atom = max((atoms.nodes.GetAtomWithIdx(int(i)) for i in wrong), key=lambda atom: int(atom.GetAtomicNum()))
        raise InvalidMoleculeError(
            f"{_attribute_columns(names)[places[0]]!r} of atom {atom.GetIdx()} ({atom.GetSymbol()}) is not a number: RDKit has no "
            "parameters for this element in this state. Leave it out of the attributes, or leave the molecule out"
        )
    return atoms.nodes, columns


# -------------------------------------------------------------------- the transformer


class _Names(Words):
    """A name out of several, or a list of distinct names."""

    def accepts(self, value: Any) -> bool:
        """Return whether the value is allowed."""
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list | tuple) or not names:
            return False
        return all(isinstance(name, str) and name in self.words for name in names) and len(set(names)) == len(names)

    def __str__(self) -> str:
        return f"{super().__str__()} or a list of these"


@parameters
class MoleculeGraphs(Source):
    """Turn molecules into graphs, as the first step of a pipeline, so that models take SMILES.

    Atoms are nodes, bonds are edges. Nothing is learned from data: a molecule always becomes the same graph. The label of an edge is
    "single", "double", "triple" or "aromatic"; a double bond of known stereochemistry is "double E" or "double Z".

    Parameters
    ----------
    labels : str, list of str or None, default="element"
        Contents of an atom's label; several names make a tuple. "element", "degree" (bonds to other nodes),
        "formal_charge", "aromatic" (0 or 1), "hydrogens" (their number), "hybridization", "in_ring" (0 or 1), "chirality"
        ("R", "S" or ""), "pharmacophore" (which of donor, acceptor, aromatic, halogen, basic, acidic and hydrophobe the
        atom is). The automatic models compare atoms by the whole tuple and by each of its parts. None: no labels.
    attributes : str, list of str or None, default=None
        Contents of an atom's vector, in this order. "partial_charge" (Gasteiger), "mass", "logp", "refractivity" and
        "polar_surface" (contributions of the atom and its hydrogens to Crippen's logP, to molar refractivity and to the topological
        polar surface area) depend on the bonds alone. "coordinates" are those of the molecule if it has 3D ones, else those of
        RDKit's ETKDG. "centroid_distance" (from the center of the nodes) does not change when the molecule is
        rotated or moved. None: no vectors.
    hydrogens : bool, default=False
        Whether all hydrogens become nodes.
    descriptors : str, list of str or None, default=None
        Descriptors of each molecule, which become ``graph_attributes``, a group of columns for each name: the automatic models
        compare molecules by each of them. "rdkit2d": all 2D descriptors of RDKit, which takes far longer than building
        the graph. "erg": pairs of pharmacophoric points (donors, acceptors, charges, hydrophobic and aromatic rings) by
        distance, RDKit's ErG fingerprint. A descriptor that does not exist for a molecule (not a number) is 0, and values
        are limited to ±1e12.
    smiles_column : str or None, default=None
        Column with the SMILES, if molecules are passed as a table (pandas, polars).
    n_jobs : int or None, default=None
        Processes that convert SMILES, as in joblib; -1 means one per core. RDKit molecules are converted in this process.
        The result is the same for any number.

    See Also
    --------
    Graphs.from_smiles : Convert a list once, optionally skipping invalid molecules.
    load_molecules : Read files.

    Notes
    -----
    A molecule that RDKit cannot read raises an error, since a pipeline step must return one graph per molecule: find
    such molecules first with :func:`invalid_molecules`. Cross-validation of the whole pipeline converts the molecules
    again for each fold; coordinates and descriptors take most of that time, so it is faster to convert once. Computed
    coordinates depend on the order of a molecule's atoms and on the version of RDKit. The distance between fragments of
    a salt is arbitrary.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from treegram import WL, GraphSVC, MoleculeGraphs
    >>> alcohols, amines = ["CO", "CCO", "CC(C)O", "OCCC"], ["CN", "CCN", "CC(C)N", "NCCC"]
    >>> model = make_pipeline(MoleculeGraphs(), GraphSVC(WL(), C=1, cv=2)).fit(alcohols + amines, [0] * 4 + [1] * 4)
    >>> model.predict(["CCCCO", "CCCCN"])
    array([0, 1])
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "labels": (_Names(*LABELS), NOTHING),
        "attributes": (_Names(*ATTRIBUTES), NOTHING),
        "hydrogens": (FLAG,),
        "descriptors": (_Names(*DESCRIPTORS), NOTHING),
        "n_jobs": (Whole(), NOTHING),
        "smiles_column": (Instance((str,), "the name of a column"), NOTHING),
    }

    labels: str | Sequence[str] | None = field(default="element", kw_only=False)
    attributes: str | Sequence[str] | None = field(default=None, kw_only=False)
    hydrogens: bool = False
    descriptors: str | Sequence[str] | None = None
    smiles_column: str | None = None
    n_jobs: int | None = None

    def transform(self, X: Any) -> Graphs:
        """Turn molecules into graphs.

        Parameters
        ----------
        X : list of str or of rdkit.Chem.Mol, or a table
            The molecules: SMILES, RDKit molecules, or a table with the column ``smiles_column``.

        Returns
        -------
        Graphs
            One graph per molecule, in the same order.
        """
        valid, _ = self._convert(_list_records(X, self.smiles_column), "raise", advice=_ADVICE_IN_PIPELINES)
        return self._collect(valid)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags

    def _convert(self, records: Iterable[Record], on_error: str, **errors: Any) -> tuple[_Valid, dict[int, str]]:
        """Return the graphs of the valid molecules, and what is wrong with each of the others, by position."""
        self._check_parameters()
        return _apply(self._build, records, on_error, n_jobs=self.n_jobs, **errors)

    def _build(self, molecule: Any) -> _MoleculeGraph:
        """Return the graph of a SMILES or an RDKit molecule; parameters are already checked."""
        chem, mol = import_rdkit(), _to_molecule(molecule)
        with _rdkit_errors():
            nodes, vectors = _measure_atoms(mol, _as_tuple(self.attributes), hydrogens=self.hydrogens)
            bonds = list(nodes.GetBonds())
            return _MoleculeGraph(
                edges=[(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in bonds],
                labels=_label_atoms(nodes, _as_tuple(self.labels)),
                vectors=vectors,
                bonds=[_label_bond(bond) for bond in bonds],
                name=str(mol.GetProp("_Name")).strip() if mol.HasProp("_Name") else "",
                smiles=molecule if isinstance(molecule, str) else str(chem.MolToSmiles(chem.RemoveHs(mol))),
                descriptors=_describe_molecule(mol, _as_tuple(self.descriptors)),
            )

    def _collect(self, valid: _Valid, targets: Array | None = None, groups: Groups | None = None) -> Graphs:
        """Return the collection; targets and the columns of the user's groups have a row for each record."""
        items, positions = [item for _, item in valid.values()], list(valid)
        names = _descriptor_columns(_as_tuple(self.descriptors))
        columns = np.array([item.descriptors for item in items]).reshape(len(items), len(names))
        if groups is not None:
            columns, names = np.hstack([columns, groups[0][positions]]), [*names, *groups[1]]
        return Graphs.from_edges(
            [np.array(item.edges, dtype=np.int64).reshape(-1, 2) for item in items],
            n_nodes=[len(item.labels) for item in items],
            labels=None if self.labels is None else [item.labels for item in items],
            attributes=None if self.attributes is None else [item.vectors for item in items],
            edge_labels=[item.bonds for item in items],
            targets=None if targets is None else targets[positions],
            graph_names=[record.name or item.name or item.smiles for record, item in valid.values()],
            attribute_names=_attribute_columns(_as_tuple(self.attributes)) or None,
            graph_attributes=columns if names else None,
            graph_attribute_names=names or None,
        )


def _as_tuple(names: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if names is None else (names,) if isinstance(names, str) else tuple(names)


# -------------------------------------------------------------------- conversion


class _MoleculeGraph(NamedTuple):
    """The graph of one molecule."""

    edges: list[tuple[int, int]]
    labels: list[Any]
    vectors: Floats
    bonds: list[str]
    name: str
    smiles: str
    descriptors: Floats


_Valid: TypeAlias = dict[int, tuple[Record, _MoleculeGraph]]


def _apply(
    action: Callable[[Any], Any],
    records: Iterable[Record],
    on_error: str,
    *,
    error: Callable[[str], TreegramError] = InvalidGraphError,
    advice: str = _ADVICE,
    total: int | None = None,
    n_jobs: int | None = None,
) -> tuple[dict[int, tuple[Record, Any]], dict[int, str]]:
    """Return the record and result of each valid molecule by position, and what is wrong with each of the others.

    An invalid molecule raises ``error`` with advice, is skipped with a warning, or is only collected.
    """
    import_rdkit()
    from rdkit import rdBase

    valid: dict[int, tuple[Record, Any]] = {}
    invalid: dict[int, str] = {}
    skipped = []
    total = len(records) if isinstance(records, list) else total
    results = track(_run(action, records, n_jobs), total, "molecules")
    with rdBase.BlockLogs(), contextlib.closing(results):  # no messages of RDKit on stderr
        for i, (record, outcome) in enumerate(results):
            if not isinstance(outcome, InvalidMoleculeError):
                valid[i] = record._replace(molecule=None), outcome  # molecules are large
                continue
            text = f"{record.where} ({_show_molecule(record.molecule)}): {outcome}"
            if on_error == "raise":
                raise error(f"{text}. {advice}") from outcome
            invalid[i] = str(outcome)
            skipped.append(text)
    if skipped and on_error == "skip":
        more = f"; and {len(skipped) - _MOST_NAMED} more" if len(skipped) > _MOST_NAMED else ""
        warn_user(
            f"{counted(len(skipped), 'molecule')} of {len(skipped) + len(valid):,} skipped: "
            f"{'; '.join(skipped[:_MOST_NAMED])}{more}.",
        )
    return valid, invalid


def _run(action: Callable[[Any], Any], records: Iterable[Record], n_jobs: int | None) -> Iterator[tuple[Record, Any]]:
    """Yield each record with the result of the action on its molecule, or with the error that it raises.

    Processes get SMILES only: an RDKit molecule loses digits of its coordinates on the way.
    """
    if isinstance(records, list) and all(isinstance(record.molecule, str) for record in records):
        size = _BATCH if effective_n_jobs(n_jobs) > 1 else 1
        tasks = [(action, records[start : start + size]) for start in range(0, len(records), size)]
        outcomes = run_in_processes(_run_batch, tasks, n_jobs=n_jobs)
        yield from zip(records, chain.from_iterable(outcomes), strict=True)
        return
    for record in records:
        yield record, _try_action(action, record)


def _run_batch(action: Callable[[Any], Any], records: Sequence[Record]) -> list[Any]:
    import_rdkit()
    from rdkit import rdBase

    with rdBase.BlockLogs():
        return [_try_action(action, record) for record in records]


def _try_action(action: Callable[[Any], Any], record: Record) -> Any:
    try:
        if record.problem:
            raise InvalidMoleculeError(record.problem)
        return action(record.molecule)
    except InvalidMoleculeError as problem:
        return problem


def _list_records(molecules: Any, smiles_column: str | None = None) -> list[Record]:
    """Return the molecules of a list, an array, or a table with a column of SMILES."""
    if isinstance(molecules, str) or _is_molecule(molecules):
        raise InvalidGraphError("Molecules must be a list, not a single one: write ['CCO'] instead of 'CCO'.")
    if isinstance(molecules, Graphs) or not isinstance(molecules, Iterable):
        raise InvalidGraphError(f"Expected a list of SMILES or RDKit molecules; got {type(molecules).__name__}.")
    if hasattr(molecules, "columns"):
        table = table_of(molecules, "molecules")
        if smiles_column is None:
            raise InvalidGraphError(
                f"The molecules are a table with {list_names(table.columns)}: set smiles_column to the column with the SMILES."
            )
        molecules = table.cells(smiles_column, "smiles_column")
    elif isinstance(molecules, np.ndarray) and molecules.ndim == 2 and molecules.shape[1] == 1:
        molecules = molecules[:, 0]
    return [Record(f"Molecule {i}", molecule) for i, molecule in enumerate(molecules)]


# -------------------------------------------------------------------- functions


def read_molecules(
    molecules: Any,
    owner: str,
    *,
    on_error: str = "raise",
    targets: ArrayLike | None = None,
    graph_names: Sequence[str] | None = None,
    graph_attributes: Mapping[str, Any] | None = None,
    **options: Any,
) -> Graphs:
    """Build a collection from SMILES or RDKit molecules; see :meth:`treegram.Graphs.from_smiles`."""
    check_value("on_error", owner, on_error, _ON_ERROR)
    transformer = make_source(MoleculeGraphs, options, owner)
    records = _list_records(molecules, transformer.smiles_column)
    y = None if targets is None else np.asarray(targets)
    if y is not None and (not y.ndim or len(y) != len(records)):
        raise InvalidGraphError(f"targets must have one entry per molecule, {len(records)}; got the shape {y.shape}.")
    if graph_names is not None:
        names: Any = check_names(graph_names, len(records), "graph_names", "molecules")
        records = [record._replace(name=name) for record, name in zip(records, names, strict=True)]
    groups = _read_groups(graph_attributes, len(records), transformer)
    return transformer._collect(transformer._convert(records, on_error)[0], y, groups)


def _read_groups(groups: Any, n_molecules: int, transformer: MoleculeGraphs) -> Groups | None:
    """Return the user's groups of graph attributes, one row per molecule."""
    if groups is None:
        return None
    if not isinstance(groups, Mapping):
        raise InvalidGraphError(
            f"graph_attributes of molecules must be a dictionary of named arrays, such as {{'maccs': bits}}; got {type(groups).__name__}."
        )
    taken = groups.keys() & set(_as_tuple(transformer.descriptors))
    if taken:
        raise InvalidGraphError(
            f"graph_attributes has the group {min(taken)!r}, which descriptors also make: rename it."
        )
    return join_groups(groups, n_molecules, "molecule")


def load_molecules(
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    smiles_column: str | None = None,
    name_column: str | None = None,
    on_error: str = "raise",
    graph_attributes: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> tuple[Graphs, Array | None]:
    r"""Load molecules from a file, with their targets.

    Parameters
    ----------
    path : str or path
        A file of SMILES, one per line (.smi), an SDF file (.sdf), or a table whose first line names the columns (.csv, .tsv).
        SMILES may have CXSMILES extensions.
    target : str, optional
        Column or SDF property with the target. In a .smi file without a header, the number of the column, counted from 1.
        Targets are classes if they are words, and numbers otherwise.
    smiles_column : str, optional
        Column of a table with the SMILES; by default "smiles".
    name_column : str, optional
        Column of a table, or SDF property, with the name of each molecule; by default "id" or "name" if there is such a
        column, the second column of a .smi file without a header, or the title of an SDF record. A molecule without a name is
        named by its SMILES.
    on_error : {"raise", "skip"}, default="raise"
        Whether a molecule that is invalid or has no target raises an error, or is skipped with a warning.
    graph_attributes : dict of str to array-like of shape (n_rows, n_columns), optional
        Your own fingerprints or descriptors by name, with a row for each molecule of the file.
    **kwargs
        Parameters of :class:`MoleculeGraphs`, such as ``attributes``.

    Returns
    -------
    graphs : Graphs
        The molecules; ``graph_names`` has their names.
    y : ndarray of shape (n_graphs,), or None
        Their targets, also kept as ``graphs.targets``; None without ``target``.

    Raises
    ------
    DatasetError
        If the file or a molecule cannot be read; the message names the line and the reason.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from treegram import load_molecules
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "measured.csv"
    ...     _ = file.write_text("smiles,solubility\nCCO,1.1\nc1ccccc1,-1.6\n")
    ...     graphs, y = load_molecules(file, target="solubility", attributes=["logp"])
    >>> graphs
    Graphs(2 graphs, 9 nodes, 8 edges, undirected, 2 labels, 1 attribute, 2 edge labels, targets)
    >>> y
    array([ 1.1, -1.6])
    """
    check_value("on_error", "load_molecules", on_error, _ON_ERROR)
    transformer = make_source(MoleculeGraphs, kwargs, "load_molecules")
    targets = [] if target is None else [target]
    table = read_molecule_table(
        path,
        transformer,
        targets=targets,
        smiles_column=smiles_column,
        name_column=name_column,
        on_error=on_error,
        needs_targets=True,
        graph_attributes=graph_attributes,
    )
    if target is None:
        return table.graphs, None
    y = table.values(target)[1]
    return table.graphs.assign(targets=y), y


def read_molecule_table(
    path: str | os.PathLike[str],
    transformer: MoleculeGraphs,
    *,
    targets: Sequence[str] = (),
    others: Sequence[str] = (),
    smiles_column: str | None = None,
    name_column: str | None = None,
    on_error: str = "raise",
    needs_targets: bool = False,
    graph_attributes: Mapping[str, Any] | None = None,
    data: bytes | None = None,
) -> GraphTable:
    """Read a file of molecules, or ``data`` from standard input, once, and convert them.

    ``targets`` and ``others`` are columns that must exist; numbers are checked before any molecule is converted. An invalid molecule
    raises an error, is skipped with a warning, or is only collected (``on_error="collect"``), so that no molecule may be valid; with
    ``needs_targets`` one without a target is invalid.
    """
    file = read_molecule_rows(Path(path), smiles_column, name_column, targets, data)
    source, problems = file.cells.source, file.cells.problems
    places = [file.cells.where(row) for row in range(len(problems))]
    for column in targets:
        rows, _ = file.cells.values(column)
        for row in set(range(len(places))) - set(rows.tolist()) if needs_targets else ():
            cell = file.cells.cells(column)[row]
            problems[row] = problems[row] or (
                f"its target is {cell!r}, which is not a value" if cell else "its target is missing"
            )
    for column in others:
        file.cells.find(column)
    groups = _read_groups(graph_attributes, len(places), transformer)
    is_text = isinstance(file.molecules, list)  # SDF records are parsed one by one
    records: Any = list(file.records()) if is_text else file.records()
    valid, invalid = transformer._convert(records, on_error, error=DatasetError, total=len(places))
    if not valid and not (invalid and on_error == "collect"):
        reason = next(iter(invalid.values()), "it has no rows")
        raise DatasetError(f"{source} has no valid molecule: {reason}.")
    names = list(file.names)
    smiles = list(file.molecules) if is_text else [""] * len(places)
    for row, (_, item) in valid.items():
        names[row], smiles[row] = names[row] or item.name or None, item.smiles
    return GraphTable(
        source,
        places,
        names,
        [invalid.get(row, "") for row in range(len(places))],
        transformer._collect(valid, groups=groups),
        np.array(list(valid), dtype=np.int64),
        file.cells,
        targets=targets,
        smiles=smiles,
        molecules=_NodeMolecules(file.molecules, hydrogens=transformer.hydrogens),
        transformer=transformer,
    )


class _NodeMolecules(Sequence[Any]):
    """The molecules of a file as they are drawn: the atoms are the nodes of the graph. Each is made when it is indexed."""

    def __init__(self, molecules: Sequence[Any], *, hydrogens: bool) -> None:
        self.molecules, self.hydrogens = molecules, hydrogens

    def __len__(self) -> int:
        return len(self.molecules)

    def __getitem__(self, row: Any) -> Any:
        return _measure_atoms(_to_molecule(self.molecules[row]), (), hydrogens=self.hydrogens)[0]


def invalid_molecules(molecules: Any, **kwargs: Any) -> dict[int, str]:
    """Find the molecules that cannot become graphs.

    Parameters
    ----------
    molecules : list of str or of rdkit.Chem.Mol, or a table
        The molecules.
    **kwargs
        Parameters of :class:`MoleculeGraphs`; some attributes do not exist for all molecules.

    Returns
    -------
    dict of int to str
        The position of each invalid molecule, and the reason.

    Examples
    --------
    >>> from treegram import invalid_molecules
    >>> invalid_molecules(["CCO", "C1CC", "CO(C)C"])
    {1: 'RDKit says: unclosed ring', 2: 'RDKit says: Explicit valence for atom # 1 O, 3, is greater than permitted'}
    """
    transformer = make_source(MoleculeGraphs, kwargs, "invalid_molecules")
    return transformer._convert(_list_records(molecules, transformer.smiles_column), "collect")[1]


def scaffold_groups(molecules: Any) -> Array:
    """Return the Bemis-Murcko scaffold of each molecule: groups for splits that test on new kinds of molecules.

    Parameters
    ----------
    molecules : list of str or of rdkit.Chem.Mol
        The molecules.

    Returns
    -------
    ndarray of str, shape (n_molecules,)
        The SMILES of each scaffold: the rings and the links between them. It is empty for all molecules without a ring,
        which thus form one group.

    Examples
    --------
    >>> from treegram import scaffold_groups
    >>> scaffold_groups(["Cc1ccccc1", "Oc1ccccc1", "C1CC1CN", "CCO"])
    array(['c1ccccc1', 'c1ccccc1', 'C1CC1', ''], dtype='<U8')
    """
    import_rdkit()
    from rdkit.Chem.Scaffolds import MurckoScaffold

    to_smiles: Any = MurckoScaffold.MurckoScaffoldSmiles

    def to_scaffold(molecule: Any) -> Any:
        with _rdkit_errors():
            return to_smiles(mol=_to_molecule(molecule))

    valid, _ = _apply(to_scaffold, _list_records(molecules), "raise", advice="invalid_molecules finds all.")
    return np.array([scaffold for _, scaffold in valid.values()], dtype=str)
