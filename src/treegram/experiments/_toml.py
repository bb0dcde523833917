"""TOML with line numbers: every value knows where it stands, so that every complaint can say ``FILE:LINE``.

``tomllib`` tells the line of a syntax error and forgets all others. A second walk through the text, which by then is
known to be valid, notes them.
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from bisect import bisect_left
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from treegram.errors import StudyError

__all__ = [
    "Place",
    "closest",
    "elements",
    "entries",
    "integer",
    "known_name",
    "line_numbers",
    "number",
    "plain",
    "read_toml",
    "refuse_repetition",
    "table",
    "text",
    "texts",
]

Path = tuple[str | int, ...]  # ("kernels", 0, "grid", "depth", 2)

MAX_BYTES = 1 << 18
_MOST_DOTS = 100  # in one line before its "=": tomllib's time grows with the square of a key's parts
_LARGEST = 2**63  # TOML's integers have 64 bits
_SHOWN = 60


@dataclass(frozen=True)
class Place:
    """A value in a file, and where it stands."""

    file: str
    lines: Mapping[Path, int]
    path: Path
    value: Any

    @property
    def key(self) -> str:
        """The innermost key that the value belongs to."""
        return next((step for step in reversed(self.path) if isinstance(step, str)), "")

    def at(self, step: str | int) -> Place:
        """The value under a key of this table, or at a position of this list."""
        return Place(self.file, self.lines, (*self.path, step), self.value[step])

    def error(self, message: str) -> StudyError:
        """The error to raise about this value."""
        known = (self.path[:end] for end in range(len(self.path), -1, -1))
        line = next((self.lines[path] for path in known if path in self.lines), 1)
        return StudyError(f"{self.file}:{line}: {message}")


def closest(word: str, words: Iterable[str]) -> str:
    """The part of a message that names the closest of some words, or nothing where none is close."""
    by_lower = {known.lower(): known for known in words}
    close = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return f"; did you mean {by_lower[close[0]]!r}?" if close else ""


# -------------------------------------------------------------------- values of the wanted kind


def table(place: Place, required: Collection[str], optional: Collection[str] = ()) -> dict[str, Place]:
    """The values of a table whose keys are fixed."""
    found = entries(place)
    known = [*required, *optional]
    for key, value in found.items():
        if key not in known:
            raise value.error(f"unknown key {key!r}{closest(key, known)} (known here: {', '.join(known)})")
    for key in required:
        if key not in found:
            where = f" of {place.key!r}" if place.path else ""
            raise place.error(f"the key {key!r}{where} is missing")
    return found


def entries(place: Place) -> dict[str, Place]:
    """The values of a table with any keys."""
    if not isinstance(place.value, dict):
        raise _wrong_kind(place, "a table")
    return {key: place.at(key) for key in place.value}


def elements(place: Place) -> list[Place]:
    """The values of a list with something in it."""
    if not isinstance(place.value, list):
        raise _wrong_kind(place, "a list")
    if not place.value:
        raise place.error(f"the list {place.key!r} is empty")
    return [place.at(index) for index in range(len(place.value))]


def text(place: Place) -> str:
    """A text with something in it."""
    if not isinstance(place.value, str):
        raise _wrong_kind(place, "a text in quotes")
    if not place.value.strip():
        raise place.error(f"{place.key!r} is empty")
    return place.value


def texts(place: Place, known: Collection[str] | None = None, what: str = "name") -> tuple[str, ...]:
    """A list of different texts, each of them among the known ones if these are given."""
    found = elements(place)
    words = tuple(text(one) if known is None else known_name(one, known, what) for one in found)
    refuse_repetition(found, words, what)
    return words


def known_name(place: Place, known: Collection[str], what: str) -> str:
    """A text that must be among some known ones."""
    word = text(place)
    if word not in known:
        raise place.error(f"unknown {what} {word!r}{closest(word, known)} (there are {', '.join(known)})")
    return word


def refuse_repetition(places: Iterable[Place], values: Iterable[Hashable], what: str) -> None:
    """Raise at the second of two equal values."""
    seen = set()
    for place, value in zip(places, values, strict=True):
        if value in seen:
            raise place.error(f"the {what} {_show(value)} is here twice")
        seen.add(value)


def integer(place: Place, least: int, most: int = _LARGEST - 1) -> int:
    """A whole number within bounds."""
    value = place.value
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        upto = f" and at most {most}" if most < _LARGEST - 1 else ""
        raise _wrong_kind(place, f"a whole number of at least {least}{upto}")
    return value


def number(place: Place, *, above: float = -math.inf, least: float = -math.inf, most: float = math.inf) -> float:
    """A finite number within bounds, as a float."""
    value = place.value
    bounds = [f"above {above:g}"] * (above > -math.inf) + [f"of at least {least:g}"] * (least > -math.inf)
    bounds += [f"of at most {most:g}"] * (most < math.inf)
    wanted = " ".join(["a finite number", " and ".join(bounds)]).strip()
    if not _is_finite(value) or value <= above or not least <= value <= most:
        raise _wrong_kind(place, wanted)
    return float(value)


def plain(place: Place) -> Any:
    """A text, a finite number, true, false, or a list of these, as a tuple: what a parameter can be."""
    if isinstance(place.value, list):
        return tuple(plain(one) for one in elements(place))
    if not isinstance(place.value, str | bool) and not _is_finite(place.value):
        raise _wrong_kind(place, "a text, a finite number, true, false, or a list of these")
    return place.value


def _is_finite(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < _LARGEST if isinstance(value, int) else math.isfinite(value)


def _wrong_kind(place: Place, wanted: str) -> StudyError:
    return place.error(f"{place.key!r} must be {wanted}, got {_show(place.value)}")


def _show(value: Any) -> str:
    """The value as a file would have it, shortened."""
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _LARGEST:
        return "a number of more than 64 bits"
    shown = str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, str) else str(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."


# -------------------------------------------------------------------- from bytes to values with lines


def read_toml(file: str, content: bytes) -> Place:
    """All of a file, as one table; ``file`` is what errors call it."""
    if len(content) > MAX_BYTES:
        raise StudyError(f"{file}: the file has more than {MAX_BYTES} bytes; a study is a few pages of text.")
    source = _decode(file, content)
    try:
        values = tomllib.loads(source)
        return Place(file, line_numbers(source), (), values)
    except RecursionError:
        raise StudyError(f"{file}: brackets or braces are nested too deeply for a study.") from None
    except ValueError as error:
        raise StudyError(_syntax_complaint(file, source, str(error))) from None


def _decode(file: str, content: bytes) -> str:
    try:
        source = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise StudyError(f"{file}:{line}: this is not UTF-8; save the file with this encoding.") from None
    for line, words in enumerate(source.split("\n"), start=1):
        if words.partition("=")[0].count(".") > _MOST_DOTS:
            raise StudyError(f"{file}:{line}: a key of more than {_MOST_DOTS} parts; expected three at most.")
    return source


def _syntax_complaint(file: str, source: str, message: str) -> str:
    """Tomllib's message, with the line where all our messages have it."""
    found = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", message, re.DOTALL)
    if found is None:  # from Python itself, about a number with thousands of digits
        return f"{file}: this is not TOML: {message}"
    line = found[2] or source.rstrip("\n").count("\n") + 1
    column = f" (column {found[3]})" if found[3] else " (at the end of the file)"
    return f"{file}:{line}: this is not TOML: {found[1]}{column}"


