"""Draw the figures of the README and the pages: ``python docs/make_pictures.py`` writes them to docs/_static."""

from __future__ import annotations

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

import treegram as tg

STATIC = Path(__file__).parent / "_static"
# Text without a box has the gray of figures.mplstyle, which is readable on any page.
GREEN, PALE, INK = "#1b6b50", "#e3f1eb", "#222222"


# -------------------------------------------------------------------- the molecules of the README

DATA = Path(__file__).parents[1] / "examples" / "data"


def write_molecules() -> None:
    """Write the table of molecules that the README's commands learn from."""
    smiles, y = tg.make_molecules(200, random_state=0)
    rows = [f"{text},{number:.2f}" for text, number in zip(smiles, y, strict=True)]
    (DATA / "molecules.csv").write_text("\n".join(["smiles,solubility", *rows, ""]), encoding="utf-8")


def draw_overview() -> Any:
    """Draw the atoms of four medicines, colored by what they contribute to the predicted solubility."""
    graphs, y = tg.load_molecules(DATA / "molecules.csv", target="solubility")
    drugs = tg.load_molecules(DATA / "drugs.csv")[0][:4]
    model = tg.GraphRegressor().fit(graphs, y)
    explanation = tg.explain(model, drugs)
    smiles = [line.split(",")[1] for line in (DATA / "drugs.csv").read_text(encoding="utf-8").splitlines()[1:5]]
    figure, panels = plt.subplots(2, 2, figsize=(6, 3.6), layout="constrained")
    values = model.predict(drugs)
    for i, axes in enumerate(panels.flat):
        molecule = Chem.MolFromSmiles(smiles[i])
        rdDepictor.Compute2DCoords(molecule, canonOrient=True)
        positions = molecule.GetConformer().GetPositions()[:, :2]
        tg.plot_explanation(explanation, i, layout=positions, ax=axes, title="", colorbar=False)
        axes.set_title(f"{drugs.graph_names[i]}: {values[i]:.1f}", color="C0", fontsize=14, fontweight="bold")
    return figure


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
    (1.9, 9.2): "Do the nodes carry vectors\nthat could matter?",
    (3.9, 6.9): "More than about\n10,000 graphs?",
    (3.1, 3.9): "Are the vectors coordinates,\neach graph in its own frame?",
}
ANSWERS = {
    (0.8, 6.6): "WL, WLOA\n\nODDST for\nreadable trees\n\nNSPDK for\npairs of balls",
    (5.7, 5.4): "FeatureMap and\na linear model,\nchunk by chunk",
    (1.3, 1.6): "CentroidDistance,\nthen ODDCL or WLCL",
    (4.6, 1.6): "WLCL and ODDCL, raw and\nafter ScaleAttributes:\nGraphSVC([...])\ncompares them",
}
ARROWS = [
    ((1.9, 9.2), (0.8, 7.6), "no"),
    ((1.9, 9.2), (3.9, 6.9), "yes"),
    ((3.9, 6.9), (5.7, 5.4), "yes"),
    ((3.9, 6.9), (3.1, 3.9), "no"),
    ((3.1, 3.9), (1.3, 1.6), "yes"),
    ((3.1, 3.9), (4.6, 1.6), "no"),
]


def draw_decision() -> Any:
    """Draw three questions that lead to a kernel."""
    figure, axes = plt.subplots(figsize=(5.6, 5.6))
    for start, end, word in ARROWS:
        axes.annotate("", end, start, arrowprops={"arrowstyle": "-", "color": GRAY, "linewidth": 1.6}, zorder=1)
        circle = {"boxstyle": "round,pad=0.25", "facecolor": PALE, "edgecolor": "none"}
        axes.text(*(0.5 * np.add(start, end)), word, ha="center", va="center", color=INK, bbox=circle, zorder=3)
    for boxes, style in (
        (QUESTIONS, {"facecolor": "white", "edgecolor": GREEN}),
        (ANSWERS, {"facecolor": PALE, "edgecolor": "none"}),
    ):
        for place, text in boxes.items():
            box = {"boxstyle": "round,pad=0.6", "linewidth": 1.6, **style}
            axes.text(*place, text, ha="center", va="center", fontsize=11, color=INK, bbox=box, zorder=2)
    axes.set(xlim=(-0.35, 6.9), ylim=(0.5, 9.9))
    axes.axis("off")
    figure.subplots_adjust(0, 0, 1, 1)
    return figure


# -------------------------------------------------------------------- families of kernels

# A ring of four with two tails: its far corner is on two shortest paths from the node 0.
LABELS = dict(enumerate("CNCOCC"))
EDGES = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (0, 5)]
POSITIONS = {0: (0, 0), 1: (0.8, 0.7), 2: (0.8, -0.7), 3: (1.6, 0), 4: (2.6, 0), 5: (-1, 0)}
ORANGE, GRAY = "#d55e00", "0.55"


def _panels(*titles: str, width: float = 2.1, height: float = 1.9) -> tuple[Any, Any]:
    figure, panels = plt.subplots(1, len(titles), figsize=(width * len(titles), height), layout="constrained")
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(title)
        axes.set_aspect("equal")
        axes.margins(0.16)
        axes.axis("off")
    return figure, panels


