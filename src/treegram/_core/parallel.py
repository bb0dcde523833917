"""Run tasks in parallel through joblib, so that users choose the backend (``joblib.parallel_config``).

Short tasks that share arrays run in threads (:func:`run_tasks`). Tasks that are worth sending elsewhere (:func:`send_tasks`)
run in threads by default, or wherever the user's backend runs them: processes, or the workers of a Dask cluster.
"""

from __future__ import annotations

import _thread
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import starmap
from queue import SimpleQueue
from typing import Any, NamedTuple

import joblib
from joblib.parallel import get_active_backend

from treegram._core.progress import track

__all__ = ["count_workers", "run_tasks", "send_tasks", "share_memory"]


# -------------------------------------------------------------------- threads of this process


def run_tasks(
    function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], *, n_jobs: int | None, label: str | None
) -> Generator[Any]:
    """Yield function(*task) for each task, in order, computed by threads of this process; show progress under the label.

    The compiled loops release the interpreter lock, so that threads share all arrays and copy none; tasks may write to them.
    """
    n_threads = min(_count_threads(n_jobs), len(tasks))
    results = _run_in_threads(function, tasks, n_threads) if n_threads > 1 else starmap(function, tasks)
    return _shown(results, len(tasks), label)


def _count_threads(n_jobs: int | None) -> int:
    """Return how many threads joblib would start: 1 when already inside a parallel task."""
    backend, configured = get_active_backend(require="sharedmem")
    return int(backend.effective_n_jobs(configured if n_jobs is None else n_jobs))


def _run_in_threads(function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], n_threads: int) -> Generator[Any]:
    """Share the tasks between the caller's thread and others that end with the tasks.

    A pool would take longer to start than some steps take, and the caller's thread would sleep: two threads that start just
    then may share one core for 20 ms. A caller that leaves early does not wait for the other threads.
    """
    waiting, finished = deque(enumerate(tasks)), SimpleQueue[_Outcome]()
    for _ in range(n_threads - 1):
        _thread.start_new_thread(_run_all, (function, waiting, finished))
    outcomes: dict[int, _Outcome] = {}
    try:
        for number in range(len(tasks)):
            while number not in outcomes:
                if finished.empty():
                    _run_next(function, waiting, finished)
                outcome = finished.get()
                outcomes[outcome.number] = outcome
            outcome = outcomes.pop(number)
            if outcome.error is not None:
                raise outcome.error
            yield outcome.result
    finally:
        waiting.clear()


class _Outcome(NamedTuple):
    number: int  # of the task
    result: Any
    error: Exception | None


def _run_all(function: Callable[..., Any], waiting: deque[Any], finished: SimpleQueue[_Outcome]) -> None:
    while _run_next(function, waiting, finished):
        pass


def _run_next(function: Callable[..., Any], waiting: deque[Any], finished: SimpleQueue[_Outcome]) -> bool:
    """Run the next task, and return whether there was one."""
    try:
        number, task = waiting.popleft()
    except IndexError:
        return False
    try:
        finished.put(_Outcome(number, function(*task), None))
    except Exception as error:
        finished.put(_Outcome(number, None, error))
    return True


# -------------------------------------------------------------------- the workers of joblib's backend


def share_memory() -> bool:
    """Return whether the workers of :func:`send_tasks` are threads of this process, which can write to one array."""
    backend = get_active_backend(prefer="threads")[0]
    return bool(getattr(backend, "supports_sharedmem", False))  # not every backend defines it


def count_workers() -> int:
    """Return how many tasks of :func:`send_tasks` run at once; at least 1."""
    return max(1, get_active_backend(prefer="threads")[0].effective_n_jobs(-1))


def send_tasks(
    function: Callable[..., Any],
    shared: Any,
    tasks: Sequence[tuple[Any, ...]],
    *,
    n_jobs: int | None,
    label: str | None,
) -> Generator[tuple[tuple[Any, ...], Any]]:
    """Yield each task and function(shared, *task), as they are finished, computed by the workers that the user has chosen.

    Workers may be on other machines: tasks must not write to ``shared``.
    """
    backend = get_active_backend(prefer="threads")[0]
    return_as = "generator_unordered" if backend.supports_return_generator else "list"
    # Arrays that joblib would map from files are read-only, and loops would be compiled again for these.
    parallel = joblib.Parallel(n_jobs=n_jobs, prefer="threads", return_as=return_as, max_nbytes=None)
    run = joblib.delayed(_run_task if share_memory() else _run_alone)
    call = _Call(function, shared)
    results = parallel(run(call, number, task) for number, task in enumerate(tasks))
    if return_as != "list":
        results = _closed_quietly(results)
    return _shown(((tasks[number], result) for number, result in results), len(tasks), label)


class _Call:
    """A function and the argument that all tasks share."""

    def __init__(self, function: Callable[..., Any], shared: Any) -> None:
        self.function, self.shared = function, shared

    def __sizeof__(self) -> int:
        return 1 << 20  # joblib sends large objects to each worker of a Dask cluster once, others with every task


def _run_task(call: _Call, number: int, task: tuple[Any, ...]) -> tuple[int, Any]:
    return number, call.function(call.shared, *task)


def _run_alone(call: _Call, number: int, task: tuple[Any, ...]) -> tuple[int, Any]:
    """Run a task in one thread: the backend has a task for each of its workers."""
    with joblib.parallel_config(backend="sequential"):
        return _run_task(call, number, task)


def _closed_quietly(results: Generator[Any]) -> Generator[Any]:
    """Yield the results without joblib's warnings about unfinished tasks, which would distract from the caller's error."""
    try:
        for result in results:  # noqa: UP028 (yield from would close the results itself)
            yield result
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            results.close()


def _shown(results: Iterable[Any], total: int, label: str | None) -> Generator[Any]:
    return (result for result in results) if label is None else track(results, total=total, label=label)
