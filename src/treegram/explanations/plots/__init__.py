"""Pictures of finished numbers and of graphs. matplotlib is imported only when a picture is drawn."""

from treegram.explanations.plots.classes import plot_confusion, plot_embedding
from treegram.explanations.plots.gram import plot_gram
from treegram.explanations.plots.graph import plot_explanation, plot_graph
from treegram.explanations.plots.tree import plot_tree

__all__ = [
    "plot_confusion",
    "plot_embedding",
    "plot_explanation",
    "plot_gram",
    "plot_graph",
    "plot_tree",
]
