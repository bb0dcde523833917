"""
Small subgraphs, counted and drawn
==================================

:class:`treegram.Graphlets` counts all connected subgraphs of at most five nodes. There are 31 kinds, and
each has a name. Here they are drawn, from one node to five, with their numbers in 300 random
graphs with planted motifs.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import treegram as tg

kinds = [
    graph
    for graph in nx.graph_atlas_g()
    if 0 < len(graph) <= 5 and nx.is_connected(graph)
]
kinds = tg.Graphs.from_networkx(kinds)
drawn = tg.make_motifs(300, random_state=0)[0]
drawn = tg.Graphs.from_arrays(drawn.offsets, drawn.edges())  # shape alone

rows = tg.FeatureMap(tg.Graphlets(5, normalize=False)).fit(kinds)
counts = np.asarray(rows.transform(drawn).sum(axis=0)).ravel()

# %%
# A graph contains itself once, and no other graph of its own size. Its only feature of that size is therefore its own name.

names = rows.get_feature_names_out()
own = rows.transform(kinds).toarray()
sizes = np.array([kinds.sizes[column > 0].min() for column in own.T])

fig, axes = plt.subplots(8, 4, figsize=(6.4, 9.6), layout="constrained")
for i, ax in enumerate(axes.flat):
    ax.axis("off")
    if i < len(kinds):
        (column,) = np.flatnonzero((own[i] > 0) & (sizes == kinds.sizes[i]))
        title = f"{names[column]}\n{counts[column]:,.0f}"
        tg.plot_graph(kinds, i, ax=ax, title=title)
        ax.title.set_fontsize(8)
        ax.collections[-1].set(sizes=[90], clip_on=False)  # the nodes
plt.show()
