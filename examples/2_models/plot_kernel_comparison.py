"""
Kernels compared
================

Which kernel suits which data? Here are six kernels on three kinds of generated or bundled graphs, all on the same
folds. The vertical line is the fraction of graphs in the largest class.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

import treegram as tg

digits, digit = tg.load_digits_graphs()
motifs, motif, _ = tg.make_motifs(
    120, motifs=["house", "cycle", "star"], n_attributes=2, random_state=0
)
marked, kind, _ = tg.make_motifs(
    160,
    motifs=["house", "house", "cycle", "cycle"],
    n_attributes=2,
    shift=2.0,
    random_state=0,
)
data = {
    "digits (vectors matter)": (digits[:250], digit[:250]),
    "planted motifs (shape matters)": (motifs, motif),
    "marked motifs (both matter)": (marked, kind),
}
kernels = {
    "ODDCL": tg.ODDCL(depth=2),
    "WLCL": tg.WLCL(n_iterations=2),
    "GraphHopper": tg.GraphHopper(),
    "ODDST": tg.ODDST(depth=2),
    "WL": tg.WL(n_iterations=2),
    "WLOA": tg.WLOA(n_iterations=2),
}
sees_vectors = {"ODDCL", "WLCL", "GraphHopper"}
folds = StratifiedKFold(5, shuffle=True, random_state=0)

fig, axes = plt.subplots(3, 1, figsize=(6.4, 8.4), sharex=True, layout="constrained")
for ax, (title, (graphs, y)) in zip(axes, data.items(), strict=True):
    ax.axvline(np.bincount(y).max() / len(y), color="0.6", linestyle="--", linewidth=1)
    for row, (name, kernel) in enumerate(kernels.items()):
        scores = cross_val_score(
            SVC(kernel="precomputed", C=10), kernel.fit_transform(graphs), y, cv=folds
        )
        color = "C0" if name in sees_vectors else "C1"
        ax.scatter(scores, [row] * len(scores), color=color, alpha=0.35, s=22)
        ax.scatter(scores.mean(), row, color=color, s=75, edgecolors="white", zorder=3)
    ax.set(xlim=(0, 1.04), title=title)
    ax.set_yticks(range(len(kernels)), kernels)
    ax.invert_yaxis()
axes[-1].set_xlabel("accuracy")
axes[0].scatter([], [], color="C0", label="labels, shape and vectors")
axes[0].scatter([], [], color="C1", label="labels and shape")
fig.legend(loc="outside lower center", ncols=2, frameon=False)
plt.show()

# %%
# Large points are means and small points are folds. No kernel is the best everywhere, which is why
# :class:`treegram.GraphSVC` compares several by cross-validation.
