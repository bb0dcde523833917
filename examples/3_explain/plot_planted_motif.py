"""
Which nodes made the decision?
==============================

A decision of a kernel machine is a sum over the nodes of a graph. :func:`treegram.explain` gives the exact contribution of
each node: the contributions add up to the decision.

Each graph is a random tree with a motif planted in it. The motif is the class, so we know which nodes should matter.
The outlined nodes are those of the motif, which the model does not know.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

import treegram as tg

graphs, y, is_motif = tg.make_motifs(200, motifs=["house", "cycle"], random_state=0)
model = tg.GraphSVC(tg.WLOA(), param_grid={}, C=[1, 10], cv=5).fit(graphs[::2], y[::2])
new, truth = graphs[1::2], np.split(is_motif, graphs.offsets[1:-1])[1::2]

explanation = tg.explain(model, new)
sign = np.where(explanation.decisions > 0, 1, -1)
auroc = np.mean(
    [
        roc_auc_score(t, s * contributions)
        for t, s, contributions in zip(
            truth, sign, explanation.node_contributions, strict=True
        )
    ]
)
print(f"accuracy {model.score(new, y[1::2]):.0%}, node AUROC {auroc:.3f}")
print(
    f"largest difference between a decision and the sum of its contributions: {explanation.residual:.0e}"
)

# %%
fig, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
for ax, i, motif in zip(axes, (10, 60), ("house", "cycle"), strict=True):
    tg.plot_explanation(
        explanation,
        i,
        ax=ax,
        title=f"A {motif}: decision {explanation.decisions[i]:+.2f}",
    )
    positions = ax.collections[-1].get_offsets()[truth[i]]
    ax.scatter(
        *positions.T,
        s=420,
        facecolors="none",
        edgecolors="black",
        linewidths=2.2,
        zorder=1.5,
    )
fig.suptitle("Blue favors a house, red a cycle")
plt.show()
