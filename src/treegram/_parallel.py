"""The one door for parallel work: joblib, so that the backend is the user's choice (``joblib.parallel_config``)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Sequence
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
) -> Generator[Any]:
    """Results of function(*task) for each task; threads by default, progress on a terminal unless the label is None.

    The compiled loops release the interpreter lock, so threads share all arrays and copy none.
    """
    order = "generator" if in_order else "generator_unordered"
    results = Parallel(n_jobs=n_jobs, prefer="threads", return_as=order)(delayed(function)(*task) for task in tasks)
    kept = _left_quietly(results)
    return kept if label is None else track(kept, total=len(tasks), label=label)


def _left_quietly(results: Generator[Any]) -> Generator[Any]:
    """The same results. A caller that stops halfway has seen an error: joblib's warnings about unfinished tasks would distract."""
    try:
        for result in results:  # noqa: UP028 (yield from would close the results on its own)
            yield result
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            results.close()
