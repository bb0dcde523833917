"""Tests of sums and products of sparse rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from treegram.pairsum import products
from treegram.pairsum.products import feature_products, sum_rows


def test_sum_rows_adds_the_rows_of_each_graph():
    rows = sp.csr_matrix(np.arange(12.0).reshape(4, 3))
    sums = sum_rows(rows, np.array([0, 0, 3, 3, 4]))
    np.testing.assert_array_equal(sums.toarray(), [[0, 0, 0], [9, 12, 15], [0, 0, 0], [9, 10, 11]])


def test_sum_rows_without_rows_is_empty():
    assert sum_rows(sp.csr_matrix((0, 3)), np.array([0])).shape == (0, 3)


@pytest.mark.parametrize("size", [1, 2, 1000])
@pytest.mark.parametrize("n_rows", [0, 1, 5])
def test_feature_products_equal_inner_products_of_rows(monkeypatch, n_rows, size):
    monkeypatch.setattr(products, "ROWS_PER_CALL", size)
    monkeypatch.setattr(products, "COLUMNS_AT_ONCE", size)
    rng = np.random.default_rng(0)
    left, right = (rng.integers(0, 3, size=(n, 7)).astype(float) for n in (n_rows, 4))
    actual = feature_products(sp.csr_matrix(left), sp.csr_matrix(right))
    np.testing.assert_array_equal(actual, left @ right.T)


@pytest.mark.parametrize("size", [1, 2, 1000])
@pytest.mark.parametrize("n_rows", [0, 1, 5])
def test_products_of_rows_with_themselves_fill_the_upper_half(monkeypatch, n_rows, size):
    monkeypatch.setattr(products, "ROWS_PER_CALL", size)
    monkeypatch.setattr(products, "COLUMNS_AT_ONCE", size)
    rows = np.random.default_rng(0).normal(size=(n_rows, 40))
    actual = feature_products(sp.csr_matrix(rows), None)
    both_halves = feature_products(sp.csr_matrix(rows), sp.csr_matrix(rows))
    np.testing.assert_allclose(both_halves, rows @ rows.T, rtol=1e-13)
    np.testing.assert_array_equal(np.triu(actual), np.triu(both_halves))
