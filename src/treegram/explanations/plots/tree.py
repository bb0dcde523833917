"""Trees and colors by their names."""

from __future__ import annotations

import re
from typing import Any

from treegram._core.matplotlib import matplotlib_module, new_axes

__all__ = ["plot_tree", "tree_places"]

Tree = tuple[str, list["Tree"]]  # label of the root, and the trees below it


def plot_tree(name: str, *, ax: Any = None, title: str | None = None) -> Any:
    """Draw a tree or color by its name, such as ``C(N,C(O))``: the root on top, children below.

    Parameters
    ----------
    name : str
        A name from :meth:`ODDST.feature_names` or :meth:`WL.feature_names`. With edge labels, ``C(1:N)``, these stand beside
        the edges.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure of pyplot.
    title : str, optional
        Title of the picture; by default the name.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the picture.

    Examples
    --------
    >>> from treegram import plot_tree
    >>> ax = plot_tree("C(N,C(O))")
    >>> sorted(text.get_text() for text in ax.texts)
    ['C', 'C', 'N', 'O']
    """
    places, edges = tree_places(name)
    ax = new_axes((5, 4)) if ax is None else ax
    lines = [(start, end) for start, end, _ in edges]
    ax.add_collection(matplotlib_module("collections").LineCollection(lines, colors="0.6", linewidths=1.2, zorder=1))
    for start, end, label in edges:
        middle = (0.5 * (start[0] + end[0]), 0.5 * (start[1] + end[1]))
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        if label:
            ax.text(*middle, label, ha="center", va="center", fontsize=8, color="0.4", bbox=box)
    for label, x, y in places:
        box = {"boxstyle": "round,pad=0.35", "facecolor": "0.93", "edgecolor": "0.3"}
        ax.text(x, y, label, ha="center", va="center", bbox=box, zorder=2)
    depth = -min(y for _, _, y in places)
    ax.set(xlim=(-0.7, max(x for _, x, _ in places) + 0.7), ylim=(-depth - 0.5, 0.5))
    ax.set_axis_off()
    ax.set_title(name if title is None else title)
    return ax


def tree_places(name: str) -> tuple[list[Any], list[Any]]:
    """Labels of the nodes with their places, the root at height 0, and edges as (upper place, lower place, label)."""
    places: list[tuple[str, float, float]] = []
    edges: list[tuple[tuple[float, float], tuple[float, float], str]] = []
    _place(_read(name), 0, 0.0, places, edges)
    return places, edges


def _place(tree: Tree, depth: int, left: float, places: list[Any], edges: list[Any]) -> tuple[float, float]:
    """Place a tree whose leftmost leaf is at ``left``; gives the place of its root and where the next tree begins."""
    label, children = tree
    roots, right = [], left
    for child in children:
        x, right = _place(child, depth + 1, right, places, edges)
        roots.append((x, child))
    x = left if not roots else 0.5 * (roots[0][0] + roots[-1][0])
    for child_x, child in roots:
        edges.append(((x, -depth), (child_x, -depth - 1), _split_edge(child[0])[0]))
    places.append((_split_edge(label)[1] if depth else label, x, -depth))
    return x, max(right, left + 1.0)


def _split_edge(label: str) -> tuple[str, str]:
    """The label of the edge above a node, if any, and that of the node."""
    edge, colon, node = label.partition(":")
    return (edge, node) if colon else ("", label)


def _read(name: str) -> Tree:
    """The tree that a name spells."""
    stack: list[Tree] = [("", [])]
    word = ""
    for letter in re.findall(r'"(?:[^"\\]|\\.)*"|.', name, re.DOTALL):  # labels in quotes are whole
        if letter == "(":
            stack.append((word.strip(), []))
        elif letter in ",)":
            if word:
                stack[-1][1].append((word.strip(), []))
            if letter == ")" and len(stack) > 1:
                closed = stack.pop()
                stack[-1][1].append(closed)
            elif letter == ")":
                raise ValueError(
                    f"name must be a tree such as 'C(N,C(O))'; got {name!r}, which closes more than it opens."
                )
        else:
            word += letter
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
