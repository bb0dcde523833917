"""Run tasks in parallel through joblib, so that users choose the backend (``joblib.parallel_config``).

Short tasks that share arrays run in threads (:func:`run_tasks`), Python code of other libraries in processes (:func:`run_in_processes`). Tasks that are worth sending elsewhere (:func:`send_tasks`)
run in threads by default, or wherever the user's backend runs them: processes, or the workers of a Dask cluster. Long work shows its
progress (:func:`track`): a bar on a terminal or in a notebook, or, on request, lines in a log.
"""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from itertools import starmap
from threading import Lock
from typing import Any, TypeVar

import joblib
from joblib.parallel import get_active_backend
from threadpoolctl import threadpool_limits

T = TypeVar("T")

_PATIENCE = 2.0  # seconds before anything is shown
_LIVE_PERIOD, _LOG_PERIOD = 0.2, 30.0  # seconds between two updates, and between two lines of a log
_LOG_WIDTH = 80
_is_verbose = ContextVar("is_verbose", default=False)
_one_thread_lock = Lock()
_one_thread_users: list[Any] = []  # the limits, and one entry for each running block


# -------------------------------------------------------------------- threads of this process


def run_tasks(
    function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], *, n_jobs: int | None, label: str
) -> Generator[Any]:
    """Yield function(*task) for each task, in order, computed by threads of this process; show progress under the label.

    The compiled loops release the interpreter lock, so that threads share all arrays and copy none; tasks may write to them.
    """
    n_threads = min(_count_threads(n_jobs), len(tasks))
    results = _run_in_threads(function, tasks, n_threads) if n_threads > 1 else starmap(function, tasks)
    return track(results, len(tasks), label)


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
    and the last one to leave restores the original limits. threadpoolctl lets only one thread limit OpenBLAS: the first that asks,
    while it lives. Limits of all others do nothing, so that their products may differ in the last bits; see docs/big_data.md.
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
    answers = ((tasks[number], result) for number, result in results)
    return answers if label is None else track(answers, len(tasks), label)


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


# -------------------------------------------------------------------- progress


@contextlib.contextmanager
def verbosely(verbose: object) -> Iterator[None]:
    """Write progress to stderr, line by line, within this context if there is neither a terminal nor a notebook."""
    token = _is_verbose.set(bool(verbose) or _is_verbose.get())
    try:
        yield
    finally:
        _is_verbose.reset(token)


def track(iterable: Iterable[T], total: int | None = None, label: str = "") -> Generator[T]:
    """Yield the items, and show how many are done; see :func:`progress`."""
    with progress(total, label) as advance:
        for item in iterable:
            yield item
            advance(1)


@contextlib.contextmanager
def progress(total: int | None, label: str) -> Iterator[Callable[[int], Any]]:
    """Show how much of the total is done; the context's value is a function to call with each number of finished items.

    On a terminal or in a notebook, a bar appears after two seconds and disappears at the end. Elsewhere nothing is shown, or,
    within `verbosely`, a line every half minute.
    """
    if is_watched():
        options = {"file": sys.stderr, "leave": False, "mininterval": _LIVE_PERIOD}
    elif _is_verbose.get() and sys.stderr is not None:
        options = {"file": _Log(), "mininterval": _LOG_PERIOD, "ascii": True, "ncols": _LOG_WIDTH}
    else:
        yield lambda n: None  # noqa: ARG005
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # in a notebook without ipywidgets, tqdm draws with letters, and says so
        from tqdm.auto import tqdm  # takes time that nobody waits for where nothing is shown
    with tqdm(desc=label, total=total, delay=_PATIENCE, smoothing=0, **options) as bar:
        yield bar.update


class _Log(io.TextIOBase):
    """Standard error, where each state of a bar is a line of its own."""

    def write(self, text: str) -> int:
        """Write a bar; tqdm draws it over the last one."""
        if line := text.strip():
            print(line, file=sys.stderr, flush=True)
        return len(text)


def is_watched() -> bool:
    """Return whether a user sees the output as it is written: on a terminal or in a notebook."""
    is_terminal = sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()
    return is_terminal or is_notebook()


def is_notebook() -> bool:
    """Return whether this process is the kernel of a notebook, without importing IPython."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_ipython is not None and hasattr(get_ipython(), "kernel")
