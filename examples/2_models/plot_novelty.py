"""
Detect unusual graphs
=====================

A one-class support vector machine learns what is normal and detects what is not. It needs no examples of unusual graphs.

Here the digit 0 is normal. The model is fitted on zeros alone, and then predicts other zeros and all other digits.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.svm import OneClassSVM

import treegram as tg

graphs, y = tg.load_digits_graphs()
zeros = np.flatnonzero(y == 0)
train = graphs[zeros[:100]]
new = graphs[np.concatenate([zeros[100:], np.flatnonzero(y != 0)[:400]])]
is_zero = np.arange(len(new)) < len(zeros) - 100

detector = make_pipeline(
    tg.ODDCL(depth=1), OneClassSVM(kernel="precomputed", nu=0.05)
).fit(train)
score = detector.decision_function(new)
accepted, rejected = score[is_zero] > 0, score[~is_zero] < 0
print(f"accepted zeros: {accepted.mean():.0%}, rejected others: {rejected.mean():.0%}")

# %%
fig = plt.figure(figsize=(6.4, 7.6), layout="constrained")
above, below = fig.subfigures(2, 1)
ax = above.subplots()
bins = np.linspace(score.min(), score.max(), 40)
ax.hist(score[~is_zero], bins, color="C1", alpha=0.75, label="other digits")
ax.hist(score[is_zero], bins, color="C0", alpha=0.75, label="zeros")
ax.axvline(0, color="0.5", linestyle="--", linewidth=1)
ax.set(
    xlabel="decision: unusual (left), normal (right)",
    ylabel="graphs",
    title="New graphs",
)
ax.legend(frameon=False)

below.suptitle("Most normal graphs (top), most unusual zeros (bottom)")
order = np.argsort(-score)
unusual_zeros = np.flatnonzero(is_zero)[np.argsort(score[is_zero])][:3]
for ax, i in zip(below.subplots(2, 3).flat, [*order[:3], *unusual_zeros], strict=True):
    row, column, ink = new[i].attributes.T
    ax.scatter(column, -row, s=15 * ink, color="C0")
    ax.set_title(f"{score[i]:+.2f}", fontsize=10)
    ax.set_aspect("equal")
    ax.margins(0.15)
    ax.axis("off")
plt.show()
