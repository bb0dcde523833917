"""A Dask client that was given directly, as joblib takes it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import joblib

__all__ = ["using"]


@contextlib.contextmanager
def using(client: Any) -> Iterator[None]:
    """Let a given Dask client compute; without one, whatever joblib is set to."""
    if client is None:
        yield
    else:
        with joblib.parallel_config(backend="dask", client=client):
            yield
