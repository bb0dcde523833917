"""Convert protein structures (PDB or mmCIF) to graphs of residues, through gemmi."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from treegram._core.errors import DatasetError, InvalidGraphError
from treegram._core.optional import optional_module
from treegram._core.parallel import track
from treegram._core.params import NOTHING, Allowed, Instance, Number, Words, parameters
from treegram._core.text import counted
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.graphs.transforms import Source

__all__ = ["ProteinGraphs"]

_ATTRIBUTES = {
    "coordinates": ("x", "y", "z"),
    "invariant": ("distance to centroid", "distance to previous residue", "distance to next residue"),
    None: None,
}


@parameters
class ProteinGraphs(Source):
    """Turn protein structures into graphs of residues, as the first step of a pipeline. Requires gemmi.

    A node is an amino acid, and its label is the residue's name. Residues whose CA atoms are close are joined by edges.

    Parameters
    ----------
    attributes : {"coordinates", "invariant"} or None, default="coordinates"
        Vector of each residue. "coordinates": the position of its CA atom. "invariant": the distances of its CA atom to the
        centroid of the graph and to the residues before and after it in the sequence (0 if there is none), which do not change
        when the structure is rotated or moved.
    contact : float, default=8.0
        Distance in ångströms up to which two CA atoms are joined by an edge.
    chains : str, list of str or None, default=None
        Names of the chains to use; None: all. Each name must exist in every structure.
    missing : {"error", "skip"}, default="error"
        Whether a residue without a CA atom raises an error, or is skipped with a warning.

    See Also
    --------
    Graphs.from_pdb : Convert structures once.

    Notes
    -----
    The first model of a structure is used. If an atom has alternate locations, the first with the highest occupancy is used. Residues are consecutive if their
    numbers are.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from treegram import GraphSVC, ProteinGraphs
    >>> model = make_pipeline(ProteinGraphs(contact=6), GraphSVC())  # model.fit(paths, y); model.predict(new_paths)
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "attributes": (Words("coordinates", "invariant"), NOTHING),
        "contact": (Number(0, above=True),),
        "chains": (Instance((str, list, tuple), "a name or a list of names"), NOTHING),
        "missing": (Words("error", "skip"),),
    }

    attributes: str | None = field(default="coordinates", kw_only=False)
    contact: float = 8.0
    chains: str | Sequence[str] | None = None
    missing: str = "error"

    def transform(self, X: Any) -> Graphs:
        """Turn structures into graphs.

        Parameters
        ----------
        X : list of paths or of gemmi.Structure
            Files in PDB or mmCIF format, optionally gzipped.

        Returns
        -------
        Graphs
            One graph per structure, in the same order.
        """
        self._check_parameters()
        return Graphs.from_pdb(X, **self.get_params())


class _Residues(NamedTuple):
    """The amino acids of a structure that have a CA atom, with names such as "A/141 CYS", and those that have none."""

    labels: list[str]
    names: list[str]
    positions: list[list[float]]
    follows: list[bool]  # whether each directly follows the previous one in the sequence
    missing: list[str]


def read_pdb(structures: Any, options: ProteinGraphs, targets: ArrayLike | None) -> Graphs:
    """Build a collection from protein structures; see :meth:`treegram.Graphs.from_pdb`."""
    gemmi = optional_module("gemmi", "Protein structures")
    items = [structures] if isinstance(structures, str | os.PathLike | gemmi.Structure) else list(structures)
    made, notes, graph_names = [], [], []
    for i, item in enumerate(track(items, total=len(items), label="structures")):
        structure, name, graph_name = _open(gemmi, item, i)
        residues = _read_residues(gemmi, _chosen_chains(structure, name, options), name)
        if residues.missing and options.missing == "error":
            raise InvalidGraphError(
                f"{name}: {counted(len(residues.missing), 'residue')} without a CA atom, the first is {residues.missing[0]}. "
                "Pass missing='skip' to skip them."
            )
        if residues.missing:
            notes.append(f"{name}: {len(residues.missing)}, the first is {residues.missing[0]}")
        if not residues.names:
            raise InvalidGraphError(f"{name}: there is no amino acid with a CA atom in the chosen chains.")
        graph_names.append(graph_name)
        made.append((residues, *_vectors_and_edges(residues, options)))
    if notes:
        warnings.warn(f"Residues without a CA atom are skipped: {'; '.join(notes)}.", UserWarning, stacklevel=3)
    return Graphs.from_edges(
        [edges for _, _, edges in made],
        labels=[residues.labels for residues, _, _ in made],
        attributes=None if options.attributes is None else [vectors for _, vectors, _ in made],
        targets=targets,
        graph_names=graph_names,
        node_names=[residues.names for residues, _, _ in made],
        attribute_names=_ATTRIBUTES[options.attributes],
    )


