"""Molecules of a list, a table or a file, converted one by one: what is wrong with one need not stop the others."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from treegram._core.errors import InvalidGraphError, TreegramError
from treegram._core.progress import track
from treegram._core.text import counted, suggest
from treegram._core.types import Floats
from treegram.graphs import Graphs
from treegram.graphs.atoms import ATTRIBUTES, Atoms, label_atoms, label_bonds, measure_atoms
from treegram.graphs.molecule_files import Entry
from treegram.graphs.rdkit import BadMoleculeError, as_molecule, is_molecule, quiet, refusals, show

__all__ = ["Converted", "Recipe", "convert", "list_entries"]

_MOST_TOLD = 5  # molecules that a warning names


class Part(NamedTuple):
    """The graph of one molecule."""

    n_nodes: int
    edges: list[tuple[int, int]]
    labels: list[Any]
    vectors: Floats
    bonds: list[str]


@dataclass(frozen=True)
class Recipe:
    """What the graph of a molecule says; None: no labels, no vectors."""

    labels: tuple[str, ...] | None
    attributes: tuple[str, ...] | None
    bond_labels: bool
    hydrogens: bool
    seed: int

    def part(self, molecule: Any) -> Part:
        """The graph of a SMILES or a molecule of RDKit; BadMoleculeError if there is none."""
        mol = as_molecule(molecule)
        columns = self.attributes or ()
        embedded = any(ATTRIBUTES[name].needs_coordinates for name in columns)
        with refusals():
            atoms = Atoms.of(mol, hydrogens=self.hydrogens, full=bool(columns), embedded=embedded, seed=self.seed)
            edges, bonds = label_bonds(atoms.nodes)
            labels = label_atoms(atoms, self.labels or ())
            return Part(len(labels), edges, labels, measure_atoms(atoms, columns), bonds)


@dataclass(frozen=True)
class Converted:
    """The graphs of the molecules that are right, their entries, and what is wrong with each of the others."""

    recipe: Recipe
    parts: list[Part]
    kept: list[int]
    entries: list[Entry]
    bad: dict[int, str]

    def graphs(self, targets: ArrayLike | None = None) -> Graphs:
        """The collection, with these targets."""
        recipe, parts = self.recipe, self.parts
        return Graphs.from_edges(
            [np.array(part.edges, dtype=np.int64).reshape(-1, 2) for part in parts],
            n_nodes=[part.n_nodes for part in parts],
            labels=None if recipe.labels is None else [part.labels for part in parts],
            attributes=None if recipe.attributes is None else [part.vectors for part in parts],
            edge_labels=[part.bonds for part in parts] if recipe.bond_labels else None,
            targets=targets,
        )


def convert(
    entries: Iterable[Entry],
    recipe: Recipe,
    on_error: str,
    *,
    error: Callable[[str], TreegramError] = InvalidGraphError,
    cure: str,
) -> Converted:
    """Convert molecules one by one; what is wrong is raised as ``error`` with advice, or left out with a warning."""
    found = Converted(recipe, [], [], [], {})
    total = len(entries) if isinstance(entries, list) else None
    told = []
    with quiet():
        for i, entry in enumerate(track(entries, total, "molecules")):
            try:
                if entry.problem:
                    raise BadMoleculeError(entry.problem)
                found.parts.append(recipe.part(entry.molecule))
                found.kept.append(i)
                found.entries.append(entry._replace(molecule=None))  # molecules are large
            except BadMoleculeError as bad:
                text = f"{entry.place} ({show(entry.molecule)}): {bad}"
                if on_error == "raise":
                    raise error(f"{text}. {cure}") from bad
                found.bad[i] = str(bad)
                told.append(text)
    if told and on_error == "skip":
        _warn(told, len(told) + len(found.kept))
    return found


def _warn(told: list[str], total: int) -> None:
    more = f"; and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
    warnings.warn(
        f"{counted(len(told), 'molecule')} of {total:,} left out: {'; '.join(told[:_MOST_TOLD])}{more}.",
        UserWarning,
        stacklevel=5,
    )


def list_entries(molecules: Any, smiles_column: str | None = None) -> list[Entry]:
    """The molecules that a user gives: a list, an array, or a table with a column."""
    if isinstance(molecules, str) or is_molecule(molecules):
        raise InvalidGraphError("Molecules must be a list, not a single one: write ['CCO'] instead of 'CCO'.")
    if isinstance(molecules, Graphs) or not isinstance(molecules, Iterable):
        raise InvalidGraphError(
            f"SMILES or molecules of RDKit are expected, as a list; got {type(molecules).__name__}."
        )
    if hasattr(molecules, "columns"):
        molecules = _column(molecules, smiles_column)
    elif isinstance(molecules, np.ndarray) and molecules.ndim == 2 and molecules.shape[1] == 1:
        molecules = molecules[:, 0]
    return [Entry(f"Molecule {i}", molecule) for i, molecule in enumerate(molecules)]


def _column(table: Any, name: str | None) -> Any:
    names = [str(column) for column in table.columns]
    if name is None:
        raise InvalidGraphError(
            f"The molecules are given as a table with the columns {', '.join(names)}: say with smiles_column which has the SMILES."
        )
    if name not in names:
        raise InvalidGraphError(f"The table has no column {name!r}; it has {', '.join(names)}{suggest(name, names)}.")
    return table[name]
