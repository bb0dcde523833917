"""The argument MODEL, and the file of results that commands on a saved model write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from treegram import load_model
from treegram._core.files import check_writable
from treegram.cli._parser import Parser

__all__ = ["add_model_argument", "check_output", "load_predictor"]


def add_model_argument(parser: Parser) -> None:
    """MODEL itself."""
    parser.add_argument("model", metavar="MODEL", type=Path, help="file that treegram fit, or save_model, has written")


def check_output(path: Path, *, overwrite: bool) -> None:
    """Raise if the file cannot be written, or would replace one unasked."""
    check_writable(path)
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists already; give --force to replace it, or another name.")


def load_predictor(path: Path) -> Any:
    """The model of a file, which must be one that predicts, and fitted."""
    model = load_model(path)
    if not hasattr(model, "predict"):
        raise ValueError(f"{path} holds a {type(model).__name__}, which cannot predict; fit a model with treegram fit.")
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise ValueError(
            f"{path} holds a {type(model).__name__} that is not fitted; fit it before it is saved."
        ) from None
    return model
