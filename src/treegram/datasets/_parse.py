"""Numbers from the bytes of a text table: the one numba function of the readers, on arrays only.

A number whose digits make an integer of at most 2^53, times or divided by a power of ten up to 10^22, is exact in
double precision up to that one operation, which rounds correctly (Clinger's fast path). Every other number is left to
the caller, who asks Python's ``float``. The text must end with a newline, so that no step needs to look for its end.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["BAD_NUMBER", "BLANK_LINE", "DONE", "WRONG_COLUMNS", "scan_table"]

DONE, BLANK_LINE, BAD_NUMBER, WRONG_COLUMNS = 0, 1, 2, 3

_TAB, _NEWLINE, _RETURN, _SPACE, _PLUS, _COMMA, _MINUS, _POINT = 9, 10, 13, 32, 43, 44, 45, 46
_ZERO, _NINE, _UPPER_E, _LOWER_E = 48, 57, 69, 101
_MAX_DIGITS = 18  # as many as always fit into 64 bits
_EXACT_INTEGER = 2**53
_EXACT_POWER = 22
_POWERS = np.array([float(10**i) for i in range(_EXACT_POWER + 1)])


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _byte(text: NDArray[np.uint8], position: int) -> int:
    return int(text[np.uint64(position)])  # an unsigned index spares the test for a negative one


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _skip_blanks(text: NDArray[np.uint8], position: int) -> int:
    while _byte(text, position) == _SPACE or _byte(text, position) == _TAB:
        position += 1
    return position


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _is_line_end(text: NDArray[np.uint8], position: int) -> bool:
    byte = _byte(text, position)
    return byte == _NEWLINE or (byte == _RETURN and _byte(text, position + 1) == _NEWLINE)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _is_token_end(text: NDArray[np.uint8], position: int) -> bool:
    byte = _byte(text, position)
    return byte == _COMMA or byte == _NEWLINE or byte == _SPACE or byte == _TAB or _is_line_end(text, position)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _scan_digits(text: NDArray[np.uint8], position: int, number: int) -> tuple[int, int]:
    """Position after the digits, and number with the digits appended (wrapped around where they are too many)."""
    digit = _byte(text, position) - _ZERO
    while 0 <= digit <= 9:
        number = 10 * number + digit
        position += 1
        digit = _byte(text, position) - _ZERO
    return position, number


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _scan_exponent(text: NDArray[np.uint8], position: int) -> tuple[int, int]:
    """Position after an exponent such as e-05 (-1: none to read), and its value, cut off at a size that is never exact."""
    negative = _byte(text, position) == _MINUS
    if negative or _byte(text, position) == _PLUS:
        position += 1
    end, exponent = _scan_digits(text, position, 0)
    if end == position:
        return -1, 0
    if end - position > 4:  # leading zeros or out of range: for the caller
        exponent = 10_000
    return end, (-exponent if negative else exponent)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _scan_number(text: NDArray[np.uint8], position: int) -> tuple[int, bool, float]:
    """Position after the number (-1: not a number), whether the value is exact, and the value."""
    negative = _byte(text, position) == _MINUS
    if negative or _byte(text, position) == _PLUS:
        position += 1
    end, mantissa = _scan_digits(text, position, 0)
    n_digits = end - position
    exponent = 0
    if _byte(text, end) == _POINT:
        position = end + 1
        end, mantissa = _scan_digits(text, position, mantissa)
        exponent = position - end
        n_digits -= exponent
    if n_digits == 0:
        return -1, False, 0.0
    if _byte(text, end) == _LOWER_E or _byte(text, end) == _UPPER_E:
        end, shift = _scan_exponent(text, end + 1)
        exponent += shift
    if n_digits > _MAX_DIGITS or mantissa > _EXACT_INTEGER or abs(exponent) > _EXACT_POWER:
        return end, False, 0.0
    power = _POWERS[np.uint64(abs(exponent))]
    value = mantissa / power if exponent < 0 else mantissa * power
    return end, True, (-value if negative else value)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def scan_table(
    text: NDArray[np.uint8], n_columns: int, values: NDArray[np.float64], left: NDArray[np.int64]
) -> tuple[int, int, int, int]:
    """Read lines of n_columns numbers each, apart by blanks, tabs or one comma, into ``values``, row after row.

    ``left`` receives a row (index into values, first byte, byte after the last) for each number that the fast path
    does not give exactly. Returns what ended the reading (one of the constants above), the byte where, the number of
    values read, and the number of rows of ``left``. The caller provides enough room in both arrays.
    """
    position, n_values, n_left = 0, 0, 0
    while position < len(text):
        line = position
        for column in range(n_columns):
            position = _skip_blanks(text, position)
            if column > 0 and _byte(text, position) == _COMMA:
                position = _skip_blanks(text, position + 1)
            elif _is_line_end(text, position):
                return (BLANK_LINE if column == 0 else WRONG_COLUMNS), line, n_values, n_left
            end, exact, value = _scan_number(text, position)
            if end < 0 or not _is_token_end(text, end):
                return BAD_NUMBER, position, n_values, n_left
            if not exact:
                left[n_left, 0], left[n_left, 1], left[n_left, 2] = n_values, position, end
                n_left += 1
            values[n_values] = value
            n_values += 1
            position = end
        position = _skip_blanks(text, position)
        if not _is_line_end(text, position):
            return WRONG_COLUMNS, line, n_values, n_left
        position += 2 if _byte(text, position) == _RETURN else 1
    return DONE, position, n_values, n_left
