"""
What the parameters do
======================

``depth`` limits how far a tree of ODDCL reaches, and ``lam`` sets how much large trees count. :class:`treegram.GraphSVC` tries
all combinations with each C. All Gram matrices of the grid come from one pass over the graphs, which takes little longer
than a single matrix.
"""

import matplotlib.pyplot as plt
import numpy as np

import treegram as tg

graphs, y = tg.make_synthetic(
    200, n_nodes=40, n_edges=70, rewired=(2, 6), permuted=(0, 0), random_state=0
)
depths, lams, Cs = [0, 1, 2, 3], [0.1, 0.5, 1.0, 1.5, 2.0], [0.1, 1, 10, 100]
model = tg.GraphSVC(
    tg.ODDCL(), param_grid={"depth": depths, "lam": lams}, C=Cs, cv=5
).fit(graphs, y)
print(model.best_params_, f"{model.best_score_:.1%}")

# %%
# For each combination, the figure shows the accuracy at the best C. At depth 0 a tree is one node, so ``lam`` changes nothing.

results = model.cv_results_
best = np.zeros((len(depths), len(lams)))
for params, score in zip(results["params"], results["mean_test_score"], strict=True):
    cell = depths.index(params["kernel"].depth), lams.index(params["kernel"].lam)
    best[cell] = max(best[cell], score)

fig, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
image = ax.imshow(best, cmap="viridis", origin="lower", aspect="auto")
for (row, column), value in np.ndenumerate(best):
    color = "black" if value > best.min() + 0.6 * np.ptp(best) else "white"
    ax.text(column, row, f"{value:.0%}", ha="center", va="center", color=color)
ax.set_xticks(range(len(lams)), lams)
ax.set_yticks(range(len(depths)), depths)
ax.set(
    xlabel="lam: weight of large trees",
    ylabel="depth of the trees",
    title="Accuracy on held-out folds",
)
fig.colorbar(image, format="{x:.0%}")
plt.show()
