"""The one door for parallel work: joblib, so that the backend is the user's choice (``joblib.parallel_config``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from joblib import Parallel, delayed

from treegram._progress import track

__all__ = ["run_tasks"]


def run_tasks(
    function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], *, n_jobs: int | None, label: str
) -> Iterator[Any]:
    """Results of function(*task) for each task, in order; threads by default, progress on a terminal.

    The compiled loops release the interpreter lock, so threads share all arrays and copy none.
    """
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    return track(parallel(delayed(function)(*task) for task in tasks), total=len(tasks), label=label)
