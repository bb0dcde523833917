"""Tests of numbering equal rows."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from treegram.structure.hashing import equal_rows


def test_rows_are_numbered_in_order_of_appearance():
    vectors = np.array([[2.0, 1.0], [0.0, 1.0], [2.0, 1.0], [-0.0, 1.0], [0.0, 1.0]])
    numbers, first = equal_rows(vectors, np.array([0, 0, 0, 0, 1]))
    np.testing.assert_array_equal(numbers, [0, 1, 0, 1, 2])
    np.testing.assert_array_equal(first, [0, 1, 4])
    numbers, first = equal_rows(vectors)
    np.testing.assert_array_equal(numbers, [0, 1, 0, 1, 1])
    np.testing.assert_array_equal(first, [0, 1])


@settings(deadline=None)  # the first example loads or compiles the loop
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(0, 3))
def test_rows_are_numbered_as_by_a_dictionary(seed, n, n_columns):
    rng = np.random.default_rng(seed)
    vectors, key = rng.choice([0.0, -0.0, 1.5, 2**-1070], size=(n, n_columns)), rng.integers(2, size=n)
    known = {}
    expected = [known.setdefault((int(key[v]), *vectors[v].tolist()), len(known)) for v in range(n)]
    numbers, first = equal_rows(vectors, key)
    np.testing.assert_array_equal(numbers, expected)
    np.testing.assert_array_equal(first, [expected.index(i) for i in range(len(known))])


def test_numbering_no_rows():
    numbers, first = equal_rows(np.empty((0, 2)))
    assert len(numbers) == len(first) == 0
