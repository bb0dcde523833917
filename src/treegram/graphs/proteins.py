"""Convert protein structures (PDB or mmCIF) to graphs of residues, through gemmi."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from treegram._core.optional import optional_module
from treegram._core.parallel import track
from treegram._core.params import NOTHING, Allowed, Instance, Number, Words, parameters
from treegram._core.text import counted, warn_user
from treegram._core.types import Floats, Ints, Masks
from treegram.exceptions import DatasetError, InvalidGraphError
from treegram.graphs import Graphs
from treegram.graphs.transforms import Source

__all__ = ["ProteinGraphs"]

_ATTRIBUTES = {
    "invariant": ("burial", "side chain inward", "distance to centroid", "turn cosine", "turn sine"),
    "coordinates": ("x", "y", "z"),
    None: None,
}
_NEAR, _FAR = 8.0, 12.0  # distances in ångströms between which the weight of a neighbor falls from 1 to 0
_NEIGHBORS = 10.0  # the unit of burial: a residue at the surface has about as many neighbors
_LARGEST = 1e6  # ångströms; larger coordinates are mistakes


@parameters
class ProteinGraphs(Source):
    """Turn protein structures into graphs of residues, as the first step of a pipeline. Requires gemmi.

    A node is an amino acid, and its label is the residue's name. Residues whose CA atoms are close are joined by edges.

    Parameters
    ----------
    attributes : {"invariant", "coordinates"} or None, default="invariant"
        Vector of each residue. "invariant": five numbers that do not change when the structure is rotated or moved; see the notes.
        "coordinates": the position of its CA atom in the frame of the file, which says nothing about the protein unless all structures were
        superposed. The graphs keep the positions for drawings in any case.
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
    The first model of a structure is used. If an atom has alternate locations, the first with the highest occupancy is used, and if a residue
    has several names, that whose CA atom has the highest. Residues are consecutive if their numbers are.

    The invariant attributes, from CA atoms only:

    - burial: the number of neighbors, divided by 10. A neighbor counts fully up to 8 Å, and less and less up to 12 Å;
    - side chain inward: the same neighbors, each times the cosine between its direction and that of the side chain, which points away from
      the residues before and after. It is negative where the side chain points into the solvent;
    - distance to centroid, divided by the radius of gyration;
    - turn cosine and turn sine: of the dihedral angle of the residues i - 1, i, i + 1, i + 2, times the sines of the two angles between them.
      About (0.6, 0.8) in an α-helix and (-0.7, -0.1) in a β-strand.

    Where the chain ends or residues are missing, the side chain and the turn are unknown, and their numbers 0.

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

    attributes: str | None = field(default="invariant", kw_only=False)
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


def read_pdb(
    structures: Any, options: ProteinGraphs, targets: ArrayLike | None, graph_names: Sequence[str] | None
) -> Graphs:
    """Build a collection from protein structures; see :meth:`treegram.Graphs.from_pdb`."""
    gemmi = optional_module("gemmi", "Protein structures")
    items = [structures] if isinstance(structures, str | os.PathLike | gemmi.Structure) else list(structures)
    proteins, notes, file_names = [], [], []
    for i, item in enumerate(track(items, total=len(items), label="structures")):
        structure, title, file_name = open_structure(gemmi, item, i)
        residues = _read_residues(gemmi, _chosen_chains(structure, title, options), title)
        if residues.missing and options.missing == "error":
            raise InvalidGraphError(
                f"{title}: {counted(len(residues.missing), 'residue')} without a CA atom, the first is {residues.missing[0]}. "
                "Pass missing='skip' to skip them."
            )
        if residues.missing:
            notes.append(f"{title}: {len(residues.missing)}, the first is {residues.missing[0]}")
        if not residues.names:
            raise InvalidGraphError(f"{title}: there is no amino acid with a CA atom in the chosen chains.")
        file_names.append(file_name)
        proteins.append((residues, *_vectors_and_edges(residues, options)))
    if notes:
        warn_user(f"Residues without a CA atom are skipped: {'; '.join(notes)}.")
    return Graphs.from_edges(
        [edges for _, _, edges in proteins],
        labels=[residues.labels for residues, _, _ in proteins],
        attributes=None if options.attributes is None else [vectors for _, vectors, _ in proteins],
        targets=targets,
        graph_names=file_names if graph_names is None else graph_names,
        node_names=[residues.names for residues, _, _ in proteins],
        attribute_names=_ATTRIBUTES[options.attributes],
        positions=[residues.positions for residues, _, _ in proteins],
    )


# -------------------------------------------------------------------- which residues


def open_structure(gemmi: Any, item: Any, graph: int) -> tuple[Any, str, str]:
    """Return a structure, its title in messages, and the name of its graph: the file's without extensions ("1abc")."""
    if isinstance(item, gemmi.Structure):
        title = f"Structure {graph}"
        return item, f"{title} ({item.name})" if item.name else title, item.name or title
    if not isinstance(item, str | os.PathLike):
        raise InvalidGraphError(
            f"Structure {graph} must be a path of a PDB or mmCIF file, or a gemmi.Structure; got {type(item).__name__}."
        )
    path = Path(item).expanduser()
    content = _read_file(path)
    try:
        structure = gemmi.read_structure_string(content)
    except (RuntimeError, ValueError, IndexError) as error:
        raise DatasetError(
            f"{path}: the file cannot be read as PDB or mmCIF ({' '.join(str(error).split())[:200]})."
        ) from None
    if structure.input_format == gemmi.CoorFormat.Pdb:
        _check_coordinates(content, path)
    return structure, str(path), path.name.removesuffix(".gz").rpartition(".")[0] or path.name


