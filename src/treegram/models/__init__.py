"""Models of graphs: two automatic ones that combine kernels, and three that search the parameters of one kernel.

`classifier` and `regressor` combine kernels, by default those that `auto` lists and screens by least squares.
`svc`, `ridge` and `gp` share one search over kernels, parameters and strengths (`search`), and `svc` has its own fast solver
(`solver`). `multi_target` fits a copy of a regressor for each of several targets. `saving` writes models to files that
contain no code.
"""

from treegram.models.classifier import GraphClassifier
from treegram.models.gp import GraphGP
from treegram.models.regressor import GraphRegressor
from treegram.models.ridge import GraphRidge
from treegram.models.svc import GraphSVC

__all__ = ["GraphClassifier", "GraphGP", "GraphRegressor", "GraphRidge", "GraphSVC"]
