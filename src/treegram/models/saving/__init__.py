"""Fitted models, kernels and pipelines in files that hold no code: arrays, and a JSON text that names classes of a fixed list.

``_container`` knows bytes, ``_values`` JSON, ``_estimators`` which classes there are, and ``_states`` what each has learned.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import ModelFileError
from treegram._core.files import check_writable, replacing
from treegram._core.machine import package_versions
from treegram.models.saving.container import FORMAT, read_container, write_container
from treegram.models.saving.estimators import restore, to_saved
from treegram.models.saving.values import from_json, to_json

__all__ = ["load_model", "model_digest", "save_model"]


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a model, kernel or pipeline in a file that holds no code.

    Parameters
    ----------
    model : estimator
        A model (:class:`GraphSVC`, :class:`GraphRidge`, :class:`GraphGP`), a kernel, a transformer of graphs, ``FeatureMap``,
        ``ODDCLFeatures``, or a pipeline of these, which may end in a linear model of scikit-learn; fitted or not.
    path : str or path
        The file to write. A file that is there is replaced when all has gone well, and is unchanged otherwise.

    Raises
    ------
    ModelFileError
        If the model holds what a file cannot: a function, a splitter, an estimator of another package, a random state that is
        not a number.

    Notes
    -----
    The fitted graphs are in the file, without their targets: protect it as you protect your data. Tables of all candidates
    (``cv_results_``, ``results_``) are not.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from treegram import WL, GraphSVC, load_digits_graphs, load_model, save_model
    >>> graphs, y = load_digits_graphs()
    >>> model = GraphSVC(WL(), C=1, cv=3).fit(graphs[:60], y[:60])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, Path(folder) / "digits.tgm")
    ...     loaded = load_model(Path(folder) / "digits.tgm")
    >>> bool((loaded.predict(graphs[60:]) == model.predict(graphs[60:])).all())
    True
    """
    target = Path(path)
    check_writable(target)
    arrays: list[NDArray[Any]] = []
    saved = to_json(to_saved(model), arrays, "The model")
    content = {"format": FORMAT, "versions": package_versions(), "model": saved}
    with replacing(target) as file:
        write_container(file, content, arrays)


def model_digest(model: Any) -> str:
    """SHA-256 of what a file would hold of a model: the same for the same class, parameters and learned numbers."""
    arrays: list[NDArray[Any]] = []
    saved = to_json(to_saved(model), arrays, "The model")
    digest = hashlib.sha256(json.dumps(saved, sort_keys=True).encode())
    for array in arrays:
        digest.update(f"{array.dtype.str} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def load_model(path: str | os.PathLike[str]) -> Any:
    """Load what :func:`save_model` has saved.

    Nothing in the file is run, whatever it says: classes are those of a fixed list, and every array is checked as a user's
    data would be. A kernel is fitted on its graphs again when it is first used, and must give the values that it had.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator
        The model, with the predictions of the saved one: in every bit, with the same versions on the same kind of machine.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged, was written by a newer version, or holds what makes no sense.
    """
    source = Path(path)
    try:
        content, arrays = read_container(source)
        return restore(from_json(content["model"], arrays))
    except OSError:
        raise
    except Exception as error:  # whatever goes wrong now, the file is the reason
        reason = str(error) if isinstance(error, ModelFileError) else f"it makes no sense ({_described(error)})"
        raise ModelFileError(f"{source} cannot be loaded: {reason.rstrip('.')}.") from error


def _described(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".")[:500]
