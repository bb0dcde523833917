"""Measure explanations: their cost relative to ``decision_function``, and how well they find nodes known to matter.

    python benchmarks/bench_explain.py

Node AUROC: for each held-out graph that is classified right, the area under the ROC curve of its nodes' contributions to its
class, the planted nodes (MUTAG: the atoms of nitro groups, in mutagenic molecules) against all others; then the mean over graphs.
Edge AUROC: the same for edges, an edge having the contributions of its two ends; planted are those between planted nodes.
``--figure FOLDER`` draws the pictures of the documentation.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

import treegram as tg
from common import best_of, load, machine, table

CS = [1, 10, 100]
N_DELETED = range(11)  # of 25 nodes
SEEDS = (10, 11, 12)  # none was used to choose kernels and options
COSTS = [
    *(
        (name, kernel)
        for name in ("ENZYMES", "BZR", "PROTEINS")
        for kernel in (
            tg.ODDCL(depth=2),
            tg.WLCL(),
            tg.GraphHopper(),
            tg.GIK(radius=1),
            tg.ShortestPath(),
            tg.ODDST(),
            tg.WL(),
            tg.WLOA(),
            tg.NSPDK(),
            tg.P2K(),
            tg.KernelSum([tg.WL(), tg.ODDCL(depth=1)]),
            tg.FeatureMap(tg.ODDCL(2), n_components=128),
            tg.CSM(),
        )
    ),
    ("MUTAG", tg.CSM()),
    ("MUTAG", tg.CSM(max_size=4, use_labels=True)),
]
VECTORS = {"motifs": ("cycle", "cycle"), "n_attributes": 2, "shift": 4.0}
PLANTED = {
    "house, cycle": {},
    "clique, wheel": {"motifs": ("clique", "wheel")},
    "house, star": {"motifs": ("house", "star")},
    "cycles that differ in vectors": VECTORS,
    "house, cycle, with vectors": {"n_attributes": 2, "shift": 4.0},
}
WITHOUT_VECTORS = [
    (tg.WLOA(), "tree"),
    (tg.WLOA(), "root"),
    (tg.WL(), "tree"),
    (tg.WL(), "root"),
    (tg.ODDST(2), "tree"),
    (tg.ODDST(2), "root"),
]
WITH_VECTORS = [
    (tg.WLCL(n_iterations=1), "tree"),
    (tg.WLCL(n_iterations=1), "root"),
    (tg.ODDCL(1), "tree"),
    (tg.ODDCL(1), "root"),
    (tg.GIK(radius=1, n_levels=1), "root"),
    (tg.GraphHopper(), "root"),
]


def fit(kernel: object, graphs: tg.Graphs, y: np.ndarray) -> tg.GraphSVC:
    return tg.GraphSVC(kernel, param_grid={}, C=CS, cv=5).fit(graphs, y)


def class_contributions(model: tg.GraphSVC, graphs: tg.Graphs, y: np.ndarray, attribute_to: str) -> list[np.ndarray]:
    """Return the contributions of the nodes to the class of their graph."""
    signs = np.where(y == model.classes_[1], 1.0, -1.0)
    explanation = tg.explain(model, graphs, attribute_to=attribute_to)
    return [sign * own for sign, own in zip(signs, explanation.node_contributions, strict=True)]


def mean_auroc(contributions: list[np.ndarray], masks: list[np.ndarray], chosen: np.ndarray) -> float:
    areas = [
        roc_auc_score(masks[g], contributions[g]) for g in np.flatnonzero(chosen) if 0 < masks[g].sum() < len(masks[g])
    ]
    return float(np.mean(areas))


def edge_sums(graph: tg.Graphs, values: np.ndarray) -> np.ndarray:
    return values[graph.edges()].sum(axis=1)


# -------------------------------------------------------------------- cost


def cost(name: str, kernel: Any) -> list[object]:
    graphs = load(name)
    graphs = graphs[np.random.default_rng(0).permutation(len(graphs))[:200]]
    y, n_fitted = np.unique(graphs.targets, return_inverse=True)[1], min(100, len(graphs) // 2)
    is_linear = isinstance(kernel, tg.FeatureMap)
    size = f", max_size={kernel.max_size}" if isinstance(kernel, tg.CSM) else ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about widths that do not suit the vectors
        model = (
            make_pipeline(kernel, RidgeClassifier()) if is_linear else tg.GraphSVC(kernel, param_grid={}, C=CS, cv=5)
        )
        model.fit(graphs[:n_fitted], y[:n_fitted])
    new = graphs[n_fitted:]
    has_trees = is_linear or isinstance(kernel, tg.KernelSum) or kernel._explained_by == "trees"
    for attribute_to in ("tree", "root"):
        tg.explain(model, new[:2], attribute_to=attribute_to)  # compiles
    decide, at_root, in_tree = best_of(
        lambda: model.decision_function(new),
        lambda: tg.explain(model, new, attribute_to="root"),
        lambda: tg.explain(model, new),
        rounds=5,
    )
    residual = max(tg.explain(model, new, attribute_to=one).residual for one in ("tree", "root"))
    return [
        name,
        f"{type(kernel).__name__}{size}",
        f"{1e3 * decide:.1f} ms",
        f"{1e3 * in_tree:.1f} ms",
        f"**{in_tree / decide:.1f}**",
        f"{at_root / decide:.1f}" if has_trees else "",
        f"{residual:.0e}",
    ]


# -------------------------------------------------------------------- recovery of known nodes


def planted(name: str, kernel: object, attribute_to: str) -> list[object]:
    areas, edge_areas, scores = [], [], []
    for seed in SEEDS:
        graphs, y, is_motif = tg.make_motifs(400, random_state=seed, **PLANTED[name])
        model = fit(kernel, graphs[::2], y[::2])
        new, truth, masks = graphs[1::2], y[1::2], list(is_motif.reshape(400, -1)[1::2])
        right = model.predict(new) == truth
        scores.append(right.mean())
        contributions = class_contributions(model, new, truth, attribute_to)
        areas.append(mean_auroc(contributions, masks, right))
        of_edges = [edge_sums(graph, own) for graph, own in zip(new, contributions, strict=True)]
        are_planted = [edge_sums(graph, mask.astype(int)) == 2 for graph, mask in zip(new, masks, strict=True)]
        edge_areas.append(mean_auroc(of_edges, are_planted, right))
    found = [f"**{np.mean(areas):.3f}**", f"{np.mean(edge_areas):.3f}"]
    return [name, type(kernel).__name__, attribute_to, f"{100 * np.mean(scores):.1f} %", *found]


def common_features(kernel: Any) -> list[object]:
    """Return the part of all contributions, for or against, of features that 90 % of the graphs of either class have."""
    graphs, y, _ = tg.make_motifs(400, random_state=SEEDS[0])
    model = fit(kernel, graphs[::2], y[::2])
    has = model.kernel_._feature_rows(graphs[::2]) > 0
    is_common = np.logical_and(*(np.asarray(has[y[::2] == c].mean(axis=0)).ravel() >= 0.9 for c in (0, 1)))
    sizes = np.asarray(abs(tg.explain(model, graphs[1::2]).feature_contributions).sum(axis=0)).ravel()
    part = f"**{100 * sizes[is_common].sum() / sizes.sum():.0f} %**"
    return [type(kernel).__name__, f"{is_common.sum()} of {len(is_common)}", part]


def nitro_atoms(graphs: tg.Graphs) -> list[np.ndarray]:
    """Return for each molecule a mask of the atoms of NO2 groups: an N with two O that have no other neighbor, and these."""
    masks = []
    for graph in graphs:
        names = np.array([str(graph.label_values[code]) for code in graph.labels])
        mask = np.zeros(graph.n_nodes, bool)
        for atom in np.flatnonzero(names == "1"):
            around = graph.indices[graph.indptr[atom] : graph.indptr[atom + 1]]
            ends = [o for o in around if names[o] == "2" and graph.degrees[o] == 1]
            if len(ends) == 2:
                mask[[atom, *ends]] = True
        masks.append(mask)
    return masks


def mutag(kernel: object, attribute_to: str) -> list[object]:
    graphs = load("MUTAG")
    y, masks = graphs.targets, nitro_atoms(graphs)
    parts = np.random.default_rng(0).permutation(len(graphs)) % 5
    areas, scores = [], []
    for part in range(5):
        new = np.flatnonzero(parts == part)
        model = fit(kernel, graphs[parts != part], y[parts != part])
        right = model.predict(graphs[new]) == y[new]
        scores.append(right.mean())
        contributions = class_contributions(model, graphs[new], y[new], attribute_to)
        areas.append(mean_auroc(contributions, [masks[g] for g in new], right & (y[new] == 1)))
    return [type(kernel).__name__, attribute_to, f"{100 * np.mean(scores):.1f} %", f"**{np.mean(areas):.3f}**"]


# -------------------------------------------------------------------- deletion


def without(graph: tg.Graphs, nodes: np.ndarray) -> tg.Graphs:
    kept = np.setdiff1d(np.arange(graph.n_nodes), nodes)
    place = np.full(graph.n_nodes, -1)
    place[kept] = np.arange(len(kept))
    edges = place[graph.edges()]
    return tg.Graphs.from_arrays(
        [0, len(kept)],
        edges[(edges >= 0).all(axis=1)],
        attributes=None if graph.attributes is None else graph.attributes[kept],
    )


def deletion(kernel: object, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean decisions for the true class with 0, 1, ... nodes deleted: the highest first, and at random."""
    graphs, y, _ = tg.make_motifs(400, random_state=SEEDS[0], **PLANTED[name])
    model = fit(kernel, graphs[::2], y[::2])
    new, signs = graphs[1::2], np.where(y[1::2] == 1, 1.0, -1.0)
    contributions = class_contributions(model, new, y[1::2], "tree")
    rng = np.random.default_rng(0)
    orders = [[np.argsort(-own) for own in contributions], [rng.permutation(len(own)) for own in contributions]]
    curves = [
        [
            np.mean(
                signs
                * model.decision_function(
                    tg.Graphs.concatenate([without(g, o[:n]) for g, o in zip(new, order, strict=True)])
                )
            )
            for n in N_DELETED
        ]
        for order in orders
    ]
    return np.array(curves[0]), np.array(curves[1])


