"""Ctrl-C at any moment: KeyboardInterrupt, soon, and never a crash of the interpreter. Real signals, to real processes."""

import os
import signal
import subprocess
import sys
import time

import pytest

SMALL = "Graphs.from_edges([[(i, i + 1) for i in range(39)] + [(i, i + 7) for i in range(33)]] * 60, labels=[[i % 3 for i in range(40)]] * 60, attributes=[[[float(i * i % 7), float(g)] for i in range(40)] for g in range(60)])"
COMPLETE = (
    "Graphs.from_edges([[(i, j) for i in range(60) for j in range(i)]], attributes=[[[0.1 * i] for i in range(60)]])"
)
STAR = "Graphs.from_edges([[(0, i) for i in range(1, 20000)]])"
RING = "Graphs.from_edges([[(i, (i + 1) % 20000) for i in range(20000)] + [(i, i * 7919 % 20000) for i in range(1, 9999)]])"
# Over and over again: signals come at any moment of a computation.
REPEATED = {
    "NSPDK": ("NSPDK(4, 6)", SMALL),
    "GIK": ("GIK()", SMALL),
    "ODDCL": ("ODDCL(4)", SMALL),
    "ODDST": ("ODDST(4)", SMALL),
    "ShortestPath": ("ShortestPath()", SMALL),
    "GraphHopper": ("GraphHopper()", SMALL),
}
# One computation that takes from half a minute to years.
LONG = {
    "CSM on a complete graph": ("CSM(10)", COMPLETE),
    "ODDCL on a star": ("ODDCL(3)", STAR),
    "GraphHopper on a large graph": ("GraphHopper()", RING),
    "ShortestPath on a large graph": ("ShortestPath()", RING),
}


def start(kernel, graphs, n_jobs):
    """A process that says that it is ready (compiled, and all modules loaded), and then computes until it is stopped."""
    program = (
        f"from treegram import *\nwarm = Graphs.from_edges([[(0, 1), (1, 2)]] * 2, labels=[[0, 1, 2]] * 2, "
        f"attributes=[[[0.0], [1.0], [2.0]]] * 2)\nkernel = {kernel}.set_params(n_jobs={n_jobs})\nkernel.fit_transform(warm)\n"
        f"graphs = {graphs}\nkernel.fit_transform(warm)\nprint('ready', flush=True)\nwhile True: kernel.fit_transform(graphs)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    return process


def interrupt(process, delay):
    """Exit status and what was printed; fails if the process does not stop."""
    time.sleep(delay)
    os.kill(process.pid, signal.SIGINT)
    try:
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    return process.returncode, errors


def assert_interrupted(code, errors):
    assert code == -signal.SIGINT, errors
    assert errors.rstrip().endswith("KeyboardInterrupt"), errors


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("name", REPEATED)
def test_an_interrupt_never_crashes_the_interpreter(name, n_jobs):
    for attempt in range(3):
        assert_interrupted(*interrupt(start(*REPEATED[name], n_jobs), 0.2 + 0.137 * attempt))


@pytest.mark.parametrize("name", LONG)
def test_long_computations_can_be_interrupted(name):
    """They would run for half a minute at least; the time limit of ``interrupt`` is far below what they need."""
    assert_interrupted(*interrupt(start(*LONG[name], None), 2.0))