_BLANK = re.compile(r"(?:[ \t\n]+|#[^\n]*)*")
_KEY_PART = re.compile(r"""[ \t]*("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[A-Za-z0-9_-]+)[ \t]*""")
_SCALAR = re.compile(
    r'''"""(?:[^\\]|\\.)*?""""{0,2}|\'\'\'.*?\'\'\'\'{0,2}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^,\]}\n#]+''', re.DOTALL
)


def line_numbers(source: str) -> dict[Path, int]:
    """The line of each key and of each element of a list, of TOML that is known to be valid."""
    walk = _Walk(source)
    walk.document()
    return walk.lines


class _Walk:
    """One walk through valid TOML; ``at`` is where it stands."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.lines: dict[Path, int] = {}
        self._newlines = [found.start() for found in re.finditer("\n", source)]
        self._lengths: dict[Path, int] = {}  # of lists of tables, so far

    def document(self) -> None:
        inside: Path = ()
        while not self._meets("", skip_blank=True):
            inside = self._header() if self._meets("[") else self._pair(inside)

    def _meets(self, sign: str, *, skip_blank: bool = False) -> bool:
        """Whether this sign comes next, the end of the text for an empty one; it is not passed."""
        if skip_blank:
            self._pass(_BLANK)
        return self.source.startswith(sign, self.at) if sign else self.at >= len(self.source)

    def _pass(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = pattern.match(self.source, self.at)
        assert found is not None, "the text is valid TOML"
        self.at = found.end()
        return found

    def _note(self, path: Path) -> None:
        self.lines.setdefault(path, bisect_left(self._newlines, self.at) + 1)

    def _header(self) -> Path:
        """``[a.b]`` or ``[[a.b]]``: the path of the table that follows."""
        n_brackets = 2 if self._meets("[[") else 1
        self.at += n_brackets
        path: Path = ()
        for part in self._key():
            if path in self._lengths:
                path = (*path, self._lengths[path] - 1)
            path = (*path, part)
            self._note(path)
        self.at += n_brackets
        if n_brackets == 2:
            self._lengths[path] = self._lengths.get(path, 0) + 1
        if path in self._lengths:
            path = (*path, self._lengths[path] - 1)
            self._note(path)
        return path

    def _key(self) -> list[str]:
        parts = [self._pass(_KEY_PART)[1]]
        while self._meets("."):
            self.at += 1
            parts.append(self._pass(_KEY_PART)[1])
        return [next(iter(tomllib.loads(f"{part}=0"))) for part in parts]

    def _pair(self, inside: Path) -> Path:
        path = inside
        for part in self._key():
            path = (*path, part)
            self._note(path)
        self.at += 1  # the sign =
        self._pass(_BLANK)
        self._value(path)
        return inside

    def _value(self, path: Path) -> None:
        if self._meets("["):
            self._list(path)
        elif self._meets("{"):
            self.at += 1
            while not self._meets("}", skip_blank=True):
                self._pair(path)
                self._pass_comma()
            self.at += 1
        else:
            self._pass(_SCALAR)

    def _list(self, path: Path) -> None:
        self.at += 1
        length = 0
        while not self._meets("]", skip_blank=True):
            self._note((*path, length))
            self._value((*path, length))
            length += 1
            self._pass_comma()
        self.at += 1

    def _pass_comma(self) -> None:
        if self._meets(",", skip_blank=True):
            self.at += 1
