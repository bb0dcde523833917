"""Numbers from the bytes of a text table: the numba code of the readers, on arrays only.

A number whose digits make an integer of at most 2^53, divided by a power of ten up to 10^22, is exact in double
precision but for the one division, which rounds correctly (Clinger's fast path). All else, numbers with an exponent
and things that are no numbers alike, is left to the caller.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treegram._numba import jit
from treegram._types import Floats, Ints

__all__ = ["scan_table", "survey_table"]

_TAB, _NEWLINE, _RETURN, _SPACE, _COMMA, _MINUS, _POINT, _ZERO, _NINE = 9, 10, 13, 32, 44, 45, 46, 48, 57
_MAX_DIGITS = 18  # as many as always fit into 64 bits
_EXACT_INTEGER = 2**53
_POWERS = np.array([float(10**i) for i in range(23)])


@jit
def _is_separator(byte: int) -> bool:
    return byte in (_COMMA, _SPACE, _NEWLINE, _TAB, _RETURN)


@jit
def survey_table(text: NDArray[np.uint8]) -> tuple[int, int]:
    """Number of lines, and of tokens in the first line."""
    n_tokens = 0
    for i in range(len(text)):
        if text[i] == _NEWLINE:
            break
        if not _is_separator(text[i]) and (i == 0 or _is_separator(text[i - 1])):
            n_tokens += 1
    n_lines = 0
    for i in range(len(text)):
        n_lines += text[i] == _NEWLINE
    return n_lines, n_tokens


@jit
def _divide(mantissa: int, n_digits: int, point: int, is_negative: bool) -> float:  # noqa: FBT001
    """The number with its decimal point set after ``point`` digits (-1: none); nan where this may not be exact."""
    n_decimals = n_digits - point if point >= 0 else 0
    if not 0 < n_digits <= _MAX_DIGITS or mantissa > _EXACT_INTEGER:
        return np.nan
    value = mantissa / _POWERS[n_decimals]
    return -value if is_negative else value


@jit
def scan_table(  # noqa: C901 (one loop over bytes: cut into functions on the array it takes twice the time)
    text: NDArray[np.uint8], n_columns: int, values: Floats, left: Ints
) -> tuple[int, int, int]:
    """Read lines of n_columns numbers each, apart by blanks, tabs or one comma, into ``values``, row after row.

    ``text`` ends with a newline. ``left`` receives a row (index into values, first byte, byte after the last) for each
    token that the fast path cannot turn into a number. Returns the first byte of a line that is blank or has another
    number of tokens (len(text): there is none), the number of tokens read, and the number of rows of ``left``.
    """
    n_values, n_left, column, line, start = 0, 0, 0, 0, 0
    mantissa, n_digits, point, is_negative, is_plain, is_open = 0, 0, -1, False, True, False
    for i in range(len(text)):
        byte = int(text[i])
        if _ZERO <= byte <= _NINE:
            mantissa = 10 * mantissa + byte - _ZERO
            n_digits += 1
        elif byte == _POINT:
            is_plain = is_plain and point < 0
            point = n_digits
        elif _is_separator(byte):
            if i > start:
                if column == n_columns:
                    return line, n_values, n_left
                values[n_values] = _divide(mantissa, n_digits, point, is_negative) if is_plain else np.nan
                if np.isnan(values[n_values]):
                    left[n_left, 0], left[n_left, 1], left[n_left, 2] = n_values, start, i
                    n_left += 1
                n_values += 1
                column += 1
                mantissa, n_digits, point, is_negative, is_plain, is_open = 0, 0, -1, False, True, False
            start = i + 1
            if byte == _NEWLINE:
                if column != n_columns or is_open:
                    return line, n_values, n_left
                column, line = 0, start
            elif byte == _COMMA:
                if column == 0 or is_open:
                    return line, n_values, n_left
                is_open = True  # a number must follow
        elif byte == _MINUS and i == start:
            is_negative = True
        else:
            is_plain = False
    return line, n_values, n_left
