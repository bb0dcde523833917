"""The errors that treegram raises, in one tree.

::

    TreegramError
    ├── InvalidGraphError (also a ValueError)   a graph, label, attribute or edge that is not valid
    ├── ParameterError (also a ValueError)      a parameter with a value that is not allowed
    ├── DatasetError (also a ValueError)        a file, folder or download that cannot be used
    ├── ModelFileError (also a ValueError)      a model that cannot be saved, or a model file that cannot be used
    ├── StudyError (also a ValueError)          a study file that cannot be read or is not valid
    └── StoreError (also a ValueError)          a store of results that cannot be opened, read or written

A method called before ``fit`` raises scikit-learn's ``NotFittedError``.
"""

__all__ = [
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
    """A graph, label, attribute or edge that is not valid; the message says which graph and why."""


class ParameterError(TreegramError, ValueError):
    """A parameter with a value that is not allowed; the message names its owner, the allowed values and the value."""


class DatasetError(TreegramError, ValueError):
    """A data file, folder or download that cannot be used; the message says which file and line, and why."""


class ModelFileError(TreegramError, ValueError):
    """A model that cannot be saved, or a model file that cannot be used; the message says which, and why."""


class StudyError(TreegramError, ValueError):
    """A study file that cannot be read or is not valid; the message says which file and key, and why."""


class StoreError(TreegramError, ValueError):
    """A store of results that cannot be opened, read or written; the message says which file, why, and what to do."""
