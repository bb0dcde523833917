"""Tests of parameter rules: accepted values, and how errors describe them."""

import math

import numpy as np
import pytest

from treegram._core.params import NOTHING, Number, Whole, Words, check_value
from treegram.exceptions import ParameterError


@pytest.mark.parametrize(
    ("allowed", "text", "good", "bad"),
    [
        (Whole(), "a whole number", [0, -5, np.int64(3), 10**400], [1.0, True, None, "1"]),
        (Whole(1), "a whole number of at least 1", [1, 7], [0, -1]),
        (Whole(1, 3), "a whole number of at least 1 and at most 3", [1, 3], [0, 4]),
        (Whole(8, 8), "8", [8], [7, 9]),
        (Number(), "a number", [0, -0.5, np.float32(2)], [math.nan, math.inf, -math.inf, False, 1j]),
        (Number(most=2), "a number of at most 2", [2, -9.5], [2.1]),
        (Number(0, 1, above=True), "a number greater than 0 and at most 1", [0.1, 1], [0, 1.1]),
        (Words("b", "a"), "one of 'a', 'b'", ["a"], ["c", None, 1]),
    ],
)
def test_values_are_accepted_or_rejected(allowed, text, good, bad):
    assert str(allowed) == text
    assert all(allowed.accepts(value) for value in good)
    assert not any(allowed.accepts(value) for value in bad)


def test_error_names_the_parameter_and_the_alternatives():
    check_value("depth", "WL", None, (Whole(0), NOTHING))
    with pytest.raises(ParameterError, match=r"^depth of WL must be a whole number of at least 0 or None; got -1\.$"):
        check_value("depth", "WL", np.int64(-1), (Whole(0), NOTHING))
