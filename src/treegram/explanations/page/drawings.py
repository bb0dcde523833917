"""Small SVG pictures of graphs and trees for a page: text stays text, and every node says what it is."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np

from treegram._core.html import Markup, element, join
from treegram._core.types import Floats
from treegram.explanations.plots.colors import MOLECULE_LIMIT, is_dark, share_colors
from treegram.explanations.plots.molecules import molecule_svg
from treegram.explanations.plots.tree import tree_places
from treegram.graphs import Graphs
from treegram.graphs.layout import node_places

__all__ = ["draw_graph", "draw_molecule", "draw_scale", "draw_tree", "has_labels", "node_label", "signed"]

MOST_NODES = 400  # of a graph that is drawn
_MOST_NAMES = 80  # nodes of a graph whose labels are still written
_MOST_TREE = 24  # nodes of a tree that is drawn
_SPAN = 100.0  # units of a picture's longer side


def signed(value: float, digits: int = 3) -> str:
    """A number with its sign: ``+0.12``."""
    return f"{value:+.{digits}g}".replace("-", "\N{MINUS SIGN}")


def node_label(graph: Graphs, node: int) -> str:
    """The label of a node; nothing where there are none, or all are the same."""
    return "" if graph.labels is None or not has_labels(graph) else str(graph.label_values[graph.labels[node]])


def has_labels(graph: Graphs) -> bool:
    """Whether nodes of the graph's collection have labels that differ."""
    return graph.labels is not None and len(graph.label_values) > 1


def draw_graph(
    graph: Graphs, shares: Floats | None, description: str, *, numbered: tuple[int, ...] = (), size: float = 1.0
) -> Markup:
    """A graph with its nodes colored by their shares; ``numbered`` nodes have their numbers beside them.

    ``size`` is that of nodes: larger for a small picture.
    """
    if not graph.n_nodes or graph.n_nodes > MOST_NODES:
        words = "no nodes" if not graph.n_nodes else f"{graph.n_nodes:,} nodes, too many to be drawn"
        return element("p", f"This graph has {words}.", class_="undrawn")
    places = _fitted(node_places(graph, "auto"))
    radius = size * min(4.0, 16.0 / np.sqrt(graph.n_nodes))
    values = np.zeros(graph.n_nodes) if shares is None else shares
    limit = float(np.abs(values).max(initial=0.0))
    fills = [_hex(color) for color in share_colors(values, limit)]
    lines = [_edge(places[v], places[w], radius, is_arrow=graph.directed) for v, w in graph.edges().tolist()]
    is_named = has_labels(graph) and graph.n_nodes <= _MOST_NAMES
    nodes = []
    for node, ((x, y), value) in enumerate(zip(places, values.tolist(), strict=True)):
        label = node_label(graph, node)
        said = f"node {node}" + (f", {label}" if label else "") + ("" if shares is None else f": {signed(value)}")
        parts = [
            element("title", said),
            element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=f"{radius:.2f}", fill=fills[node], class_="node"),
        ]
        if is_named:
            style = f"font-size:{radius * min(1.15, 2.4 / max(len(label), 1)):.2f}px"
            color = "light" if is_dark(value, limit) else "dark"
            parts.append(element("text", label, x=f"{x:.1f}", y=f"{y:.1f}", class_=f"in {color}", style=style))
        if node in numbered:
            style = f"font-size:{max(0.9 * radius, 2.6):.2f}px"
            away = f"{x + 1.1 * radius:.1f}", f"{y - 0.9 * radius:.1f}"
            parts.append(element("text", str(node), x=away[0], y=away[1], class_="number", style=style))
        nodes.append(element("g", *parts))
    low, high = places.min(axis=0) - 2.2 * radius - 1, places.max(axis=0) + 2.2 * radius + 1
    if graph.n_nodes == 1:  # which would fill the picture
        low[0], high[0] = -0.5 * _SPAN, 0.5 * _SPAN
    return _svg(f"{low[0]:.1f} {low[1]:.1f} {high[0] - low[0]:.1f} {high[1] - low[1]:.1f}", description, *lines, *nodes)


