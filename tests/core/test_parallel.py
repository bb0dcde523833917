"""Tests of tasks in threads: order, errors, and the number of threads."""

import contextlib
import signal
import threading
import time

import joblib
import pytest

from treegram._core.parallel import run_tasks


def names_of_threads(n_tasks, **options):
    """Return the thread of each task; each task waits for another one, so that no thread runs all of them."""
    meeting = threading.Barrier(2)

    def name():
        with contextlib.suppress(threading.BrokenBarrierError):
            meeting.wait(timeout=0.2)
        return threading.current_thread().name

    return list(run_tasks(name, [()] * n_tasks, label="", **options))


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 3, -1])
def test_results_are_in_task_order(n_jobs):
    def late(i):
        time.sleep(0.01 * (i == 0))
        return i

    assert list(run_tasks(late, [(i,) for i in range(9)], n_jobs=n_jobs, label="")) == list(range(9))


def test_one_job_runs_in_the_calling_thread():
    assert set(names_of_threads(2, n_jobs=1)) == {threading.current_thread().name}
    assert set(names_of_threads(1, n_jobs=4)) == {threading.current_thread().name}


def test_two_jobs_run_in_two_threads():
    assert len(set(names_of_threads(2, n_jobs=2))) == 2


def test_joblib_config_sets_the_default_number_of_threads():
    with joblib.parallel_config("threading", n_jobs=2):
        assert len(set(names_of_threads(2, n_jobs=None))) == 2
    assert len(set(names_of_threads(2, n_jobs=None))) == 1


def test_third_level_of_nesting_runs_in_one_thread():
    """As in joblib: two levels of workers may run in parallel, a third level may not."""

    def inner():
        return joblib.Parallel(n_jobs=2, prefer="threads")(
            joblib.delayed(names_of_threads)(2, n_jobs=2) for _ in range(2)
        )

    found = joblib.Parallel(n_jobs=2, prefer="threads")(joblib.delayed(inner)() for _ in range(2))
    assert all(len(set(names)) == 1 for some in found for names in some)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_error_reaches_the_caller_and_stops_the_work(n_jobs):
    ran = []

    def fail(i):
        ran.append(i)
        if i == 1:
            raise ValueError("task 1")
        time.sleep(0.02)

    with pytest.raises(ValueError, match="task 1"):
        list(run_tasks(fail, [(i,) for i in range(100)], n_jobs=n_jobs, label=""))
    assert len(ran) < 50


def test_abandoned_generator_stops_the_work():
    ran = []

    def note(i):
        ran.append(i)
        time.sleep(0.01)

    results = run_tasks(note, [(i,) for i in range(200)], n_jobs=2, label="")
    next(results)
    results.close()
    time.sleep(0.1)
    seen = len(ran)
    assert seen < 100
    time.sleep(0.05)
    assert len(ran) == seen


def test_interrupt_does_not_wait_for_running_tasks():
    """Signals reach the main thread while the others are working."""
    released = threading.Event()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it

    def work():
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        released.wait(60)

    try:
        with pytest.raises(KeyboardInterrupt):
            list(run_tasks(work, [()] * 4, n_jobs=2, label=""))
        assert not released.is_set()
    finally:
        signal.signal(signal.SIGINT, before)
        released.set()
