"""
Rare classes
============

If one class is rare, a model that ignores it still has a high accuracy. ``class_weight="balanced"`` makes errors on a class more
costly the rarer it is, and ``scoring="balanced_accuracy"`` chooses parameters by the mean recall of the classes.

Each graph has a star planted in it. In the common class, the first attribute of the star's nodes is larger than elsewhere; in the
rare class, which has one graph in thirteen, the second attribute is.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import ConfusionMatrixDisplay, balanced_accuracy_score

import treegram as tg

graphs, y, _ = tg.make_motifs(
    960, motifs=["star", "star"], n_nodes=8, n_attributes=2, shift=1.2, random_state=0
)
# Keep one graph in twelve of the second class
is_kept = (y == 0) | (np.arange(len(y)) % 12 == 0)
graphs, y = graphs[is_kept], y[is_kept]
train, test = np.arange(len(y)) % 2 == 0, np.arange(len(y)) % 2 == 1
names = np.array(["common", "rare"])

fig, axes = plt.subplots(1, 2, figsize=(7, 3.9), layout="constrained")
options = {
    "default": {},
    "balanced": {"class_weight": "balanced", "scoring": "balanced_accuracy"},
}
for ax, (title, option) in zip(axes, options.items(), strict=True):
    model = tg.GraphSVC(
        tg.WLCL(), param_grid={"n_iterations": [1, 2]}, C=[0.1, 1, 10], cv=5, **option
    )
    predicted = model.fit(graphs[train], y[train]).predict(graphs[test])
    balanced = balanced_accuracy_score(y[test], predicted)
    accuracy = np.mean(predicted == y[test])
    title = f"{title}\naccuracy {accuracy:.0%}, balanced {balanced:.0%}"
    ConfusionMatrixDisplay.from_predictions(
        names[y[test]], names[predicted], ax=ax, cmap="Blues", colorbar=False
    )
    ax.set_title(title)
plt.show()
