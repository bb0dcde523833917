"""Sums and products of sparse rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from treegram.pairsum import products
from treegram.pairsum.products import feature_products, sum_rows


def test_sum_rows_adds_the_rows_of_each_graph():
    rows = sp.csr_matrix(np.arange(12.0).reshape(4, 3))
    sums = sum_rows(rows, np.array([0, 0, 3, 3, 4]))
    np.testing.assert_array_equal(sums.toarray(), [[0, 0, 0], [9, 12, 15], [0, 0, 0], [9, 10, 11]])


def test_sum_rows_of_nothing_is_empty():
    assert sum_rows(sp.csr_matrix((0, 3)), np.array([0])).shape == (0, 3)


@pytest.mark.parametrize("rows_per_product", [1, 2, 1000])
@pytest.mark.parametrize("n_rows", [0, 1, 5])
def test_feature_products_are_inner_products_of_rows(monkeypatch, n_rows, rows_per_product):
    monkeypatch.setattr(products, "ROWS_PER_PRODUCT", rows_per_product)
    rng = np.random.default_rng(0)
    left, right = (rng.integers(0, 3, size=(n, 7)).astype(float) for n in (n_rows, 4))
    actual = feature_products(sp.csr_matrix(left), sp.csr_matrix(right))
    np.testing.assert_array_equal(actual, left @ right.T)


@pytest.mark.parametrize("rows_per_product", [1, 2, 1000])
@pytest.mark.parametrize("n_rows", [0, 1, 5])
def test_products_of_rows_with_themselves_are_symmetric_in_every_bit(monkeypatch, n_rows, rows_per_product):
    monkeypatch.setattr(products, "ROWS_PER_PRODUCT", rows_per_product)
    rows = np.random.default_rng(0).normal(size=(n_rows, 40))
    actual = feature_products(sp.csr_matrix(rows), None)
    np.testing.assert_allclose(actual, rows @ rows.T, rtol=1e-13)
    np.testing.assert_array_equal(actual, actual.T)
