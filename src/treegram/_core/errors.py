"""What can go wrong, in one tree.

::

    TreegramError
    ├── InvalidGraphError (also a ValueError)   a graph, label, attribute or edge that makes no sense
    ├── ParameterError (also a ValueError)      a parameter that is not among what is allowed
    ├── DatasetError (also a ValueError)        a file, folder or download that cannot be used
    ├── ModelFileError (also a ValueError)      a model that cannot be saved, or a model file that cannot be used
    ├── StudyError (also a ValueError)          a study file that cannot be read or makes no sense
    ├── StoreError (also a ValueError)          a store of results that cannot be opened, read or written
    └── ClusterError (also a RuntimeError)      workers that died, or that cannot be used

A method called before ``fit`` raises scikit-learn's ``NotFittedError``.
"""

__all__ = [
    "ClusterError",
    "DatasetError",
    "InvalidGraphError",
    "ModelFileError",
    "ParameterError",
    "StoreError",
    "StudyError",
    "TreegramError",
]


class TreegramError(Exception):
    """Base of all errors that treegram itself defines."""


class InvalidGraphError(TreegramError, ValueError):
    """A graph, label, attribute or edge that makes no sense; the message says which graph and why."""


class ParameterError(TreegramError, ValueError):
    """A parameter that is not among what is allowed; the message says whose it is, what is allowed and what came."""


class DatasetError(TreegramError, ValueError):
    """A data file, folder or download that cannot be used; the message says which file and line, and why."""


class ModelFileError(TreegramError, ValueError):
    """A model that cannot be saved, or a model file that cannot be used; the message says which, and why."""


class StudyError(TreegramError, ValueError):
    """A study file that cannot be read or makes no sense; the message says which file and line, and why."""


class StoreError(TreegramError, ValueError):
    """A store of results that cannot be opened, read or written; the message says which file, why, and what is safe."""


class ClusterError(TreegramError, RuntimeError):
    """Workers of a cluster that died, or that cannot be used; the message says what to do."""
