"""
Predict a number: solubility
============================

:class:`treegram.GraphRidge` predicts numbers. The targets here are solubilities of generated molecules.
:func:`treegram.make_molecules` computes them by a published equation and adds noise, so they are not measured.

:meth:`treegram.Graphs.from_smiles` reads the molecules. Labels are elements, and each atom carries a vector of two
numbers: its contributions to Crippen's logP and to the polar surface.
"""

import matplotlib.pyplot as plt
import numpy as np

import treegram as tg

smiles, y = tg.make_molecules(300, noise=0.3, random_state=0)
graphs = tg.Graphs.from_smiles(smiles, attributes=["logp", "polar_surface"])
print(graphs)

# %%
# The model is chosen and fitted on 200 molecules, and tested on 100 others. Solubility falls with the size of a molecule, so the kernels
# are not normalized.

kernels = [tg.WL(normalize=False), tg.WLCL(gamma="scale", normalize=False)]
model = tg.GraphRidge(kernels, param_grid={"n_iterations": [0, 1, 2]})
model.fit(graphs[:200], y[:200])
predicted = model.predict(graphs[200:])
error = np.sqrt(np.mean((predicted - y[200:]) ** 2))
print(model.best_params_, f"RMSE {error:.2f}")

# %%
fig, ax = plt.subplots(figsize=(6.2, 5.6), layout="constrained")
limits = [y.min() - 0.3, y.max() + 0.3]
ax.plot(limits, limits, color="0.7", linewidth=1, zorder=1)
style = {"cmap": "viridis", "edgecolors": "white", "linewidths": 0.5, "s": 45}
points = ax.scatter(y[200:], predicted, c=graphs[200:].sizes, **style)
fig.colorbar(points, label="atoms")
ax.set(xlim=limits, ylim=limits, xlabel="log solubility", ylabel="predicted")
ax.set_aspect("equal")
r2 = model.score(graphs[200:], y[200:])
ax.set_title(f"100 new molecules: R² = {r2:.2f}, RMSE = {error:.2f}")
plt.show()