DELETED = (("house, cycle", tg.WLOA()), ("cycles that differ in vectors", tg.WLCL(n_iterations=1)))


def deleted(name: str, kernel: object) -> list[list[object]]:
    curves = deletion(kernel, name)
    return [
        [name, type(kernel).__name__, which, *(f"{value:+.2f}" for value in curve)]
        for which, curve in zip(("highest contributions", "random nodes"), curves, strict=True)
    ]


def draw(folder: Path) -> None:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams |= dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), "0.5"
    )
    mpl.rcParams["savefig.transparent"] = True  # for pages in light and in dark mode

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for ax, (name, kernel) in zip(figure.subplots(1, 2), DELETED, strict=True):
        highest, drawn = deletion(kernel, name)
        ax.plot(highest, "o-", color="C3", label="highest contributions first")
        ax.plot(drawn, "s--", color="0.5", label="random nodes")
        ax.axhline(0, color="0.8", zorder=0)
        ax.set(
            xlabel="nodes deleted, of 25",
            ylabel="decision for the true class",
            title=f"{name}: {type(kernel).__name__}",
        )
        ax.legend(frameon=False)
    figure.savefig(folder / "deletion.png", dpi=110)
    graphs, y, _ = tg.make_motifs(400, random_state=0)
    model = fit(tg.WLOA(), graphs[::2], y[::2])
    new = graphs[1::2]
    found = tg.explain(model, new)
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    for ax, index, name in zip(figure.subplots(1, 2), (20, 120), ("house", "cycle"), strict=True):
        tg.plot_explanation(
            found, index, ax=ax, title=f"{name}: decision {found.decisions[index]:+.2f}, above 0 for cycle"
        )
    figure.savefig(folder / "explanation.png", dpi=110)


