"""Words that every message, table and page of the package makes alike."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

__all__ = ["counted", "listed", "suggest"]

_MOST_SUGGESTED = 2


def counted(number: int, noun: str, plural: str = "") -> str:
    """``1 graph``, ``9,600 graphs``, ``2 accuracies``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(words: Sequence[str]) -> str:
    """``A, B and C``."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


def suggest(word: str, words: Iterable[str]) -> str:
    """The end of an error message that names the closest of some words, or nothing where none is close."""
    by_lower = {known.lower(): known for known in words}
    close = difflib.get_close_matches(word.lower(), by_lower, n=_MOST_SUGGESTED, cutoff=0.6)
    names = [repr(name) if " " in name else name for name in (by_lower[match] for match in close)]
    return f"; did you mean {' or '.join(names)}?" if names else ""
