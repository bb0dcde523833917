"""The one door for parallel work: joblib, so that the backend is the user's choice (``joblib.parallel_config``).

Short tasks that share arrays run in threads (:func:`run_tasks`). Tasks worth sending away (:func:`send_tasks`) go to threads,
processes, or the workers of a Dask cluster: ``with joblib.parallel_config("dask"): ...``.
"""

from __future__ import annotations

import _thread
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import starmap
from queue import SimpleQueue
from typing import Any, NamedTuple

from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

from treegram._core.progress import track

__all__ = ["count_workers", "run_tasks", "send_tasks", "share_memory"]


def run_tasks(
    function: Callable[..., Any],
    tasks: Sequence[tuple[Any, ...]],
    *,
    n_jobs: int | None,
    label: str | None,
) -> Generator[Any]:
    """Results of function(*task) for each task, in order, by threads of this process; progress on a terminal, with this label.

    The compiled loops release the interpreter lock, so threads share all arrays and copy none; tasks may write to them.
    """
    n_threads = min(_count_threads(n_jobs), len(tasks))
    results = _run_in_threads(function, tasks, n_threads) if n_threads > 1 else starmap(function, tasks)
    return _shown(results, len(tasks), label)


def _count_threads(n_jobs: int | None) -> int:
    """How many threads joblib would start; one inside of a task that has company."""
    backend, configured = get_active_backend(require="sharedmem")
    return int(backend.effective_n_jobs(configured if n_jobs is None else n_jobs))


def _run_in_threads(function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], n_threads: int) -> Generator[Any]:
    """By the thread of the caller, and others that end with the tasks. Pools take longer to start than some steps take alone.

    A thread that starts finds an idle core if the caller's goes on working: two that start while the caller falls asleep may share
    one core for 20 ms. Who leaves early does not wait for the other threads, and neither does the end of the program.
    """
    waiting, ended = deque(enumerate(tasks)), SimpleQueue[_Outcome]()
    for _ in range(n_threads - 1):
        _thread.start_new_thread(_take_all, (function, waiting, ended))
    known: dict[int, _Outcome] = {}
    try:
        for number in range(len(tasks)):
            while number not in known:
                if ended.empty():
                    _take_one(function, waiting, ended)
                outcome = ended.get()
                if outcome.error is not None and not isinstance(outcome.error, Exception):
                    raise outcome.error  # a KeyboardInterrupt has no turn
                known[outcome.number] = outcome
            outcome = known.pop(number)
            if outcome.error is not None:
                raise outcome.error
            yield outcome.result
    finally:
        waiting.clear()


class _Outcome(NamedTuple):
    number: int
    result: Any
    error: BaseException | None


def _take_one(function: Callable[..., Any], waiting: deque[Any], ended: SimpleQueue[_Outcome]) -> bool:
    """Do the next task, if there is one."""
    try:
        number, task = waiting.popleft()
    except IndexError:
        return False
    try:
        ended.put(_Outcome(number, function(*task), None))
    except BaseException as error:
        ended.put(_Outcome(number, None, error))
    return True


def _take_all(*work: Any) -> None:
    while _take_one(*work):
        pass


def share_memory() -> bool:
    """Whether the workers of :func:`send_tasks` are threads of this process, so that they can write to one array."""
    return bool(getattr(get_active_backend(prefer="threads")[0], "supports_sharedmem", False))  # not every backend says


def count_workers() -> int:
    """How many tasks of :func:`send_tasks` run at once as things are; at least 1."""
    backend = get_active_backend(prefer="threads")[0]
    client = getattr(backend, "client", None)  # asked itself, since joblib would wait for its first worker
    return max(1, backend.effective_n_jobs(-1) if client is None else sum(client.nthreads().values()))


def send_tasks(
    function: Callable[..., Any],
    shared: Any,
    tasks: Sequence[tuple[Any, ...]],
    *,
    n_jobs: int | None,
    label: str | None,
) -> Generator[tuple[tuple[Any, ...], Any]]:
    """Pairs of a task and function(shared, *task), as they are finished, by the workers that the user has chosen.

    Workers may be on other machines: ``shared``, sent to each of them once, is not to be written to. The default is threads.
    """
    backend = get_active_backend(prefer="threads")[0]
    client = getattr(backend, "client", None)
    if client is None:
        numbered = delayed(_numbered)
        jobs = (numbered(function, shared, i, task) for i, task in enumerate(tasks))
        return_as = "generator_unordered" if backend.supports_return_generator else "list"  # the latter for Ray
        outcomes = Parallel(n_jobs=n_jobs, prefer="threads", return_as=return_as)(jobs)
        results = _left_quietly(outcomes) if return_as != "list" else outcomes
    else:
        from treegram._core.dask import run_on_dask

        results = run_on_dask(client, function, shared, tasks)
    return _shown(((tasks[i], result) for i, result in results), len(tasks), label)


def _numbered(function: Callable[..., Any], shared: Any, number: int, task: tuple[Any, ...]) -> tuple[int, Any]:
    return number, function(shared, *task)


def _shown(results: Iterable[Any], total: int, label: str | None) -> Generator[Any]:
    return (result for result in results) if label is None else track(results, total=total, label=label)


def _left_quietly(results: Generator[Any]) -> Generator[Any]:
    """The same results. A caller that stops halfway has seen an error: joblib's warnings about unfinished tasks would distract."""
    try:
        for result in results:  # noqa: UP028 (yield from would close the results on its own)
            yield result
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            results.close()