# -------------------------------------------------------------------- which residues


def _open(gemmi: Any, item: Any, graph: int) -> tuple[Any, str, str]:
    """Return a structure, its name in messages, and that of its graph: the file's without extensions ("1abc")."""
    if isinstance(item, gemmi.Structure):
        title = f"Structure {graph}"
        return item, f"{title} ({item.name})" if item.name else title, item.name or title
    if not isinstance(item, str | os.PathLike):
        raise InvalidGraphError(
            f"Structure {graph} must be a path of a PDB or mmCIF file, or a gemmi.Structure; got {type(item).__name__}."
        )
    path = Path(item).expanduser()
    try:
        structure = gemmi.read_structure(str(path))
    except (OSError, RuntimeError, ValueError, IndexError) as error:
        raise DatasetError(
            f"{path}: the file cannot be read as PDB or mmCIF ({' '.join(str(error).split())[:200]})."
        ) from None
    return structure, str(path), path.name.removesuffix(".gz").rpartition(".")[0] or path.name


def _chosen_chains(structure: Any, name: str, options: ProteinGraphs) -> Iterable[Any]:
    found = list(structure[0]) if len(structure) else []
    if options.chains is None:
        return found
    wanted = [options.chains] if isinstance(options.chains, str) else list(options.chains)
    known = [chain.name for chain in found]
    for chain in wanted:
        if chain not in known:
            raise InvalidGraphError(
                f"{name}: chains: there is no chain {chain!r}; there are {', '.join(map(repr, known))}."
            )
    return [chain for chain in found if chain.name in wanted]


def _read_residues(gemmi: Any, chains: Iterable[Any], name: str) -> _Residues:
    """Read the amino acids of some chains, using the first alternate location of an atom with the highest occupancy."""
    found = _Residues([], [], [], [], [])
    for chain in chains:
        before = None
        try:
            for residue in chain.first_conformer():
                if not gemmi.find_tabulated_residue(residue.name).is_amino_acid():
                    continue
                shown = f"{residue.name} {residue.seqid} of chain {chain.name}"
                atoms = [atom for atom in _all_atoms(chain, residue) if atom.name == "CA" and atom.element.name == "C"]
                if not atoms:
                    found.missing.append(shown)
                    continue
                position = max(atoms, key=lambda atom: atom.occ).pos.tolist()
                if not all(map(math.isfinite, position)):
                    raise ValueError(f"{shown} has its CA atom at {position}")
                number = residue.seqid.num
                found.labels.append(residue.name)
                found.names.append(f"{chain.name}/{residue.seqid} {residue.name}")
                found.positions.append(position)
                found.follows.append(before is not None and number - before in (0, 1))  # 0: an insertion code
                before = number
        except ValueError as error:  # a name that is not UTF-8, an invalid number
            raise InvalidGraphError(f"{name}: a residue or an atom cannot be used ({error}).") from None
    return found


def _all_atoms(chain: Any, residue: Any) -> list[Any]:
    """Return the atoms of a residue in all its conformations with the same name."""
    return [atom for same in chain[str(residue.seqid)] if same.name == residue.name for atom in same]


# -------------------------------------------------------------------- graphs


def _vectors_and_edges(residues: _Residues, options: ProteinGraphs) -> tuple[Floats, Ints]:
    positions, follows = np.array(residues.positions), np.array(residues.follows)
    edges = cKDTree(positions).query_pairs(float(options.contact), output_type="ndarray").astype(np.int64)
    vectors = _invariants(positions, follows) if options.attributes == "invariant" else positions
    return vectors, edges[np.lexsort((edges[:, 1], edges[:, 0]))]


def _invariants(positions: Floats, follows: NDArray[np.bool_]) -> Floats:
    """Return each residue's distance to the centroid, to the previous and to the next residue; 0 at an end of a chain."""
    steps = np.zeros(len(positions) + 1)
    steps[1:-1] = np.where(follows[1:], np.linalg.norm(np.diff(positions, axis=0), axis=1), 0.0)
    centroid = np.linalg.norm(positions - positions.mean(axis=0), axis=1)
    return np.stack([centroid, steps[:-1], steps[1:]], axis=1)
