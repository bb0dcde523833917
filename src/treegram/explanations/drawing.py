"""Pictures that plots and pages share: colors of contributions, graphs, trees by their names, and molecules by RDKit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from string import ascii_letters
from typing import Any
from xml.etree import ElementTree

import numpy as np
from markupsafe import Markup

from treegram._core.html import render
from treegram._core.optional import optional_module
from treegram._core.types import Floats
from treegram.exceptions import ParameterError
from treegram.explanations.words import Tree, label_words, parse_tree, split_edge
from treegram.graphs import Graphs
from treegram.graphs.drawing import residues_of

MOLECULE_LIMIT = 1.4  # times the largest contribution: full colors would hide RDKit's black text
_MOST_NUMBERS = 12  # values of a vector that are listed
_MOST_TREE = 24  # nodes; larger trees are not drawn
_MOLECULE_SIZE = (400, 300)
_FOR, _AGAINST = np.array([0.698, 0.094, 0.169]), np.array([0.129, 0.4, 0.675])  # red, blue
_CODES = "ALA A ARG R ASN N ASP D CYS C GLN Q GLU E GLY G HIS H ILE I LEU L LYS K MET M MSE M PHE F PRO P SER S THR T TRP W TYR Y VAL V"
LETTERS = dict(zip(_CODES.split()[::2], _CODES.split()[1::2], strict=True))  # of amino acids


# -------------------------------------------------------------------- colors and words


def contribution_colors(values: Floats, limit: float) -> Floats:
    """Return an RGB color from 0 to 1 for each value, (n_values, 3): red above 0, blue below, full color at ``limit``."""
    strengths = np.clip(np.abs(values) / (limit or 1.0), 0.0, 1.0)[:, None]
    return 1.0 - strengths + strengths * np.where((values > 0)[:, None], _FOR, _AGAINST)


def minus(number: str) -> str:
    """Return a formatted number with minus signs instead of hyphens."""
    return number.replace("-", "\N{MINUS SIGN}")


def signed(value: float, digits: int = 3) -> str:
    """Format a number with its sign: ``+0.12``."""
    return minus(f"{value:+.{digits}g}") if value else "0"


def node_words(graph: Graphs, node: int, noun: str = "node") -> tuple[str, str]:
    """Return the name of a node, and its label in words unless it is a part of the name, or the same for all nodes."""
    name = f"{noun} {node}" if graph.node_names is None else str(graph.node_names[node])
    if graph.labels is None or len(graph.label_values) < 2:
        return name, ""
    label = label_words(graph.label_values[graph.labels[node]]).removeprefix("node labeled ")
    return name, "" if graph.node_names is not None and label in name.split() else label


def describe_nodes(graph: Graphs, values: Floats, noun: str = "node") -> list[str]:
    """Return the name, the label, the vector and the contribution of each node, one per line."""
    names = graph.attribute_names or [f"column {column}" for column in range(graph.n_attributes)]
    texts = []
    for node, value in enumerate(values.tolist()):
        name, label = node_words(graph, node, noun)
        lines = [name, f"label: {label}"] if label else [name]
        vector = [] if graph.attributes is None else graph.attributes[node, :_MOST_NUMBERS].tolist()
        lines += [f"{name}: {minus(f'{number:.4g}')}" for name, number in zip(names, vector, strict=False)]
        lines += [f"and {len(names) - _MOST_NUMBERS} more numbers"] if len(names) > _MOST_NUMBERS else []
        texts.append("\n".join([*lines, f"contribution: {signed(value)}"]))
    return texts


def strengths_of(values: Floats) -> Floats:
    """Divide contributions by the largest."""
    return values / (float(np.abs(values).max(initial=0.0)) or 1.0)


def sequence_strip(graph: Graphs) -> list[tuple[str, list[tuple[str, list[tuple[int, str]]]]]]:
    """Return the chains of a protein with residues grouped by tens: the number of the first, and nodes with one-letter codes."""
    strip = []
    for chain, members in groupby(enumerate(residues_of(graph)), key=lambda member: member[1][0]):
        residues = [(node, number, LETTERS.get(name, "X")) for node, (_, number, name) in members]
        groups = [
            list(group)
            for _, group in groupby(residues, key=lambda residue: (int(residue[1].rstrip(ascii_letters)) - 1) // 10)
        ]
        strip.append((chain, [(group[0][1], [(node, letter) for node, _, letter in group]) for group in groups]))
    return strip


# -------------------------------------------------------------------- trees


def tree_layout(
    name: str,
) -> tuple[list[tuple[str, float, float]], list[tuple[tuple[float, float], tuple[float, float], str]]]:
    """Return the nodes of a named tree as (label, x, y), with the root at y = 0, and its edges as (upper, lower, label)."""
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
            edges.append(((x, -depth), (child_x, -depth - 1), split_edge(child[0])[0]))
        nodes.append((split_edge(label)[1] if depth else label, x, -depth))
        return x, max(right, left + 1.0)

    place(parse_tree(name), 0, 0.0)
    return nodes, edges


def draw_tree(name: str) -> Markup | None:
    """Return a tree or WL color as SVG, by its name; None if it is not a tree, or too large."""
    try:
        nodes, edges = tree_layout(name)
    except ValueError:
        return None
    if not 2 <= len(nodes) <= _MOST_TREE:
        return None
    shown = [label.partition("/")[0] or label for label, _, _ in nodes]  # of a tuple its first part
    boxes = [
        (text, x, -y, max(7.0, 3.4 * len(text) + 3), label) for text, (label, x, y) in zip(shown, nodes, strict=True)
    ]
    return Markup(render("treegram.explanations", "tree.svg", name=name, boxes=boxes, edges=edges))


# -------------------------------------------------------------------- molecules


def read_molecule(name: str | None, graph: Graphs) -> Any:
    """Return the RDKit molecule of a graph whose name is its SMILES, or None."""
    with _rdkit("rdBase").BlockLogs():
        try:
            return None if name is None else check_molecule(name, graph, "name")
        except ValueError:
            return None


def check_molecule(molecule: Any, graph: Graphs, argument: str) -> Any:
    """Return the RDKit molecule of a graph from a molecule or SMILES; its atoms must be the nodes, in the same order.

    Hydrogens are added if the graph has more nodes, and removed if it has fewer.
    """
    chem = _rdkit("Chem")
    checked = chem.MolFromSmiles(molecule) if isinstance(molecule, str) else molecule
    if not isinstance(checked, chem.Mol):
        raise ValueError(
            f"{argument} must be an RDKit molecule or a SMILES string that RDKit can read; got {molecule!r}."
        )
    if checked.GetNumAtoms() != graph.n_nodes:
        checked = chem.AddHs(checked) if checked.GetNumAtoms() < graph.n_nodes else chem.RemoveHs(checked)
    bonds = {tuple(sorted((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()))) for bond in checked.GetBonds()}
    if checked.GetNumAtoms() != graph.n_nodes or bonds != {tuple(sorted(edge)) for edge in graph.edges().tolist()}:
        raise ValueError(
            f"{argument} must have the nodes of its graph as atoms, in their order, and its edges as bonds; got {molecule!r}."
        )
    if graph.labels is not None:
        table = chem.GetPeriodicTable()
        elements = {table.GetElementSymbol(number) for number in range(1, 119)}
        for atom, code in zip(checked.GetAtoms(), graph.labels, strict=True):
            label, symbol = graph.label_values[code], atom.GetSymbol()
            if label in elements and label != symbol:
                raise ValueError(
                    f"{argument}: its atom {atom.GetIdx()} is {symbol}, but the node's label is {label!r}."
                )
    return checked


def check_molecules(molecules: Sequence[Any], graphs: Graphs) -> list[Any]:
    """Return the RDKit molecule of each graph."""
    if len(molecules) != len(graphs):
        raise ParameterError(f"molecules must have one entry per graph, {len(graphs)}; it has {len(molecules)}.")
    return [check_molecule(molecule, graphs[i], f"molecules[{i}]") for i, molecule in enumerate(molecules)]


def molecule_picture(
    molecule: Any, graph: Graphs, values: Floats | None, description: str, marked: tuple[int, ...] = ()
) -> Markup:
    """Draw a molecule with RDKit, in the color of text; with values, its atoms get colors and descriptions."""
    text = draw_molecule(molecule, values, "SVG", _MOLECULE_SIZE, marked)
    root = ElementTree.fromstring(text.replace("#000000", "currentColor"))
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        element.attrib = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
    merged: dict[Any, Any] = {}  # lines, and letters: one path instead of dozens
    for path in root.findall("path"):
        if path.get("class") != "note" and path.get("style", "fill:none").startswith("fill:none"):
            path.attrib.pop("class", None)
            first = merged.setdefault(path.get("style"), path)
            if first is not path:
                first.attrib["d"] += path.attrib["d"]
                root.remove(path)
    if values is not None:
        titles, strengths = describe_nodes(graph, values, "atom"), strengths_of(values)
        for ellipse in root.iter("ellipse"):
            atom = int(ellipse.attrib["class"].removeprefix("atom-"))
            side = "for" if strengths[atom] > 0 else "against"
            style = f"--s:{100 * abs(strengths[atom]):.0f}%"
            ellipse.attrib |= {"class": f"node {side}", "style": style, "data-node": str(atom)}
            ElementTree.SubElement(ellipse, "title").text = titles[atom]
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": description, "class": "molecule"}
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def draw_molecule(
    molecule: Any, values: Floats | None, canvas: str, size: tuple[int, int], marked: tuple[int, ...] = ()
) -> Any:
    """Draw a molecule on a canvas, "SVG" (returns str) or "Cairo" (returns PNG bytes); ``marked`` atoms show their numbers."""
    draw = _rdkit("Chem.Draw.rdMolDraw2D")
    drawer = getattr(draw, f"MolDraw2D{canvas}")(*size)
    options = drawer.drawOptions()
    options.useBWAtomPalette()  # colors show contributions
    options.clearBackground = canvas != "SVG"
    options.fillHighlights = True
    options.highlightRadius = 0.42
    options.fixedBondLength = size[0] / 7  # at most: a small molecule does not fill the picture
    values = np.zeros(0) if values is None else values
    colors = contribution_colors(values, MOLECULE_LIMIT * float(np.abs(values).max(initial=0.0)))
    prepared = draw.PrepareMolForDrawing(molecule, kekulize=True, addChiralHs=False)
    for atom in marked:
        prepared.GetAtomWithIdx(atom).SetProp("atomNote", str(atom))
    drawer.DrawMolecule(
        prepared,
        highlightAtoms=list(range(len(values))),
        highlightBonds=[],
        highlightAtomColors={atom: tuple(color) for atom, color in enumerate(colors.tolist())},
    )
    drawer.FinishDrawing()
    return drawer.GetDrawingText()


def _rdkit(module: str) -> Any:
    return optional_module(f"rdkit.{module}", "Pictures of molecules")
