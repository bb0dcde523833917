"""
Numbers with error bars
=======================

:class:`treegram.GraphGP` gives a standard deviation with each prediction. It is large where the model knows little: for
graphs unlike all training graphs.

Each graph is a path whose nodes carry numbers around some center, and its target is the mean of a wave over these
numbers, plus noise. The model is fitted on two ranges of centers, and then predicts all.
"""

import matplotlib.pyplot as plt
import numpy as np

import treegram as tg

rng = np.random.default_rng(0)


def make_paths(centers):
    """Make paths of eight nodes whose numbers lie around a center."""
    edges = [[(i, i + 1) for i in range(7)]] * len(centers)
    return tg.Graphs.from_edges(
        edges, attributes=[c + 0.3 * rng.normal(size=(8, 1)) for c in centers]
    )


def target(graphs):
    return np.array([np.sin(2 * graph.attributes).mean() for graph in graphs])


fitted_at = np.concatenate([rng.uniform(-3, -0.7, 25), rng.uniform(0.9, 2.2, 15)])
asked_at = np.linspace(-4, 4, 120)
fitted, asked = make_paths(fitted_at), make_paths(asked_at)
seen = target(fitted) + 0.08 * rng.normal(size=len(fitted))

model = tg.GraphGP(tg.ODDCL(gamma=1.0), param_grid={"depth": [0, 1]}).fit(fitted, seen)
mean, std = model.predict(asked, return_std=True)
print(model.best_params_)

# %%
fig, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
ax.fill_between(
    asked_at,
    mean - 1.645 * std,
    mean + 1.645 * std,
    color="C0",
    alpha=0.18,
    linewidth=0,
    label="90 % interval",
)
ax.plot(asked_at, mean, color="C0", label="prediction")
ax.scatter(asked_at, target(asked), s=10, color="0.55", label="true targets, not seen")
ax.scatter(
    fitted_at,
    seen,
    s=32,
    color="C1",
    edgecolors="white",
    linewidths=0.6,
    zorder=3,
    label="training graphs",
)
ax.set(
    xlabel="center of the graph's vectors",
    ylabel="target",
    title="The model knows where it knows little",
)
fig.legend(loc="outside lower center", ncols=4, frameon=False)
plt.show()
