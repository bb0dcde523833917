import io
import re
import time
from types import SimpleNamespace

import pytest

from treegram import GraphSVC, make_synthetic
from treegram._core import parallel
from treegram._core.parallel import progress, track, verbosely


class Terminal(io.StringIO):
    def isatty(self):
        return True


def replace_stderr(monkeypatch, stream, **modules):
    """Replace the stream for this module: pytest replaces sys.stderr itself between a fixture and its test."""
    monkeypatch.setattr(parallel, "sys", SimpleNamespace(stderr=stream, modules=modules))
    return stream


@pytest.fixture
def stderr(monkeypatch):
    return replace_stderr(monkeypatch, io.StringIO())


@pytest.fixture
def terminal(monkeypatch):
    return replace_stderr(monkeypatch, Terminal())


@pytest.fixture
def at_once(monkeypatch):
    """Show everything without delay."""
    for name in ("_PATIENCE", "_LIVE_PERIOD", "_LOG_PERIOD"):
        monkeypatch.setattr(parallel, name, 0.0)


def slowly(items):
    for item in items:
        time.sleep(0.002)
        yield item


def test_items_pass_through_unchanged(terminal):
    assert list(track(iter("abc"), 3, "Work")) == ["a", "b", "c"]


def test_long_work_shows_a_bar_that_disappears(terminal, at_once):
    assert list(track(slowly(range(4)), 4, "Work")) == [0, 1, 2, 3]
    text = terminal.getvalue()
    assert re.search(r"Work: +50%\|.*\| 2/4 \[", text)
    assert not text.split("\r")[-1].strip()


def test_short_work_shows_nothing(terminal):
    list(track(slowly(range(20)), 20, "Work"))
    assert terminal.getvalue().strip() == ""


def test_unknown_total_shows_the_number_of_items(terminal, at_once):
    list(track(slowly(range(3)), label="Work"))
    assert re.search(r"Work: 2it \[", terminal.getvalue())


def test_progress_counts_what_it_is_told(terminal, at_once):
    with progress(100, "Work") as advance:
        for n in (10, 30):
            time.sleep(0.002)
            advance(n)
    assert re.search(r"40/100 \[", terminal.getvalue())


def test_bar_disappears_after_an_error(terminal, at_once):
    def fail():
        yield from slowly(range(3))
        raise ValueError

    with pytest.raises(ValueError):
        list(track(fail(), 4, "Work"))
    assert "Work" in terminal.getvalue()
    assert not terminal.getvalue().split("\r")[-1].strip()


def test_bar_disappears_when_the_items_are_abandoned(terminal, at_once):
    items = track(slowly(range(9)), 9, "Work")
    next(items), next(items), next(items)
    items.close()
    assert "Work" in terminal.getvalue()
    assert not terminal.getvalue().split("\r")[-1].strip()


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_nothing_is_shown_without_a_terminal(monkeypatch, at_once, stream):
    replace_stderr(monkeypatch, stream)
    assert list(track(slowly(range(4)), 4, "Work")) == [0, 1, 2, 3]
    assert stream is None or stream.getvalue() == ""


def test_verbose_work_without_a_terminal_shows_lines(stderr, at_once):
    with verbosely(1), verbosely(0):  # nested verbose=0 does not silence an outer verbose=1
        list(track(slowly(range(4)), 4, "Work"))
    list(track(slowly(range(4)), 4, "Later"))
    lines = stderr.getvalue().splitlines()
    assert lines[-1].startswith("Work: 100%|")
    assert all(line.startswith("Work: ") and "\r" not in line for line in lines)


def test_verbose_lines_appear_every_half_minute(stderr):
    assert parallel._LOG_PERIOD == 30
    with verbosely(1):
        list(track(slowly(range(20)), 20, "Work"))
    assert stderr.getvalue() == ""


def test_notebook_shows_progress(monkeypatch, at_once):
    """Without ipywidgets, as here, tqdm draws with letters."""
    ipython = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel="a kernel"))
    stream = replace_stderr(monkeypatch, io.StringIO(), IPython=ipython)
    list(track(slowly(range(4)), 4, "Work"))
    assert "Work:  50%" in stream.getvalue()


@pytest.mark.parametrize("shell", [SimpleNamespace(), None])
def test_shell_without_a_kernel_is_not_a_notebook(monkeypatch, at_once, shell):
    stream = replace_stderr(monkeypatch, io.StringIO(), IPython=SimpleNamespace(get_ipython=lambda: shell))
    list(track(slowly(range(4)), 4, "Work"))
    assert stream.getvalue() == ""


def test_models_show_progress_if_verbose(stderr, at_once):
    graphs, y = make_synthetic(20, random_state=0)
    GraphSVC("wl", param_grid={"n_iterations": [0, 1]}, cv=2, verbose=1).fit(graphs, y)
    assert "cross-validating WL: 100%|" in stderr.getvalue()
