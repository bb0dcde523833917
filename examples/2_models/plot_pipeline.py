"""
Vectors in a pipeline
=====================

The node kernel compares vectors by distance, so the scale of each attribute matters. Transformers in front of a kernel
change the vectors, and cross-validation shows which of them helps.

The class of a graph is the attribute that is shifted at its planted nodes: 0, 1 or 2. A fourth attribute is noise on a larger
scale. Without scaling, it hides the others.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import treegram as tg

plain, y, _ = tg.make_motifs(
    180, motifs=["star"] * 3, n_attributes=3, shift=2.5, random_state=0
)
noise = np.random.default_rng(0).normal(0, 100, (plain.n_nodes, 1))  # on a larger scale
graphs = tg.Graphs.from_arrays(
    plain.offsets, plain.edges(), attributes=np.hstack([plain.attributes, noise])
)

steps = {
    "unchanged": [],
    "dropped": [tg.DropAttributes()],
    "standardized": [tg.ScaleAttributes()],
    "robustly scaled": [tg.ScaleAttributes("robust")],
    "standardized, with\nmeans of neighbors": [
        tg.ScaleAttributes(),
        tg.NeighborMeans(0.5),
    ],
}
folds = StratifiedKFold(5, shuffle=True, random_state=0)
svm = SVC(kernel="precomputed", C=10)
scores = [
    cross_val_score(make_pipeline(*step, tg.ODDCL(depth=1), svm), graphs, y, cv=folds)
    for step in steps.values()
]

fig, ax = plt.subplots(figsize=(6.8, 4), layout="constrained")
ax.boxplot(
    scores,
    orientation="horizontal",
    widths=0.5,
    patch_artist=True,
    boxprops={"facecolor": "#cfe8dd", "edgecolor": "#1b6b50"},
    medianprops={"color": "#1b6b50", "linewidth": 2},
)
ax.set_yticks(range(1, len(steps) + 1), steps)
ax.axvline(1 / 3, color="0.6", linestyle="--", linewidth=1)
ax.text(1 / 3, 5.4, "largest class ", ha="right")
ax.invert_yaxis()
ax.set(
    xlim=(0, 1.02),
    xlabel="accuracy over five folds",
    title="The same graphs and kernel after different preprocessing",
)
plt.show()

# %%
# The model can also make this choice itself, separately in each training set:

kernels = [make_pipeline(*step, tg.ODDCL(depth=1)) for step in steps.values()]
model = tg.GraphSVC(kernels, param_grid={}, C=10, cv=5).fit(graphs, y)
print(model.best_params_)
