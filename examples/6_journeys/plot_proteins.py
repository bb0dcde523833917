"""
Proteins: from PDB files to residues
====================================

A folder of protein structures, a table with their classes, and eight lines to a page that names the residues behind each
prediction, and to a structure for PyMOL. The structures are generated here: helices, half of which have a binding site of two cysteines and two histidines.
"""

import csv
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
names = ["ALA", "GLY", "LEU", "SER", "GLU", "LYS", "VAL", "THR", "HIS"]
with (folder / "classes.csv").open("w", newline="") as table:
    rows = csv.writer(table)
    rows.writerow(["protein", "class"])
    for i in range(60):
        residues = rng.choice(names, size=30)
        if i % 2:
            residues[[8, 11, 12, 15]] = ["CYS", "HIS", "CYS", "HIS"]
        lines = []
        for k, name in enumerate(residues):  # an ideal helix
            turn = np.deg2rad(100 * k)
            x, y, z = 2.3 * np.cos(turn), 2.3 * np.sin(turn), 1.5 * k
            lines.append(
                f"ATOM  {k + 1:5d}  CA  {name} A{k + 101:4d}    {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00           C"
            )
        (folder / f"{i:02d}hx.pdb").write_text("\n".join([*lines, "END", ""]))
        rows.writerow([f"{i:02d}hx", "binding" if i % 2 else "other"])

# %%
# The whole journey
# -----------------
#
# A node is a residue, and edges join residues whose CA atoms are at most 8 ångströms apart. The model is fitted on the first 40
# structures and explained on the others. The page needs no other file and no network.

import pandas as pd

import treegram as tg

y = pd.read_csv(folder / "classes.csv", index_col="protein")["class"].sort_index()
graphs = tg.Graphs.from_pdb([folder / f"{name}.pdb" for name in y.index])
model = tg.GraphClassifier().fit(graphs[:40], y[:40])
explanation = tg.explain(model, graphs[40:])
explanation.to_html(folder / "page.html", y=y[40:], title="Binding sites")
explanation.to_structure(folder / "colored.pdb", folder / f"{y.index[40]}.pdb")

# %%
# On the command line it takes three lines:
#
# .. code-block:: text
#
#     treegram fit structures --graphs classes.csv --graph-column protein --target class -o model.tgm
#     treegram predict model.tgm new_structures -o predictions.csv
#     treegram explain model.tgm new_structures -o page.html
#
# The picture has the contribution of each residue of one structure, by name.

graph = graphs[41]
values = -explanation.node_contributions[1]  # above 0 for the first class, binding
colors = np.where(values > 0, "#b2182b", "#2166ac")
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.bar(range(len(values)), values, color=colors)
ax.set_xticks(range(len(values)), graph.node_names, rotation=90, fontsize=8)
ax.axhline(0, color="0.6", linewidth=0.8)
ax.set(
    ylabel="contribution to binding",
    title=f"{graph.graph_names[0]}: the residues behind its prediction",
)
plt.show()
