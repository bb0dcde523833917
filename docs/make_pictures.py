"""Draw the figures of the README and the pages: ``python docs/make_pictures.py`` writes them to docs/_static."""

from __future__ import annotations

import itertools
import re
import runpy
from contextlib import chdir
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gallery_style
import matplotlib as mpl
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from PIL import Image
from rdkit import Chem
from rdkit.Chem import rdDepictor
from sklearn.decomposition import KernelPCA

import treegram as tg

STATIC = Path(__file__).parent / "_static"
GREEN, PALE, INK = "#1b6b50", "#e3f1eb", "#222222"


# -------------------------------------------------------------------- treegram in four steps


def draw_overview() -> Any:
    """Draw graphs, their Gram matrix, a map of them, and an explanation."""
    figure = plt.figure(figsize=(13.5, 3.7), layout="constrained")
    parts = figure.subfigures(1, 4, width_ratios=[1, 1.12, 1.05, 1.1], wspace=0.04)
    titles = ["graphs with labels and vectors", "similarity, exact", "a map of them", "which atoms decide?"]
    for part, title in zip(parts, titles, strict=True):
        part.suptitle(title, fontsize=12.5, fontweight="bold", color=GREEN)
    graphs, y = tg.load_digits_graphs()
    _draw_digits(parts[0], graphs, y)
    few = np.isin(y, [0, 1, 4, 6])
    K = tg.ODDCL(depth=2).fit_transform(graphs[few][:240])
    axes = parts[1].subplots()
    tg.plot_gram(K, y[few][:240], ax=axes, colorbar=False)
    axes.set(xlabel="digit", ylabel="digit")
    axes = parts[2].subplots()
    points = axes.scatter(*KernelPCA(2, kernel="precomputed").fit_transform(K).T, c=y[few][:240], cmap="tab10", vmax=9, s=22)
    axes.set(xticks=[], yticks=[])
    axes.legend(*points.legend_elements(num=None), title="digit", bbox_to_anchor=(1, 1), frameon=False)
    _draw_nitro_compound(parts[3].subplots())
    return figure


def _draw_digits(part: Any, graphs: tg.Graphs, y: Any) -> None:
    for axes, digit in zip(part.subplots(2, 2).flat, (0, 1, 4, 6), strict=True):
        graph = graphs[np.flatnonzero(y == digit)[3]]
        row, column, ink = graph.attributes.T
        for a, b in graph.edges():
            axes.plot(column[[a, b]], -row[[a, b]], color="0.75", linewidth=1, zorder=1)
        axes.scatter(column, -row, c=ink, cmap="Greens", vmin=-1, s=26, edgecolors="0.3", linewidths=0.5, zorder=2)
        axes.set_aspect("equal")
        axes.axis("off")


def _draw_nitro_compound(axes: Any) -> None:
    """Draw the explanation of a support vector machine that has learned to recognize nitro groups."""
    rings = ["c1cc({})ccc1{}", "c1cnc({})cc1{}", "c1c({})cc2ccccc2c1{}"]
    groups = ["C", "O", "N", "Cl", "OC", "C(=O)O", "C#N", "N(C)C"]
    nitro = "[N+](=O)[O-]"
    others = [ring.format(a, b) for ring in rings for a, b in itertools.product(groups, groups)][::4]
    nitros = [ring.format(a, b) for ring in rings for g in groups for a, b in ((g, nitro), (nitro, g))]
    smiles = [*others, *nitros]
    graphs = tg.Graphs.from_smiles(smiles)
    y = np.arange(len(smiles)) >= len(others)
    shown = len(smiles) - 2  # the model does not learn from it
    others_ids = np.delete(np.arange(len(smiles)), shown)
    model = tg.GraphSVC(tg.WLOA(2, use_edge_labels=True), param_grid={}, C=1, cv=3).fit(
        graphs[others_ids], y[others_ids]
    )
    explanation = tg.explain(model, graphs[[shown]])
    molecule = Chem.MolFromSmiles(smiles[shown])
    rdDepictor.Compute2DCoords(molecule)
    positions = molecule.GetConformer().GetPositions()[:, :2]
    tg.plot_explanation(explanation, 0, layout=positions, ax=axes, title="", colorbar=False)


