"""What a study may say about a kernel, asked of the kernel itself: what it says its parameters may be."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from treegram._core.errors import ParameterError
from treegram._core.params import FLAG, allowed_values, check_value, words_of
from treegram._core.text import suggest
from treegram.kernels.registry import KERNELS
from treegram.study.toml import Item, elements, known_name, plain

__all__ = ["read_parameter", "read_transformations", "transformations"]


def read_parameter(kernels: Sequence[str], item: Item) -> Any:
    """The value of a parameter that all these kernels have and accept."""
    key, value = item.key, plain(item)
    if key == "n_jobs":
        raise item.error("'n_jobs' changes no result and is not part of a study; give --jobs when you run it")
    for kernel in kernels:
        if kernel not in KERNELS:
            raise item.error(f"the kernel {kernel!r} has no parameters: it chooses them")
        kind = KERNELS[kernel]
        known = [name for name in inspect.signature(kind).parameters if name != "n_jobs"]
        if key not in known:
            raise item.error(
                f"the kernel {kernel!r} has no parameter {key!r}{suggest(key, known)} (it has {', '.join(known)})"
            )
        allowed = allowed_values(kind)[key]
        if isinstance(value, bool) and FLAG not in allowed:
            raise item.error(f"{key!r} of the kernel {kernel!r} cannot be true or false")
        if isinstance(value, str) and (words := words_of(allowed)):
            known_name(item, words, key)
        try:
            check_value(key, kind.__name__, value, allowed)
        except ParameterError as error:
            raise item.error(str(error)) from None
    return value


def read_transformations(item: Item) -> tuple[str, ...]:
    """Names of transformations of the graphs; the same one may come twice."""
    return tuple(known_name(one, transformations(), "transformation of attributes") for one in elements(item))


def transformations() -> dict[str, Any]:
    """What studies can do to the graphs before the kernel, by name: to vectors, or to the vectors of edges."""
    from treegram.graphs.transforms import TRANSFORMATIONS

    return dict(TRANSFORMATIONS)
