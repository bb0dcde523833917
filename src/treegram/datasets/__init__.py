"""Data sets: the TU text format, downloads, generators."""

from typing import Any


def load_tu(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


save_tu = make_synthetic = load_digits_graphs = load_tu
