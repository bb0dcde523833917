"""
Why a 3 and not an 8?
=====================

With more than two classes there is one decision for each pair of classes, and each has its own explanation: the nodes that
distinguish a 3 from an 8 are not those that distinguish it from a 5.
"""

import matplotlib.pyplot as plt
import numpy as np

import treegram as tg

graphs, y = tg.load_digits_graphs()
chosen = np.isin(y, [3, 5, 8])
graphs, y = graphs[chosen], y[chosen]
model = tg.GraphSVC(tg.ODDCL(depth=1), param_grid={}, C=10, cv=5).fit(
    graphs[:300], y[:300]
)
new, truth = graphs[300:], y[300:]
explanation = tg.explain(model, new)
print(f"accuracy {model.score(new, truth):.1%}, decisions: {explanation.outputs}")

# %%
# The nodes are pixels, so their vectors contain their positions.

pairs = [(3, 5), (3, 8), (5, 8)]
fig, axes = plt.subplots(2, 3, figsize=(11, 6.8), layout="constrained")
for row, digit in zip(axes, (3, 8), strict=True):
    graph = np.flatnonzero(truth == digit)[1]
    positions = new[graph].attributes[:, [1, 0]] * [1, -1]
    for ax, pair in zip(row, pairs, strict=True):
        output = explanation.outputs.index(pair)
        tg.plot_explanation(
            explanation, graph, output=output, layout=positions, ax=ax, colorbar=False
        )
        ax.set_title(
            f"{pair[0]} (red) or {pair[1]} (blue): {explanation.decisions[graph, output]:+.2f}",
            fontsize=11,
        )
        for text in ax.texts:
            text.set_visible(False)  # all pixels have the same label
fig.suptitle(
    "Contributions of the pixels to three decisions about a 3 (top) and an 8 (bottom)"
)
plt.show()