# -------------------------------------------------------------------- pages


def draw_page(name: str) -> list[Any]:
    """Return the figures that the code of a page draws, in order."""
    plt.close("all")
    page = (STATIC.parent / name).read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    with TemporaryDirectory() as folder, chdir(folder):
        for block in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
            exec(block, names)
    return [plt.figure(number) for number in plt.get_fignums()]


# -------------------------------------------------------------------- which kernel

QUESTIONS = {  # (x, y): text
    (3.4, 9.0): "Do the nodes carry vectors\nthat could matter?",
    (6.9, 7.0): "More than about\n10,000 graphs?",
    (4.6, 5.0): "Are the vectors coordinates,\neach graph in its own frame?",
}
ANSWERS = {
    (0.9, 7.0): "WL, WLOA\n\nODDST for readable trees\nNSPDK for pairs of balls",
    (9.4, 5.0): "FeatureMap\nand a linear model,\nchunk by chunk",
    (2.2, 2.6): "CentroidDistance,\nthen ODDCL or WLCL",
    (7.0, 2.6): "WLCL and ODDCL, raw and\nafter ScaleAttributes:\nGraphSVC([...]) compares them",
}
ARROWS = [
    ((3.4, 9.0), (0.9, 7.0), "no"),
    ((3.4, 9.0), (6.9, 7.0), "yes"),
    ((6.9, 7.0), (9.4, 5.0), "yes"),
    ((6.9, 7.0), (4.6, 5.0), "no"),
    ((4.6, 5.0), (2.2, 2.6), "yes"),
    ((4.6, 5.0), (7.0, 2.6), "no"),
]


def draw_decision() -> Any:
    """Draw three questions that lead to a kernel."""
    figure, axes = plt.subplots(figsize=(9.6, 6.2))
    for start, end, word in ARROWS:
        axes.annotate("", end, start, arrowprops={"arrowstyle": "-", "color": "0.55", "linewidth": 1.6}, zorder=1)
        middle = 0.5 * np.add(start, end)
        axes.text(
            *middle,
            word,
            ha="center",
            va="center",
            color=INK,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 2},
        )
    for boxes, style in (
        (QUESTIONS, {"facecolor": "white", "edgecolor": GREEN}),
        (ANSWERS, {"facecolor": PALE, "edgecolor": "none"}),
    ):
        for place, text in boxes.items():
            box = {"boxstyle": "round,pad=0.6", "linewidth": 1.6, **style}
            axes.text(*place, text, ha="center", va="center", fontsize=11, color=INK, bbox=box, zorder=2)
    axes.set(xlim=(-0.9, 11), ylim=(1.6, 9.7))
    axes.axis("off")
    figure.subplots_adjust(0, 0, 1, 1)
    return figure


# -------------------------------------------------------------------- families of kernels

# A ring of four with two tails: its far corner is on two shortest paths from the node 0.
LABELS = dict(enumerate("CNCOCC"))
EDGES = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (0, 5)]
POSITIONS = {0: (0, 0), 1: (0.8, 0.7), 2: (0.8, -0.7), 3: (1.6, 0), 4: (2.6, 0), 5: (-1, 0)}
ORANGE, GRAY = "#d55e00", "0.55"


def _panels(*titles: str, width: float = 3.1, height: float = 2.1) -> tuple[Any, Any]:
    figure, panels = plt.subplots(1, len(titles), figsize=(width * len(titles), height), layout="constrained")
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(title, color=INK)
        axes.set_aspect("equal")
        axes.margins(0.16)
        axes.axis("off")
    return figure, panels


def _draw_nodes(axes: Any, positions: Any, edges: Any, texts: Any, fill: Any, dark: Any = ()) -> None:
    """Draw a graph with a text in each node; nodes in ``dark`` have white text."""
    for a, b in edges:
        axes.plot(*zip(positions[a], positions[b], strict=True), color=GRAY, linewidth=1.5, zorder=1)
    for node, (x, y) in positions.items():
        axes.scatter(x, y, s=330, color=fill.get(node, PALE), edgecolors=GREEN, linewidths=1.2, zorder=2)
        color = "white" if node in dark else INK
        axes.text(x, y, texts.get(node, ""), ha="center", va="center_baseline", color=color, zorder=3)


