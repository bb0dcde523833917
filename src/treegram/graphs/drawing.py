"""Draw graphs as SVG: positions of the nodes, pictures, and the view of a collection in notebooks."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from scipy.sparse.csgraph import shortest_path
from scipy.spatial import cKDTree
from scipy.spatial.distance import pdist, squareform

from treegram._core.html import render
from treegram._core.text import counted, label_text
from treegram._core.types import Floats, Masks
from treegram.graphs import Graphs
from treegram.graphs.check import COLUMN_NAMES

MOST_NODES = 1500  # larger graphs are not drawn
MOST_HOPS = 400  # nodes of a graph placed by hops, in time cubic in their number
MOST_LABELED = 80  # nodes; the labels of larger graphs are not written
_STEPS = 200
_STILL = 0.002  # hops that a node moves in a step: below this, the layout is done
_GAP = 1.5  # hops between components, in addition to half the largest diameter
# Attributes are coordinates if adjacent nodes are closer than this fraction of the mean distance of all pairs.
_NEAR = 0.6
_LONG = 40  # hops from the first node of a chain to the farthest: beyond this, it would be a thin line
_SPAN = 100.0  # length of a picture's longer side
_MARK = 4.5  # size of the names of chains
_MOST_MOVES = 40  # of chains away from each other
_PACKAGE = "treegram.graphs"
_MOST_PICTURES = 4  # in notebooks
_MOST_SHOWN = 60  # nodes of a graph that is drawn in notebooks
_COLORS = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#eeca3b", "#9d755d")


# -------------------------------------------------------------------- positions


def node_positions(graph: Graphs) -> Floats:
    """Return a position for each node, (n_nodes, 2); nodes that would overlap are moved apart."""
    layout = _choose_layout(graph)
    if layout == "hops":
        return _separate(hop_layout(graph))
    if layout == "rows":
        return _separate(_row_layout(graph.n_nodes))
    return _separate(_project(_coordinates(graph), [chain for chain, _, _ in residues_of(graph)]))


def describe_positions(graph: Graphs) -> str:
    """Return a sentence about the positions; "" if the edges alone determine them, or the graph is not drawn."""
    layout = _choose_layout(graph)
    if layout == "hops" or graph.n_nodes > MOST_NODES:
        return ""
    if layout == "rows":
        return "Nodes are in rows, in their order in the graph."
    if _coordinates(graph).shape[1] == 2:
        return "Nodes are at their coordinates."
    if len({chain for chain, _, _ in residues_of(graph)}) > 1:
        return "Residues are at their coordinates, seen from a side that shows the chains next to each other, and the chains moved apart."
    return (
        "Nodes are at their coordinates, projected to their first two principal components and moved apart where they "
        "overlap."
    )


def _choose_layout(graph: Graphs) -> str:
    """Return "attributes" for nodes with coordinates, "rows" for a long chain, and otherwise "hops"."""
    if _has_coordinates(graph):
        return "attributes"
    return "rows" if _is_long_chain(graph) else "hops"


def _coordinates(graph: Graphs) -> Floats:
    """Return the positions, or else the attributes named x, y and z; of attributes without names, all."""
    if graph.positions is not None:
        return graph.positions
    if graph.attributes is None or graph.attribute_names is None:
        return np.zeros((graph.n_nodes, 0)) if graph.attributes is None else graph.attributes
    names = [name.lower() for name in graph.attribute_names]
    return graph.attributes[:, [names.index(axis) for axis in "xyz" if axis in names]]


def _has_coordinates(graph: Graphs) -> bool:
    """Return whether there are two or three coordinates and adjacent nodes are close, as in molecules and scenes."""
    places = _coordinates(graph)
    if places.shape[1] not in (2, 3) or not len(graph.indices) or graph.n_nodes < 3:
        return False
    ends = places[graph.edges()]
    adjacent = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1).mean()
    return bool(adjacent < _NEAR * pdist(places).mean())


def _is_long_chain(graph: Graphs) -> bool:
    """Return whether nearly all nodes are adjacent to the next one, and the ends are far apart."""
    n, edges = graph.n_nodes, graph.edges()
    if n <= _LONG or np.count_nonzero(np.abs(edges[:, 0] - edges[:, 1]) == 1) < 0.9 * (n - 1):
        return False
    hops = shortest_path(graph._adjacency(), directed=False, unweighted=True, indices=0)
    return bool(hops[np.isfinite(hops)].max() > _LONG)


def _row_layout(n_nodes: int) -> Floats:
    """Place nodes in order in rows that alternate between left to right and right to left, the first on top."""
    width = math.ceil(math.sqrt(2 * n_nodes)) or 1
    row, column = np.divmod(np.arange(n_nodes), width)
    return np.column_stack([np.where(row % 2, width - 1 - column, column), -row]).astype(np.float64)


def _project(coordinates: Floats, chains: Sequence[str]) -> Floats:
    """Return two coordinates as they are; of more, those that show chains apart, if there are several, and principal components."""
    if coordinates.shape[1] == 2:
        return coordinates
    centered = coordinates - coordinates.mean(axis=0)
    numbers = np.unique(chains, return_inverse=True)[1] if chains else np.zeros(len(centered), np.int64)
    centers = np.stack([centered[numbers == number].mean(axis=0) for number in range(numbers.max() + 1)])
    apart = np.linalg.svd(centers - centers.mean(axis=0))[2][: min(2, len(centers) - 1)]
    within = np.linalg.svd(centered - centered @ apart.T @ apart, full_matrices=False)[2]
    axes = np.concatenate([apart, within])[:2].T
    positions, moves = centered @ axes, (centers @ axes)[numbers]
    gap = 0.1 * float(np.ptp(positions, axis=0).max())
    for _ in range(_MOST_MOVES if len(centers) > 1 else 0):
        if all(_distance(positions, numbers == number) >= gap for number in range(len(centers))):
            break
        positions = positions + 0.1 * moves
    return positions


def _distance(positions: Floats, is_inside: Masks) -> float:
    """Return the smallest distance between the nodes of a chain and all others."""
    return float(cKDTree(positions[~is_inside]).query(positions[is_inside])[0].min())


def _node_radius(n_nodes: int) -> float:
    """Return the largest radius of a node in a drawing whose longer side is 1."""
    return min(0.04, 0.16 / math.sqrt(max(n_nodes, 1)))


def _separate(positions: Floats) -> Floats:
    """Push apart nodes that would overlap when drawn."""
    if len(positions) < 2:
        return positions
    distance = 2.2 * _node_radius(len(positions)) * (float(np.ptp(positions, axis=0).max()) or 1.0)
    for _ in range(_STEPS):
        first, second = cKDTree(positions).query_pairs(distance, output_type="ndarray").T
        if not len(first):
            break
        gaps = positions[second] - positions[first]
        lengths = np.linalg.norm(gaps, axis=1)
        apart = np.column_stack([np.cos(second), np.sin(second)])  # for nodes at the same place
        is_apart = lengths > 1e-6 * distance
        apart[is_apart] = gaps[is_apart] / lengths[is_apart, None]
        moves = 0.5 * (1.02 * distance - lengths)[:, None] * apart
        positions = positions.copy()
        np.add.at(positions, first, -moves)
        np.add.at(positions, second, moves)
    return positions


def hop_layout(graph: Graphs) -> Floats:
    """Return positions (n_nodes, 2) that minimize the stress sum (|p_v - p_w| - d(v, w))^2 / d(v, w)^2 over pairs of nodes.

    Uses majorization, starting from classical scaling; deterministic.
    """
    n = graph.n_nodes
    if n < 3:
        return np.column_stack([np.arange(n, dtype=np.float64), np.zeros(n)])
    hops = shortest_path(graph._adjacency(), directed=False, unweighted=True)
    joined = np.isfinite(hops)
    hops = np.where(joined, hops, 0.5 * hops[joined].max() + _GAP)
    weights = 1.0 / np.where(hops > 0, hops, 1.0) ** 2
    np.fill_diagonal(weights, 0.0)
    inverse = np.linalg.inv(np.diag(weights.sum(axis=1)) - weights + 1.0 / n)  # the pseudoinverse, up to a translation
    # Nodes with equal distances to all others would start at the same place and never separate.
    shifts = np.column_stack([np.sin(7.0 * np.arange(n)), np.cos(11.0 * np.arange(n))])
    positions = scale_classically(hops)[0] + 0.05 * shifts
    for _ in range(_STEPS):
        gaps = squareform(pdist(positions))
        pull = weights * hops / np.where(gaps > 1e-9, gaps, np.inf)
        before, positions = positions, inverse @ (pull.sum(axis=1)[:, None] * positions - pull @ positions)
        if np.abs(positions - before).max() < _STILL:
            break
    return positions


def scale_classically(distances: Floats) -> tuple[Floats, float]:
    """Return positions in the plane, (n, 2), and the share of the squared distances that they keep."""
    n = len(distances)
    if n < 2:
        return np.zeros((n, 2)), 1.0
    products = -0.5 * distances**2
    products -= products.mean(axis=0)
    products -= products.mean(axis=1)[:, None]
    sizes, vectors = np.linalg.eigh(products)
    sizes = np.maximum(sizes[::-1], 0.0)
    places = np.zeros((n, 2))
    n_axes = min(2, n)
    places[:, :n_axes] = vectors[:, ::-1][:, :n_axes] * np.sqrt(sizes[:n_axes])
    ends = places[np.abs(places).argmax(axis=0), [0, 1]]
    places *= np.where(ends < 0, -1.0, 1.0)  # eigenvectors have no sign
    return places, float(sizes[:2].sum() / (sizes.sum() or 1.0))


# -------------------------------------------------------------------- pictures


def node_label(graph: Graphs, node: int) -> str:
    """Return the label of a node, of a tuple its first part, or "" if there are none or all are the same."""
    if graph.labels is None or len(graph.label_values) < 2:
        return ""
    label = graph.label_values[graph.labels[node]]
    return str(label[0]) if isinstance(label, tuple) and label else label_text(label)


def node_name(graph: Graphs, node: int) -> str:
    """Return the name of a node, or its number."""
    return f"node {node}" if graph.node_names is None else str(graph.node_names[node])


def residues_of(graph: Graphs) -> list[tuple[str, str, str]]:
    """Return chain, number and name of each residue, from node names such as "A/141B CYS"; [] for other graphs."""
    names = map(str, () if graph.node_names is None else graph.node_names)
    matches = [re.fullmatch(r"(.*)/(-?\d+\w?) (\S+)", name) for name in names]
    return [(match[1], match[2], match[3]) for match in matches if match] if all(matches) else []


def draw_graph(
    graph: Graphs,
    description: str,
    *,
    titles: Sequence[str] | None = None,
    fills: Sequence[str] | None = None,
    strengths: Floats | None = None,
    size: float = 1.0,
) -> Markup:
    """Return a picture as SVG.

    Nodes show their title when hovered over (by default the label), and are filled with a color (by default white, or that of a
    strength from -1 to 1, by the stylesheet of pages); ``size`` scales them. Chains of residues are named.
    """
    n_nodes = graph.n_nodes
    if not n_nodes or n_nodes > (MOST_HOPS if _choose_layout(graph) == "hops" else MOST_NODES):
        reason = f"{n_nodes:,} nodes, too many to draw" if n_nodes else "no nodes"
        return Markup(render(_PACKAGE, "graph.svg", reason=reason))
    positions = _fit(node_positions(graph))
    radius = size * _SPAN * _node_radius(n_nodes)
    if n_nodes > 1:
        radius = min(radius, 0.48 * float(cKDTree(positions).query(positions, k=2)[0][:, 1].min()))
    labels = [node_label(graph, node) for node in range(n_nodes)]
    nodes = zip(
        positions,
        labels if n_nodes <= MOST_LABELED else [""] * n_nodes,
        [radius * min(1.15, 2.4 / max(len(label), 1)) for label in labels],
        titles or labels,
        fills or [""] * n_nodes,
        [None] * n_nodes if strengths is None else strengths.tolist(),
        strict=True,
    )
    edges, chains = graph.edges(), np.array([chain for chain, _, _ in residues_of(graph)])
    ends = positions[edges]
    is_contact = (np.abs(edges[:, 0] - edges[:, 1]) != 1) & (len(chains) > 0)
    marks = [(name, *_top(positions[chains == name], radius)) for name in np.unique(chains).tolist()]
    marks = marks if len(marks) > 1 else []
    low, high = positions.min(axis=0) - 2.2 * radius - 1, positions.max(axis=0) + 2.2 * radius + 1
    low[1] -= _MARK if marks else 0
    if n_nodes == 1:  # it would fill the picture
        low[0], high[0] = -0.5 * _SPAN, 0.5 * _SPAN
    picture = render(
        _PACKAGE,
        "graph.svg",
        reason="",
        description=description,
        box=[*low, *(high - low)],
        radius=radius,
        line=min(0.7, 0.22 * radius),
        nodes=nodes,
        edges=ends[~is_contact].reshape(-1, 4),
        contacts=ends[is_contact].reshape(-1, 4),
        arrows=[_arrow(start, end, radius) for start, end in ends if np.any(start != end)] if graph.directed else [],
        marks=marks,
        mark_size=_MARK,
    )
    return Markup(picture)


def _top(positions: Floats, radius: float) -> tuple[float, float]:
    """Return the middle of the upper rim of some nodes."""
    return float(positions[:, 0].mean()), float(positions[:, 1].min() - 2 * radius - 0.5 * _MARK)


def _fit(positions: Floats) -> Floats:
    """Make the picture wide rather than high, scale its longer side, and flip y."""
    centered = positions - positions.mean(axis=0)
    spans = np.ptp(centered, axis=0)
    if spans[1] > spans[0]:
        centered = centered[:, ::-1]
    return centered * [1.0, -1.0] * (_SPAN / (spans.max() or _SPAN))


def _arrow(start: Floats, end: Floats, radius: float) -> Floats:
    """Return the corners of an arrowhead at the rim of the end node, as x, y, x, y, x, y."""
    along = radius * (end - start) / np.linalg.norm(end - start)
    across = 0.5 * np.array([-along[1], along[0]])
    tip = end - along
    return np.concatenate([tip, tip - along + across, tip - along - across])


# -------------------------------------------------------------------- a collection in notebooks


def graphs_to_html(graphs: Graphs) -> str:
    """Return a table of the contents of a collection, and pictures of its first small graphs."""
    vectors = [
        (field.replace("_", " "), getattr(graphs, field).shape[1], getattr(graphs, names))
        for names, field in COLUMN_NAMES.items()
        if getattr(graphs, field) is not None
    ]
    targets = [] if graphs.targets is None or graphs.targets.ndim > 1 else graphs.targets.tolist()
    has_classes = graphs.targets is not None and graphs.targets.dtype.kind != "f"
    pictures = []
    for i in np.flatnonzero((graphs.sizes > 0) & (graphs.sizes <= _MOST_SHOWN))[:_MOST_PICTURES].tolist():
        name = f"graph {i}" if graphs.graph_names is None else graphs.graph_names[i]
        pictures.append((name, str(targets[i]) if targets else "", _draw_labels(graphs[i])))
    return render(
        _PACKAGE,
        "collection.html",
        graphs=graphs,
        vectors=vectors,
        classes=sorted(set(targets), key=str) if has_classes else [],
        pictures=pictures,
        counted=counted,
    )


def _draw_labels(graph: Graphs) -> Markup:
    """Draw a graph with its nodes colored by label."""
    codes = [0] * graph.n_nodes if graph.labels is None else graph.labels.tolist()
    labels = ["" if graph.labels is None else f": {label_text(graph.label_values[code])}" for code in codes]
    return draw_graph(
        graph,
        "",
        titles=[f"{node_name(graph, node)}{label}" for node, label in enumerate(labels)],
        fills=[_COLORS[code % len(_COLORS)] for code in codes],
        size=1.6,
    )
