"""Plots of graphs, explanations, trees and Gram matrices. matplotlib is imported when something is drawn."""

from __future__ import annotations

import io
from string import ascii_letters
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from treegram._core.optional import matplotlib_module, new_axes
from treegram._core.types import Floats, Ints
from treegram.exceptions import ParameterError
from treegram.explanations.contributions import Explanation
from treegram.explanations.drawing import (
    MOLECULE_LIMIT,
    check_molecule,
    contribution_colors,
    draw_molecule,
    signed,
    tree_layout,
)
from treegram.graphs import Graphs, as_graphs
from treegram.graphs.drawing import MOST_LABELED, node_label, node_positions, residues_of

__all__ = ["plot_explanation", "plot_gram", "plot_graph", "plot_tree"]

_MOLECULE_SIZE = (900, 700)  # pixels
_MOST_NAMED = 40  # classes in a plot of a Gram matrix: more names and lines would cover it
_COLOR_QUANTILES = (0.01, 0.99)  # of the values off the diagonal


def plot_graph(
    graphs: Any,
    index: int = 0,
    *,
    values: ArrayLike | None = None,
    layout: ArrayLike | None = None,
    ax: Any = None,
    title: str | None = None,
    colorbar: bool = True,
) -> Any:
    """Draw a graph, with its nodes colored by values if there are any.

    Labels are written on the nodes of small graphs, unless the collection has only one label.

    Parameters
    ----------
    graphs : Graphs or list of graphs
        The collection that contains the graph.
    index : int, default=0
        Index of the graph in the collection.
    values : array-like of shape (n_nodes,), optional
        One number for each node of the graph. Colors are centered at 0.
    layout : array-like of shape (n_nodes, 2), optional
        Positions of the nodes. By default, they are at their coordinates if they have two or three attributes that look
        like coordinates, or are named x, y and z, with neighbors close to each other; three are projected to their first
        two principal components. Otherwise, a long chain is drawn in rows, and in other graphs distances approximate the
        numbers of hops between nodes. Nodes that would overlap are moved apart.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new pyplot figure.
    title : str, optional
        Title of the plot.
    colorbar : bool, default=True
        Whether to add a color bar if there are values.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Examples
    --------
    >>> from treegram import Graphs, plot_graph
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2)]], labels=[["N", "C", "O"]])
    >>> ax = plot_graph(graphs, values=[0.5, -0.2, 0.0], title="A chain")
    >>> [text.get_text() for text in ax.texts]
    ['N', 'C', 'O']
    """
    graph = as_graphs(graphs)[index]
    positions = node_positions(graph) if layout is None else np.asarray(layout, dtype=np.float64)
    if positions.shape != (graph.n_nodes, 2):
        raise ValueError(
            f"layout must have two coordinates per node, shape ({graph.n_nodes}, 2); got shape {positions.shape}."
        )
    numbers = None if values is None else np.asarray(values, dtype=np.float64)
    if numbers is not None and numbers.shape != (graph.n_nodes,):
        raise ValueError(f"values must have one number per node, shape ({graph.n_nodes},); got shape {numbers.shape}.")
    ax = new_axes() if ax is None else ax
    if graph.n_nodes:
        low, high = positions.min(axis=0), positions.max(axis=0)
        margin = 0.15 * (float((high - low).max()) or 1.0)  # the same above a chain as next to it
        ax.set(xlim=(low[0] - margin, high[0] + margin), ylim=(low[1] - margin, high[1] + margin))
    else:
        ax.text(0.5, 0.5, "no nodes", ha="center", va="center", color="0.5", transform=ax.transAxes)
    _draw_edges(ax, graph, positions)
    _draw_nodes(ax, graph, positions, numbers)
    if numbers is not None and colorbar:
        _add_colorbar(ax, numbers, "value")
    ax.set_aspect("equal")
    ax.set_axis_off()
    if title is not None:
        ax.set_title(title)
    return ax


