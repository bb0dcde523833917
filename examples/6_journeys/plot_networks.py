"""
Networks: groups, a map and look-alikes
=======================================

A folder of edge lists, one for each network, and ten lines to groups of similar networks, a map to look at, and a table
of the networks that are most like a given one. No targets are needed. The networks are generated here: teams in
which people know each other at random, circles of friends, and followers who gather around a few hubs.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import networkx as nx

folder = Path(tempfile.mkdtemp())
for seed in range(20):
    random = nx.gnp_random_graph(20, 0.35, seed=seed)
    circle = nx.watts_strogatz_graph(24, 4, 0.1, seed=seed)
    hubs = nx.barabasi_albert_graph(25, 2, seed=seed)
    for kind, network in (("random", random), ("circle", circle), ("hubs", hubs)):
        nx.write_edgelist(network, folder / f"{kind}{seed:02d}.edgelist")

# %%
# The whole journey
# -----------------
#
# A kernel that suits most graphs makes the distances; HDBSCAN of scikit-learn finds the groups.

import networkx as nx
from sklearn.cluster import HDBSCAN

import treegram as tg

paths = sorted(folder.glob("*.edgelist"))
networks = [nx.read_edgelist(path) for path in paths]
graphs = tg.Graphs.from_networkx(networks, graph_names=[path.stem for path in paths])
distances = tg.KernelDistances().fit_transform(graphs)
groups = HDBSCAN(metric="precomputed", copy=True).fit_predict(distances)
tg.plot_map(graphs, groups, path=folder / "map.html")
tg.similar_graphs(graphs, "hubs03", k=5).to_csv(folder / "similar.csv")

# %%
# ``map.html`` shows the names when you hover over a point. On the command line, with the networks as a data set:
#
# .. code-block:: text
#
#     treegram map NETWORKS -o map.html
#     treegram similar NETWORKS --to hubs03
#
# Are the groups the three kinds of networks? A network that is like none of them would be in group -1.

kinds = [path.stem[:-2] for path in paths]
for kind in sorted(set(kinds)):
    members = [
        int(group) for group, name in zip(groups, kinds, strict=True) if name == kind
    ]
    print(f"{kind}: groups {sorted(set(members))}")
print((folder / "similar.csv").read_text())
plt.show()
