"""
Molecules: from SMILES to error bars
====================================

A table of measured molecules, a table of new ones, and eight lines to a table of predictions with error bars that says how far each
new molecule is from the measured ones. The tables are generated here:
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

import treegram as tg

columns = {"target": "solubility", "descriptors": "rdkit2d"}
graphs, y = tg.load_molecules(folder / "measured.csv", **columns)
new, y_new = tg.load_molecules(folder / "new.csv", **columns)
model = tg.GraphRegressor().fit(graphs, y)
table = model.applicability(new).to_frame().set_index(new.graph_names)
table["solubility"], table["error"] = model.predict(new, return_std=True)
table.to_csv(folder / "predictions.csv")

# %%
# Each molecule keeps its name, beside its most similar measured molecule:

print(table[["solubility", "error", "nearest_names", "verdict"]].head().round(2))

# %%
# On the command line it takes two lines, and the first columns of the result are the name and the SMILES of each molecule:
#
# .. code-block:: text
#
#     treegram fit measured.csv --target solubility -o model.tgm
#     treegram predict model.tgm new.csv -o predictions.csv
#
# Are the error bars right? About 95 % of the molecules should be within two standard deviations, noise included.

mean, std = table["solubility"].to_numpy(), table["error"].to_numpy()
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
