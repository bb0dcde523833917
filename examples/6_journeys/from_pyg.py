"""
From PyTorch Geometric: which nodes decide?
===========================================

A data set of PyTorch Geometric, and six lines to an accuracy and a table of the contributions of all nodes. Slices of data sets
go straight into models. The data set is generated here, in the format of the TU collection; ``TUDataset("data", "MUTAG")`` would be downloaded.
"""

import tempfile
from pathlib import Path

import treegram as tg

folder = tempfile.mkdtemp()
graphs, y, _ = tg.make_motifs(120, n_attributes=2, shift=1.0, random_state=0)
raw = Path(folder, "MOTIFS", "raw")
raw.parent.mkdir()
tg.save_tu(graphs.assign(targets=y), raw, name="MOTIFS")

# %%
# The whole journey
# -----------------

from torch_geometric.datasets import TUDataset

import treegram as tg

dataset = TUDataset(folder, "MOTIFS", use_node_attr=True)
model = tg.GraphClassifier().fit(dataset[:80], dataset.y[:80])
accuracy = model.score(dataset[80:], dataset.y[80:])
tg.explain(model, dataset[80:]).to_frame().to_csv(f"{folder}/nodes.csv")

# %%
# One line for each node: the graph, the node, and how much it speaks for its class.

print(f"accuracy on new graphs: {accuracy:.0%}")
print(*Path(folder, "nodes.csv").read_text().splitlines()[:6], sep="\n")
