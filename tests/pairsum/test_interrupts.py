"""Ctrl-C at any moment: KeyboardInterrupt, soon, and never a crash of the interpreter. Real signals, to real processes."""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

SMALL = "Graphs.from_edges([[(i, i + 1) for i in range(39)] + [(i, i + 7) for i in range(33)]] * 60, labels=[[i % 3 for i in range(40)]] * 60, attributes=[[[float(i * i % 7), float(g)] for i in range(40)] for g in range(60)])"
COMPLETE = (
    "Graphs.from_edges([[(i, j) for i in range(60) for j in range(i)]], attributes=[[[0.1 * i] for i in range(60)]])"
)
STAR = "Graphs.from_edges([[(0, i) for i in range(1, 20000)]])"
HUB = "Graphs.from_edges([[(0, i) for i in range(1, 6000)]], attributes=[[[0.1 * i] for i in range(6000)]])"
RING = "Graphs.from_edges([[(i, (i + 1) % 20000) for i in range(20000)] + [(i, i * 7919 % 20000) for i in range(1, 9999)]])"
# Over and over again: signals come at any moment of a computation.
REPEATED = {
    "NSPDK": ("NSPDK(4, distance=6)", SMALL),
    "GIK": ("GIK()", SMALL),
    "ODDCL": ("ODDCL(4)", SMALL),
    "ODDST": ("ODDST(4)", SMALL),
    "ShortestPath": ("ShortestPath()", SMALL),
    "GraphHopper": ("GraphHopper()", SMALL),
    "OrderedTrees": ("OrderedTrees(4)", SMALL),
    "P2K": ("P2K()", SMALL),
    "WLOA": ("WLOA(5)", SMALL),
    "WLCL": ("WLCL(5)", SMALL),
    "Nystroem": ("Nystroem(WL(), 40)", SMALL),
}
# One computation that takes from half a minute to years.
LONG = {
    "CSM on a complete graph": ("CSM(10)", COMPLETE),
    "CSM on a star": ("CSM(5)", HUB),
    "ODDCL on a star": ("ODDCL(3)", STAR),
    "GIK on a star": ("GIK(radius=3)", HUB),
    "GraphHopper on a large graph": ("GraphHopper()", RING),
    "ShortestPath on a large graph": ("ShortestPath()", RING),
    "NSPDK on a large graph": ("NSPDK(4, distance=6)", RING),
    "GIK on a large graph": ("GIK()", RING),
    "OrderedTrees on a large graph": ("OrderedTrees(8)", RING),
}


def start(kernel, graphs, n_jobs):
    """A process that computes until it is stopped, says so, and starts again."""
    program = (
        "from treegram import *\n"
        "warm = Graphs.from_edges([[(0, 1), (1, 2)]] * 2, labels=[[0, 1, 2]] * 2, attributes=[[[0.0], [1.0], [2.0]]] * 2)\n"
        f"kernel, graphs = {kernel}.set_params(n_jobs={n_jobs}), {graphs}\n"
        "kernel.fit_transform(warm)\n"  # compiled, and all modules loaded
        "while True:\n"
        "    try:\n"
        "        print('ready', flush=True)\n"
        "        while True: kernel.fit_transform(graphs)\n"
        "    except KeyboardInterrupt:\n"
        "        pass\n"
    )
    # Not under a tracer of coverage, which holds Python for so long between two lines of its own threading.Condition that
    # a signal comes just there, and a RuntimeError in the place of a KeyboardInterrupt.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    return subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def copy_lines(stream, lines):
    """Line by line, and nothing at the end."""
    with stream:
        for line in stream:
            lines.put(line)
    lines.put("")


def assert_stops(kernel, graphs, n_jobs, delays):
    """After each signal the process is ready again; one that crashed, hangs or raised something else is not.

    Python itself loses a signal that comes while a destructor runs ("Exception ignored in"), so a process that is still
    alive after some seconds gets another one, as a user would press Ctrl-C again.
    """
    process, lines = start(kernel, graphs, n_jobs), queue.Queue()
    threading.Thread(target=copy_lines, args=(process.stdout, lines)).start()
    try:
        assert lines.get(timeout=120) == "ready\n", process.communicate()[1]
        for delay in delays:
            time.sleep(delay)
            for _ in range(4):
                os.kill(process.pid, signal.SIGINT)
                with contextlib.suppress(queue.Empty):
                    line = lines.get(timeout=5)
                    break
            else:
                raise AssertionError("the process does not react to signals")
            assert line == "ready\n", process.stderr.read()
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("name", REPEATED)
def test_an_interrupt_never_crashes_the_interpreter(name, n_jobs):
    assert_stops(*REPEATED[name], n_jobs, np.linspace(0.05, 0.4, 10))


@pytest.mark.parametrize("name", LONG)
def test_long_computations_can_be_interrupted(name):
    """Each would run for longer than the watchdog waits, or close to it."""
    assert_stops(*LONG[name], None, [0.5, 1.0, 1.5])
