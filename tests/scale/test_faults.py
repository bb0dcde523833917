"""Whatever happens to workers, clients and disks: the right result, or a clear error and nothing finished lost."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dask
import joblib
import numpy as np
import pytest
from distributed import Client

from treegram import ODDCL, ClusterError, gram_to_zarr, make_synthetic
from treegram._core import dask as _dask
from treegram._core.parallel import send_tasks
from treegram.kernels import gram_store
from workers import new_client

pytestmark = pytest.mark.filterwarnings("ignore")  # Dask warns of sockets that killed workers leave open
N_KILLS = 10


@pytest.fixture
def victim():
    """A cluster of its own for a test that kills workers; a task that loses one is given up by the scheduler at once."""
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), new_client() as client:
        yield client


@pytest.fixture(scope="module")
def graphs():
    return make_synthetic(40, random_state=0)[0]


@pytest.fixture
def expected(graphs, tmp_path):
    return gram_to_zarr(ODDCL(depth=1), graphs, tmp_path / "expected", chunk=4)[:]


def run_on(client, function, shared, n_tasks):
    """Pairs of a number and function(shared, number), as they are finished."""
    with joblib.parallel_config(backend="dask", client=client):
        for (number,), result in send_tasks(function, shared, [(i,) for i in range(n_tasks)], n_jobs=None, label=None):
            yield number, result


def worker_processes(client):
    return [nanny.pid for nanny in client.cluster.workers.values() if nanny.pid]


def blocks_of(store):
    """The finished blocks of a store, each with the time of its writing."""
    return {file: file.stat().st_mtime_ns for file in store.glob("gram/c/*/*") if file.name.isdigit()}


# -------------------------------------------------------------------- workers


def _wait_for_kills(kills, number):
    """A task that can be finished only after some kills: of 50, five wait for each kill."""
    end = time.monotonic() + 120
    while len(Path(kills).read_bytes()) < number * N_KILLS // 50:
        if time.monotonic() > end:
            raise TimeoutError(f"{number}: the kills that it waits for do not come")
        time.sleep(0.02)
    return number**2


def _kill_at_random(client, kills, stop):
    random, done = np.random.default_rng(0), 0
    while done < N_KILLS and not stop.wait(random.uniform(0, 0.5)):
        for pid in random.permutation(worker_processes(client))[:1].tolist():
            with contextlib.suppress(ProcessLookupError):  # it has just been killed: the next one
                os.kill(pid, signal.SIGKILL)
                done += 1
                kills.write_bytes(done * b"x")


@pytest.mark.slow
def test_ten_killed_workers_lose_nothing(victim, tmp_path):
    kills, stop = tmp_path / "kills", threading.Event()
    kills.touch()
    with ThreadPoolExecutor(1) as pool:
        killer = pool.submit(_kill_at_random, victim, kills, stop)
        try:
            found = dict(run_on(victim, _wait_for_kills, str(kills), 50))
        finally:
            stop.set()
        killer.result()
    assert found == {i: i**2 for i in range(50)}
    assert len(kills.read_bytes()) == N_KILLS


def _slow_square(shared, number):
    time.sleep(0.05)
    return number**2


@pytest.mark.slow
def test_all_workers_may_be_replaced(victim):
    found = {}
    for n, (number, result) in enumerate(run_on(victim, _slow_square, None, 60)):
        found[number] = result
        if n == 10:
            for pid in worker_processes(victim):
                os.kill(pid, signal.SIGKILL)
    assert found == {i: i**2 for i in range(60)}


def _square_and_note(folder, number):
    """Leaves a file for each time that it is called."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix=f"{number}-", delete=False):
        return number**2


def _begun(client, folder):
    """A run of 30 tasks whose first result was fetched, and that result; all others that the cluster has in hand are finished.

    Gives the numbers of the tasks that were run as well.
    """
    results = run_on(client, _square_and_note, str(folder), 30)
    found = dict([next(results)])
    while len(times := _times(folder)) < 1 + 2 * _dask.AT_ONCE or any(client.processing().values()):
        time.sleep(0.02)
    return results, found, set(times)


