"""Model selection over Gram matrices: fast support vector machines, nested cross-validation, ready-made models."""

from treegram.selection.models import GraphSVC
from treegram.selection.ridge import GraphRidge

__all__ = ["GraphRidge", "GraphSVC"]
