"""
Molecules: from SMILES to error bars
====================================

A table of measured molecules, a table of new ones, and five lines to predictions with error bars. The tables are generated here:
molecules from common groups, with a solubility computed by Delaney's equation, and noise like that of measurements.
"""

import csv
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import treegram as tg

folder = Path(tempfile.mkdtemp())
smiles, solubility = tg.make_molecules(260, random_state=0)
for name, part in (("measured", slice(0, 200)), ("new", slice(200, None))):
    with (folder / f"{name}.csv").open("w", newline="") as table:
        rows = csv.writer(table)
        rows.writerow(["name", "smiles", "solubility"])
        numbers = range(len(smiles))[part]
        rows.writerows((f"M{i:03d}", smiles[i], solubility[i]) for i in numbers)

# %%
# The whole journey
# -----------------
#
# An atom is a node with its element as label, a bond is an edge, and each molecule has RDKit's descriptors. The model is a
# Gaussian process that chooses its kernels itself.

columns = {"target": "solubility", "descriptors": "rdkit2d"}
graphs, y = tg.load_molecules(folder / "measured.csv", **columns)
new, y_new = tg.load_molecules(folder / "new.csv", **columns)
model = tg.GraphRegressor().fit(graphs, y)
mean, std = model.predict(new, return_std=True)

# %%
# The predictions keep the names of the molecules:

for name, value, error in zip(new.graph_names[:5], mean, std, strict=False):
    print(f"{name}: {value:.2f} ± {error:.2f}")

# %%
# On the command line it takes two lines, and the first columns of the result are the name and the SMILES of each molecule:
#
# .. code-block:: text
#
#     treegram fit measured.csv --target solubility -o model.tgm
#     treegram predict model.tgm new.csv -o predictions.csv
#
# Are the error bars right? About 95 % of the molecules should be within two standard deviations, noise included.

order = np.argsort(mean)
inside = np.abs(y_new - mean) <= 2 * std
fig, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
ax.errorbar(
    range(len(mean)),
    mean[order],
    2 * std[order],
    fmt="none",
    ecolor="0.75",
    label="± 2 standard deviations",
)
ax.plot(mean[order], ".", color="C0", label="prediction")
ax.plot(y_new[order], "x", color="C3", label="measurement")
ax.set(
    xlabel="new molecules, sorted by prediction",
    ylabel="log solubility",
    title=f"{inside.mean():.0%} of {len(mean)} new molecules are within two standard deviations",
)
ax.legend(frameon=False)
plt.show()
