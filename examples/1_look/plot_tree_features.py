"""
Trees as features
=================

ODDST counts trees. The count of each tree is an explicit feature with a readable name, so a linear model on these
features is readable, too.

Each graph is a random tree in which either a house or a cycle of five nodes is hidden. Nodes have no labels, so the
kernel uses their degrees: ``3(2,3,3)`` is a node of degree 3 whose neighbors have degrees 2, 3 and 3.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import treegram as tg

graphs, y, _ = tg.make_motifs(200, motifs=["house", "cycle"], random_state=0)
model = make_pipeline(tg.FeatureMap(tg.ODDST(depth=1)), LogisticRegression(C=100))
print(f"accuracy: {cross_val_score(model, graphs, y, cv=5).mean():.1%}")

# %%
# Positive weights favor the cycle, negative weights the house.

features, linear = model.fit(graphs, y)
weights = linear.coef_[0]
names = np.array(features.get_feature_names_out())
order = np.argsort(weights)
largest = np.concatenate([order[:5], order[-5:]])

fig = plt.figure(figsize=(6.4, 6.4), layout="constrained")
bars, trees = fig.subfigures(2, 1, height_ratios=[1.5, 1])
ax = bars.subplots()
ax.barh(
    names[largest],
    weights[largest],
    color=np.where(weights[largest] > 0, "#b5482f", "#2f6db5"),
)
ax.axvline(0, color="0.5", linewidth=0.8)
ax.set(
    xlabel="weight: house (left), cycle (right)",
    title="The five trees that matter most for each motif",
)
for ax, i, motif in zip(
    trees.subplots(1, 2), (largest[0], largest[-1]), ("house", "cycle"), strict=True
):
    tg.plot_tree(names[i], ax=ax, title=f"favors a {motif}")
plt.show()
