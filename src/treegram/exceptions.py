"""The hierarchy of errors that treegram raises.

::

    TreegramError
    ├── InvalidGraphError (also a ValueError)   an invalid graph, label, attribute or edge
    ├── ParameterError (also a ValueError)      a parameter value that is not allowed
    ├── DatasetError (also a ValueError)        a file, folder or download that cannot be used
    ├── ModelFileError (also a ValueError)      a model that cannot be saved, or a model file that cannot be used
    ├── StudyError (also a ValueError)          a study file that cannot be read or is invalid
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
    """Base class of all errors that treegram defines."""


class InvalidGraphError(TreegramError, ValueError):
    """An invalid graph, label, attribute or edge; the message says which graph and why."""


class ParameterError(TreegramError, ValueError):
    """A parameter value that is not allowed; the message names the owner, the allowed values and the value."""


class DatasetError(TreegramError, ValueError):
    """A data file, folder or download that cannot be used; the message says which file and line, and why."""


class ModelFileError(TreegramError, ValueError):
    """A model that cannot be saved, or a model file that cannot be used; the message says which, and why."""


class StudyError(TreegramError, ValueError):
    """A study file that cannot be read or is invalid; the message says which file and key, and why."""


class StoreError(TreegramError, ValueError):
    """A store of results that cannot be opened, read or written; the message says which file, why, and what to do."""
