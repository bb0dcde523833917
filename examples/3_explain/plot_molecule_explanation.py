"""
Which atoms made the decision?
==============================

Aromatic nitro compounds are often mutagenic. Here the class is the presence of a nitro group. A support vector machine
learns it from molecules that differ in many other ways, and the explanation shows which atoms decide.
"""

import itertools

import matplotlib.pyplot as plt
import numpy as np
from rdkit import Chem
from rdkit.Chem import rdDepictor

import treegram as tg

rings = ["c1cc({})ccc1{}", "c1cnc({})cc1{}", "c1c({})cc2ccccc2c1{}", "c1cc({})sc1{}"]
groups = ["C", "O", "N", "Cl", "OC", "C(=O)O", "C(=O)N", "C#N", "N(C)C", "C(C)=O"]
nitro = "[N+](=O)[O-]"
plain = list(itertools.product(groups, groups))
mixed = [pair for g in groups for pair in ((g, nitro), (nitro, g))]
others = [ring.format(*pair) for ring in rings for pair in plain]
nitros = [ring.format(*pair) for ring in rings for pair in mixed]
smiles = np.random.default_rng(0).permutation([*others[::5], *nitros]).tolist()
y = np.array([nitro in text for text in smiles])
# Elements become labels, and types of bonds edge labels
graphs = tg.Graphs.from_smiles(smiles)
print(graphs)

# %%
# The model is chosen and fitted on 80 molecules, and tested on the others.

kernel = tg.WLOA(use_edge_labels=True)
model = tg.GraphSVC(kernel, param_grid={"n_iterations": [1, 2]}, C=[1, 10], cv=5)
model.fit(graphs[:80], y[:80])
new = graphs[80:]
print(f"accuracy on {len(new)} new molecules: {model.score(new, y[80:]):.0%}")
explanation = tg.explain(model, new)

# %%
# RDKit computes the positions of the atoms in a drawing.


def positions(text):
    molecule = Chem.MolFromSmiles(text)
    rdDepictor.Compute2DCoords(molecule)
    return molecule.GetConformer().GetPositions()[:, :2]


shown = [*np.flatnonzero(y[80:])[:4], *np.flatnonzero(~y[80:])[:2]]
fig, axes = plt.subplots(2, 3, figsize=(11, 6.6), layout="constrained")
for ax, i in zip(axes.flat, shown, strict=True):
    text = smiles[80 + i]
    style = {"layout": positions(text), "colorbar": False}
    tg.plot_explanation(explanation, i, ax=ax, title="", **style)
    ax.set_title(f"{text}\ndecision {explanation.decisions[i]:+.2f}", fontsize=10)
fig.suptitle("Red atoms favor a nitro compound, blue ones oppose it")
plt.show()
