"""Numbers from the bytes of a text table: the numba code of the readers, on arrays only.

A number whose digits make an integer of at most 2^53, divided by a power of ten up to 10^22, is exact in double
precision but for the one division, which rounds correctly (Clinger's fast path). Others of up to 19 digits, with an
exponent or without, as ``numpy.savetxt`` writes them, are rounded by the algorithm of Eisel and Lemire (Lemire, "Number parsing at a gigabyte per
second", 2021), which knows when it cannot be sure. All else, such numbers and things that are no numbers alike, is left
to the caller.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treegram._core.jit import jit
from treegram._core.types import Floats, Hashes, Ints

__all__ = ["read_long", "scan_table"]

_TAB, _NEWLINE, _RETURN, _SPACE, _COMMA, _PLUS, _MINUS, _POINT, _ZERO, _NINE = 9, 10, 13, 32, 44, 43, 45, 46, 48, 57
_UPPER_E, _LOWER_E = 69, 101
_MAX_DIGITS = 19  # as many as always fit into 64 bits without a sign; one less with a sign
_MAX_EXPONENT = 100_000  # larger ones are cut here, far beyond every double
_EXACT_INTEGER = 2**53
_EXACT_UNSIGNED = np.uint64(2**53)  # numba compares signed with unsigned numbers as doubles
_POWERS = np.array([float(10**i) for i in range(23)])
_FIRST_POWER, _LAST_POWER = -342, 308  # outside, 19 digits make zero or infinity


def _power_of_ten(exponent: int) -> int:
    """The first 128 bits of 10 ** exponent, the rest cut off."""
    if exponent >= 0:
        number = 10**exponent
        shift = number.bit_length() - 128
        return number >> shift if shift >= 0 else number << -shift
    divisor = 10**-exponent
    return (1 << (127 + divisor.bit_length())) // divisor


def _power_table() -> Hashes:
    """High and low 64 bits of the powers of ten."""
    powers = [_power_of_ten(exponent) for exponent in range(_FIRST_POWER, _LAST_POWER + 1)]
    return np.array([(power >> 64, power & (2**64 - 1)) for power in powers], np.uint64)


_LONG_POWERS = _power_table()
_LOW = np.uint64(0xFFFFFFFF)
_32, _52, _63 = np.uint64(32), np.uint64(52), np.uint64(63)
_ONE, _THREE, _TEN, _NINE_BITS = np.uint64(1), np.uint64(3), np.uint64(10), np.uint64(0x1FF)


@jit
def _multiply(a, b):
    """High and low 64 bits of the product of two 64-bit numbers."""
    a_high, a_low, b_high, b_low = a >> _32, a & _LOW, b >> _32, b & _LOW
    middle = a_high * b_low + ((a_low * b_low) >> _32)
    other = a_low * b_high + (middle & _LOW)
    return a_high * b_high + (middle >> _32) + (other >> _32), a * b


@jit
def _round_long(mantissa, exponent):
    """Bits of the double nearest to mantissa * 10 ** exponent (mantissa > 0); 0 where this is not sure."""
    if exponent < _FIRST_POWER or exponent > _LAST_POWER:
        return np.uint64(0)
    n_zeros = 0
    while mantissa >> _63 == 0:
        mantissa = mantissa << _ONE
        n_zeros += 1
    power_high, power_low = _LONG_POWERS[exponent - _FIRST_POWER, 0], _LONG_POWERS[exponent - _FIRST_POWER, 1]
    high, low = _multiply(mantissa, power_high)
    if high & _NINE_BITS == _NINE_BITS and low + mantissa < mantissa:  # the power's other half may matter
        more_high, more_low = _multiply(mantissa, power_low)
        if low + more_high < low:
            high += _ONE
        low += more_high
        if high & _NINE_BITS == _NINE_BITS and low + _ONE == 0 and more_low + mantissa < mantissa:
            return np.uint64(0)
    top = high >> _63
    digits = high >> (top + np.uint64(9))
    binary = ((217706 * exponent) >> 16) + 64 + 1023 - n_zeros - (1 - np.int64(top))
    if low == 0 and high & _NINE_BITS == 0 and digits & _THREE == _ONE:  # perhaps halfway between two doubles
        return np.uint64(0)
    digits = (digits + (digits & _ONE)) >> _ONE
    if digits >> np.uint64(53) > 0:
        digits = digits >> _ONE
        binary += 1
    if binary < 1 or binary >= 0x7FF:  # subnormal, or infinite
        return np.uint64(0)
    return (np.uint64(binary) << _52) | (digits & np.uint64(2**52 - 1))


@jit
def _scale(mantissa, exponent, only_exact, bits, doubles):
    """The number mantissa * 10 ** exponent; nan where its rounding is not sure, or where it is no whole number to 2^53."""
    while exponent < 0 and mantissa % _TEN == 0 and mantissa > 0:
        mantissa //= _TEN
        exponent += 1
    if mantissa == 0:
        return 0.0
    if mantissa <= _EXACT_UNSIGNED and 0 <= exponent <= 22:
        value = np.float64(mantissa) * _POWERS[exponent]
        return value if value <= _EXACT_INTEGER or not only_exact else np.nan
    bits[0] = np.uint64(0) if only_exact else _round_long(mantissa, exponent)
    return np.nan if bits[0] == 0 else doubles[0]


@jit(allocates=True)
def read_long(text: NDArray[np.uint8], only_exact: bool, values: Floats, left: Ints, n_left: int) -> int:  # noqa: FBT001
    """Turn what :func:`scan_table` has left into numbers where possible; returns how many rows of ``left`` remain.

    Few tables have numbers with an exponent or more than 18 digits, so this is compiled when the first one comes.
    """
    bits = np.zeros(1, np.uint64)
    doubles = bits.view(np.float64)
    n_still_left = 0
    for i in range(n_left):
        index, start, end = left[i, 0], left[i, 1], left[i, 2]
        values[index] = _read_token(text[start:end], only_exact, bits, doubles)
        if np.isnan(values[index]):
            left[n_still_left, 0], left[n_still_left, 1], left[n_still_left, 2] = index, start, end
            n_still_left += 1
    return n_still_left


@jit
def _read_token(token, only_exact, bits, doubles):
    """The number of a token with an exponent or many digits; nan where it is no number, or as in :func:`_scale`."""
    mantissa, n_digits, point, exponent, mark = np.uint64(0), 0, -1, 0, -1
    is_negative = token[0] == _MINUS
    for i in range(1 if is_negative or token[0] == _PLUS else 0, len(token)):
        byte = int(token[i])
        if _ZERO <= byte <= _NINE:
            if mark >= 0:
                exponent = min(10 * exponent + byte - _ZERO, _MAX_EXPONENT)
            else:
                mantissa = _TEN * mantissa + np.uint64(byte - _ZERO)
                n_digits += 1
        elif byte == _POINT and point < 0 and mark < 0:
            point = n_digits
        elif byte in (_LOWER_E, _UPPER_E) and mark < 0:
            mark = i
        elif not (byte in (_PLUS, _MINUS) and mark >= 0 and i == mark + 1):
            return np.nan
    if not 0 < n_digits <= _MAX_DIGITS or (mark >= 0 and not _ZERO <= token[-1] <= _NINE):
        return np.nan
    if mark >= 0 and token[mark + 1] == _MINUS:
        exponent = -exponent
    value = _scale(mantissa, exponent - (n_digits - point if point >= 0 else 0), only_exact, bits, doubles)
    return -value if is_negative else value


@jit(error_model="numpy")
def scan_table(  # noqa: C901 (one loop over bytes: cut into functions on the array it takes twice the time)
    text: NDArray[np.uint8],
    n_columns: int,
    values: Floats,
    left: Ints,
    found: Ints,
) -> int:
    """Read lines of n_columns numbers each, apart by blanks, tabs or one comma, into ``values``, row after row.

    ``text`` ends with a newline. ``left`` receives a row (index into values, first byte, byte after the last) for each
    token that is more than a sign, up to 18 digits that make a number of at most 2^53, and a point.
    Returns the first byte of a line that is blank or has another number of tokens (len(text): there is none); ``found``
    receives the number of tokens read, and the number of rows of ``left``.
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
        elif byte in (_COMMA, _SPACE, _NEWLINE, _TAB, _RETURN):
            if i > start:
                if column == n_columns:
                    break
                if is_plain and 0 < n_digits < _MAX_DIGITS and mantissa <= _EXACT_INTEGER:
                    value = mantissa / _POWERS[n_digits - point if point >= 0 else 0]
                    values[n_values] = -value if is_negative else value
                else:
                    left[n_left, 0], left[n_left, 1], left[n_left, 2] = n_values, start, i
                    n_left += 1
                n_values += 1
                column += 1
                mantissa, n_digits, point, is_negative, is_plain, is_open = 0, 0, -1, False, True, False
            start = i + 1
            if byte == _NEWLINE:
                if column != n_columns or is_open:
                    break
                column, line = 0, start
            elif byte == _COMMA:
                if column == 0 or is_open:
                    break
                is_open = True  # a number must follow
        elif byte == _MINUS and i == start:
            is_negative = True
        else:
            is_plain = False
    found[0], found[1] = n_values, n_left
    return line
