"""Tasks on a Dask cluster: what they share is sent to each worker once, and a lost worker loses no finished task.

What is shared goes to the scheduler as the argument of a task of its own, so that a new worker can have it when all that had it
are gone; scattered data would be lost with them.
"""

from __future__ import annotations

import contextlib
import pickle
import secrets
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from itertools import islice
from typing import Any

import cloudpickle
import joblib
import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import ClusterError

__all__ = ["run_on_dask"]

RETRIES = 20  # of one task whose workers died; a cluster that loses more than that has another problem
PATIENCE = 120  # seconds without any worker
AT_ONCE = 4  # tasks in the hands of the cluster for each of its threads: results that wait take memory


def run_on_dask(
    client: Any, function: Callable[..., Any], shared: Any, tasks: Sequence[tuple[Any, ...]]
) -> Generator[tuple[int, Any]]:
    """Pairs (number of a task, function(shared, *task)), as they are finished."""
    from distributed import CancelledError, KilledWorker, as_completed

    if not tasks:
        return
    run = _Run(client, _Shared.pack(function, shared), tasks)
    waiting = iter(range(len(tasks)))
    n_at_once = AT_ONCE * max(sum(client.nthreads().values()), 1)
    with run.watched():
        run.spread()
        first = [run.submit(number) for number in islice(waiting, n_at_once)]
        running = as_completed(first, loop=client.loop)
        for future in running:
            try:
                result = run.fetch(future)
            except (KilledWorker, CancelledError) as error:  # under this task, or with its result, before that was here
                if isinstance(error, CancelledError) and future.key not in run.dropped:
                    raise
                running.add(run.submit(run.numbers.pop(future.key)))
                continue
            number = run.numbers.pop(future.key)
            future.release()
            for following in islice(waiting, 1):
                running.add(run.submit(following))
            yield number, result


@dataclass
class _Shared:
    """A function and what all its calls share, packed; as a task it gives itself.

    The first task of a worker unpacks it: neither the scheduler nor workers that pass it on to others wait for that. Its arrays
    are kept apart because Dask sends arrays without copies, and it has no repr because Dask asks for that of all that it submits.
    """

    version: str
    packed: bytes = field(repr=False)
    arrays: list[NDArray[np.uint8]] = field(repr=False)  # the contents of those of the value

    @classmethod
    def pack(cls, function: Callable[..., Any], value: Any) -> _Shared:
        buffers = list[pickle.PickleBuffer]()
        packed = cloudpickle.dumps((function, value), protocol=5, buffer_callback=buffers.append)
        return cls(metadata.version("treegram"), packed, [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers])

    def __call__(self) -> _Shared:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _Shared, (self.version, self.packed, self.arrays)  # without what was unpacked

    @cached_property
    def unpacked(self) -> tuple[Callable[..., Any], Any]:
        """The function and what is shared, if the versions are the same: another one may not even be able to read it."""
        own = metadata.version("treegram")
        if own != self.version:
            raise ClusterError(
                f"A worker has treegram {own}, the client {self.version}. Install the same version on both."
            )
        return pickle.loads(self.packed, buffers=self.arrays)


@dataclass
class _Run:
    client: Any
    shared: _Shared
    tasks: Sequence[tuple[Any, ...]]
    name: str = field(default_factory=lambda: f"treegram-{secrets.token_hex(8)}")
    numbers: dict[str, int] = field(default_factory=dict)  # of the tasks that are running, by their names
    attempts: dict[int, int] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)  # names of the tasks that the scheduler had dropped

    def __post_init__(self) -> None:
        self._share()

    def _share(self) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")  # once, instead of with each task
            self.common = self.client.submit(self.shared, key=f"{self.name}-shared-{secrets.token_hex(4)}", pure=False)

    def submit(self, number: int) -> Any:
        if self.common.status == "error":  # it was on its way to too many workers that died
            self._share()
        attempt = self.attempts[number] = self.attempts.get(number, 0) + 1
        if attempt > RETRIES:
            raise ClusterError(
                f"Workers died {RETRIES} times under the same task. They may be out of memory: give each more of it, or fewer "
                "threads."
            )
        key = f"{self.name}-{number}-{attempt}"
        self.numbers[key] = number
        return self.client.submit(_run_task, self.common, self.tasks[number], key=key, pure=False)

    def spread(self) -> None:
        """Give each worker its copy: Dask prefers workers that have one, and others would wait until it has them help out."""
        with contextlib.suppress(
            Exception
        ):  # a worker that died meanwhile; those without a copy fetch one with their first task
            self.client.replicate([self.common], n=len(self.tasks), callback_timeout=PATIENCE)

    def fetch(self, future: Any) -> Any:
        """The result of a future that is finished. A scheduler that does not answer is asked again, until the watcher gives it up."""
        from distributed import CancelledError

        patience = PATIENCE
        while True:
            try:
                return self.client.sync(self._gather, future, callback_timeout=patience)
            except OSError as error:
                if future.status == "error":  # the task's own
                    raise
                if not isinstance(error, TimeoutError):
                    raise CancelledError(f"The connection is lost: {error}") from error
                patience *= 2  # a large result may be on its way, and begins again

    async def _gather(self, future: Any) -> Any:
        """Straight from a worker that can surely be reached; else, or if it has died, through the scheduler."""
        from distributed import LocalCluster

        direct = True if isinstance(self.client.cluster, LocalCluster) else None
        return await self.client.gather(future, direct=direct, asynchronous=True)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Inside, dropped tasks are noticed, and a cluster without workers is given up after a while.

        In the end what is not finished is taken back.
        """
        from distributed import CancelledError

        done = threading.Event()
        threading.Thread(target=self._watch, args=(done,), daemon=True).start()
        try:
            yield
        except CancelledError as error:
            raise ClusterError(
                f"The cluster has canceled a task. Is its scheduler running, and has it had workers within the last {PATIENCE} "
                "seconds? Start them again, and then this program."
            ) from error
        finally:
            done.set()
            self._cancel([*self.numbers, self.common.key])

    def _watch(self, done: threading.Event) -> None:
        seen, known = time.monotonic(), set[str]()
        while not done.wait(PATIENCE / 20):
            with contextlib.suppress(Exception):  # a scheduler that does not answer is one without workers
                workers = set(self.client.nthreads(callback_timeout=PATIENCE))
                seen = time.monotonic() if workers else seen
                self._take_back_dropped()
                if workers - known and self.common.status == "finished":
                    self.spread()
                    known = workers
            if time.monotonic() - seen > PATIENCE:
                self._cancel([*self.numbers, self.common.key])

    def _take_back_dropped(self) -> None:
        """Cancel tasks that the scheduler will not run again, so that they are sent again under another name.

        It drops a result that is lost with its worker while what it was computed from is in error, and that is what happens if
        the last worker dies as it fetches its copy of what is shared. The client is told of the loss, but of nothing after it.
        """
        ask = self.client.scheduler.get_task_status
        states = self.client.sync(ask, keys=list(self.numbers), callback_timeout=PATIENCE)
        dropped = {key for key, state in states.items() if state == "released"}
        self.dropped |= dropped
        self._cancel(dropped)

    def _cancel(self, keys: Iterable[str]) -> None:
        from distributed import Future

        if self.client.status != "closed":
            self.client.cancel([Future(key, self.client) for key in keys], force=True)


def _run_task(shared: _Shared, task: tuple[Any, ...]) -> Any:
    """One task, on a worker, by one thread: the cluster has a task for each of its threads."""
    function, value = shared.unpacked
    with joblib.parallel_config(backend="sequential"):
        return function(value, *task)