def draw_trees() -> Any:
    """Draw a graph, the shortest paths from one of its nodes, and the tree that they make."""
    figure, panels = _panels("a graph", "shortest paths from one node", "as a tree, with a copy for each path")
    root = {0: GREEN}
    _draw_nodes(panels[0], POSITIONS, EDGES, LABELS, root, dark={0})
    levels = {0: (0, 0), 5: (-1, -1), 2: (0, -1), 1: (1, -1), 3: (0.5, -2)}
    _draw_nodes(panels[1], levels, [(0, 5), (0, 2), (0, 1), (2, 3), (1, 3)], LABELS, root, dark={0})
    copies = {**levels, 3: (0, -2), 6: (1, -2)}
    _draw_nodes(panels[2], copies, [(0, 5), (0, 2), (0, 1), (2, 3), (1, 6)], {**LABELS, 6: "O"}, root, dark={0})
    return figure


def draw_colors() -> Any:
    """Draw the Weisfeiler-Lehman colors of the atoms of phenol after zero, one and two steps."""
    figure, panels = _panels("labels", "colors after one step", "colors after two steps")
    labels = dict(enumerate("CCCCCCO"))
    graph = nx.cycle_graph(6)
    graph.add_edge(0, 6)
    positions = {**nx.circular_layout(nx.cycle_graph(6)), 6: (2, 0)}
    colors = dict(labels)
    for axes in panels:
        known = list(dict.fromkeys(colors[node] for node in [3, 6, 0, 1]))
        fill = {node: gallery_style.COLORS[known.index(color)] for node, color in colors.items()}
        _draw_nodes(axes, positions, graph.edges, labels, fill, dark=set(labels))
        colors = {node: repr((colors[node], sorted(colors[other] for other in graph[node]))) for node in labels}
    return figure


def draw_paths() -> Any:
    """Draw a shortest path, a pair of nodes with its distance, and a walk."""
    figure, panels = _panels("positions on a shortest path", "two ends and their distance", "a walk may turn back")
    path = [5, 0, 1, 3]
    _draw_nodes(
        panels[0], POSITIONS, EDGES, dict(zip(path, "1234", strict=True)), dict.fromkeys(path, GREEN), dark=path
    )
    _draw_nodes(panels[1], POSITIONS, EDGES, LABELS, {5: GREEN, 4: GREEN}, dark={4, 5})
    panels[1].annotate(
        "",
        (-0.85, -0.3),
        (2.45, -0.3),
        arrowprops={
            "arrowstyle": "<->",
            "color": ORANGE,
            "linestyle": ":",
            "connectionstyle": "arc3,rad=-0.45",
            "linewidth": 1.6,
        },
    )
    panels[1].text(0.8, -1.25, "4", ha="center", va="center", color=ORANGE)
    _draw_nodes(panels[2], POSITIONS, EDGES, LABELS, dict.fromkeys([0, 1, 3], GREEN), dark={0, 1, 3})
    for start, end in [(0, 1), (1, 3), (3, 1)]:
        arrow = {
            "arrowstyle": "->",
            "color": ORANGE,
            "connectionstyle": "arc3,rad=-0.4",
            "linewidth": 1.6,
            "shrinkA": 10,
            "shrinkB": 10,
        }
        panels[2].annotate("", POSITIONS[end], POSITIONS[start], arrowprops=arrow, zorder=4)
    return figure


def draw_subgraphs() -> Any:
    """Draw all connected graphs of two to four nodes."""
    graphs = [graph for graph in nx.graph_atlas_g() if 2 <= len(graph) <= 4 and nx.is_connected(graph)]
    figure, panels = _panels(*[""] * len(graphs), width=1.05, height=1.1)
    for axes, graph in zip(panels, graphs, strict=True):
        _draw_nodes(axes, nx.circular_layout(graph), graph.edges, {}, {})
        for dots in axes.collections:
            dots.set_sizes([70])
        axes.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3))
    return figure


