import io
import itertools
from types import SimpleNamespace

import pytest

from treegram import _progress
from treegram._progress import track


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    stream = Terminal()
    # Not sys.stderr itself: pytest changes it between a fixture and its test.
    monkeypatch.setattr(_progress, "sys", SimpleNamespace(stderr=stream))
    monkeypatch.setattr(_progress, "shutil", SimpleNamespace(get_terminal_size=lambda: SimpleNamespace(columns=40)))
    return stream


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes on by one second with each look; gives a function that sets another step."""

    def set_step(step):
        times = itertools.count(0, step)
        monkeypatch.setattr(_progress, "time", SimpleNamespace(monotonic=lambda: next(times)))

    set_step(1.0)
    return set_step


def screen(text):
    """What a terminal shows of the text: each line of its history without what was written over."""
    shown = []
    for piece in text.split("\r"):
        old = shown[-1] if shown else ""
        shown.append(piece + old[len(piece) :])
    return [line.rstrip() for line in shown]


def test_items_come_through_unchanged(terminal):
    assert list(track(iter("abc"), 3, "Work")) == ["a", "b", "c"]


def test_long_work_shows_share_and_time_left_and_wipes_the_line(terminal, clock):
    assert list(track(range(4), 4, "Work")) == [0, 1, 2, 3]
    assert screen(terminal.getvalue()) == [
        "",
        "Work:  50%, 2 s left",
        "Work:  75%, 1 s left",
        "Work: 100%, 0 s left",
        "",
        "",
    ]


def test_work_without_a_known_end_shows_what_was_done(terminal, clock):
    list(track(range(2), label="Work"))
    assert "Work: 2 done in 2 s" in screen(terminal.getvalue())


def test_short_work_shows_nothing(terminal, clock):
    clock(0.1)
    list(track(range(15), 15, "Work"))
    assert terminal.getvalue() == ""


def test_updates_are_rare(terminal, clock):
    clock(0.01)
    list(track(range(400), 400, "Work"))
    assert terminal.getvalue().count("Work") < 15


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_nothing_is_written_where_nobody_looks(monkeypatch, clock, stream):
    monkeypatch.setattr(_progress, "sys", SimpleNamespace(stderr=stream))
    assert list(track(range(4), 4, "Work")) == [0, 1, 2, 3]
    assert stream is None or stream.getvalue() == ""


def test_the_line_is_wiped_after_an_error_too(terminal, clock):
    def fail():
        yield from range(3)
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        list(track(fail(), 4, "Work"))
    assert "Work" in terminal.getvalue()
    assert screen(terminal.getvalue())[-1] == ""


def test_the_line_is_wiped_when_nobody_wants_the_rest(terminal, clock):
    items = track(range(9), 9, "Work")
    for _ in range(5):
        next(items)
    items.close()
    assert screen(terminal.getvalue())[-1] == ""


def test_the_line_fits_the_terminal(terminal, clock):
    list(track(range(4), 4, "A label that is much too long for the terminal"))
    assert max(len(line) for line in screen(terminal.getvalue())) == 39


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (59.4, "59 s"), (61, "1 min 01 s"), (3600, "1 h 00 min"), (100_000, "27 h 46 min")],
)
def test_durations_are_easy_to_read(seconds, text):
    assert _progress._duration(seconds) == text