def plot_explanation(
    explanation: Explanation,
    index: int = 0,
    *,
    output: int | None = None,
    layout: ArrayLike | None = None,
    molecule: Any = None,
    sequence: bool = False,
    ax: Any = None,
    title: str | None = None,
    colorbar: bool = True,
) -> Any:
    """Draw an explained graph, with its nodes colored by their contributions to the decision.

    Red nodes favor what the title names first, blue nodes what it names second; white nodes do not matter.

    Parameters
    ----------
    explanation : Explanation
        The result of :func:`explain`.
    index : int, default=0
        Index of the graph in ``explanation.graphs``.
    output : int or None, default=None
        Index in ``explanation.outputs``. None: for two classes, the second against the first; for more, the predicted class
        against the next best.
    layout : array-like of shape (n_nodes, 2), optional
        Positions of the nodes, as in :func:`plot_graph`.
    molecule : RDKit molecule or str, optional
        The molecule that the graph represents, or its SMILES: RDKit then draws it. Its atoms must be the nodes, in the
        same order.
    sequence : bool, default=False
        Draw a protein as a strip along its sequence: a cell for each residue, a row for each chain, and the names of the three residues
        that contribute most.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new pyplot figure.
    title : str, optional
        Title of the plot; by default the two classes and the decision.
    colorbar : bool, default=True
        Whether to add a color bar.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Examples
    --------
    >>> from treegram import WLOA, GraphSVC, explain, make_motifs, plot_explanation
    >>> graphs, y, _ = make_motifs(20, random_state=0)
    >>> model = GraphSVC(WLOA(), param_grid={}, C=1, cv=2).fit(graphs, y)
    >>> ax = plot_explanation(explain(model, graphs), 12)
    >>> ax.get_title().split(":")[0]
    '1 rather than 0'
    """
    contrast = explanation._contrast(index, output)
    values = explanation._node_values_of(index, contrast)
    scale = explanation.target_scale
    word = "decision" if explanation._is_classifier else "prediction"
    if title is None:
        columns = explanation._column_values[index].sum(axis=0)
        decision = values.sum() + (columns + explanation.intercept) @ contrast.combine
        name = f"{contrast.above} rather than {contrast.below}" if explanation._is_classifier else word
        title = f"{name}: {signed(decision if scale is None else float(scale.inverse(decision)))}"
    graph = explanation.graphs[index]
    ax = ax or new_axes((9, 2.5) if sequence else (6, 5))
    if sequence:
        _draw_sequence(ax, graph, values)
    elif molecule is None:
        plot_graph(graph, values=values, layout=layout, ax=ax, colorbar=False)
    else:
        image = draw_molecule(check_molecule(molecule, graph, "molecule"), values, "Cairo", _MOLECULE_SIZE)
        ax.imshow(matplotlib_module("image").imread(io.BytesIO(image), format="png"))
        ax.set_axis_off()
    ax.set_title(title)
    if colorbar:
        name = f"contribution to the {word}" + ("" if scale is None else ", on the scale of the targets")
        _add_colorbar(ax, values, name, 1.0 if molecule is None else MOLECULE_LIMIT)
    return ax


def _draw_sequence(ax: Any, graph: Graphs, values: Floats) -> None:
    """Draw a row of cells for each chain, at the numbers of the residues if these are distinct."""
    residues = residues_of(graph)
    if not residues:
        raise ParameterError(
            "sequence=True of plot_explanation needs residues, with names such as 'A/141 CYS', as Graphs.from_pdb gives them."
        )
    chains = list(dict.fromkeys(chain for chain, _, _ in residues))
    rows = np.array([chains.index(chain) for chain, _, _ in residues])
    columns = np.array([int(number.rstrip(ascii_letters)) for _, number, _ in residues])
    are_numbers = len(set(zip(rows.tolist(), columns.tolist(), strict=True))) == len(rows)
    if not are_numbers:  # 52 and 52A would be in one cell
        columns = np.array([np.count_nonzero(rows[: i + 1] == row) for i, row in enumerate(rows)])
    colors = contribution_colors(values, float(np.abs(values).max(initial=0.0)))
    ax.bar(columns, 0.6, 1.0, bottom=rows - 0.3, color=colors, edgecolor="0.8", linewidth=0.3)
    for node in np.argsort(-np.abs(values), kind="stable")[:3].tolist():
        text = "".join(residues[node][:0:-1]).title()  # such as Cys141
        style = {"textcoords": "offset points", "ha": "center", "fontsize": 8}
        ax.annotate(text, (columns[node], rows[node] - 0.3), (0, 2), **style)
    word = "residue number" if are_numbers else "residue, counted along the chain"
    ax.set(xlabel=word, xlim=(columns.min() - 1, columns.max() + 1), ylim=(len(chains) - 0.6, -0.7))
    ax.set_yticks(range(len(chains)), [f"chain {chain}" for chain in chains])
    ax.spines[:].set_visible(False)


