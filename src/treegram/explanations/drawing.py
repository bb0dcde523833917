"""Colors, trees and molecules, as the plots and the page both draw them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from treegram._core.optional import optional_module
from treegram._core.types import Floats
from treegram.graphs import Graphs

__all__ = [
    "MOLECULE_LIMIT",
    "MOST_LABELED",
    "check_molecule",
    "contribution_colors",
    "draw_molecule",
    "has_labels",
    "is_dark",
    "tree_layout",
]

MOST_LABELED = 80  # nodes of a graph whose labels are still written
MOLECULE_LIMIT = 1.4  # times the largest contribution: RDKit writes in black, which full colors would hide
_FOR, _AGAINST = np.array([0.698, 0.094, 0.169]), np.array([0.129, 0.4, 0.675])  # red, blue
_DARK = 0.55  # of the way from white to full color

Tree = tuple[str, list["Tree"]]  # label of the root, and the trees below it


# -------------------------------------------------------------------- colors and labels


def contribution_colors(values: Floats, limit: float) -> Floats:
    """Return red, green and blue from 0 to 1 for each value, (n_values, 3): red above 0, blue below, full at ``limit``."""
    strengths = np.clip(np.abs(values) / (limit or 1.0), 0.0, 1.0)[:, None]
    colors: Floats = 1.0 - strengths + strengths * np.where((values > 0)[:, None], _FOR, _AGAINST)
    return colors


def is_dark(value: float, limit: float) -> bool:
    """Return True if text on the color of a value must be white."""
    return bool(abs(value) > _DARK * limit)


def has_labels(graph: Graphs) -> bool:
    """Return True if the nodes of the graph's collection have different labels."""
    return graph.labels is not None and len(graph.label_values) > 1


# -------------------------------------------------------------------- trees


def tree_layout(
    name: str,
) -> tuple[list[tuple[str, float, float]], list[tuple[tuple[float, float], tuple[float, float], str]]]:
    """Return the nodes of a named tree as (label, x, y), the root at y = 0, and its edges as (upper, lower, label)."""
    nodes: list[tuple[str, float, float]] = []
    edges: list[tuple[tuple[float, float], tuple[float, float], str]] = []

    def place(tree: Tree, depth: int, left: float) -> tuple[float, float]:
        """Place a tree whose leftmost leaf is at ``left``; return the x of its root and where the next tree begins."""
        label, children = tree
        roots, right = [], left
        for child in children:
            x, right = place(child, depth + 1, right)
            roots.append(x)
        x = 0.5 * (roots[0] + roots[-1]) if roots else left
        for child_x, child in zip(roots, children, strict=True):
            edges.append(((x, -depth), (child_x, -depth - 1), _split_edge(child[0])[0]))
        nodes.append((_split_edge(label)[1] if depth else label, x, -depth))
        return x, max(right, left + 1.0)

    place(_parse_tree(name), 0, 0.0)
    return nodes, edges


def _split_edge(label: str) -> tuple[str, str]:
    """Split off the label of the edge above a node, if any."""
    edge, colon, node = label.partition(":")
    return (edge, node) if colon else ("", label)


def _parse_tree(name: str) -> Tree:
    stack: list[Tree] = [("", [])]
    word = ""
    for token in re.findall(r'"(?:[^"\\]|\\.)*"|.', name, re.DOTALL):  # quoted labels are one token
        if token == "(":
            stack.append((word.strip(), []))
        elif token in ",)":
            if word:
                stack[-1][1].append((word.strip(), []))
            if token == ")" and len(stack) > 1:
                closed = stack.pop()
                stack[-1][1].append(closed)
            elif token == ")":
                raise ValueError(
                    f"name must be a tree such as 'C(N,C(O))'; got {name!r}, which closes more than it opens."
                )
        else:
            word += token
            continue
        word = ""
    roots, rest = stack[0][1], word.strip()
    if roots and rest.startswith("#"):  # WLOA's number, which belongs to the root
        roots = [(f"{label} {rest}", children) for label, children in roots]
    elif rest:
        roots.append((rest, []))
    if len(stack) != 1 or len(roots) != 1 or not roots[0][0]:
        raise ValueError(f"name must be one tree such as 'C(N,C(O))'; got {name!r}.")
    return roots[0]


