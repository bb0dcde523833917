"""A Gram matrix that cannot fit in memory raises before computing, with alternatives."""

import numpy as np
import pytest

from checks import gram_array
from treegram import ODDCL, WL, Graphs, KernelSum

MANY = Graphs.from_arrays(np.arange(2_000_001), np.empty((0, 2), np.int64))  # 2 million graphs of one node each


@pytest.mark.parametrize("kernel", [ODDCL(), WL(), KernelSum([WL()])], ids=lambda kernel: type(kernel).__name__)
def test_too_large_gram_matrix_raises_at_once(kernel):
    message = r"2000000 x 2000000 numbers would take 2.98e\+04 GiB of memory; .* free. gram_to_zarr .* Nystroem"
    with pytest.raises(MemoryError, match=message):
        kernel.fit_transform(MANY)


def test_too_large_grid_raises_at_once():
    with pytest.raises(MemoryError, match=r"6 x 2000000 x 2000000 numbers"):
        gram_array(ODDCL(), MANY, depth=[0, 1, 2], lam=[0.5, 1])


def test_too_large_transform_raises_at_once():
    kernel = WL(0).fit(MANY)
    with pytest.raises(MemoryError, match=r"1000000 x 2000000 numbers"):
        kernel.transform(MANY[:1_000_000])