def _times(folder):
    """How often each task was run."""
    return Counter(int(file.name.partition("-")[0]) for file in folder.iterdir())


@pytest.mark.slow
def test_results_that_were_lost_with_their_workers_are_computed_again(victim, tmp_path):
    results, found, before = _begun(victim, tmp_path)
    first = next(iter(found))
    for pid in worker_processes(victim):
        os.kill(pid, signal.SIGKILL)
    found.update(results)
    assert found == {i: i**2 for i in range(30)}
    assert set(_times(tmp_path) - Counter(range(30))) == before - {first}


@pytest.mark.slow
def test_results_that_the_scheduler_drops_are_computed_again(victim, tmp_path):
    """The last worker dies as it fetches what is shared: Dask then neither computes its results again nor says so.

    On a busy machine the first worker's substitute may have been faster than the scheduler, and nothing is dropped then.
    """
    results, found, _ = _begun(victim, tmp_path)
    holders = ()
    while len(holders) != 1:  # Dask deletes copies that no task waits for
        time.sleep(0.1)
        holders = next(workers for key, workers in victim.who_has().items() if "shared" in key)
    pids = {nanny.worker_address: nanny.pid for nanny in victim.cluster.workers.values()}
    (last,) = pids.keys() - set(holders)
    os.kill(pids[last], signal.SIGSTOP)
    os.kill(pids[holders[0]], signal.SIGKILL)
    while holders[0] in victim.nthreads():
        time.sleep(0.01)
    os.kill(pids[last], signal.SIGKILL)
    found.update(results)
    assert found == {i: i**2 for i in range(30)}


@pytest.fixture
def lone_scheduler(tmp_path):
    """A scheduler that is a process of its own, with one worker, and its file with the address."""
    file = tmp_path / "scheduler.json"
    words = ["--scheduler-file", str(file), "--no-dashboard"]
    commands = (["dask_scheduler", "--host", "127.0.0.1", "--port", "0"], ["dask_worker", "--nthreads", "1"])
    with contextlib.ExitStack() as stack:
        processes = []
        for name, *options in commands:
            command = [sys.executable, "-m", f"distributed.cli.{name}", *options, *words]
            processes.append(stack.enter_context(subprocess.Popen(command, stderr=subprocess.DEVNULL)))
            stack.callback(processes[-1].kill)
            while not file.exists():
                time.sleep(0.05)
        yield file, processes[0]


@pytest.mark.slow
@pytest.mark.parametrize("harm", [signal.SIGKILL, signal.SIGSTOP])
def test_a_scheduler_that_answers_no_more_is_an_error(harm, lone_scheduler, monkeypatch):
    monkeypatch.setattr(_dask, "PATIENCE", 20)
    file, scheduler = lone_scheduler
    with Client(scheduler_file=str(file), timeout=60) as client:
        client.wait_for_workers(1)
        results = run_on(client, max, 3, 30)
        next(results)
        while any(client.processing().values()):  # what is finished cannot be fetched any more
            time.sleep(0.02)
        scheduler.send_signal(harm)
        with pytest.raises(ClusterError, match="Is its scheduler running"):
            list(results)
        scheduler.kill()  # the client need not wait for its answer


def _fatal(shared, number):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_task_that_kills_its_workers_is_given_up(victim, monkeypatch):
    monkeypatch.setattr(_dask, "RETRIES", 1)
    with pytest.raises(ClusterError, match=r"Workers died 1 times under the same task\. They may be out of memory"):
        list(run_on(victim, _fatal, None, 1))


def _hungry(shared, number):
    """The tenth task takes more memory than a worker may have, and keeps it until the nanny sees it."""
    if number == 9:
        time.sleep(3)  # what the worker has finished is fetched meanwhile: it would be lost with it
        held = np.ones(100 << 20)
        time.sleep(60)
        return held.sum()
    return number**2


@pytest.mark.slow
def test_a_worker_without_memory_is_named_and_the_others_go_on(monkeypatch):
    monkeypatch.setattr(_dask, "RETRIES", 1)
    found = {}
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        new_client(memory_limit="600MiB") as client,
        pytest.raises(ClusterError, match="They may be out of memory: give each more of it"),
    ):
        found.update(run_on(client, _hungry, None, 12))
    assert found.items() >= {i: i**2 for i in range(9)}.items()