def _read_file(path: Path) -> bytes:
    """Return the content of a file, unpacked to its end, with plain ends of lines."""
    try:
        content = path.read_bytes()
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DatasetError(f"{path}: the compressed file is damaged or was cut ({error}). Fetch it again.") from None
    except OSError as error:
        raise DatasetError(f"{path}: the file cannot be read ({error.strerror or error}).") from None
    return content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _check_coordinates(content: bytes, path: Path) -> None:
    """Raise if a CA atom of a PDB file has no position; gemmi reads ******** and blanks as 0."""
    for number, line in enumerate(content.splitlines(), 1):
        if line.startswith((b"ATOM", b"HETATM")) and line[12:16].strip() == b"CA":
            try:
                [float(line[first : first + 8].replace(b"_", b"?")) for first in (30, 38, 46)]
            except ValueError:
                shown = line[30:54].decode("utf-8", "backslashreplace")
                raise DatasetError(
                    f"{path}:{number}: expected the position of a CA atom, three numbers in the columns 31 to 54; got {shown!r}."
                ) from None


def _chosen_chains(structure: Any, title: str, options: ProteinGraphs) -> Iterable[Any]:
    chains = list(structure[0]) if len(structure) else []
    if options.chains is None:
        return chains
    wanted = [options.chains] if isinstance(options.chains, str) else list(options.chains)
    names = [chain.name for chain in chains]
    for name in wanted:
        if name not in names:
            raise InvalidGraphError(
                f"{title}: chains: there is no chain {name!r}; there are {', '.join(map(repr, names))}."
            )
    return [chain for chain in chains if chain.name in wanted]


def _read_residues(gemmi: Any, chains: Iterable[Any], title: str) -> _Residues:
    """Read the amino acids of some chains, each with the name and place of its CA atom with the highest occupancy."""
    residues = _Residues([], [], [], [], [])
    for chain in chains:
        previous = None
        try:
            amino_acids = [item for item in chain if gemmi.find_tabulated_residue(item.name).is_amino_acid()]
            for number, same_number in groupby(amino_acids, key=lambda residue: str(residue.seqid)):
                alternatives = list(same_number)
                places = [
                    (residue, atom)
                    for residue in alternatives
                    for atom in residue
                    if atom.name == "CA" and atom.element.name == "C"
                ]
                if not places:
                    residues.missing.append(f"{alternatives[0].name} {number} of chain {chain.name}")
                    continue
                residue, atom = max(places, key=lambda place: place[1].occ)
                position = atom.pos.tolist()
                if residue.seqid.num is None:
                    raise ValueError(f"{residue.name} of chain {chain.name} has no number")
                if not all(abs(coordinate) <= _LARGEST for coordinate in position):  # False for nan
                    raise ValueError(f"{residue.name} {number} of chain {chain.name} has its CA atom at {position}")
                residues.labels.append(residue.name)
                residues.names.append(f"{chain.name}/{number} {residue.name}")
                residues.positions.append(position)
                # A difference of 0 is an insertion code.
                residues.follows.append(previous is not None and residue.seqid.num - previous in (0, 1))
                previous = residue.seqid.num
        except ValueError as error:  # a name that is not UTF-8, an invalid number
            raise InvalidGraphError(f"{title}: a residue or an atom cannot be used ({error}).") from None
    return residues


# -------------------------------------------------------------------- graphs


def _vectors_and_edges(residues: _Residues, options: ProteinGraphs) -> tuple[Floats, Ints]:
    positions = np.array(residues.positions)
    edges = cKDTree(positions).query_pairs(float(options.contact), output_type="ndarray").astype(np.int64)
    is_invariant = options.attributes == "invariant"
    vectors = _invariants(positions, np.array(residues.follows)) if is_invariant else positions
    return vectors, edges[np.lexsort((edges[:, 1], edges[:, 0]))]


def _invariants(positions: Floats, follows: Masks) -> Floats:
    """Return the invariant attributes of each residue."""
    n = len(positions)
    first, second = cKDTree(positions).query_pairs(_FAR, output_type="ndarray").T
    gaps = positions[second] - positions[first]
    lengths = np.linalg.norm(gaps, axis=1)
    weights = np.clip((_FAR - lengths) / (_FAR - _NEAR), 0.0, 1.0) / _NEIGHBORS
    burial = np.bincount(first, weights, n) + np.bincount(second, weights, n)
    pulls = weights[:, None] * _unit(gaps)  # toward the neighbors
    density = np.zeros((n, 3))
    np.add.at(density, first, pulls)
    np.add.at(density, second, -pulls)
    # steps[i] leads from residue i - 1 to residue i; 0 where the chain begins or residues are missing.
    steps = np.zeros((n + 3, 3))
    steps[1:n] = np.where(follows[1:, None], _unit(np.diff(positions, axis=0)), 0.0)
    before, after, last = steps[:n], steps[1 : n + 1], steps[2 : n + 2]
    has_both = before.any(axis=1, keepdims=True) & after.any(axis=1, keepdims=True)
    inward = (np.where(has_both, before - after, 0.0) * density).sum(axis=1)
    normals = np.cross(before, after), np.cross(after, last)
    cosine = (normals[0] * normals[1]).sum(axis=1)
    sine = (before * normals[1]).sum(axis=1)
    from_centroid = np.linalg.norm(positions - positions.mean(axis=0), axis=1)
    radius = np.sqrt((from_centroid**2).mean())
    return np.stack([burial, inward, from_centroid / (radius or 1.0), cosine, sine], axis=1)


def _unit(vectors: Floats) -> Floats:
    """Return vectors of length 1, or 0 for those without a direction."""
    lengths = np.linalg.norm(vectors, axis=1)[:, None]
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
