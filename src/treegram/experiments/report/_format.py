"""How numbers and lists are written, in every form of the report alike."""

from __future__ import annotations

from collections.abc import Sequence

from treegram.experiments.summary import Cell

__all__ = [
    "NONE",
    "accuracy",
    "change",
    "counted",
    "duration",
    "factor",
    "fingerprint",
    "listed",
    "p_value",
    "repeats",
    "share",
    "signed",
]

NONE = "\N{EN DASH}"  # where there is no number
_MINUS, _TIMES = "\N{MINUS SIGN}", "\N{MULTIPLICATION SIGN}"
_UNITS = (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3))


def accuracy(mean: float | None, deviation: float | None = None, words: str = "") -> str:
    """``83.01 ± 1.95``, or the words that stand in its place."""
    if mean is None:
        return words or NONE
    return f"{mean:.2f}" if deviation is None else f"{mean:.2f} ± {deviation:.2f}"


def signed(value: float) -> str:
    """A difference with its sign; what rounds to zero has none."""
    text = f"{abs(value):.2f}"
    if float(text) == 0:
        return text
    return f"{_MINUS if value < 0 else '+'}{text}"


def change(cell: Cell) -> str:
    """The difference to the published number, with an arrow if it exceeds two standard deviations."""
    if cell.difference is None:
        return ""
    arrow = ("▲ " if cell.difference > 0 else "▼ ") if cell.is_marked else ""
    return arrow + signed(cell.difference)


def repeats(cell: Cell, n_planned: int) -> str:
    """``3 of 10 repeats`` where there are some and not all."""
    return f"{len(cell.repeats)} of {counted(n_planned, 'repeat')}" if 0 < len(cell.repeats) < n_planned else ""


def duration(seconds: float | None) -> str:
    """A time with two or three digits, in the unit that people use."""
    if seconds is None:
        return NONE
    name, unit = next((one for one in _UNITS if seconds >= one[1]), _UNITS[-1])
    value = seconds / unit
    return f"{value:.0f} {name}" if value >= 100 else f"{value:.3g} {name}" if value >= 10 else f"{value:.2g} {name}"


def factor(ratio: float | None) -> str:
    """``5,800 ×``, with two digits."""
    if ratio is None:
        return ""
    return f"{float(f'{ratio:.2g}'):,.0f} {_TIMES}" if ratio >= 10 else f"{ratio:.2g} {_TIMES}"


def p_value(p: float) -> str:
    """``= 0.008``, ``< 0.001``."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}" if p < 0.1 else f"= {p:.2f}"


def share(probability: float) -> str:
    """A probability in percent; never 0 or 100 where it is not."""
    if 0 < probability < 0.005:
        return "< 1 %"
    if 0.995 < probability < 1:
        return "> 99 %"
    return f"{100 * probability:.0f} %"


def counted(number: int, noun: str) -> str:
    """``1 repeat``, ``9,600 repeats``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def fingerprint(digest: str) -> str:
    """The first digits of a digest: enough to tell two data sets apart."""
    return digest[:12]


def listed(words: Sequence[str]) -> str:
    """``A, B and C``."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)