def plot_tree(name: str, *, ax: Any = None, title: str | None = None) -> Any:
    """Draw a tree or WL color by its name, such as ``C(N,C(O))``: the root on top, children below.

    Parameters
    ----------
    name : str
        A name from :attr:`Explanation.feature_names` or :meth:`FeatureMap.get_feature_names_out`. Edge labels, as in
        ``C(1:N)``, are written next to the edges.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new pyplot figure.
    title : str, optional
        Title of the plot; by default the name.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Examples
    --------
    >>> from treegram import plot_tree
    >>> ax = plot_tree("C(N,C(O))")
    >>> sorted(text.get_text() for text in ax.texts)
    ['C', 'C', 'N', 'O']
    """
    nodes, edges = tree_layout(name)
    ax = new_axes((5, 4)) if ax is None else ax
    lines = [(start, end) for start, end, _ in edges]
    ax.add_collection(matplotlib_module("collections").LineCollection(lines, colors="0.6", linewidths=1.2, zorder=1))
    centered = {"ha": "center", "va": "center"}
    for start, end, label in edges:
        if label:
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
            middle = (0.5 * (start[0] + end[0]), 0.5 * (start[1] + end[1]))
            ax.text(*middle, label, fontsize=8, color="0.4", bbox=box, **centered)
    for label, x, y in nodes:
        box = {"boxstyle": "round,pad=0.35", "facecolor": "0.93", "edgecolor": "0.3"}
        ax.text(x, y, label, bbox=box, zorder=2, **centered)
    depth = -min(y for _, _, y in nodes)
    ax.set(xlim=(-0.7, max(x for _, x, _ in nodes) + 0.7), ylim=(-depth - 0.5, 0.5))
    ax.set_axis_off()
    ax.set_title(name if title is None else title)
    return ax


def _draw_edges(ax: Any, graph: Graphs, positions: Floats) -> None:
    ends = positions[graph.edges()]
    if not graph.directed:
        ax.add_collection(matplotlib_module("collections").LineCollection(ends, colors="0.6", linewidths=1.2, zorder=1))
        return
    for start, end in ends:
        arrow = {"arrowstyle": "-|>", "color": "0.6", "shrinkA": 9, "shrinkB": 9}
        ax.annotate("", end, start, arrowprops=arrow, zorder=1)


def _draw_nodes(ax: Any, graph: Graphs, positions: Floats, values: Floats | None) -> None:
    size = 320 if graph.n_nodes <= 30 else 9600 / graph.n_nodes + 20
    style: dict[str, Any] = {"s": size, "edgecolors": "0.3", "linewidths": 0.8, "zorder": 2}
    is_strong = np.zeros(graph.n_nodes, bool)
    if values is None:
        ax.scatter(*positions.T, c="0.9", **style)
    else:
        scale = _color_scale(values)
        is_strong = np.abs(values) > 0.6 * scale["norm"].vmax
        ax.scatter(*positions.T, c=values, **scale, **style)
    if graph.n_nodes <= MOST_LABELED and len(graph.label_values) > 1:
        for node, (position, is_white) in enumerate(zip(positions, is_strong, strict=True)):
            label = node_label(graph, node)
            font = min(9.0, 0.5 * size**0.5) * max(min(1.0, 4 / max(len(label), 1)), 0.6)
            text = {"color": "white" if is_white else "black", "fontsize": font, "zorder": 3}
            ax.text(*position, label, ha="center", va="center", **text)


def _color_scale(values: Floats, full: float = 1.0) -> dict[str, Any]:
    """Return a color scale centered at 0, with full color at ``full`` times the largest value."""
    colors = matplotlib_module("colors")
    limit = float(np.abs(values).max(initial=0.0)) or 1.0
    shades = contribution_colors(np.linspace(-1, 1, 255), full)
    return {"norm": colors.Normalize(-limit, limit), "cmap": colors.ListedColormap(shades)}


def _add_colorbar(ax: Any, values: Floats, label: str, full: float = 1.0) -> None:
    colors = matplotlib_module("cm").ScalarMappable(**_color_scale(values, full))
    bar = ax.figure.colorbar(colors, ax=ax, fraction=0.046, pad=0.03, panchor=(0.5, 0.5))  # keeps the graph centered
    bar.set_label(label)


