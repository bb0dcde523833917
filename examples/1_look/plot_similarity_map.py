"""
A map of similarities
=====================

A Gram matrix has the similarity of every pair of graphs. Sorted by class, it shows at a glance what a kernel sees.

The graphs are handwritten digits: inked pixels are nodes, neighboring pixels are joined by edges, and each node
carries its position and its ink as a vector. The first kernel sees the shape of the graphs alone. The second also
compares the vectors.
"""

import matplotlib.pyplot as plt

import treegram as tg

graphs, y = tg.load_digits_graphs()
graphs, y = graphs[:300], y[:300]

kernels = {
    "WL: shape alone": tg.WL(n_iterations=2),
    "ODDCL: shape and vectors": tg.ODDCL(depth=2),
}

fig, axes = plt.subplots(2, 1, figsize=(5.6, 9.6), layout="constrained")
for ax, (title, kernel) in zip(axes, kernels.items(), strict=True):
    tg.plot_gram(kernel.fit_transform(graphs), y, ax=ax, title=title)
fig.suptitle("300 handwritten digits, sorted by digit")
plt.show()

# %%
# Bright squares along the diagonal are digits of one class that resemble each other. Bright squares elsewhere are digits that are
# easily confused: ODDCL finds that a 1 resembles an 8, and a 3 resembles a 9.
