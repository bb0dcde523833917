"""Ctrl-C ends the command with code 130 and one line wherever it comes. Real signals, in real processes."""

import os
import signal
import subprocess
import sys
import time

import pytest

STOPPED = "Stopped; nothing is left half-written.\n"
# Where the signal comes; each stands before the command is run.
MOMENTS = {
    "first import": "send_at_import(1)",
    "early import": "send_at_import(5)",
    "import of argparse": "send_at_import('argparse')",
    "import of numpy": "send_at_import('numpy')",
    "import of the subcommand": "send_at_import('treegram.graphs')",
    "destructor": "send_at_import('treegram.graphs', in_destructor=True)",
    "twice": "send_at_import('numpy'); send_at_import('traceback')",
    "as an error is told": "sys.stderr = Interrupting()",
}
PROGRAM = """
import builtins, signal, sys, treegram.__main__
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for jobs in the background
n_imports = 0

class Destroyed:
    def __del__(self):
        send()

class Interrupting:
    def write(self, text):
        send()
    def flush(self):
        pass

def send():
    signal.raise_signal(signal.SIGINT)

def send_at_import(moment, in_destructor=False):
    earlier = builtins.__import__
    def watching(name, *rest):
        global n_imports
        n_imports += 1
        if moment in (name, n_imports):
            builtins.__import__ = earlier
            Destroyed() if in_destructor else send()
        return earlier(name, *rest)
    builtins.__import__ = watching
"""


def run(program, *arguments):
    command = [sys.executable, "-c", PROGRAM + program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_interrupt_at_any_moment_of_the_start_gives_130_and_one_line(moment):
    done = run(f"{MOMENTS[moment]}\nsys.exit(treegram.__main__.run())", "info", "no such folder")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", STOPPED)


def test_an_interrupt_after_the_end_changes_nothing():
    done = run("import atexit\natexit.register(send)\nsys.exit(treegram.__main__.run())", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("treegram ")


def test_other_errors_are_shown_as_ever():
    done = run(
        "treegram.__main__.run = lambda: 1 / 0\nsys.excepthook = treegram.__main__._end\ntreegram.__main__.run()"
    )
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr


@pytest.mark.slow
def test_signals_at_many_moments_of_a_command(tmp_path):
    """From where our code has begun, which the process says, to the end; three signals each, as from a key held down."""
    program = "print(flush=True)\nsys.exit(treegram.__main__.run())"
    command = [sys.executable, "-c", PROGRAM + program, "demo"]
    undisturbed = None
    for i in range(9):
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
        ) as process:
            process.stdout.readline()
            start = time.monotonic()
            if undisturbed is None:
                process.communicate()
                undisturbed = time.monotonic() - start
                continue
            time.sleep(undisturbed * i / 8)
            for _ in range(3):
                if process.poll() is None:
                    os.kill(process.pid, signal.SIGINT)
                    time.sleep(0.03)
            sent = time.monotonic()
            _, err = process.communicate()
            assert process.returncode == (0 if "Stopped" not in err else 130), err
            assert err.count("Stopped") <= 1, err
            assert "Traceback" not in err
            assert time.monotonic() - sent < 2 + undisturbed / 4  # of a machine that may be busy
