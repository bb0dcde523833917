"""Model selection over Gram matrices: fast support vector machines, nested cross-validation, ready-made models."""

from treegram.models.gp import GraphGP
from treegram.models.ridge import GraphRidge
from treegram.models.svc import GraphSVC

__all__ = ["GraphGP", "GraphRidge", "GraphSVC"]
