"""Draw the figures of the README and the pages: ``python docs/make_pictures.py`` writes them to docs/_static."""

from __future__ import annotations

import itertools
import re
from contextlib import chdir
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gallery_style
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from rdkit import Chem
from rdkit.Chem import rdDepictor

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
    tg.plot_embedding(K, y[few][:240], ax=axes)
    axes.set(xticks=[], yticks=[], xlabel="", ylabel="")
    axes.get_legend().set_title("digit")
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
    model = tg.GraphSVC(tg.WLOA(2, use_edge_labels=True), param_grid={}, C=1, cv=3).fit(graphs[others_ids], y[others_ids])
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
    (9.4, 5.0): "ODDCLFeatures\nand a linear model,\nchunk by chunk",
    (2.2, 2.6): "CentroidDistance,\nthen ODDCL or WLCL",
    (7.0, 2.6): "WLCL and ODDCL, raw and\nafter ScaleAttributes:\nGraphSVC() compares them",
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
    for number, picture in enumerate(draw_page("tutorial.md"), start=1):
        save(picture, f"tutorial_{number}.png", dpi=80)
    (molecule,) = draw_page("molecules.md")
    save(molecule, "molecule.png", dpi=110)
