"""
Graphs in the plane
===================

A kernel defines distances between graphs. Kernel PCA draws graphs as points, so that similar graphs are close to each
other. It takes a Gram matrix, like every kernel method of scikit-learn; the second plot draws some of the graphs
themselves in place of their points.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from sklearn.decomposition import KernelPCA

import treegram as tg

graphs, y = tg.load_digits_graphs()
chosen = np.flatnonzero(np.isin(y, [0, 1, 4, 6]))[:240]
graphs, y = graphs[chosen], y[chosen]
K = tg.ODDCL(depth=2).fit_transform(graphs)

fig, (above, below) = plt.subplots(2, 1, figsize=(6.4, 9.6), layout="constrained")
places = KernelPCA(2, kernel="precomputed").fit_transform(K)
colors = plt.get_cmap("tab10")(y)
above.scatter(*places.T, c=colors, s=22, alpha=0.8)
above.set(
    xlabel="component 1",
    ylabel="component 2",
    title="240 digits, kernel PCA of ODDCL",
)

# Each graph is drawn from its attributes: row, column and ink of its pixels.

taken = []
for graph, position, color in zip(graphs, places, colors, strict=True):
    if any(np.abs((position - other) / [0.06, 0.08]).max() < 1 for other in taken):
        continue  # another graph is there already
    taken.append(position)
    pixels = graph.attributes[:, [1, 0]] * [1, -1]
    pixels = position + 0.006 * (pixels - pixels.mean(axis=0))
    below.add_collection(
        LineCollection(pixels[graph.edges()], colors=[color], linewidths=1.3)
    )
below.set(
    xlim=above.get_xlim(),
    ylim=above.get_ylim(),
    xlabel=above.get_xlabel(),
    ylabel=above.get_ylabel(),
    title=f"{len(taken)} of them, drawn as graphs",
)
plt.show()
