"""Equal rows."""

import numpy as np
import pytest

from treegram.structure.rows import equal_rows


@pytest.mark.parametrize("collide", [False, True])
def test_rows_are_numbered_in_order_of_appearance(collide, monkeypatch):
    """With multipliers of 0, all hashes are equal: rows are then sorted."""
    if collide:
        monkeypatch.setattr(
            "treegram.structure.rows._hash_rows", lambda vectors, *keys: np.zeros(len(vectors), np.uint64)
        )
    vectors = np.array([[2.0, 1.0], [0.0, 1.0], [2.0, 1.0], [-0.0, 1.0], [0.0, 1.0]])
    numbers, first = equal_rows(vectors, np.array([0, 0, 0, 0, 1]))
    np.testing.assert_array_equal(numbers, [0, 1, 0, 1, 2])
    np.testing.assert_array_equal(first, [0, 1, 4])
    numbers, first = equal_rows(vectors)
    np.testing.assert_array_equal(numbers, [0, 1, 0, 1, 1])
    np.testing.assert_array_equal(first, [0, 1])


def test_no_rows():
    numbers, first = equal_rows(np.empty((0, 2)))
    assert len(numbers) == len(first) == 0
