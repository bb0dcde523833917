"""SVG pictures of graphs, trees and molecules on a page: numbers for the macros of ``templates/pictures.html``."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import numpy as np
from markupsafe import Markup

from treegram._core.types import Floats
from treegram.explanations.drawing import (
    MOLECULE_LIMIT,
    MOST_LABELED,
    contribution_colors,
    draw_molecule,
    has_labels,
    is_dark,
    tree_layout,
)
from treegram.graphs import Graphs
from treegram.graphs.drawing import node_places

__all__ = ["color_stops", "graph_picture", "molecule_picture", "node_label", "signed", "tree_picture"]

MOST_NODES = 400  # of a graph that is drawn
_MOST_TREE = 24  # nodes of a tree that is drawn
_SPAN = 100.0  # units of a picture's longer side
_MOLECULE_SIZE = (460, 340)


def signed(value: float, digits: int = 3) -> str:
    """Format a number with its sign: ``+0.12``."""
    return f"{value:+.{digits}g}".replace("-", "\N{MINUS SIGN}")


def node_label(graph: Graphs, node: int) -> str:
    """Return the label of a node, or "" if there are none or all are the same."""
    return str(graph.label_values[graph.labels[node]]) if graph.labels is not None and has_labels(graph) else ""


def graph_picture(
    graph: Graphs, values: Floats | None, description: str, *, numbered: tuple[int, ...] = (), size: float = 1.0
) -> dict[str, Any]:
    """Lay out a graph with its nodes colored by values; ``numbered`` nodes show their numbers, ``size`` scales the nodes."""
    if not graph.n_nodes or graph.n_nodes > MOST_NODES:
        return {"undrawn": f"{graph.n_nodes:,} nodes, too many to draw" if graph.n_nodes else "no nodes"}
    positions = _fit(node_places(graph, "auto"))
    radius = size * min(4.0, 16.0 / np.sqrt(graph.n_nodes))
    strengths = np.zeros(graph.n_nodes) if values is None else values
    limit = float(np.abs(strengths).max(initial=0.0))
    nodes = []
    for node, (position, value, color) in enumerate(
        zip(positions, strengths.tolist(), contribution_colors(strengths, limit), strict=True)
    ):
        label = node_label(graph, node)
        title = f"node {node}" + (f", {label}" if label else "") + ("" if values is None else f": {signed(value)}")
        nodes.append(
            {
                "title": title,
                "position": _rounded(*position),
                "fill": _hex(color),
                "label": label if graph.n_nodes <= MOST_LABELED else "",
                "label_size": f"{radius * min(1.15, 2.4 / max(len(label), 1)):.2f}",
                "shade": "light" if is_dark(value, limit) else "dark",
                "number": str(node) if node in numbered else "",
                "number_position": _rounded(position[0] + 1.1 * radius, position[1] - 0.9 * radius),
            }
        )
    ends = positions[graph.edges()]
    low, high = positions.min(axis=0) - 2.2 * radius - 1, positions.max(axis=0) + 2.2 * radius + 1
    if graph.n_nodes == 1:  # which would fill the picture
        low[0], high[0] = -0.5 * _SPAN, 0.5 * _SPAN
    return {
        "description": description,
        "box": " ".join(_rounded(*low, *(high - low))),
        "radius": f"{radius:.2f}",
        "number_size": f"{max(0.9 * radius, 2.6):.2f}",
        "nodes": nodes,
        "edges": [_rounded(*edge.ravel()) for edge in ends],
        "arrows": [_arrow(start, end, radius) for start, end in ends if np.any(start != end)] if graph.directed else [],
    }


def _fit(positions: Floats) -> Floats:
    """Make the picture wide rather than high, scale its longer side, and turn y downwards."""
    centered = positions - positions.mean(axis=0)
    spans = np.ptp(centered, axis=0)
    if spans[1] > spans[0]:
        centered = centered[:, ::-1]
    return centered * [1.0, -1.0] * (_SPAN / (spans.max() or _SPAN))


def _arrow(start: Floats, end: Floats, radius: float) -> str:
    """Return the corners of an arrowhead at the rim of the end node."""
    along = radius * (end - start) / np.linalg.norm(end - start)
    across = 0.5 * np.array([-along[1], along[0]])
    tip = end - along
    return " ".join(",".join(_rounded(*corner)) for corner in (tip, tip - along + across, tip - along - across))


def tree_picture(name: str) -> dict[str, Any] | None:
    """Lay out a tree or WL color by its name, as in ``plot_tree``; None if it is not a tree, or too large."""
    try:
        nodes, edges = tree_layout(name)
    except ValueError:
        return None
    if not 2 <= len(nodes) <= _MOST_TREE:
        return None
    widths = [max(7.0, 3.4 * len(label) + 3) for label, _, _ in nodes]
    step = max(widths) + 2
    width = (max(x for _, x, _ in nodes) + 1) * step
    return {
        "description": f"The tree {name}",
        "box": f"{-step / 2:.1f} -6 {width:.1f} {12 * (1 - min(y for _, _, y in nodes)):.1f}",
        "width": f"{min(0.19 * width, 22):.1f}",
        "edges": [_rounded(a * step, -b * 12, c * step, -d * 12) for (a, b), (c, d), _ in edges],
        "edge_labels": [
            (label, *_rounded(0.5 * (a + c) * step + 2, -6 * (b + d))) for (a, b), (c, d), label in edges if label
        ],
        "nodes": [
            (label, *_rounded(x * step, -y * 12, x * step - wide / 2, -y * 12 - 3.6, wide))
            for (label, x, y), wide in zip(nodes, widths, strict=True)
        ],
    }


def molecule_picture(molecule: Any, values: Floats, description: str, numbered: tuple[int, ...]) -> dict[str, Any]:
    """Draw a molecule with RDKit."""
    root = ElementTree.fromstring(draw_molecule(molecule, values, "SVG", _MOLECULE_SIZE, numbered))
    for one in root.iter():
        one.tag = one.tag.rpartition("}")[2]
        one.attrib = {key.rpartition("}")[2]: value for key, value in one.attrib.items()}
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": description, "class": "molecule"}
    return {"svg": Markup(ElementTree.tostring(root, encoding="unicode"))}


def color_stops(*, is_molecule: bool) -> list[str]:
    """Return the colors from the strongest negative to the strongest positive contribution, as the picture has them."""
    return [
        _hex(color) for color in contribution_colors(np.linspace(-1, 1, 21), MOLECULE_LIMIT if is_molecule else 1.0)
    ]


def _rounded(*numbers: float) -> list[str]:
    return [f"{number:.1f}" for number in numbers]


def _hex(color: Floats) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in color.tolist())
