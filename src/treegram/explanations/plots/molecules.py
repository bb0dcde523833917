"""Molecules drawn by RDKit, their atoms colored by what they add to a decision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from treegram._core.optional import optional_module
from treegram._core.types import Floats
from treegram.explanations.plots.colors import MOLECULE_LIMIT, share_colors
from treegram.graphs import Graphs

__all__ = ["molecule_of", "molecule_png", "molecule_svg"]


def molecule_of(given: Any, graph: Graphs, which: str) -> Any:
    """The RDKit molecule of a graph from a molecule or a SMILES string; atoms must be the nodes, in their order.

    Hydrogens that a molecule does not list are added where the graph has them.
    """
    chem = _rdkit("Chem")
    molecule = chem.MolFromSmiles(given) if isinstance(given, str) else given
    if not isinstance(molecule, chem.Mol):
        raise ValueError(f"{which} must be an RDKit molecule or a SMILES string that RDKit can read; got {given!r}.")
    if molecule.GetNumAtoms() != graph.n_nodes:
        molecule = chem.AddHs(molecule)
    _check_atoms(molecule, graph, which, chem.GetPeriodicTable())
    return molecule


def _check_atoms(molecule: Any, graph: Graphs, which: str, periodic_table: Any) -> None:
    if molecule.GetNumAtoms() != graph.n_nodes:
        bare = sum(atom.GetAtomicNum() > 1 for atom in molecule.GetAtoms())
        raise ValueError(
            f"{which} must have the {graph.n_nodes} nodes of its graph as atoms; it has {bare} atoms, and "
            f"{molecule.GetNumAtoms()} with hydrogens."
        )
    bonds = {tuple(sorted((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()))) for bond in molecule.GetBonds()}
    edges = {tuple(sorted(edge)) for edge in graph.edges().tolist()}
    if bonds != edges:
        raise ValueError(
            f"{which} must have its atoms in the order of the graph's nodes: its bonds are not the graph's edges, such as "
            f"{min(bonds ^ edges)}."
        )
    if graph.labels is None:
        return
    known = {periodic_table.GetElementSymbol(number) for number in range(1, 119)}
    for node, (atom, code) in enumerate(zip(molecule.GetAtoms(), graph.labels, strict=True)):
        label = graph.label_values[code]
        if label in known and label != atom.GetSymbol():
            raise ValueError(f"{which}: its atom {node} is {atom.GetSymbol()}, but the node's label is {label!r}.")


def molecule_svg(
    molecule: Any, values: ArrayLike, numbered: tuple[int, ...] = (), size: tuple[int, int] = (460, 340)
) -> str:
    """The molecule as SVG; some atoms have their numbers beside them."""
    return _drawn(molecule, np.asarray(values, dtype=np.float64), size, "MolDraw2DSVG", numbered, as_bytes=False)


def molecule_png(molecule: Any, values: ArrayLike, size: tuple[int, int] = (900, 700)) -> bytes:
    """The molecule as PNG."""
    image: bytes = _drawn(molecule, np.asarray(values, dtype=np.float64), size, "MolDraw2DCairo", (), as_bytes=True)
    return image


def _drawn(
    molecule: Any, values: Floats, size: tuple[int, int], canvas: str, numbered: tuple[int, ...], *, as_bytes: bool
) -> Any:
    draw = _rdkit("Chem.Draw.rdMolDraw2D")
    drawer = getattr(draw, canvas)(*size)
    options = drawer.drawOptions()
    options.useBWAtomPalette()  # colors are for what atoms add
    options.fillHighlights = True
    options.highlightRadius = 0.42
    options.fixedBondLength = size[0] / 8  # at most: a molecule of few atoms does not fill the picture
    limit = float(np.abs(values).max(initial=0.0))
    colors = share_colors(values, MOLECULE_LIMIT * limit)
    chosen = [int(atom) for atom in np.flatnonzero(np.abs(values) > 0.02 * limit)]
    plain = draw.PrepareMolForDrawing(molecule, kekulize=True, addChiralHs=False)
    for atom in numbered:
        plain.GetAtomWithIdx(atom).SetProp("atomNote", str(atom))
    drawer.DrawMolecule(
        plain,
        highlightAtoms=chosen,
        highlightBonds=[],
        highlightAtomColors={atom: tuple(colors[atom].tolist()) for atom in chosen},
    )
    drawer.FinishDrawing()
    return bytes(drawer.GetDrawingText()) if as_bytes else str(drawer.GetDrawingText())


def _rdkit(module: str) -> Any:
    return optional_module(f"rdkit.{module}", "molecules", "Pictures of molecules")
