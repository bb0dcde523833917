"""TOML with line numbers: every value knows where it stands, so that every complaint can say ``FILE:LINE``.

``tomllib`` tells the line of a syntax error and forgets all others. A second walk through the text, which by then is
known to be valid, notes them.
"""

from __future__ import annotations

import math
import re
import tomllib
from bisect import bisect_left
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from unicodedata import category

from treegram._core.errors import StudyError
from treegram._core.text import suggest

__all__ = [
    "Item",
    "any_keys",
    "elements",
    "integer",
    "known_keys",
    "known_name",
    "line_numbers",
    "number",
    "plain",
    "printable_name",
    "read_toml",
    "refuse_repetition",
    "text",
    "texts",
]

Path = tuple[str | int, ...]  # ("kernels", 0, "grid", "depth", 2)

MAX_BYTES = 1 << 18
_MOST_DOTS = 100  # in one line before its "=": tomllib's time grows with the square of a key's parts
_LARGEST = 2**63  # TOML's integers have 64 bits
_SHOWN = 60


@dataclass(frozen=True)
class Item:
    """A value in a file, and where it stands."""

    file: str
    lines: Mapping[Path, int]
    path: Path
    value: Any

    @property
    def key(self) -> str:
        """The innermost key that the value belongs to."""
        return next((step for step in reversed(self.path) if isinstance(step, str)), "")

    def at(self, step: str | int) -> Item:
        """The value under a key of this table, or at a position of this list."""
        return Item(self.file, self.lines, (*self.path, step), self.value[step])

    def error(self, message: str) -> StudyError:
        """The error to raise about this value."""
        known = (self.path[:end] for end in range(len(self.path), -1, -1))
        line = next((self.lines[path] for path in known if path in self.lines), 1)
        return StudyError(f"{self.file}:{line}: {message}")


# -------------------------------------------------------------------- values of the wanted kind


def known_keys(item: Item, required: Collection[str], optional: Collection[str] = ()) -> dict[str, Item]:
    """The values of a table whose keys are fixed."""
    found = any_keys(item)
    known = [*required, *optional]
    for key, value in found.items():
        if key not in known:
            raise value.error(f"unknown key {key!r}{suggest(key, known)} (known here: {', '.join(known)})")
    for key in required:
        if key not in found:
            where = f" of {item.key!r}" if item.path else ""
            raise item.error(f"the key {key!r}{where} is missing")
    return found


def any_keys(item: Item) -> dict[str, Item]:
    """The values of a table with any keys."""
    if not isinstance(item.value, dict):
        raise _wrong_kind(item, "a table")
    return {key: item.at(key) for key in item.value}


def elements(item: Item) -> list[Item]:
    """The values of a list with something in it."""
    if not isinstance(item.value, list):
        raise _wrong_kind(item, "a list")
    if not item.value:
        raise item.error(f"the list {item.key!r} is empty")
    return [item.at(index) for index in range(len(item.value))]


def text(item: Item) -> str:
    """A text with something in it, and no control characters: it will stand on pages and in terminals."""
    if not isinstance(item.value, str):
        raise _wrong_kind(item, "a text in quotes")
    if not item.value.strip():
        raise item.error(f"{item.key!r} is empty")
    if control := next((sign for sign in item.value if category(sign) == "Cc" and sign not in "\t\r\n"), None):
        raise item.error(f"{item.key!r} holds the control character {control!r}; leave it out")
    return item.value


def printable_name(item: Item) -> str:
    """A text that is one line without blanks at its ends, and can be printed."""
    word = text(item)
    if word != word.strip() or not word.isprintable():
        raise item.error(
            f"a name is one line without blanks at its ends, in characters that can be printed; got {word!r}"
        )
    return word


def texts(item: Item, known: Collection[str] | None = None, what: str = "name") -> tuple[str, ...]:
    """A list of different texts, each of them among the known ones if these are given."""
    found = elements(item)
    words = tuple(text(one) if known is None else known_name(one, known, what) for one in found)
    refuse_repetition(found, words, what)
    return words


def known_name(item: Item, known: Collection[str], what: str) -> str:
    """A text that must be among some known ones."""
    word = text(item)
    if word not in known:
        raise item.error(f"unknown {what} {word!r}{suggest(word, known)} (there are {', '.join(known)})")
    return word


def refuse_repetition(items: Iterable[Item], values: Iterable[Hashable], what: str) -> None:
    """Raise at the second of two equal values."""
    seen = set()
    for item, value in zip(items, values, strict=True):
        if value in seen:
            raise item.error(f"the {what} {_show(value)} is here twice")
        seen.add(value)


def integer(item: Item, least: int, most: int = _LARGEST - 1) -> int:
    """A whole number within bounds."""
    value = item.value
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        upto = f" and at most {most}" if most < _LARGEST - 1 else ""
        raise _wrong_kind(item, f"a whole number of at least {least}{upto}")
    return value


def number(item: Item, *, above: float = -math.inf, least: float = -math.inf, most: float = math.inf) -> float:
    """A finite number within bounds, as a float."""
    value = item.value
    bounds = [f"above {above:g}"] * (above > -math.inf) + [f"of at least {least:g}"] * (least > -math.inf)
    bounds += [f"of at most {most:g}"] * (most < math.inf)
    wanted = " ".join(["a finite number", " and ".join(bounds)]).strip()
    if not _is_finite(value) or value <= above or not least <= value <= most:
        raise _wrong_kind(item, wanted)
    return float(value)


def plain(item: Item) -> Any:
    """A text, a finite number, true, false, or a list of these, as a tuple: what a parameter can be."""
    values = elements(item) if isinstance(item.value, list) else [item]
    for one in values:
        if not isinstance(one.value, str | bool) and not _is_finite(one.value):
            raise _wrong_kind(one, "a text, a finite number, true, false, or a list of these")
    return tuple(one.value for one in values) if isinstance(item.value, list) else item.value


def _is_finite(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < _LARGEST if isinstance(value, int) else math.isfinite(value)


def _wrong_kind(item: Item, wanted: str) -> StudyError:
    return item.error(f"{item.key!r} must be {wanted}, got {_show(item.value)}")


def _show(value: Any) -> str:
    """The value as a file would have it, shortened."""
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _LARGEST:
        return "a number of more than 64 bits"
    shown = str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, str) else str(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."


# -------------------------------------------------------------------- from bytes to values with lines


def read_toml(file: str, content: bytes) -> Item:
    """All of a file, as one table; ``file`` is what errors call it."""
    if len(content) > MAX_BYTES:
        raise StudyError(f"{file}: the file has more than {MAX_BYTES} bytes; a study is a few pages of text.")
    source = _decode(file, content)
    try:
        values = tomllib.loads(source)
        return Item(file, line_numbers(source), (), values)
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
