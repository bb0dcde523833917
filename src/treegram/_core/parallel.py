"""Run tasks in parallel through joblib, so that users choose the backend (``joblib.parallel_config``).

Short tasks that share arrays run in threads (:func:`run_tasks`), Python code of other libraries in processes (:func:`run_in_processes`). Tasks that are worth sending elsewhere (:func:`send_tasks`)
run in threads by default, or wherever the user's backend runs them: processes, or the workers of a Dask cluster. Long work shows its
progress (:func:`track`): a line on a terminal or in a notebook, or, on request, lines in a log.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from datetime import timedelta
from itertools import starmap
from threading import Lock
from typing import Any, TypeVar

import joblib
from joblib.parallel import get_active_backend
from threadpoolctl import threadpool_limits

__all__ = [
    "is_watched",
    "one_blas_thread",
    "run_in_processes",
    "run_tasks",
    "send_tasks",
    "share_memory",
    "track",
    "verbosely",
]

T = TypeVar("T")

_PATIENCE = 2.0  # seconds before anything is shown
_LIVE_PERIOD, _LOG_PERIOD = 0.2, 30.0  # seconds between two updates, and between two lines of a log
_is_verbose = ContextVar("is_verbose", default=False)
_one_thread_lock = Lock()
_one_thread_users: list[Any] = []  # the limits, and one entry for each running block


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
    """Yield the results in order; a caller that leaves early, as with Ctrl-C, does not wait for the running tasks."""
    pool = ThreadPoolExecutor(n_threads)
    try:
        yield from pool.map(lambda task: function(*task), tasks)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run matrix products on one thread each: they are many and small here, and whole tasks run in parallel (``n_jobs``).

    Results then do not depend on the number of BLAS threads. The setting belongs to the process: overlapping threads share it,
    and the last one to leave restores the original limits.
    """
    with _one_thread_lock:
        if not _one_thread_users:
            _one_thread_users.append(threadpool_limits(1, user_api="blas"))
        _one_thread_users.append(None)
    try:
        yield
    finally:
        with _one_thread_lock:
            _one_thread_users.pop()
            if len(_one_thread_users) == 1:
                _one_thread_users.pop().restore_original_limits()


# -------------------------------------------------------------------- the workers of joblib's backend


def share_memory() -> bool:
    """Return whether the workers of :func:`send_tasks` are threads of this process, which can write to one array."""
    backend = get_active_backend(prefer="threads")[0]
    return bool(getattr(backend, "supports_sharedmem", False))  # not every backend defines it


def send_tasks(
    function: Callable[..., Any],
    shared: Any,
    tasks: Sequence[tuple[Any, ...]],
    *,
    n_jobs: int | None,
    label: str | None,
) -> Generator[tuple[tuple[Any, ...], Any]]:
    """Yield each task and function(shared, *task), as they finish, computed by the workers that the user chose.

    Workers may be on other machines: tasks must not write to ``shared``.
    """
    backend = get_active_backend(prefer="threads")[0]
    return_as = "generator_unordered" if backend.supports_return_generator else "list"
    # Arrays that joblib would map from files are read-only, and loops would be compiled again for them.
    parallel = joblib.Parallel(n_jobs=n_jobs, prefer="threads", return_as=return_as, max_nbytes=None)
    run = joblib.delayed(_run_task if share_memory() else _run_alone)
    call = _Call(function, shared)
    results = parallel(run(call, number, task) for number, task in enumerate(tasks))
    if return_as != "list":
        results = _closed_quietly(results)
    return _shown(((tasks[number], result) for number, result in results), len(tasks), label)


def run_in_processes(
    function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], *, n_jobs: int | None
) -> Generator[Any]:
    """Yield function(*task) for each task, in order, computed by processes; a single one is this process."""
    n_processes = min(joblib.effective_n_jobs(n_jobs), len(tasks))
    if n_processes < 2:
        return (function(*task) for task in tasks)
    parallel = joblib.Parallel(n_jobs=n_processes, return_as="generator", batch_size=1)
    return _closed_quietly(parallel(joblib.delayed(function)(*task) for task in tasks))


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


# -------------------------------------------------------------------- progress


@contextlib.contextmanager
def verbosely(verbose: object) -> Iterator[None]:
    """Write progress to stderr periodically within this context if there is neither a terminal nor a notebook."""
    token = _is_verbose.set(bool(verbose) or _is_verbose.get())
    try:
        yield
    finally:
        _is_verbose.reset(token)


def track(iterable: Iterable[T], total: int | None = None, label: str = "") -> Generator[T]:
    """Yield the items; show how many are done, and the remaining time if the total is known.

    On a terminal or in a notebook, a line appears after two seconds and disappears at the end, even after an error or
    Ctrl-C. Elsewhere nothing is shown, or, within `verbosely`, a line every half minute and one at the end.
    """
    is_live = is_watched()
    if not is_live and not (_is_verbose.get() and sys.stderr is not None):
        yield from iterable
        return
    done, width, start = 0, 0, time.monotonic()
    due = start + (_PATIENCE if is_live else _LOG_PERIOD)
    try:
        for done, item in enumerate(iterable, start=1):
            yield item
            now = time.monotonic()
            if now >= due:
                line = _describe(done, total, label, now - start)
                if is_live:
                    width = _overwrite(line, width)
                else:
                    print(line, file=sys.stderr, flush=True)
                due = now + (_LIVE_PERIOD if is_live else _LOG_PERIOD)
    finally:
        elapsed = time.monotonic() - start
        if width:
            _overwrite("", width)
        elif not is_live and elapsed >= _PATIENCE:
            print(_describe(done, None, label, elapsed), file=sys.stderr, flush=True)


def _describe(done: int, total: int | None, label: str, elapsed: float) -> str:
    """Return the line: the label, how much is done, and the remaining time at the pace so far."""
    if not total:
        return f"{label}: {done} done in {_duration(elapsed)}"
    left = elapsed / done * max(total - done, 0)
    return f"{label}: {min(done / total, 1):4.0%}, {_duration(left)} left"


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def _overwrite(line: str, width: int) -> int:
    """Replace the current line, which has ``width`` characters, and return the new width."""
    stream = sys.stdout if is_notebook() else sys.stderr  # a notebook shows stderr like an error
    line = line[: shutil.get_terminal_size().columns - 1]
    stream.write("\r" + line.ljust(width) + ("" if line else "\r"))
    stream.flush()
    return len(line)


def is_watched() -> bool:
    """Return whether a user sees the output as it is written: on a terminal or in a notebook."""
    is_terminal = sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()
    return is_terminal or is_notebook()


def is_notebook() -> bool:
    """Return whether this process is the kernel of a notebook, without importing IPython."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_ipython is not None and hasattr(get_ipython(), "kernel")
