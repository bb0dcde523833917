"""Fitted models, kernels and pipelines in files that hold no code: arrays, and a JSON text that names classes of a fixed list.

``container`` reads and writes bytes, ``estimators`` turns estimators into JSON and back, ``states`` lists what each class has
learned and checks it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from treegram._core.errors import ModelFileError
from treegram._core.files import check_writable, replacing
from treegram._core.machine import package_versions
from treegram.models.saving.container import FORMAT, read_container, write_container
from treegram.models.saving.estimators import estimator_to_json, from_json

__all__ = ["load_model", "save_model"]


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a model, kernel or pipeline in a file that holds no code.

    Parameters
    ----------
    model : estimator
        A model (:class:`GraphSVC`, :class:`GraphRidge`, :class:`GraphGP`), a kernel, a transformer of graphs, ``FeatureMap``,
        ``ODDCLFeatures``, or a pipeline of these, which may end in a linear model of scikit-learn; fitted or not.
    path : str or path
        The file to write. An existing file is replaced once the new one is complete, and is unchanged otherwise.

    Raises
    ------
    ModelFileError
        If the model holds something that a file cannot: a function, a splitter, an estimator of another package, a random state
        that is not a number.

    Notes
    -----
    The file contains the fitted graphs, without their targets: protect it as you protect your data. It does not contain the
    tables of all candidates (``cv_results_``, ``results_``).

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
    content = {"format": FORMAT, "versions": package_versions(), "model": estimator_to_json(model, arrays)}
    with replacing(target) as file:
        write_container(file, content, arrays)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Load a file written by :func:`save_model`.

    Nothing in the file is executed: classes are those of a fixed list, and every parameter and array is checked like a user's
    data. Kernels are fitted again on the graphs in the file, and must give the values that they had.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator
        The model, with the predictions of the saved one: bit for bit, with the same versions on the same kind of machine.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged, was written by a newer version, or is inconsistent.
    """
    source = Path(path)
    try:
        content, arrays = read_container(source)
        model = from_json(content["model"], arrays)
        if not hasattr(model, "get_params"):
            raise ModelFileError(f"it has a {type(model).__name__!r} where an estimator is expected")
        return model
    except OSError:
        raise
    except Exception as error:  # the file is the reason for any error here
        text = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".")[:500]
        reason = str(error).rstrip(".") if isinstance(error, ModelFileError) else f"it is inconsistent ({text})"
        raise ModelFileError(f"{source} cannot be loaded: {reason}.") from error
