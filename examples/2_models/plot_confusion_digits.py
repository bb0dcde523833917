"""
Which classes are confused?
===========================

:class:`treegram.GraphSVC` chooses the kernel's parameters and C by cross-validation, and then predicts new graphs. The
confusion matrix shows which digits it mistakes for which, and the drawings below it show some that it gets wrong.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import ConfusionMatrixDisplay

import treegram as tg

graphs, y = tg.load_digits_graphs()
train, test = slice(0, 400), slice(400, 800)
model = tg.GraphSVC(
    tg.ODDCL(), param_grid={"depth": [0, 1, 2]}, C=[1, 10, 100], cv=5
).fit(graphs[train], y[train])
predicted = model.predict(graphs[test])
print(model.best_params_)

# %%
fig = plt.figure(figsize=(6.4, 9.6), layout="constrained")
above, below = fig.subfigures(2, 1, height_ratios=[2, 1])
ConfusionMatrixDisplay.from_predictions(
    y[test], predicted, ax=above.subplots(), cmap="Blues", colorbar=False
)

wrong = np.flatnonzero(predicted != y[test])[:8]
below.suptitle("Digits that were misread")
for ax, i in zip(below.subplots(2, 4).flat, wrong, strict=False):
    graph = graphs[test][i]
    row, column, ink = graph.attributes.T
    for a, b in graph.edges():
        ax.plot(column[[a, b]], -row[[a, b]], color="0.5", linewidth=1, zorder=1)
    ax.scatter(column, -row, s=15 * ink, color="C0", zorder=2)
    ax.set_title(f"{y[test][i]} read as {predicted[i]}", fontsize=10)
    ax.set_aspect("equal")
    ax.margins(0.15)
    ax.axis("off")
plt.show()