def _draw_nodes(axes: Any, positions: Any, edges: Any, texts: Any, fill: Any, dark: Any = ()) -> None:
    """Draw a graph with a text in each node; nodes in ``dark`` have white text."""
    for a, b in edges:
        axes.plot(*zip(positions[a], positions[b], strict=True), color=GRAY, linewidth=1.5, zorder=1)
    for node, (x, y) in positions.items():
        axes.scatter(x, y, s=190, color=fill.get(node, PALE), edgecolors=GREEN, linewidths=1.2, zorder=2)
        color = "white" if node in dark else INK
        axes.text(x, y, texts.get(node, ""), ha="center", va="center_baseline", fontsize=9, color=color, zorder=3)


def draw_trees() -> Any:
    """Draw a graph, the shortest paths from one of its nodes, and the tree that they make."""
    figure, panels = _panels("a graph", "shortest paths\nfrom one node", "as a tree, with\na copy for each path")
    root = {0: GREEN}
    _draw_nodes(panels[0], POSITIONS, EDGES, LABELS, root, dark={0})
    levels = {0: (0, 0), 5: (-1, -1), 2: (0, -1), 1: (1, -1), 3: (0.5, -2)}
    _draw_nodes(panels[1], levels, [(0, 5), (0, 2), (0, 1), (2, 3), (1, 3)], LABELS, root, dark={0})
    copies = {**levels, 3: (0, -2), 6: (1, -2)}
    _draw_nodes(panels[2], copies, [(0, 5), (0, 2), (0, 1), (2, 3), (1, 6)], {**LABELS, 6: "O"}, root, dark={0})
    return figure


def draw_colors() -> Any:
    """Draw the Weisfeiler-Lehman colors of the atoms of phenol after zero, one and two steps."""
    figure, panels = _panels("labels", "colors after\none step", "colors after\ntwo steps")
    labels = dict(enumerate("CCCCCCO"))
    graph = nx.cycle_graph(6)
    graph.add_edge(0, 6)
    positions = {**nx.circular_layout(nx.cycle_graph(6)), 6: (2, 0)}
    colors = dict(labels)
    for axes in panels:
        known = list(dict.fromkeys(colors[node] for node in [3, 6, 0, 1]))
        fill = {node: f"C{known.index(color)}" for node, color in colors.items()}
        _draw_nodes(axes, positions, graph.edges, labels, fill, dark=set(labels))
        colors = {node: repr((colors[node], sorted(colors[other] for other in graph[node]))) for node in labels}
    return figure


def draw_paths() -> Any:
    """Draw a shortest path, a pair of nodes with its distance, and a walk."""
    figure, panels = _panels("positions on\na shortest path", "two ends and\ntheir distance", "a walk may\nturn back")
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
    figure, panels = _panels(*[""] * len(graphs), width=0.75, height=0.8)
    for axes, graph in zip(panels, graphs, strict=True):
        _draw_nodes(axes, nx.circular_layout(graph), graph.edges, {}, {})
        for dots in axes.collections:
            dots.set_sizes([45])
        axes.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3))
    return figure


def draw_pairs() -> Any:
    """Draw two balls of radius 1 in a graph, with the distance of their centers."""
    figure, axes = plt.subplots(figsize=(6, 2.1), layout="constrained")
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
            "color": GRAY,
            "linestyle": ":",
            "connectionstyle": "arc3,rad=-0.2",
            "linewidth": 1.4,
        },
    )
    axes.text(2.8, -0.85, "distance 3", ha="center", va="center")
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
    figure, panels = _panels(*kernels, width=2.1, height=2.1)
    for axes, kernel, sign in zip(panels, kernels.values(), ["+", "=", ""], strict=True):
        axes.imshow(kernel.fit_transform(graphs[few]), cmap="Greens", interpolation="none")
        axes.margins(0)
        axes.text(1.08, 0.5, sign, transform=axes.transAxes, ha="center", va="center", fontsize=16)
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
        Image.open(file).convert("RGBA").quantize(256).save(STATIC / name, optimize=True)


if __name__ == "__main__":
    mpl.use("Agg")
    gallery_style.use()
    mpl.rcParams["svg.hashsalt"] = "treegram"  # without it, ids are random
    write_molecules()
    save(draw_overview(), "overview.png", dpi=120)
    draw_decision().savefig(STATIC / "which_kernel.svg", metadata={"Date": None})
    for family, draw in FAMILIES.items():
        draw().savefig(STATIC / f"kernels_{family}.svg", metadata={"Date": None})
    for number, picture in enumerate(draw_page("tutorial.md"), start=1):
        save(picture, f"tutorial_{number}.png", dpi=80)
    save(draw_page("explore.md")[0], "explore.png", dpi=80)
    (molecule,) = draw_page("molecules.md")
    with mpl.rc_context({"savefig.transparent": False, "savefig.facecolor": "white"}):  # RDKit draws on white
        save(molecule, "molecule.png", dpi=110)