# -------------------------------------------------------------------- molecules


def check_molecule(molecule: Any, graph: Graphs, argument: str) -> Any:
    """Return the RDKit molecule of a graph from a molecule or SMILES; its atoms must be the nodes, in their order.

    Hydrogens that a molecule does not list are added if the graph has them.
    """
    chem = _rdkit("Chem")
    checked = chem.MolFromSmiles(molecule) if isinstance(molecule, str) else molecule
    if not isinstance(checked, chem.Mol):
        raise ValueError(
            f"{argument} must be an RDKit molecule or a SMILES string that RDKit can read; got {molecule!r}."
        )
    if checked.GetNumAtoms() != graph.n_nodes:
        checked = chem.AddHs(checked)
    if checked.GetNumAtoms() != graph.n_nodes:
        n_heavy = sum(atom.GetAtomicNum() > 1 for atom in checked.GetAtoms())
        raise ValueError(
            f"{argument} must have the {graph.n_nodes} nodes of its graph as atoms; it has {n_heavy} atoms, and "
            f"{checked.GetNumAtoms()} with hydrogens."
        )
    bonds = {tuple(sorted((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()))) for bond in checked.GetBonds()}
    edges = {tuple(sorted(edge)) for edge in graph.edges().tolist()}
    if bonds != edges:
        raise ValueError(
            f"{argument} must have its atoms in the order of the graph's nodes: its bonds are not the graph's edges, such as "
            f"{min(bonds ^ edges)}."
        )
    if graph.labels is not None:
        table = chem.GetPeriodicTable()
        elements = {table.GetElementSymbol(number) for number in range(1, 119)}
        for node, (atom, code) in enumerate(zip(checked.GetAtoms(), graph.labels, strict=True)):
            label = graph.label_values[code]
            if label in elements and label != atom.GetSymbol():
                raise ValueError(
                    f"{argument}: its atom {node} is {atom.GetSymbol()}, but the node's label is {label!r}."
                )
    return checked


def draw_molecule(
    molecule: Any, values: Floats, canvas: str, size: tuple[int, int], numbered: tuple[int, ...] = ()
) -> Any:
    """Draw a molecule on a canvas, "SVG" (returns str) or "Cairo" (PNG, returns bytes); write the numbers of some atoms."""
    draw = _rdkit("Chem.Draw.rdMolDraw2D")
    drawer = getattr(draw, f"MolDraw2D{canvas}")(*size)
    options = drawer.drawOptions()
    options.useBWAtomPalette()  # colors show contributions
    options.fillHighlights = True
    options.highlightRadius = 0.42
    options.fixedBondLength = size[0] / 8  # at most: a molecule of few atoms does not fill the picture
    limit = float(np.abs(values).max(initial=0.0))
    colors = contribution_colors(values, MOLECULE_LIMIT * limit)
    colored = np.flatnonzero(np.abs(values) > 0.02 * limit).tolist()
    prepared = draw.PrepareMolForDrawing(molecule, kekulize=True, addChiralHs=False)
    for atom in numbered:
        prepared.GetAtomWithIdx(atom).SetProp("atomNote", str(atom))
    drawer.DrawMolecule(
        prepared,
        highlightAtoms=colored,
        highlightBonds=[],
        highlightAtomColors={atom: tuple(colors[atom].tolist()) for atom in colored},
    )
    drawer.FinishDrawing()
    return drawer.GetDrawingText()


def _rdkit(module: str) -> Any:
    return optional_module(f"rdkit.{module}", "Pictures of molecules")