def _fitted(places: Floats) -> Floats:
    """Wide rather than high, the longer side as long as a picture, y downwards."""
    centered = places - places.mean(axis=0)
    spans = np.ptp(centered, axis=0)
    if spans[1] > spans[0]:
        centered = centered[:, ::-1]
    return centered * [1.0, -1.0] * (_SPAN / (spans.max() or _SPAN))


def _edge(start: Floats, end: Floats, radius: float, *, is_arrow: bool) -> Markup:
    points = {"x1": start[0], "y1": start[1], "x2": end[0], "y2": end[1]}
    line = element("line", **{name: f"{value:.1f}" for name, value in points.items()}, class_="edge")
    if not is_arrow or not np.linalg.norm(end - start):
        return line
    along = (end - start) / np.linalg.norm(end - start)
    across = np.array([-along[1], along[0]])
    tip = end - radius * along
    corners = [tip, tip - radius * along + 0.5 * radius * across, tip - radius * along - 0.5 * radius * across]
    head = element("polygon", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in corners), class_="arrow")
    return join(line, head)


def draw_scale(limit: float, *, is_molecule: bool) -> Markup:
    """The colors from the strongest share against to the strongest for, as the picture has them."""
    steps = np.linspace(-1.0, 1.0, 21)
    stops = [
        element("i", style=f"background:{_hex(color)}")
        for color in share_colors(steps, MOLECULE_LIMIT if is_molecule else 1.0)
    ]
    return element(
        "div",
        element("span", signed(-limit)),
        element("span", *stops, class_="colors", aria_hidden="true"),
        element("span", signed(limit)),
        class_="scale",
    )


def draw_tree(name: str) -> Markup | None:
    """A tree or color by its name, as in ``plot_tree``; None where it is no tree, or too large."""
    try:
        places, edges = tree_places(name)
    except ValueError:
        return None
    if len(places) > _MOST_TREE or len(places) < 2:
        return None
    widths = [max(7.0, 3.4 * len(label) + 3) for label, _, _ in places]
    step = max(widths) + 2
    lines = [
        element(
            "line", x1=f"{a * step:.1f}", y1=f"{-b * 12:.1f}", x2=f"{c * step:.1f}", y2=f"{-d * 12:.1f}", class_="edge"
        )
        for (a, b), (c, d), _ in edges
    ]
    boxes = []
    for (label, x, y), width in zip(places, widths, strict=True):
        box = {"x": x * step - width / 2, "y": -y * 12 - 3.6, "width": width, "height": 7.2}
        shape = element("rect", **{key: f"{value:.1f}" for key, value in box.items()}, rx="2", class_="leaf")
        text = element("text", label, x=f"{x * step:.1f}", y=f"{-y * 12:.1f}", class_="in", style="font-size:5px")
        boxes.append(join(shape, text))
    for (a, b), (c, d), label in edges:
        if label:
            place = {"x": f"{0.5 * (a + c) * step + 2:.1f}", "y": f"{-6 * (b + d):.1f}"}
            boxes.append(element("text", label, **place, class_="number", style="font-size:4px"))
    wide = (max(x for _, x, _ in places) + 1) * step
    high = 12 * (1 - min(y for _, _, y in places))
    picture = _svg(f"{-step / 2:.1f} -6 {wide:.1f} {high:.1f}", f"The tree {name}", *lines, *boxes)
    return element("div", picture, class_="tree", style=f"width:{min(0.19 * wide, 22):.1f}em")


def draw_molecule(molecule: Any, shares: Floats, description: str, numbered: tuple[int, ...]) -> Markup:
    """A molecule as RDKit draws it, with the numbers of some atoms."""
    root = ElementTree.fromstring(molecule_svg(molecule, shares, numbered))
    for one in root.iter():
        one.tag = one.tag.rpartition("}")[2]
        one.attrib = {key.rpartition("}")[2]: value for key, value in one.attrib.items()}
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": description, "class": "molecule"}
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _svg(box: str, description: str, *content: str) -> Markup:
    text = element("svg", *content, viewBox=box, role="img", aria_label=description)
    return Markup(re.sub(r"></(circle|line|rect|polygon)>", "/>", text))


def _hex(color: Floats) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in color.tolist())
