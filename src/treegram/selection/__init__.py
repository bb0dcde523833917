"""Model selection over Gram matrices: fast support vector machines, nested cross-validation, ready-made models."""

from treegram.selection.gp import GraphGP
from treegram.selection.ridge import GraphRidge
from treegram.selection.svc import GraphSVC

__all__ = ["GraphGP", "GraphRidge", "GraphSVC"]
