"""How numbers and lists are written, in every form of the report alike."""

from __future__ import annotations

from treegram._core.text import counted
from treegram.study.summary import Cell

__all__ = [
    "ARROWS",
    "NONE",
    "change",
    "duration",
    "factor",
    "fingerprint",
    "measured",
    "p_value",
    "repeats",
    "share",
    "signed",
]

NONE = "\N{EN DASH}"  # where there is no number
ARROWS = {"up": "▲", "down": "▼"}  # of differences of more than two standard deviations
_MINUS, _TIMES = "\N{MINUS SIGN}", "\N{MULTIPLICATION SIGN}"
_UNITS = (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3))


def measured(mean: float | None, deviation: float | None = None, words: str = "", *, decimals: int = 2) -> str:
    """``83.01 ± 1.95``, ``83.0 ±1.9``, or the words that are printed instead."""
    if mean is None:
        return words or NONE
    space = " " if decimals > 1 else ""
    return f"{mean:.{decimals}f}" + ("" if deviation is None else f" ±{space}{deviation:.{decimals}f}")


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
    return " ".join(filter(None, [ARROWS.get(cell.mark), signed(cell.difference)]))


def repeats(cell: Cell, n_planned: int) -> str:
    """``3 of 10 repeats`` where there are some and not all; ``2 repeats`` where the study plans fewer for this cell."""
    if not cell.repeats or len(cell.repeats) == n_planned:
        return ""
    if len(cell.repeats) == cell.n_planned:
        return counted(cell.n_planned, "repeat")
    return f"{len(cell.repeats)} of {counted(cell.n_planned, 'repeat')}"


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


def fingerprint(digest: str) -> str:
    """The first digits of a digest: enough to tell two data sets apart."""
    return digest[:12]
