"""Molecules as graphs: atoms are nodes, bonds are edges. RDKit reads them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from treegram._core.errors import DatasetError, InvalidGraphError, TreegramError
from treegram._core.parallel import track
from treegram._core.params import FLAG, NOTHING, Allowed, Checked, Instance, Whole, Words, check_value, parameters
from treegram._core.text import counted, suggest
from treegram._core.types import Floats
from treegram.graphs import Graphs
from treegram.graphs.atoms import (
    ATTRIBUTES,
    LABELS,
    Atoms,
    InvalidMoleculeError,
    attribute_columns,
    describe_molecule,
    descriptor_names,
    import_rdkit,
    is_molecule,
    label_atoms,
    label_bonds,
    measure_atoms,
    name_molecule,
    quiet,
    rdkit_errors,
    show_molecule,
    to_molecule,
    to_smiles,
)
from treegram.graphs.check import check_names
from treegram.graphs.molecule_files import Record, read_records, read_targets

__all__ = ["MoleculeGraphs", "invalid_molecules", "load_molecules", "scaffold_groups"]

_ON_ERROR: Allowed = (Words("raise", "skip"),)
_MOST_NAMED = 5  # skipped molecules in a warning
_ADVICE = "Correct it, or skip invalid molecules with on_error='skip' (on the command line: --skip-invalid)."
_ADVICE_IN_PIPELINES = (
    "A pipeline step must return one graph per molecule and cannot skip any: find invalid molecules with invalid_molecules, "
    "or convert with Graphs.from_smiles(..., on_error='skip') before the pipeline."
)


class _Names(Words):
    """One of some names, or a list of distinct ones."""

    def accepts(self, value: Any) -> bool:
        """Return whether the value is allowed."""
        chosen = [value] if isinstance(value, str) else value
        if not isinstance(chosen, list | tuple) or not chosen:
            return False
        return all(isinstance(name, str) and name in self.words for name in chosen) and len(set(chosen)) == len(chosen)

    def __str__(self) -> str:
        return f"{super().__str__()} or a list of these"


@parameters
class MoleculeGraphs(Checked, TransformerMixin, BaseEstimator):
    """Turn molecules into graphs, as the first step of a pipeline, so that models take SMILES.

    Atoms are nodes, bonds are edges. Nothing is learned from data: a molecule always becomes the same graph.

    Parameters
    ----------
    labels : str, list of str or None, default="element"
        Contents of an atom's label; several names make a tuple. "element", "degree" (bonds to other nodes),
        "formal_charge", "aromatic" (0 or 1), "hydrogens" (their number), "hybridization", "in_ring" (0 or 1), "chirality"
        ("R", "S" or ""). None: no labels.
    attributes : str, list of str or None, default=None
        Contents of an atom's vector, in this order. "partial_charge" (Gasteiger), "mass", "logp", "refractivity" and
        "polar_surface" (contributions of the atom and its hydrogens to Crippen's logP, to molar refractivity and to the topological
        polar surface area) depend on the bonds alone. "coordinates" are those of the molecule if it has 3D ones, else those of
        RDKit's ETKDG. "centroid_distance" (from the center of the nodes) and "distance_profile" (mean, standard deviation and
        maximum of the distances to all other nodes) use the same coordinates but do not change when the molecule is
        rotated or moved. None: no vectors.
    bond_labels : bool, default=True
        Whether edges have labels: "single", "double", "triple", "aromatic"; a double bond of known stereochemistry is
        "double E" or "double Z". Kernels use edge labels with ``use_edge_labels=True``.
    hydrogens : bool, default=False
        Whether all hydrogens become nodes.
    descriptors : {"rdkit2d"} or None, default=None
        Numbers about each molecule, which become ``graph_attributes``. "rdkit2d": all 2D descriptors of RDKit, which takes
        about ten milliseconds per molecule. A descriptor that does not exist for a molecule (not a number) is 0, and values are
        limited to ±1e12.
    smiles_column : str or None, default=None
        Column with the SMILES, if molecules are passed as a table (pandas, polars).
    random_state : int, default=0
        Seed of computed coordinates.

    See Also
    --------
    Graphs.from_smiles : Convert a list once, optionally skipping invalid molecules.
    load_molecules : Read files.

    Notes
    -----
    A molecule that RDKit cannot read is an error, since a pipeline step must return one graph per molecule: find such
    molecules first with :func:`invalid_molecules`. Computing coordinates takes about ten milliseconds per molecule;
    cross-validation of the whole pipeline repeats it for each fold, so it is faster to convert once. Computed coordinates
    depend on the order of a molecule's atoms and on the version of RDKit. The distance between fragments of a salt is
    arbitrary.

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
        "bond_labels": (FLAG,),
        "hydrogens": (FLAG,),
        "descriptors": (Words("rdkit2d"), NOTHING),
        "smiles_column": (Instance((str,), "the name of a column"), NOTHING),
        "random_state": (Whole(0, 2**31 - 1),),
    }

    labels: str | Sequence[str] | None = field(default="element", kw_only=False)
    attributes: str | Sequence[str] | None = field(default=None, kw_only=False)
    bond_labels: bool = True
    hydrogens: bool = False
    descriptors: str | None = None
    smiles_column: str | None = None
    random_state: int = 0

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002 (scikit-learn's signature)
        """Check the parameters; nothing is learned.

        Parameters
        ----------
        X : ignored
            The molecules.
        y : ignored
            Present for compatibility with scikit-learn pipelines.

        Returns
        -------
        self
            The transformer.
        """
        self._check_parameters()
        return self

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
        return _convert(_list_records(X, self.smiles_column), self, "raise", advice=_ADVICE_IN_PIPELINES).graphs()

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.requires_fit = False
        return tags

    def _build(self, molecule: Any) -> _OneGraph:
        """Return the graph of a SMILES or an RDKit molecule; parameters were checked before."""
        mol = to_molecule(molecule)
        columns = _as_tuple(self.attributes)
        embedded = any(ATTRIBUTES[name].needs_coordinates for name in columns)
        with rdkit_errors():
            atoms = Atoms.of(
                mol, hydrogens=self.hydrogens, full=bool(columns), embedded=embedded, seed=int(self.random_state)
            )
            edges, bonds = label_bonds(atoms.nodes)
            smiles = molecule if isinstance(molecule, str) else to_smiles(mol)
            labels, vectors = label_atoms(atoms, _as_tuple(self.labels)), measure_atoms(atoms, columns)
            numbers = None if self.descriptors is None else describe_molecule(mol)
            return _OneGraph(edges, labels, vectors, bonds, name_molecule(mol), smiles, numbers)


def _as_tuple(names: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if names is None else (names,) if isinstance(names, str) else tuple(names)


def _make_transformer(options: dict[str, Any], owner: str) -> MoleculeGraphs:
    """Return the transformer with these parameters; ``owner`` is the function to blame for an unknown one."""
    known = list(MoleculeGraphs._allowed)
    for name in options:
        if name not in known:
            hint = suggest(name, known) or f"; it takes {', '.join(known)}."
            raise TypeError(f"{owner} got an unexpected keyword argument {name!r}{hint}")
    return MoleculeGraphs(**options)


# -------------------------------------------------------------------- conversion


class _OneGraph(NamedTuple):
    """The graph of one molecule."""

    edges: list[tuple[int, int]]
    labels: list[Any]
    vectors: Floats
    bonds: list[str]
    name: str
    smiles: str
    descriptors: Floats | None


@dataclass(frozen=True)
class Converted:
    """The records and graphs of the valid molecules by position, and what is wrong with each of the others."""

    transformer: MoleculeGraphs
    valid: dict[int, tuple[Record, _OneGraph]]
    invalid: dict[int, str]

    @property
    def kept(self) -> list[int]:
        """Positions of the valid molecules."""
        return list(self.valid)

    @property
    def smiles(self) -> list[str]:
        """SMILES of the valid molecules."""
        return [item.smiles for _, item in self.valid.values()]

    def graphs(self, targets: ArrayLike | None = None) -> Graphs:
        """Return the collection."""
        transformer, items = self.transformer, [item for _, item in self.valid.values()]
        names = None if transformer.descriptors is None else descriptor_names()
        return Graphs.from_edges(
            [np.array(item.edges, dtype=np.int64).reshape(-1, 2) for item in items],
            n_nodes=[len(item.labels) for item in items],
            labels=None if transformer.labels is None else [item.labels for item in items],
            attributes=None if transformer.attributes is None else [item.vectors for item in items],
            edge_labels=[item.bonds for item in items] if transformer.bond_labels else None,
            targets=targets,
            graph_names=[record.name or item.name or item.smiles for record, item in self.valid.values()],
            attribute_names=attribute_columns(_as_tuple(transformer.attributes)) or None,
            graph_attributes=names and np.array([item.descriptors for item in items]).reshape(-1, len(names)),
            graph_attribute_names=names,
        )


def _convert(records: Iterable[Record], transformer: MoleculeGraphs, on_error: str, **errors: Any) -> Converted:
    transformer._check_parameters()
    return Converted(transformer, *_apply(transformer._build, records, on_error, **errors))


def _apply(
    action: Callable[[Any], Any],
    records: Iterable[Record],
    on_error: str,
    *,
    error: Callable[[str], TreegramError] = InvalidGraphError,
    advice: str = _ADVICE,
) -> tuple[dict[int, tuple[Record, Any]], dict[int, str]]:
    """Return the record and result of each valid molecule by position, and what is wrong with each of the others.

    An invalid molecule is raised as ``error`` with advice, or skipped with a warning, or only collected.
    """
    valid: dict[int, tuple[Record, Any]] = {}
    invalid: dict[int, str] = {}
    skipped = []
    total = len(records) if isinstance(records, list) else None
    with quiet():
        for i, record in enumerate(track(records, total, "molecules")):
            try:
                if record.problem:
                    raise InvalidMoleculeError(record.problem)
                valid[i] = record._replace(molecule=None), action(record.molecule)  # molecules are large
            except InvalidMoleculeError as problem:
                text = f"{record.where} ({show_molecule(record.molecule)}): {problem}"
                if on_error == "raise":
                    raise error(f"{text}. {advice}") from problem
                invalid[i] = str(problem)
                skipped.append(text)
    if skipped and on_error == "skip":
        more = f"; and {len(skipped) - _MOST_NAMED} more" if len(skipped) > _MOST_NAMED else ""
        warnings.warn(
            f"{counted(len(skipped), 'molecule')} of {len(skipped) + len(valid):,} skipped: "
            f"{'; '.join(skipped[:_MOST_NAMED])}{more}.",
            UserWarning,
            stacklevel=5,
        )
    return valid, invalid


def _list_records(molecules: Any, smiles_column: str | None = None) -> list[Record]:
    """Return the molecules of a list, an array, or a table with a column of SMILES."""
    if isinstance(molecules, str) or is_molecule(molecules):
        raise InvalidGraphError("Molecules must be a list, not a single one: write ['CCO'] instead of 'CCO'.")
    if isinstance(molecules, Graphs) or not isinstance(molecules, Iterable):
        raise InvalidGraphError(f"Expected a list of SMILES or RDKit molecules; got {type(molecules).__name__}.")
    if hasattr(molecules, "columns"):
        names = [str(column) for column in molecules.columns]
        if smiles_column is None:
            raise InvalidGraphError(
                f"The molecules are a table with the columns {', '.join(names)}: set smiles_column to the one with the SMILES."
            )
        if smiles_column not in names:
            hint = suggest(smiles_column, names)
            raise InvalidGraphError(f"The table has no column {smiles_column!r}; it has {', '.join(names)}{hint}.")
        column: Any = molecules
        molecules = column[smiles_column]
    elif isinstance(molecules, np.ndarray) and molecules.ndim == 2 and molecules.shape[1] == 1:
        molecules = molecules[:, 0]
    return [Record(f"Molecule {i}", molecule) for i, molecule in enumerate(molecules)]


# -------------------------------------------------------------------- functions


def read_molecules(
    molecules: Any,
    options: dict[str, Any],
    *,
    on_error: str,
    targets: ArrayLike | None,
    graph_names: Sequence[str] | None,
    owner: str,
) -> Graphs:
    """Build a collection from SMILES or RDKit molecules; see :meth:`treegram.Graphs.from_smiles`."""
    check_value("on_error", owner, on_error, _ON_ERROR)
    transformer = _make_transformer(options, owner)
    records = _list_records(molecules, transformer.smiles_column)
    y = None if targets is None else np.asarray(targets)
    if y is not None and (not y.ndim or len(y) != len(records)):
        raise InvalidGraphError(f"targets must have one entry per molecule, {len(records)}; got the shape {y.shape}.")
    if graph_names is not None:
        names: Any = check_names(graph_names, len(records), "graph_names", "molecules")
        records = [record._replace(name=name) for record, name in zip(records, names, strict=True)]
    converted = _convert(records, transformer, on_error)
    return converted.graphs(None if y is None else y[converted.kept])


def load_molecules(
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    smiles_column: str | None = None,
    name_column: str | None = None,
    on_error: str = "raise",
    **kwargs: Any,
) -> tuple[Graphs, NDArray[Any] | None]:
    r"""Load molecules from a file, with their targets.

    Parameters
    ----------
    path : str or path
        A file of SMILES, one per line (.smi), an SDF file (.sdf), or a table whose first line names the columns (.csv, .tsv).
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
    transformer = _make_transformer(kwargs, "load_molecules")
    converted = convert_file(
        path,
        transformer,
        target=target,
        smiles_column=smiles_column,
        name_column=name_column,
        on_error=on_error,
    )
    y = None if target is None else read_targets([record for record, _ in converted.valid.values()])
    return converted.graphs(y), y


def convert_file(
    path: str | os.PathLike[str],
    transformer: MoleculeGraphs,
    *,
    target: str | None,
    smiles_column: str | None,
    on_error: str,
    name_column: str | None = None,
) -> Converted:
    """Convert the molecules of a file, of which at least one must be valid."""
    if not Path(path).exists():  # checked before RDKit, which may be missing, is imported
        raise DatasetError(f"{os.fspath(path)} cannot be read: No such file or directory.")
    records = read_records(Path(path), smiles_column, target, name_column)
    converted = _convert(records, transformer, on_error, error=DatasetError)
    if not converted.valid:
        reason = f": {next(iter(converted.invalid.values()))}" if converted.invalid else ""
        raise DatasetError(f"{os.fspath(path)} has no valid molecule{reason}.")
    return converted


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
    transformer = _make_transformer(kwargs, "invalid_molecules")
    return _convert(_list_records(molecules, transformer.smiles_column), transformer, "collect").invalid


def scaffold_groups(molecules: Any) -> NDArray[Any]:
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
        with rdkit_errors():
            return to_smiles(mol=to_molecule(molecule))

    found, _ = _apply(to_scaffold, _list_records(molecules), "raise", advice="invalid_molecules finds all.")
    return np.array([scaffold for _, scaffold in found.values()], dtype=str)
