"""Ctrl-C ends a computation with KeyboardInterrupt, and never crashes the interpreter."""

import signal
import subprocess
import sys
import time

import pytest

PROGRAM = """
import treegram as tg
edges = [[(i, i + 1) for i in range(39)]] * 60
graphs = tg.Graphs.from_edges(edges, attributes=[[[float(i), float(g)] for i in range(40)] for g in range(60)])
tg.ODDCL(2).fit_transform(graphs)
print("ready", flush=True)
while True:
    tg.ODDCL(2).fit_transform(graphs)
"""


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.0, 0.05, 0.3])
def test_interrupt_raises_keyboard_interrupt(delay):
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=60)[1]
    assert process.returncode == -signal.SIGINT  # the exit code of Python after KeyboardInterrupt
    assert errors.rstrip().endswith(b"KeyboardInterrupt")
