"""Phrases that messages, tables and pages share, and warnings."""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Hashable, Iterable, Sequence
from unicodedata import category

_MAX_SUGGESTIONS = 2
_DIRECTION_MARKS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # change the direction of text


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return ``1 graph``, ``9,600 graphs``, ``2 accuracies``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(words: Sequence[str]) -> str:
    """Return ``A, B and C``."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


def label_text(value: Hashable) -> str:
    """Return a label as text: ``C/1`` for the tuple ("C", 1)."""
    return "/".join(map(str, value)) if isinstance(value, tuple) else str(value)


def suggest(word: str, words: Iterable[str]) -> str:
    """Return the end of an error message that names the closest words, or "" if none is close."""
    by_lower = {candidate.lower(): candidate for candidate in words}
    close = difflib.get_close_matches(word.lower(), by_lower, n=_MAX_SUGGESTIONS, cutoff=0.6)
    names = [repr(name) if " " in name else name for name in (by_lower[match] for match in close)]
    return f"; did you mean {' or '.join(names)}?" if names else ""


def visible(text: str) -> str:
    """Replace characters that could control a terminal, break a page or reverse text with a visible symbol."""
    if text.isprintable():  # nearly always, and much faster
        return text
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if category(c) in ("Cc", "Cs") or c in _DIRECTION_MARKS else c for c in text
    )


def spell_bytes(n_bytes: float) -> str:
    """Format a number of bytes in KiB, MiB or GiB."""
    for exponent, unit in ((30, "GiB"), (20, "MiB")):
        if n_bytes >= 2**exponent:
            return f"{n_bytes / 2**exponent:.3g} {unit}"
    return f"{n_bytes / 2**10:.3g} KiB"


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, and show the line where the user called treegram or scikit-learn."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("treegram", "sklearn"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
