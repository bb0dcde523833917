"""
Your own graphs
===============

Graphs come from edge lists, networkx and other libraries. Nodes may have a label, a vector, both, or neither.

Here are five small molecules. Their labels are elements, and their vectors are electronegativities, one number for each
atom.
"""

import matplotlib.pyplot as plt
import networkx as nx

import treegram as tg

molecules = {  # bonds, and one label per atom
    "ethanol": ([(0, 1), (1, 2)], "CCO"),
    "methanol": ([(0, 1)], "CO"),
    "dimethyl ether": ([(0, 1), (1, 2)], "COC"),
    "ethylamine": ([(0, 1), (1, 2)], "CCN"),
    "acetic acid": ([(0, 1), (1, 2), (1, 3)], "CCOO"),
}
electronegativity = {"C": 2.55, "N": 3.04, "O": 3.44}

names = list(molecules)
graphs = tg.Graphs.from_edges(
    [bonds for bonds, _ in molecules.values()],
    labels=[elements for _, elements in molecules.values()],
    attributes=[
        [[electronegativity[e]] for e in elements] for _, elements in molecules.values()
    ],
)
print(graphs)

# %%
# A networkx graph can join the others.

urea = nx.Graph([("c", "o"), ("c", "n1"), ("c", "n2")])
nx.set_node_attributes(urea, {"c": "C", "o": "O", "n1": "N", "n2": "N"}, "element")
nx.set_node_attributes(urea, {"c": 2.55, "o": 3.44, "n1": 3.04, "n2": 3.04}, "chi")
graphs += tg.Graphs.from_networkx([urea], label="element", attributes=["chi"])
names += ["urea"]

# %%
# Every kernel takes the collection as it is. The matrix shows, for example, that ethanol is closer to methanol than to
# dimethyl ether, which has the same atoms.

K = tg.ODDCL(depth=2).fit_transform(graphs)

fig = plt.figure(figsize=(6.4, 8.4), layout="constrained")
drawings, matrix = fig.subfigures(2, 1, height_ratios=[1, 2])
for i, ax in enumerate(drawings.subplots(2, 3).flat):
    tg.plot_graph(graphs, i, ax=ax, title=names[i])
ax = matrix.subplots()
tg.plot_gram(
    K, ax=ax, cmap="Greens", colorbar=False, title="Similarity, ODDCL(depth=2)"
)
for i, row in enumerate(K):
    for j, value in enumerate(row):
        ax.text(
            j,
            i,
            f"{value:.2f}",
            ha="center",
            va="center",
            color="white" if value > 0.6 else "black",
        )
ax.set(xlabel="", ylabel="", yticks=range(len(K)), yticklabels=names)
ax.set_xticks(range(len(K)), names, rotation=30, ha="right")
plt.show()
