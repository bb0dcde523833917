"""Molecules as graphs: atoms are nodes, bonds are edges. RDKit reads them and says all that is chemistry."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from treegram._core.errors import DatasetError, InvalidGraphError
from treegram._core.params import FLAG, NOTHING, Allowed, Checked, Instance, Whole, Words, check_value
from treegram._core.text import suggest
from treegram.graphs import Graphs
from treegram.graphs.atoms import ATTRIBUTES, LABELS
from treegram.graphs.molecule_files import Entry, read_entries, read_targets
from treegram.graphs.molecule_parts import Converted, Recipe, convert, list_entries
from treegram.graphs.rdkit import BadMoleculeError, as_molecule, import_rdkit, quiet, refusals, show

__all__ = ["MoleculeGraphs", "invalid_molecules", "load_molecules", "scaffold_groups"]

ON_ERROR: Allowed = (Words("raise", "skip"),)
_CURE = "Correct it, or leave out what cannot be used with on_error='skip' (on the command line: --skip-bad)."
_CURE_IN_PIPELINES = (
    "A step of a pipeline must give one graph for each molecule and cannot leave any out: find what is wrong with invalid_molecules, "
    "or convert with Graphs.from_smiles(..., on_error='skip') before the pipeline."
)


@dataclass(frozen=True)
class _Names:
    """One of some names, or a list of them, each once."""

    names: tuple[str, ...]

    def accepts(self, value: Any) -> bool:
        """Whether the value is one."""
        given = [value] if isinstance(value, str) else value
        if not isinstance(given, list | tuple) or not given:
            return False
        return all(isinstance(name, str) and name in self.names for name in given) and len(set(given)) == len(given)

    def __str__(self) -> str:
        return "one of " + ", ".join(map(repr, self.names)) + " or a list of these"


class MoleculeGraphs(Checked, TransformerMixin, BaseEstimator):
    """Turn molecules into graphs, as the first step of a pipeline: models then take SMILES.

    Atoms are nodes, bonds are edges. Nothing is learned from data, so that a molecule's graph is the same everywhere.

    Parameters
    ----------
    labels : str, list of str or None, default="element"
        What the label of an atom says; with several names it is a tuple. "element", "degree" (bonds to other nodes),
        "formal_charge", "aromatic" (0 or 1), "hydrogens" (their number), "hybridization", "in_ring" (0 or 1), "chirality"
        ("R", "S" or nothing). None: no labels.
    attributes : str, list of str or None, default=None
        What the vector of an atom has, in this order. "partial_charge" (Gasteiger), "mass", "logp", "refractivity" and
        "polar_surface" (what the atom and its hydrogens add to Crippen's logP, to molar refractivity and to the topological polar
        surface area) depend on the bonds alone. "coordinates" are those of the molecule if it has 3D ones, else RDKit's
        ETKDG makes some. "centroid_distance" (from the center of the nodes) and "distance_profile" (mean, standard deviation and
        maximum of the distances to all other nodes) use the same coordinates and, unlike them, do not change when the molecule is
        turned or moved. None: no vectors.
    bond_labels : bool, default=True
        Whether edges have labels: "single", "double", "triple", "aromatic". Kernels use them when asked: ``use_edge_labels=True``.
    hydrogens : bool, default=False
        Whether all hydrogens become nodes.
    smiles_column : str or None, default=None
        The column with the SMILES, where molecules are given as a table (pandas, polars).
    random_state : int, default=0
        Seed of new coordinates.

    See Also
    --------
    Graphs.from_smiles : converts a list once, and can leave out what is wrong.
    load_molecules : reads files.

    Notes
    -----
    A molecule that RDKit cannot read is an error, since a step of a pipeline must give one graph for each molecule: find such
    molecules before with :func:`invalid_molecules`. Coordinates take some ten milliseconds for each molecule; cross-validation of
    the whole pipeline makes them anew for each fold, so that it is faster to convert once. New coordinates depend on the order
    of a molecule's atoms and on the version of RDKit. Fragments of a salt stand at an arbitrary distance from each other.

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
        "labels": (_Names(tuple(LABELS)), NOTHING),
        "attributes": (_Names(tuple(ATTRIBUTES)), NOTHING),
        "bond_labels": (FLAG,),
        "hydrogens": (FLAG,),
        "smiles_column": (Instance((str,), "the name of a column"), NOTHING),
        "random_state": (Whole(0, 2**31 - 1),),
    }

    def __init__(
        self,
        labels: str | Sequence[str] | None = "element",
        attributes: str | Sequence[str] | None = None,
        *,
        bond_labels: bool = True,
        hydrogens: bool = False,
        smiles_column: str | None = None,
        random_state: int = 0,
    ) -> None:
        self.labels = labels
        self.attributes = attributes
        self.bond_labels = bond_labels
        self.hydrogens = hydrogens
        self.smiles_column = smiles_column
        self.random_state = random_state

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002 (scikit-learn's signature)
        """Check the parameters; nothing is learned.

        Parameters
        ----------
        X : ignored
            The molecules.
        y : ignored
            There for scikit-learn's pipelines.

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
            The molecules: SMILES, molecules of RDKit, or a table with the column ``smiles_column``.

        Returns
        -------
        Graphs
            One graph for each molecule, in the same order.
        """
        recipe = self._recipe()
        return convert(list_entries(X, self.smiles_column), recipe, "raise", cure=_CURE_IN_PIPELINES).graphs()

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.input_tags.string = True
        tags.requires_fit = False
        return tags

    def _recipe(self) -> Recipe:
        """The parameters, checked."""
        self._check_parameters()
        labels, attributes = _as_tuple(self.labels), _as_tuple(self.attributes)
        return Recipe(labels, attributes, bool(self.bond_labels), bool(self.hydrogens), int(self.random_state))


def _as_tuple(names: str | Sequence[str] | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    return (names,) if isinstance(names, str) else tuple(names)


def _maker(options: dict[str, Any], owner: str) -> MoleculeGraphs:
    """The transformer with these parameters; an unknown one is an error of the function that the user called."""
    known = list(MoleculeGraphs._allowed)
    for name in options:
        if name not in known:
            hint = suggest(name, known) or f"; it takes {', '.join(known)}."
            raise TypeError(f"{owner} got an unexpected keyword argument {name!r}{hint}")
    return MoleculeGraphs(**options)


# -------------------------------------------------------------------- ways in


def read_molecules(
    molecules: Any, options: dict[str, Any], on_error: str, targets: ArrayLike | None, owner: str
) -> Graphs:
    """Make a collection from SMILES or molecules of RDKit; see :meth:`treegram.Graphs.from_smiles`."""
    check_value("on_error", owner, on_error, ON_ERROR)
    maker = _maker(options, owner)
    recipe = maker._recipe()
    entries = list_entries(molecules, maker.smiles_column)
    y = None if targets is None else np.asarray(targets)
    if y is not None and (not y.ndim or len(y) != len(entries)):
        raise InvalidGraphError(f"targets must have one entry per molecule, {len(entries)}; got the shape {y.shape}.")
    found = convert(entries, recipe, on_error, cure=_CURE)
    return found.graphs(None if y is None else y[found.kept])


def load_molecules(
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    smiles_column: str | None = None,
    on_error: str = "raise",
    **kwargs: Any,
) -> tuple[Graphs, NDArray[Any] | None]:
    r"""Load molecules from a file, with their targets.

    Parameters
    ----------
    path : str or path
        A file of SMILES, one in each line (.smi), an SDF file (.sdf), or a table whose first line names the columns (.csv, .tsv).
    target : str, optional
        The column or the SDF property with the target. In a .smi file whose first line is no header, the number of the column,
        counted from 1. Targets are classes if they are words, and numbers otherwise.
    smiles_column : str, optional
        The column of a table with the SMILES. None: "smiles".
    on_error : {"raise", "skip"}, default="raise"
        What to do about a molecule that cannot be read or has no target: raise an error, or leave it out and warn.
    **kwargs
        What the graphs say: parameters of :class:`MoleculeGraphs`, such as ``attributes``.

    Returns
    -------
    graphs : Graphs
        The molecules.
    y : ndarray of shape (n_graphs,), or None
        Their targets, also kept as ``graphs.targets``; None without ``target``.

    Raises
    ------
    DatasetError
        If the file or a molecule cannot be read; the message says which line, and why.

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
    check_value("on_error", "load_molecules", on_error, ON_ERROR)
    maker = _maker(kwargs, "load_molecules")
    found = convert_file(path, maker, target=target, smiles_column=smiles_column, on_error=on_error)
    y = None if target is None else read_targets(found.entries)
    return found.graphs(y), y


def convert_file(
    path: str | os.PathLike[str], maker: MoleculeGraphs, *, target: str | None, smiles_column: str | None, on_error: str
) -> Converted:
    """The molecules of a file; at least one of them must be right."""
    if not Path(path).exists():  # said before RDKit, which may be missing, is asked for
        raise DatasetError(f"{os.fspath(path)} cannot be read: No such file or directory.")
    entries: Iterator[Entry] = read_entries(Path(path), smiles_column, target)
    found = convert(entries, maker._recipe(), on_error, error=DatasetError, cure=_CURE)
    if not found.kept:
        reasons = f": {next(iter(found.bad.values()))}" if found.bad else ""
        raise DatasetError(f"{os.fspath(path)} has no molecule that can be used{reasons}.")
    return found


def invalid_molecules(molecules: Any, **kwargs: Any) -> dict[int, str]:
    """Find the molecules that cannot become graphs.

    Parameters
    ----------
    molecules : list of str or of rdkit.Chem.Mol, or a table
        The molecules.
    **kwargs
        What their graphs would say: parameters of :class:`MoleculeGraphs`. Some attributes are not there for all molecules.

    Returns
    -------
    dict of int to str
        For each bad molecule its position, and what is wrong.

    Examples
    --------
    >>> from treegram import invalid_molecules
    >>> invalid_molecules(["CCO", "C1CC", "CO(C)C"])
    {1: 'RDKit says: unclosed ring', 2: 'RDKit says: Explicit valence for atom # 1 O, 3, is greater than permitted'}
    """
    maker = _maker(kwargs, "invalid_molecules")
    recipe = maker._recipe()
    return convert(list_entries(molecules, maker.smiles_column), recipe, "report", cure="").bad


def scaffold_groups(molecules: Any) -> NDArray[Any]:
    """The Bemis-Murcko scaffold of each molecule: groups for splits that test on new kinds of molecules.

    Parameters
    ----------
    molecules : list of str or of rdkit.Chem.Mol
        The molecules.

    Returns
    -------
    ndarray of str, shape (n_molecules,)
        The SMILES of each scaffold: rings and what links them. Molecules without a ring share the empty one, and so one group.

    Examples
    --------
    >>> from treegram import scaffold_groups
    >>> scaffold_groups(["Cc1ccccc1", "Oc1ccccc1", "C1CC1CN", "CCO"])
    array(['c1ccccc1', 'c1ccccc1', 'C1CC1', ''], dtype='<U8')
    """
    import_rdkit()
    from rdkit.Chem.Scaffolds import MurckoScaffold

    to_scaffold: Any = MurckoScaffold.MurckoScaffoldSmiles
    found = []
    with quiet():
        for entry in list_entries(molecules):
            try:
                with refusals():
                    found.append(to_scaffold(mol=as_molecule(entry.molecule)))
            except BadMoleculeError as bad:
                raise InvalidGraphError(
                    f"{entry.place} ({show(entry.molecule)}): {bad}. invalid_molecules finds all."
                ) from bad
    return np.array(found, dtype=str)