def main() -> str:
    held_out = f"200 fitted and 200 held-out graphs, seeds {', '.join(map(str, SEEDS))}"
    rows = [
        planted(name, kernel, attribute_to)
        for name in PLANTED
        for kernel, attribute_to in (WITH_VECTORS if "vectors" in name else WITHOUT_VECTORS)
    ]
    molecules = [
        (tg.WLOA(), "tree"),
        (tg.WLOA(), "root"),
        (tg.WL(), "tree"),
        (tg.WL(), "root"),
        (tg.ODDST(2), "tree"),
        (tg.ODDST(2), "root"),
        (tg.NSPDK(), "root"),
    ]
    return "\n\n".join(
        [
            table(
                "Planted motifs: " + held_out,
                ["motifs", "kernel", "attributed to", "accuracy", "node AUROC", "edge AUROC"],
                rows,
            ),
            table(
                "Features that 90 % of the graphs of either class have, on house and cycle",
                ["kernel", "features", "part of all contributions, for or against"],
                [common_features(kernel) for kernel in (tg.WLOA(), tg.WL(), tg.ODDST(2))],
            ),
            table(
                "Deletion: mean decision for the true class with 0, 1, ... nodes of 25 deleted",
                ["motifs", "kernel", "deleted", *map(str, N_DELETED)],
                [row for case in DELETED for row in deleted(*case)],
            ),
            table(
                "MUTAG: nitro groups, 5 folds",
                ["kernel", "attributed to", "accuracy", "node AUROC"],
                [mutag(kernel, attribute_to) for kernel, attribute_to in molecules],
            ),
            table(
                "Cost: 100 graphs explained, 100 fitted, of all classes (ENZYMES 6, else 2)",
                ["data", "kernel", "decision_function", "explain", "ratio", 'ratio with "root"', "residual"],
                [cost(*case) for case in COSTS],
            ),
        ]
    )


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--figure":
        draw(Path(sys.argv[2]))
    else:
        print(f"{machine()}\n\n{main()}")
