"""Graphs, and what their nodes add to a decision."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from treegram._core.matplotlib import matplotlib_module, new_axes
from treegram._core.types import Floats
from treegram.explanations.plots.colors import MOLECULE_LIMIT, share_colors
from treegram.explanations.plots.molecules import molecule_of, molecule_png
from treegram.graphs import Graphs, as_graphs
from treegram.graphs.layout import node_places

__all__ = ["plot_explanation", "plot_graph"]

_MOST_NAMES = 80  # nodes of a graph whose labels are still written


def plot_graph(
    graphs: Any,
    index: int = 0,
    *,
    values: ArrayLike | None = None,
    layout: str | ArrayLike = "auto",
    ax: Any = None,
    title: str | None = None,
    cmap: str = "RdBu_r",
    colorbar: bool = True,
    colorbar_label: str = "value",
) -> Any:
    """Draw a graph, its nodes colored by numbers if there are any.

    Labels are written on the nodes of small graphs, unless the collection has but one label.

    Parameters
    ----------
    graphs : Graphs or list of graphs
        The collection that the graph is in.
    index : int, default=0
        Which graph of the collection.
    values : array-like of shape (n_nodes,), optional
        One number for each node of the graph. Colors are centered at 0.
    layout : {"auto", "hops", "attributes"} or array-like of shape (n_nodes, 2), default="auto"
        Where nodes stand. "hops": as far apart as they are in hops, as well as paper allows. "attributes": the attributes are
        their coordinates; of more than two, the two directions in which they differ most. "auto": by attributes where there
        are two or three and they look like coordinates, with joined nodes close to each other, else by hops.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure of pyplot.
    title : str, optional
        Title of the picture.
    cmap : str, default="RdBu_r"
        Name of a matplotlib color map that diverges from its middle.
    colorbar : bool, default=True
        Whether to add a color bar, where there are values.
    colorbar_label : str, default="value"
        What the color bar says.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the picture.

    Examples
    --------
    >>> from treegram import Graphs, plot_graph
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2)]], labels=[["N", "C", "O"]])
    >>> ax = plot_graph(graphs, values=[0.5, -0.2, 0.0], title="A chain")
    >>> [text.get_text() for text in ax.texts]
    ['N', 'C', 'O']
    """
    graph = as_graphs(graphs)[index]
    places = node_places(graph, layout)
    numbers = None if values is None else np.asarray(values, dtype=np.float64)
    if numbers is not None and numbers.shape != (graph.n_nodes,):
        raise ValueError(f"values must have one number per node, shape ({graph.n_nodes},); got shape {numbers.shape}.")
    ax = new_axes() if ax is None else ax
    if not graph.n_nodes:
        ax.text(0.5, 0.5, "no nodes", ha="center", va="center", color="0.5", transform=ax.transAxes)
    _draw_edges(ax, graph, places)
    nodes = _draw_nodes(ax, graph, places, numbers, cmap)
    if numbers is not None and colorbar:
        _add_bar(ax, nodes, colorbar_label)
    ax.set_aspect("equal")
    _leave_room(ax, places)
    ax.set_axis_off()
    if title is not None:
        ax.set_title(title)
    return ax


def plot_explanation(
    explanation: Any,
    graphs: Any,
    index: int = 0,
    *,
    output: int = 0,
    layout: str | ArrayLike = "auto",
    molecule: Any = None,
    ax: Any = None,
    title: str | None = None,
    cmap: str = "RdBu_r",
    colorbar: bool = True,
) -> Any:
    """Draw an explained graph, its nodes colored by what they add to the decision.

    Red speaks for the output and blue against it; white nodes do not matter.

    Parameters
    ----------
    explanation : Explanation
        What :func:`explain` gives.
    graphs : Graphs or list of graphs
        The graphs that were explained.
    index : int, default=0
        Which of them.
    output : int, default=0
        Which of ``explanation.outputs``.
    layout : {"auto", "hops", "attributes"} or array-like of shape (n_nodes, 2), default="auto"
        Where nodes stand, as in :func:`plot_graph`.
    molecule : RDKit molecule or str, optional
        The molecule that the graph is, or its SMILES: RDKit then draws it. Its atoms must be the nodes, in their order.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure of pyplot.
    title : str, optional
        Title of the picture; by default the output and the decision.
    cmap : str, default="RdBu_r"
        Name of a matplotlib color map that diverges from its middle; a ``molecule`` has its own colors.
    colorbar : bool, default=True
        Whether to add a color bar.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the picture.

    Examples
    --------
    >>> from treegram import WLOA, GraphSVC, explain, make_motifs, plot_explanation
    >>> graphs, y, _ = make_motifs(20, random_state=0)
    >>> model = GraphSVC(WLOA(), grid={}, C=1, cv=2).fit(graphs, y)
    >>> ax = plot_explanation(explain(model, graphs, spread=True), graphs, 12)
    >>> ax.get_title().split(":")[0]
    '1'
    """
    n_graphs = len(as_graphs(graphs))
    if n_graphs != len(explanation.nodes):
        raise ValueError(f"graphs must be the {len(explanation.nodes)} that were explained; got {n_graphs}.")
    if not -n_graphs <= index < n_graphs:
        raise IndexError(f"index must be a number from 0 to {n_graphs - 1}; got {index}.")
    if not 0 <= output < len(explanation.outputs):
        raise IndexError(f"output must be a number from 0 to {len(explanation.outputs) - 1}; got {output}.")
    shares = explanation.nodes[index]
    decision = explanation.decisions[index]
    if len(explanation.outputs) > 1:
        shares, decision = shares[:, output], decision[output]
    if title is None:
        title = f"{_name(explanation.outputs[output])}: {decision:+.3g}"
    label = f"added to the {'prediction' if explanation.outputs[output] == 'prediction' else 'decision'}"
    if molecule is not None:
        drawn = molecule_of(molecule, as_graphs(graphs)[index], "molecule")
        return _plot_molecule(drawn, shares, ax, title, label if colorbar else None)
    return plot_graph(
        graphs,
        index,
        values=shares,
        layout=layout,
        ax=ax,
        title=title,
        cmap=cmap,
        colorbar=colorbar,
        colorbar_label=label,
    )


def _add_bar(ax: Any, colors: Any, label: str) -> None:
    bar = ax.figure.colorbar(
        colors, ax=ax, fraction=0.046, pad=0.03, panchor=(0.5, 0.5)
    )  # the graph stays in the middle
    bar.set_label(label)


def _plot_molecule(molecule: Any, shares: Floats, ax: Any, title: str, bar_label: str | None) -> Any:
    image = matplotlib_module("image").imread(io.BytesIO(molecule_png(molecule, shares)), format="png")
    ax = new_axes() if ax is None else ax
    ax.imshow(image)
    ax.set_axis_off()
    ax.set_title(title)
    if bar_label is not None:
        limit = float(np.abs(shares).max(initial=0.0)) or 1.0
        colors = matplotlib_module("colors").ListedColormap(share_colors(np.linspace(-1, 1, 255), MOLECULE_LIMIT))
        scale = matplotlib_module("colors").Normalize(-limit, limit)
        _add_bar(ax, matplotlib_module("cm").ScalarMappable(scale, colors), bar_label)
    return ax


def _name(output: Any) -> str:
    return f"{output[0]} rather than {output[1]}" if isinstance(output, tuple) else str(output)


def _leave_room(ax: Any, places: Floats) -> None:
    """Room around the nodes, as much above a chain as beside it, so that no node is cut off."""
    if len(places):
        low, high = places.min(axis=0), places.max(axis=0)
        room = 0.15 * (float((high - low).max()) or 1.0)
        ax.set(xlim=(low[0] - room, high[0] + room), ylim=(low[1] - room, high[1] + room))


def _draw_edges(ax: Any, graph: Graphs, places: Floats) -> None:
    ends = places[graph.edges()]
    if not graph.directed:
        ax.add_collection(matplotlib_module("collections").LineCollection(ends, colors="0.6", linewidths=1.2, zorder=1))
        return
    for start, end in ends:
        arrow = {"arrowstyle": "-|>", "color": "0.6", "shrinkA": 9, "shrinkB": 9}
        ax.annotate("", end, start, arrowprops=arrow, zorder=1)


def _draw_nodes(ax: Any, graph: Graphs, places: Floats, values: Floats | None, cmap: str) -> Any:
    size = 320 if graph.n_nodes <= 30 else 9600 / graph.n_nodes + 20
    style: dict[str, Any] = {"s": size, "edgecolors": "0.3", "linewidths": 0.8, "zorder": 2}
    if values is None:
        nodes = ax.scatter(*places.T, c="0.9", **style)
    else:
        limit = float(np.abs(values).max(initial=0.0)) or 1.0
        nodes = ax.scatter(*places.T, c=values, cmap=cmap, vmin=-limit, vmax=limit, **style)
    if len(graph.label_values) > 1 and graph.labels is not None and graph.n_nodes <= _MOST_NAMES:
        strong = (
            np.zeros(graph.n_nodes, bool) if values is None else np.abs(values) > 0.6 * np.abs(values).max(initial=0.0)
        )
        for place, code, is_dark in zip(places, graph.labels, strong, strict=True):
            label = str(graph.label_values[code])
            font = min(9.0, 0.5 * size**0.5) * max(min(1.0, 4 / max(len(label), 1)), 0.6)
            text = {"color": "white" if is_dark else "black", "fontsize": font, "zorder": 3}
            ax.text(*place, label, ha="center", va="center", **text)
    return nodes
