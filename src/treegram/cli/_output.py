"""The files that ``treegram gram`` and ``treegram features`` write: arrays, and how they were computed."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["write_arrays"]


def write_arrays(
    args: argparse.Namespace,
    arrays: Mapping[str, NDArray[Any] | None],
    estimator: Any,
    meta: Mapping[str, Any],
    contents: str,
    seconds: float,
) -> None:
    """Write a ``.npz`` file with the arrays that are not None and ``meta``, a JSON text; print one line about it."""
    import numpy as np

    from treegram._core.files import replacing
    from treegram._core.machine import package_versions

    names = ("method", "n_components", "choice", "estimated_error") if hasattr(estimator, "choice_") else ()
    approximation = {name: getattr(estimator, f"{name}_") for name in names}
    everything = {
        "kernel": args.kernel,
        **meta,
        **approximation,
        "data": args.data,
        "versions": package_versions(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
    }
    present: dict[str, Any] = {name: array for name, array in arrays.items() if array is not None}
    with replacing(args.output) as file:
        np.savez(file, **present, meta=np.array(json.dumps(everything)))
    made = args.kernel
    if approximation:
        made += "; {method}, {n_components} components, estimated Gram error {estimated_error:.1e}".format(
            **approximation
        )
    print(f"{args.output}: {contents}, {made}, {seconds:.2f} s")
