import io
import itertools
from types import SimpleNamespace

import pytest

from treegram import GraphSVC, make_synthetic
from treegram._core import parallel as _progress
from treegram._core.parallel import track, verbosely


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    stream = Terminal()
    # Not sys.stderr itself: pytest replaces it between a fixture and its test.
    monkeypatch.setattr(_progress, "sys", SimpleNamespace(stderr=stream, modules={}))
    monkeypatch.setattr(_progress, "shutil", SimpleNamespace(get_terminal_size=lambda: SimpleNamespace(columns=40)))
    return stream


@pytest.fixture
def clock(monkeypatch):
    """Patch the clock to advance one second per call; return a function that sets another step."""

    def set_step(step):
        times = itertools.count(0, step)
        monkeypatch.setattr(_progress, "time", SimpleNamespace(monotonic=lambda: next(times)))

    set_step(1.0)
    return set_step


def screen(text):
    """Return what a terminal shows: each line of its history without overwritten text."""
    shown = []
    for piece in text.split("\r"):
        old = shown[-1] if shown else ""
        shown.append(piece + old[len(piece) :])
    return [line.rstrip() for line in shown]


def test_items_pass_through_unchanged(terminal):
    assert list(track(iter("abc"), 3, "Work")) == ["a", "b", "c"]


def test_long_work_shows_percentage_and_time_left_and_clears_the_line(terminal, clock):
    assert list(track(range(4), 4, "Work")) == [0, 1, 2, 3]
    assert screen(terminal.getvalue()) == [
        "",
        "Work:  50%, 0:00:02 left",
        "Work:  75%, 0:00:01 left",
        "Work: 100%, 0:00:00 left",
        "",
        "",
    ]


def test_work_of_unknown_length_shows_the_number_of_items(terminal, clock):
    list(track(range(2), label="Work"))
    assert "Work: 2 done in 0:00:02" in screen(terminal.getvalue())


def test_short_work_shows_nothing(terminal, clock):
    clock(0.1)
    list(track(range(15), 15, "Work"))
    assert terminal.getvalue() == ""


def test_updates_are_rare(terminal, clock):
    clock(0.01)
    list(track(range(400), 400, "Work"))
    assert terminal.getvalue().count("Work") < 15


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_nothing_is_written_without_a_terminal(monkeypatch, clock, stream):
    monkeypatch.setattr(_progress, "sys", SimpleNamespace(stderr=stream, modules={}))
    assert list(track(range(4), 4, "Work")) == [0, 1, 2, 3]
    assert stream is None or stream.getvalue() == ""


def test_line_is_cleared_after_an_error(terminal, clock):
    def fail():
        yield from range(3)
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        list(track(fail(), 4, "Work"))
    assert "Work" in terminal.getvalue()
    assert screen(terminal.getvalue())[-1] == ""


def test_line_is_cleared_when_the_generator_is_abandoned(terminal, clock):
    items = track(range(9), 9, "Work")
    for _ in range(5):
        next(items)
    items.close()
    assert screen(terminal.getvalue())[-1] == ""


def test_line_fits_the_terminal(terminal, clock):
    list(track(range(4), 4, "A label that is much too long for the terminal"))
    assert max(len(line) for line in screen(terminal.getvalue())) == 39


# -------------------------------------------------------------------- logs


@pytest.fixture
def log(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(_progress, "sys", SimpleNamespace(stderr=stream, modules={}))
    return stream


def test_log_gets_a_line_every_half_minute_and_one_at_the_end(log, clock):
    clock(10.0)
    with verbosely(1):
        list(track(range(7), 7, "Work"))
    assert log.getvalue() == "Work:  43%, 0:00:40 left\nWork:  86%, 0:00:10 left\nWork: 7 done in 0:01:20\n"


def test_log_stays_empty_for_short_work_and_unless_verbose(log, clock):
    clock(0.1)
    with verbosely(1):
        list(track(range(7), 7, "Work"))
    clock(10.0)
    with verbosely(0):
        list(track(range(7), 7, "Work"))
    list(track(range(7), 7, "Work"))
    assert log.getvalue() == ""


def test_non_verbose_model_does_not_silence_a_verbose_command(log, clock):
    clock(10.0)
    with verbosely(1), verbosely(0):
        list(track(range(3), 3, "Work"))
    assert log.getvalue()
    assert not _progress._is_verbose.get()


def test_terminal_shows_only_its_line_when_verbose(terminal, clock):
    with verbosely(1):
        list(track(range(4), 4, "Work"))
    assert screen(terminal.getvalue())[-1] == ""
    assert "\n" not in terminal.getvalue()


@pytest.mark.parametrize("verbose", [0, 1])
def test_verbose_models_write_to_logs(log, clock, verbose):
    clock(10.0)
    graphs, y = make_synthetic(12, n_nodes=12, n_edges=18, random_state=0)
    GraphSVC("wl", cv=2, verbose=verbose).fit(graphs, y)
    assert ("cross-validating WL" in log.getvalue()) == bool(verbose)


# -------------------------------------------------------------------- notebooks


@pytest.fixture
def notebook(log, monkeypatch):
    """Mimic an IPython kernel: the output stream of a cell."""
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel="a kernel"))
    monkeypatch.setitem(_progress.sys.modules, "IPython", shell)
    _progress.sys.stdout = io.StringIO()
    return _progress.sys.stdout


def test_notebook_shows_a_line_that_is_removed_at_the_end(notebook, log, clock):
    with verbosely(1):
        assert list(track(range(4), 4, "Work")) == [0, 1, 2, 3]
    lines = screen(notebook.getvalue())
    assert lines[1] == "Work:  50%, 0:00:02 left"
    assert lines[-1] == log.getvalue() == ""


def test_notebook_shows_nothing_for_short_work(notebook, clock):
    clock(0.1)
    list(track(range(15), 15, "Work"))
    assert notebook.getvalue() == ""


@pytest.mark.parametrize("shell", [SimpleNamespace(), None])
def test_shell_without_a_kernel_is_not_a_notebook(notebook, clock, monkeypatch, shell):
    monkeypatch.setattr(_progress.sys.modules["IPython"], "get_ipython", lambda: shell)
    list(track(range(4), 4, "Work"))
    assert notebook.getvalue() == ""


KERNEL_CELL = """
import time
from treegram._core.parallel import track
for _ in track(range(8), 8, "Work"):
    time.sleep(0.5)
"""


def test_real_kernel_shows_the_line():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(KERNEL_CELL)])
    messages = []
    client = nbclient.NotebookClient(book, timeout=60, kernel_name="python3")
    keep = client.process_message
    client.process_message = lambda message, cell, index: messages.append(message) or keep(message, cell, index)
    client.execute()
    text = "".join(one["content"]["text"] for one in messages if one["msg_type"] == "stream")
    assert "Work:  " in text
    assert screen(text)[-1] == ""
