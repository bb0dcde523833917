"""Sparse rows under codes: sorting many codes, and what two collections have in common."""

from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from treegram.structure import features
from treegram.structure.features import Features, common_codes, gather

CODES = st.lists(st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 9), st.integers(2**63, 2**63 + 9)), max_size=60)


@settings(deadline=None)  # the first example loads or compiles the loops
@given(CODES, st.integers(1, 8))
def test_many_codes_are_gathered_as_few_are(codes, codes_per_bin):
    codes = np.array(codes, np.uint64)
    indptr, values = np.array([0, len(codes) // 2, len(codes)]), np.arange(len(codes), dtype=float)
    few, firsts = gather(indptr, codes, values)
    with mock.patch.multiple(features, MANY_CODES=1, CODES_PER_BIN=codes_per_bin):
        many, other_firsts = gather(indptr, codes, values)
    np.testing.assert_array_equal(few.codes, np.unique(codes))
    np.testing.assert_array_equal(many.codes, few.codes)
    np.testing.assert_array_equal(codes[firsts], codes[other_firsts])
    np.testing.assert_array_equal(many.counts.toarray(), few.counts.toarray())


@pytest.mark.parametrize("n_distinct", [1, 7, 10**6])
def test_a_million_codes_are_sorted(n_distinct):
    rng = np.random.default_rng(0)
    codes = rng.integers(2**64, size=n_distinct, dtype=np.uint64)[rng.integers(n_distinct, size=10**6)]
    order = features._sorted_order(codes, np.int32)
    np.testing.assert_array_equal(codes[order], np.sort(codes))
    np.testing.assert_array_equal(np.sort(order), np.arange(len(codes)))


@settings(deadline=None)
@given(CODES, CODES)
def test_common_codes_are_the_intersection(some, others):
    some, others = np.unique(np.array(some, np.uint64)), np.unique(np.array(others, np.uint64))
    np.testing.assert_array_equal(common_codes(some, others), np.intersect1d(some, others))


@settings(deadline=None)
@given(CODES, CODES, st.integers(0, 2**32 - 1))
def test_aligned_rows_have_the_columns_that_were_asked_for(own, asked, seed):
    own, asked = np.unique(np.array(own, np.uint64)), np.unique(np.array(asked, np.uint64))
    dense = np.random.default_rng(seed).integers(3, size=(4, len(own))).astype(float)
    expected = np.zeros((4, len(asked)))
    for j, code in enumerate(asked):
        if code in own:
            expected[:, j] = dense[:, np.flatnonzero(own == code)[0]]
    found = Features(sp.csr_matrix(dense), own).aligned(asked)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found.toarray(), expected)