# -------------------------------------------------------------------- Gram matrices


def plot_gram(
    K: ArrayLike,
    y: ArrayLike | None = None,
    *,
    ax: Any = None,
    title: str | None = None,
    cmap: str = "viridis",
    colorbar: bool = True,
) -> Any:
    """Draw a Gram matrix, with its graphs sorted by class.

    Graphs of one class keep their order; lines separate the classes, whose names are on the axes. A kernel that separates the
    classes shows bright squares along the diagonal.

    Parameters
    ----------
    K : array-like of shape (n_graphs, n_graphs)
        The Gram matrix.
    y : array-like of shape (n_graphs,), optional
        Class of each graph. Without it, the graphs keep their order.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new pyplot figure.
    title : str, optional
        Title of the plot.
    cmap : str, default="viridis"
        Name of a matplotlib color map.
    colorbar : bool, default=True
        Whether to add a color bar.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Notes
    -----
    The colors span the values off the diagonal without the smallest and the largest 1 %, so that a few pairs, or the
    diagonal, do not reduce the contrast of all others. Values outside that range have the color of the nearest end,
    where the color bar is pointed.

    Examples
    --------
    >>> from treegram import plot_gram
    >>> ax = plot_gram([[1.0, 0.2], [0.2, 1.0]], ["a", "b"], title="Two graphs")
    >>> ax.get_title()
    'Two graphs'
    """
    matrix = _check_gram(K)
    names, counts, order = _sort_by_class(y, len(matrix))
    ax = new_axes() if ax is None else ax
    off_diagonal = matrix[~np.eye(len(matrix), dtype=bool)]
    low, high = np.quantile(off_diagonal if off_diagonal.size else matrix, _COLOR_QUANTILES).tolist()
    # Average the values that share a pixel rather than their colors: this matches the color bar and is faster.
    sampling = {"interpolation": "antialiased", "interpolation_stage": "data"}
    image = ax.imshow(matrix[np.ix_(order, order)], cmap=cmap, vmin=low, vmax=high, **sampling)
    _name_classes(ax, names, counts)
    if title is not None:
        ax.set_title(title)
    if colorbar:
        is_below, is_above = matrix.min() < low, matrix.max() > high
        extend = "both" if is_below and is_above else "min" if is_below else "max" if is_above else "neither"
        bar = ax.figure.colorbar(image, ax=ax, extend=extend, fraction=0.046, pad=0.03)
        bar.set_label("kernel value")
    return ax


def _check_gram(K: ArrayLike) -> Floats:
    """Return K as a square matrix of finite numbers."""
    matrix = np.asarray(K, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"K must be a square matrix of at least one row; got an array of shape {matrix.shape}.")
    if not np.isfinite(matrix).all():
        raise ValueError("K must be finite; it has NaN or infinity.")
    return matrix


def _sort_by_class(y: ArrayLike | None, n_graphs: int) -> tuple[list[str], Ints, Ints]:
    """Return the names and sizes of the classes, and the order of the graphs."""
    if y is None:
        return [], np.empty(0, np.int64), np.arange(n_graphs)
    targets = np.asarray(y)
    if targets.shape != (n_graphs,):
        raise ValueError(f"y must have one entry per graph, shape ({n_graphs},); got shape {targets.shape}.")
    classes, counts = np.unique(targets, return_counts=True)
    return [str(name) for name in classes.tolist()], counts, np.argsort(targets, kind="stable")


def _name_classes(ax: Any, names: list[str], counts: Ints) -> None:
    """Draw lines between classes, and write each class's name in the middle of its rows and columns."""
    if not names:
        ax.set(xlabel="graph", ylabel="graph")
        return
    if len(names) > _MOST_NAMED:
        ax.set(xlabel="graph, sorted by target", ylabel="graph, sorted by target", xticks=[], yticks=[])
        return
    ends = np.cumsum(counts)
    for end in ends[:-1] - 0.5:
        ax.axhline(end, color="white", linewidth=0.8)
        ax.axvline(end, color="white", linewidth=0.8)
    middles = ends - counts / 2 - 0.5
    ax.set(xlabel="class", ylabel="class", yticks=middles, yticklabels=names)
    ax.set_xticks(middles, names, rotation=90 if max(map(len, names)) * len(names) > 60 else 0)
    ax.tick_params(length=0)