def draw_pairs() -> Any:
    """Draw two balls of radius 1 in a graph, with the distance of their centers."""
    figure, axes = plt.subplots(figsize=(7, 2.3), layout="constrained")
    places = {
        0: (0, 0.7),
        1: (0, -0.7),
        2: (1, 0),
        3: (2.2, 0),
        4: (3.4, 0),
        5: (4.6, 0),
        6: (5.6, 0.7),
        7: (5.6, -0.7),
        8: (6.8, 0.7),
    }
    edges = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (5, 7), (6, 8)]
    labels = dict(enumerate("CCNCCOCCN"))
    balls = {2: GREEN, **dict.fromkeys([0, 1, 3], "#a9d5c3"), 5: ORANGE, **dict.fromkeys([4, 6, 7], "#f3c29f")}
    _draw_nodes(axes, places, edges, labels, balls, dark={2, 5})
    axes.annotate(
        "",
        (1, -0.25),
        (4.6, -0.25),
        arrowprops={
            "arrowstyle": "<->",
            "color": INK,
            "linestyle": ":",
            "connectionstyle": "arc3,rad=-0.2",
            "linewidth": 1.4,
        },
    )
    axes.text(2.8, -0.85, "distance 3", ha="center", va="center", color=INK)
    axes.set_aspect("equal")
    axes.margins(0.08, 0.3)
    axes.axis("off")
    return figure


def draw_sum() -> Any:
    """Draw the Gram matrices of two kernels on handwritten digits, and that of their sum."""
    graphs, y = tg.load_digits_graphs()
    few = np.flatnonzero(np.isin(y, [0, 1, 4, 6]))[:80]
    few = few[np.argsort(y[few], kind="stable")]
    kernels = {"WLCL(2)": tg.WLCL(2), "StatisticsKernel()": tg.StatisticsKernel()}
    kernels["KernelSum of both"] = tg.KernelSum(list(kernels.values()))
    figure, panels = _panels(*kernels, width=2.6, height=2.5)
    for axes, kernel, sign in zip(panels, kernels.values(), ["+", "=", ""], strict=True):
        axes.imshow(kernel.fit_transform(graphs[few]), cmap="Greens", interpolation="none")
        axes.margins(0)
        axes.text(1.08, 0.5, sign, transform=axes.transAxes, ha="center", va="center", fontsize=16, color=INK)
    return figure


def draw_approximation() -> Any:
    """Return the figure of the gallery's example on approximations."""
    plt.close("all")
    return runpy.run_path(str(STATIC.parents[1] / "examples" / "4_scale" / "plot_approximation_error.py"))["fig"]


FAMILIES = {
    "trees": draw_trees,
    "colors": draw_colors,
    "paths_and_walks": draw_paths,
    "subgraphs": draw_subgraphs,
    "pairs_and_invariants": draw_pairs,
    "columns_and_sums": draw_sum,
    "approximation": draw_approximation,
}


def save(figure: Any, name: str, dpi: int) -> None:
    """Write a figure as PNG with 256 colors: a third of the size, and it looks the same."""
    with BytesIO() as file:
        figure.savefig(file, dpi=dpi)
        Image.open(file).convert("RGB").quantize(256).save(STATIC / name, optimize=True)


if __name__ == "__main__":
    mpl.use("Agg")
    gallery_style.use()
    mpl.rcParams["svg.hashsalt"] = "treegram"  # without it, ids are random
    save(draw_overview(), "overview.png", dpi=120)
    draw_decision().savefig(STATIC / "which_kernel.svg", metadata={"Date": None})
    for family, draw in FAMILIES.items():
        draw().savefig(STATIC / f"kernels_{family}.svg", metadata={"Date": None})
    for number, picture in enumerate(draw_page("tutorial.md"), start=1):
        save(picture, f"tutorial_{number}.png", dpi=80)
    save(draw_page("explore.md")[0], "explore.png", dpi=80)
    (molecule,) = draw_page("molecules.md")
    save(molecule, "molecule.png", dpi=110)
