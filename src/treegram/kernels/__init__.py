"""scikit-learn estimators, one published kernel per file."""

from treegram.kernels.oddcl import ODDCL
from treegram.kernels.oddst import ODDST

__all__ = ["ODDCL", "ODDST"]
