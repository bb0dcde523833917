"""
Which classes are confused?
===========================

:class:`treegram.GraphSVC` chooses the kernel's parameters and C by cross-validation, and then predicts new graphs. The
confusion matrix shows which digits it mistakes for which, and the drawings on the right show some that it gets wrong.
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
fig = plt.figure(figsize=(11, 5.5), layout="constrained")
left, right = fig.subfigures(1, 2, width_ratios=[1.25, 1])
ConfusionMatrixDisplay.from_predictions(
    y[test], predicted, ax=left.subplots(), cmap="Blues", colorbar=False
)

wrong = np.flatnonzero(predicted != y[test])[:9]
right.suptitle("Digits that were misread")
for ax, i in zip(right.subplots(3, 3).flat, wrong, strict=False):
    graph = graphs[test][i]
    row, column, ink = graph.attributes.T
    for a, b in graph.edges():
        ax.plot(column[[a, b]], -row[[a, b]], color="0.75", linewidth=1, zorder=1)
    ax.scatter(
        column,
        -row,
        c=ink,
        cmap="Greys",
        vmin=0,
        s=35,
        edgecolors="0.3",
        linewidths=0.5,
        zorder=2,
    )
    ax.set_title(f"{y[test][i]} read as {predicted[i]}", fontsize=10)
    ax.set_aspect("equal")
    ax.margins(0.15)
    ax.axis("off")
plt.show()
