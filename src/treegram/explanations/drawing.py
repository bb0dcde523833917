"""Pictures that plots and pages share: colors of contributions, graphs, trees by their names, and molecules by RDKit."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import Any
from xml.etree import ElementTree

import numpy as np
from markupsafe import Markup

from treegram._core.html import render
from treegram._core.optional import optional_module
from treegram._core.types import Floats
from treegram.graphs import Graphs
from treegram.graphs.drawing import draw_graph, node_label, node_name

MOLECULE_LIMIT = 1.4  # times the largest contribution: full colors would hide RDKit's black text
_MOST_NUMBERS = 12  # values of a vector that are listed
_MOST_TREE = 24  # nodes; larger trees are not drawn
_MOLECULE_SIZE = (460, 340)
_FOR, _AGAINST = np.array([0.698, 0.094, 0.169]), np.array([0.129, 0.4, 0.675])  # red, blue
_DARK = 0.55  # of the way from white to full color

Tree = tuple[str, list["Tree"]]  # label of the root, and the trees below it


# -------------------------------------------------------------------- colors and words


def contribution_colors(values: Floats, limit: float) -> Floats:
    """Return an RGB color from 0 to 1 for each value, (n_values, 3): red above 0, blue below, full color at ``limit``."""
    strengths = np.clip(np.abs(values) / (limit or 1.0), 0.0, 1.0)[:, None]
    colors: Floats = 1.0 - strengths + strengths * np.where((values > 0)[:, None], _FOR, _AGAINST)
    return colors


def hex_color(color: Floats) -> str:
    """Return a color in HTML notation."""
    return "#" + "".join(f"{round(255 * part):02x}" for part in color.tolist())


def minus(number: str) -> str:
    """Return a formatted number with minus signs instead of hyphens."""
    return number.replace("-", "\N{MINUS SIGN}")


def signed(value: float, digits: int = 3) -> str:
    """Format a number with its sign: ``+0.12``."""
    return minus(f"{value:+.{digits}g}") if value else "0"


def _describe_node(graph: Graphs, node: int, value: float) -> str:
    """Return the name, the label, the vector and the contribution of a node, one per line."""
    lines, label = [node_name(graph, node)], node_label(graph, node)
    lines += [f"label: {label}"] if label else []
    if graph.attributes is not None:
        vector = graph.attributes[node].tolist()
        names = graph.attribute_names or [f"column {column}" for column in range(len(vector))]
        lines += [f"{name}: {minus(f'{value:.4g}')}" for name, value in zip(names, vector, strict=True)][:_MOST_NUMBERS]
        lines += [f"and {len(vector) - _MOST_NUMBERS} more numbers"] if len(vector) > _MOST_NUMBERS else []
    return "\n".join([*lines, f"contribution: {signed(value)}"])


def draw_explained(graph: Graphs, values: Floats, description: str) -> Markup:
    """Draw a graph with its nodes colored by their contributions."""
    limit = float(np.abs(values).max(initial=0.0))
    return draw_graph(
        graph,
        description,
        titles=[_describe_node(graph, node, value) for node, value in enumerate(values.tolist())],
        fills=[hex_color(color) for color in contribution_colors(values, limit)],
        is_dark=(np.abs(values) > _DARK * limit).tolist(),
    )


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
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"|[(),]|[^"(),]+|"', name)  # quoted labels are one token

    def read_words() -> str:
        words = list(takewhile(lambda token: token not in "(),", tokens))
        del tokens[: len(words)]
        return "".join(words)

    def read_tree() -> Tree:
        label, children = read_words().strip(), []
        if tokens[:1] == ["("]:
            while tokens.pop(0) != ")":  # an opening parenthesis or a comma
                children.append(read_tree())
            label += read_words().rstrip()  # WLOA's number, such as " #2"
        return label, [child for child in children if child != ("", [])]

    try:
        root = read_tree()
    except IndexError:
        root = ("", [])
    if tokens or not root[0]:
        raise ValueError(f"name must be one tree such as 'C(N,C(O))'; got {name!r}.")
    return root


def draw_tree(name: str) -> Markup | None:
    """Return a tree or WL color as SVG, by its name; None if it is not a tree, or too large."""
    try:
        nodes, edges = tree_layout(name)
    except ValueError:
        return None
    if not 2 <= len(nodes) <= _MOST_TREE:
        return None
    boxes = [(label, x, -y, max(7.0, 3.4 * len(label) + 3)) for label, x, y in nodes]
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


def molecule_picture(
    molecule: Any, graph: Graphs, values: Floats | None, description: str, marked: tuple[int, ...] = ()
) -> Markup:
    """Draw a molecule with RDKit; with values, its atoms get descriptions."""
    strengths = np.zeros(graph.n_nodes) if values is None else values
    root = ElementTree.fromstring(draw_molecule(molecule, strengths, "SVG", _MOLECULE_SIZE, marked))
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        element.attrib = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
        atom_class = re.fullmatch(r"atom-(\d+)", element.attrib.get("class", ""))
        if element.tag == "ellipse" and atom_class and values is not None:
            atom = int(atom_class[1])
            element.attrib |= {"class": "node", "data-node": str(atom)}
            title = ElementTree.SubElement(element, "title")
            title.text = _describe_node(graph, atom, values[atom])
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": description, "class": "molecule"}
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def draw_molecule(
    molecule: Any, values: Floats, canvas: str, size: tuple[int, int], marked: tuple[int, ...] = ()
) -> Any:
    """Draw a molecule on a canvas, "SVG" (returns str) or "Cairo" (returns PNG bytes); ``marked`` atoms show their numbers."""
    draw = _rdkit("Chem.Draw.rdMolDraw2D")
    drawer = getattr(draw, f"MolDraw2D{canvas}")(*size)
    options = drawer.drawOptions()
    options.useBWAtomPalette()  # colors show contributions
    options.fillHighlights = True
    options.highlightRadius = 0.42
    options.fixedBondLength = size[0] / 8  # at most: a small molecule does not fill the picture
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
