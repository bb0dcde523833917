"""
How many graphs are enough?
===========================

A learning curve shows whether more data would help. scikit-learn's own ``learning_curve`` takes a Gram matrix in place of
rows, so each kernel is computed once for all sizes and folds.
"""

import matplotlib.pyplot as plt
from sklearn.model_selection import StratifiedKFold, learning_curve
from sklearn.svm import SVC

import treegram as tg

graphs, y = tg.load_digits_graphs()
graphs, y = graphs[:500], y[:500]
folds = StratifiedKFold(5, shuffle=True, random_state=0)
sizes = [40, 80, 160, 240, 400]

fig, ax = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
kernels = {
    "ODDCL: trees and vectors": tg.ODDCL(depth=1),
    "GraphHopper: paths and vectors": tg.GraphHopper(),
    "WL: shape alone": tg.WL(n_iterations=2),
}
for name, kernel in kernels.items():
    K = kernel.fit_transform(graphs)
    _, _, scores = learning_curve(
        SVC(kernel="precomputed", C=10), K, y, train_sizes=sizes, cv=folds
    )
    mean, deviation = scores.mean(axis=1), scores.std(axis=1)
    (line,) = ax.plot(sizes, mean, marker="o", label=name)
    ax.fill_between(
        sizes,
        mean - deviation,
        mean + deviation,
        color=line.get_color(),
        alpha=0.15,
        linewidth=0,
    )
ax.set(
    xlabel="training graphs",
    ylabel="accuracy on held-out graphs",
    xscale="log",
    ylim=(0, 1.02),
)
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.set_title("Digits: the band is one standard deviation over five folds")
ax.legend(loc="center right", bbox_to_anchor=(1, 0.62), frameon=False)
plt.show()

# %%
# No curve has leveled off: more digits would help all three. WL stays far below the others, because the shape of the
# ink alone does not determine the digit.
