"""Pictures of finished numbers and of graphs. matplotlib is imported only when a picture is drawn."""

from treegram.plotting.classes import plot_confusion, plot_embedding
from treegram.plotting.gram import plot_gram
from treegram.plotting.graph import plot_explanation, plot_graph
from treegram.plotting.tree import plot_tree

__all__ = [
    "plot_confusion",
    "plot_embedding",
    "plot_explanation",
    "plot_gram",
    "plot_graph",
    "plot_tree",
]
