"""
Learn from a stream
===================

A million graphs have a Gram matrix of 8 TB. :class:`treegram.FeatureMap` returns one row per graph instead, so that a
linear model can learn chunk by chunk, in the memory of one chunk.

The chunks here are cut from the digits. :func:`treegram.iter_tu` reads them from files.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import SGDClassifier

import treegram as tg

graphs, y = tg.load_digits_graphs()
test, y_test = graphs[1400:], y[1400:]
chunks = [slice(start, start + 100) for start in range(0, 1400, 100)]

# %%
# The features are fitted on the first chunk. With Fourier features, the columns depend on the parameters alone.
# After each chunk, the model is tested on held-out graphs.

features = tg.FeatureMap(
    tg.ODDCLApprox(1, method="rff", n_components=128, random_state=0),
    n_features=2048,
    random_state=0,
).fit(graphs[chunks[0]])
rows_test = features.transform(test)
model = SGDClassifier(loss="log_loss", alpha=1e-5, average=True, random_state=0)
seen, accuracy = [], []
for n_chunks, chunk in enumerate(chunks, start=1):
    rows = features.transform(graphs[chunk])
    for _ in range(5):
        model.partial_fit(rows, y[chunk], classes=np.arange(10))
    seen.append(100 * n_chunks)
    accuracy.append(model.score(rows_test, y_test))

# %%
# The exact kernel, for comparison, sees all 1400 graphs at once.

exact = (
    tg.GraphSVC(tg.ODDCL(depth=1), param_grid={}, C=10, cv=3)
    .fit(graphs[:1400], y[:1400])
    .score(test, y_test)
)

fig, ax = plt.subplots(figsize=(8, 4.6), layout="constrained")
ax.plot(seen, accuracy, marker="o", label="linear model, one chunk at a time")
ax.axhline(exact, color="C1", linestyle="--", label="GraphSVC on all 1400 graphs")
ax.set(
    xlabel="graphs seen",
    ylabel="accuracy on 397 held-out graphs",
    title="Accuracy along the stream",
)
ax.set_ylim(min(accuracy) - 0.03, 1.0)
ax.yaxis.set_major_formatter("{x:.0%}")
ax.legend(loc="lower right", frameon=False)
plt.show()
