"""
Learn from files, and on a cluster
==================================

A fitted :class:`treegram.GraphClassifier` from Parquet files, chunk by chunk: for graphs that do not fit into memory.
The same call takes partitions on a `Dask <https://distributed.dask.org>`_ cluster, and gives the same model.

The 12,500 graphs here are random trees with a house or a cycle of five nodes, and take seconds. A hundred thousand
molecules take minutes: see :doc:`/big_data`.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster

import treegram as tg

# %%
# Each file holds some of the graphs, with their classes. Databases and data sets on Hugging Face come as such files.

folder = tempfile.TemporaryDirectory()
paths = [str(Path(folder.name, f"{number}.parquet")) for number in range(5)]
for number, path in enumerate(paths):
    graphs, y, _ = tg.make_motifs(2500, n_nodes=8, random_state=number)
    mixed = np.random.default_rng(number).permutation(2500)[:2400]
    y = np.where(np.arange(2500) % 20 == 0, 1 - y, y)  # 5 % of the classes are wrong
    tg.save_parquet(graphs.assign(targets=y)[mixed], path)

# %%
# Chunks are pairs of graphs and targets, which ``fit`` reads once. It keeps what it needs in temporary files, which
# are removed at the end. The files may be sorted by class.

chunks = (chunk for path in paths for chunk in tg.iter_parquet(path, chunk_size=1000))
model = tg.GraphClassifier().fit(chunks)
model.search_summary()

# %%
# On a cluster, each worker reads a file, and its graphs stay there: only sums travel. With a real one, the address of
# its scheduler goes into ``Client("address:8786")``. A script that starts processes of its own (``processes=True``)
# needs ``if __name__ == "__main__":`` above these lines.

with (
    LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster,
    Client(cluster) as client,
):
    partitions = client.map(tg.load_parquet, paths)
    on_cluster = tg.GraphClassifier().fit(partitions)

# %%
# Both models decide alike about new graphs: sums in another order are rounded differently.

new, y_new, is_motif = tg.make_motifs(400, n_nodes=8, random_state=9)
difference = model.decision_function(new) - on_cluster.decision_function(new)
print(f"largest difference of two decisions: {np.abs(difference).max():.0e}")
print(f"accuracy on new graphs: {model.score(new, y_new):.3f}")

# %%
# A decision is the sum of what nodes add and of what numbers of the whole graph add, such as that of its edges. Nodes
# of the planted motif add the most.

explanation = tg.explain(model, new)
print(f"largest error of a sum: {explanation.residual:.0e}")
parts = np.abs(np.concatenate(explanation.node_contributions))
fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
axes[0].hist(
    [model.predict_proba(new[y_new == c])[:, 1] for c in (0, 1)],
    bins=20,
    label=["house", "cycle"],
)
axes[0].set(xlabel="probability of a cycle", ylabel="new graphs")
axes[0].legend(frameon=False, title="planted")
axes[1].boxplot([parts[is_motif], parts[~is_motif]], showfliers=False)
axes[1].set_xticks([1, 2], ["motif", "tree"])
axes[1].set(ylabel="size of a node's contribution", xlabel="node of")
plt.show()
folder.cleanup()
