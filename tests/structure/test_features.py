"""Tests of sparse rows with codes: collecting codes, and the intersection of two collections."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from treegram.structure.features import Features, add_rows, common_codes, gather

CODES = st.lists(st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 9), st.integers(2**63, 2**63 + 9)), max_size=60)


@settings(deadline=None)  # the first example loads or compiles the loops
@given(CODES)
def test_codes_are_collected_in_ascending_order(codes):
    codes = np.array(codes, np.uint64)
    indptr, values = np.array([0, len(codes) // 2, len(codes)]), np.arange(len(codes), dtype=float)
    found, firsts = gather(indptr, codes, values)
    expected, places, columns = np.unique(codes, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(found.codes, expected)
    np.testing.assert_array_equal(firsts, places)
    np.testing.assert_array_equal(found.counts.indices, columns)
    np.testing.assert_array_equal(found.counts.data, values)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 12), st.integers(1, 5))
def test_added_rows_match_a_matrix_product(seed, n_rows, n_sums):
    rng = np.random.default_rng(seed)
    matrix = sp.csr_matrix(rng.random((n_rows, 6)) * (rng.random((n_rows, 6)) < 0.4))
    numbers = rng.integers(n_sums, size=n_rows)
    expected = np.zeros((n_sums, 6))
    np.add.at(expected, numbers, matrix.toarray())
    added = add_rows(matrix, numbers, n_sums)
    np.testing.assert_allclose(added.toarray(), expected, rtol=1e-15)
    assert all(len(set(row.indices)) == row.nnz for row in added)


@settings(deadline=None)
@given(CODES, CODES)
def test_common_codes_are_the_intersection(some, others):
    some, others = np.unique(np.array(some, np.uint64)), np.unique(np.array(others, np.uint64))
    np.testing.assert_array_equal(common_codes(some, others), np.intersect1d(some, others))


@settings(deadline=None)
@given(CODES, CODES, st.integers(0, 2**32 - 1))
def test_aligned_rows_have_the_requested_columns(own, asked, seed):
    own, asked = np.unique(np.array(own, np.uint64)), np.unique(np.array(asked, np.uint64))
    dense = np.random.default_rng(seed).integers(3, size=(4, len(own))).astype(float)
    expected = np.zeros((4, len(asked)))
    for j, code in enumerate(asked):
        if code in own:
            expected[:, j] = dense[:, np.flatnonzero(own == code)[0]]
    found = Features(sp.csr_matrix(dense), own).aligned(asked)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found.toarray(), expected)
