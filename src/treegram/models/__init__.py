"""Models of graphs: support vector classification, kernel ridge and Gaussian process regression.

They share one search over kernels, parameters and strengths (`search`, `auto`, `candidates`), a fast solver of support vector
machines on Gram matrices (`solver`, `crossval`), and files without code (`saving`).
"""

from treegram.models.classifier import GraphClassifier
from treegram.models.gp import GraphGP
from treegram.models.ridge import GraphRidge
from treegram.models.svc import GraphSVC

__all__ = ["GraphClassifier", "GraphGP", "GraphRidge", "GraphSVC"]
