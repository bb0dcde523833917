"""What a study may say about a kernel, asked of the kernel itself: its signature and its ``_parameter_constraints``."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from sklearn.utils._param_validation import InvalidParameterError, make_constraint

from treegram._wording import suggest
from treegram.experiments._toml import Item, elements, known_name, plain
from treegram.kernels.registry import KERNELS

__all__ = ["needs_seed", "read_parameter", "read_transformations"]


def read_parameter(kernels: Sequence[str], item: Item) -> Any:
    """The value of a parameter that all these kernels have and accept."""
    key, value = item.key, plain(item)
    if key == "n_jobs":
        raise item.error("'n_jobs' changes no result and is no part of a study; say --jobs when you run it")
    for kernel in kernels:
        kind = KERNELS[kernel]
        known = [name for name in inspect.signature(kind).parameters if name != "n_jobs"]
        if key not in known:
            raise item.error(
                f"the kernel {kernel!r} has no parameter {key!r}{suggest(key, known)} (it has {', '.join(known)})"
            )
        allowed = kind._parameter_constraints[key]
        if isinstance(value, bool) and "boolean" not in allowed:
            raise item.error(f"{key!r} of the kernel {kernel!r} cannot be true or false")
        if isinstance(value, str) and (words := _words(allowed)):
            known_name(item, words, key)
        try:
            kind(**{key: value})._validate_params()
        except InvalidParameterError as error:
            raise item.error(str(error)) from None
    return value


def _words(allowed: list[Any]) -> list[str]:
    """The words among the allowed values."""
    options = (make_constraint(one) for one in allowed)
    return sorted(word for one in options if getattr(one, "type", None) is str for word in one.options)


def needs_seed(kernel: str) -> bool:
    """Whether the kernel would draw other random numbers in each run unless ``random_state`` is given."""
    seed = inspect.signature(KERNELS[kernel]).parameters.get("random_state")
    return seed is not None and seed.default is None


def read_transformations(item: Item) -> tuple[str, ...]:
    """Names of transformations of the attributes; the same one may come twice."""
    from treegram.preprocessing import TRANSFORMATIONS

    return tuple(known_name(one, TRANSFORMATIONS, "transformation of attributes") for one in elements(item))
