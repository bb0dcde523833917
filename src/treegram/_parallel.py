"""The one door for parallel work: joblib, so that the backend is the user's choice (``joblib.parallel_config``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from joblib import Parallel, delayed

from treegram._progress import track

__all__ = ["run_tasks"]


def run_tasks(
    function: Callable[..., Any],
    tasks: Sequence[tuple[Any, ...]],
    *,
    n_jobs: int | None,
    label: str | None,
    in_order: bool = True,
) -> Iterator[Any]:
    """Results of function(*task) for each task; threads by default, progress on a terminal unless the label is None.

    The compiled loops release the interpreter lock, so threads share all arrays and copy none.
    """
    order = "generator" if in_order else "generator_unordered"
    results = Parallel(n_jobs=n_jobs, prefer="threads", return_as=order)(delayed(function)(*task) for task in tasks)
    return iter(results) if label is None else track(results, total=len(tasks), label=label)