def _slow_there(slow, number):
    time.sleep(0.5 if os.getpid() == slow else 0.02)
    return os.getpid()


@pytest.mark.slow
def test_a_slow_worker_gets_little_to_do(victim):
    slow = worker_processes(victim)[0]
    found = dict(run_on(victim, _slow_there, slow, 60))
    assert len(found) == 60
    assert list(found.values()).count(slow) < 20


# -------------------------------------------------------------------- stores

CLIENT = """
import sys, time
from distributed import Client
from treegram import ODDCL, gram_to_zarr, make_synthetic
graphs, _ = make_synthetic(40, random_state=0)
with Client(sys.argv[1]) as client:
    gram_to_zarr(ODDCL(depth=1), graphs, sys.argv[2], chunk=4, client=client)
"""


@pytest.mark.slow
def test_a_killed_client_is_followed_by_another_one(victim, graphs, expected, tmp_path):
    store = tmp_path / "K"
    command = [sys.executable, "-c", CLIENT, victim.scheduler.address, str(store)]
    with subprocess.Popen(command) as process:
        while not len(blocks_of(store)) > 20 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    while len(victim.processing()) and any(victim.processing().values()):
        time.sleep(0.05)  # what its workers had begun
    before = blocks_of(store)
    K = gram_to_zarr(ODDCL(depth=1), graphs, store, chunk=4, client=victim)
    np.testing.assert_array_equal(K[:], expected)
    pairs = {file for file in before if store / "gram/c" / file.name / file.parent.name in before}
    assert all(file.stat().st_mtime_ns == before[file] for file in pairs)  # finished blocks were not touched

    damaged = store / "gram/c/3/1"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    before = blocks_of(store)
    K = gram_to_zarr(ODDCL(depth=1), graphs, store, chunk=4, client=victim)
    np.testing.assert_array_equal(K[:], expected)
    assert {
        file.relative_to(store).as_posix() for file, written in blocks_of(store).items() if written != before[file]
    } == {
        "gram/c/3/1",
        "gram/c/1/3",
    }


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own with room for some blocks; mounting one takes rights that few have."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small disk: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="tmpfs is Linux's")
def test_a_disk_that_is_full(victim, graphs, expected, small_disk, monkeypatch):
    monkeypatch.setattr(gram_store, "_check_room", lambda *_: None)  # somebody else fills the disk after the look at it
    with pytest.raises(OSError, match=r"cannot be written \(No space left on device\)\. Finished blocks are kept"):
        gram_to_zarr(ODDCL(depth=1), graphs, small_disk / "K", chunk=4, client=victim)
    before = blocks_of(small_disk / "K")
    assert before
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    K = gram_to_zarr(ODDCL(depth=1), graphs, small_disk / "K", chunk=4, client=victim)
    np.testing.assert_array_equal(K[:], expected)
    pairs = {file for file in before if small_disk / "K/gram/c" / file.name / file.parent.name in before}
    assert all(file.stat().st_mtime_ns == before[file] for file in pairs)


def _largest_file(n_bytes):
    """The system refuses larger files from now on, as a full disk would."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, resource.RLIM_INFINITY))


@pytest.mark.slow
def test_a_disk_that_is_full_for_one_worker(victim, graphs, expected, tmp_path):
    store = tmp_path / "K"
    full = next(iter(victim.nthreads()))
    victim.run(_largest_file, 100, workers=[full])
    with pytest.raises(OSError, match=r"cannot be written \(File too large\)\. Finished blocks are kept"):
        gram_to_zarr(ODDCL(depth=1), graphs, store, chunk=4, client=victim)
    victim.run(_largest_file, resource.RLIM_INFINITY, workers=[full])
    before = blocks_of(store)
    K = gram_to_zarr(ODDCL(depth=1), graphs, store, chunk=4, client=victim)
    np.testing.assert_array_equal(K[:], expected)
    pairs = {file for file in before if store / "gram/c" / file.name / file.parent.name in before}
    assert all(file.stat().st_mtime_ns == before[file] for file in pairs)
