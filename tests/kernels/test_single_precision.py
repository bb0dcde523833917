"""Single precision on request: the same numbers, each rounded once, in half of the memory."""

import numpy as np
import pytest

from treegram import (
    CSM,
    ODDCL,
    ODDST,
    P2K,
    WL,
    WLOA,
    KernelSum,
    ODDCLApprox,
    ShortestPath,
    load_model,
    make_synthetic,
    save_model,
)
from treegram._core.errors import ParameterError
from treegram.kernels import base as _base

KERNELS = [
    ODDCL(2),
    ODDST(2),
    WL(2),
    WLOA(2),
    CSM(2),
    P2K(),
    ShortestPath(),
    ODDCLApprox(2),
    KernelSum([ODDCL(1), WL(1)]),
]


def graphs_of(n):
    return make_synthetic(n, random_state=0)[0]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
@pytest.mark.parametrize("normalize", [True, False])
def test_numbers_are_the_same_but_rounded(kernel, normalize, monkeypatch):
    monkeypatch.setattr(_base, "NARROW_ROWS", 7)  # several parts, the last of which is smaller
    graphs = graphs_of(24)
    double = kernel._with({"normalize": normalize})
    single = double._with({"dtype": np.float32})
    expected, K = double.fit_transform(graphs[:16]), single.fit_transform(graphs[:16])
    assert K.dtype == np.float32
    np.testing.assert_allclose(K, expected, rtol=2.0**-23)
    np.testing.assert_array_equal(K, K.T)
    rows = single.transform(graphs[16:])
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, double.transform(graphs[16:]), rtol=2.0**-23)


def test_a_grid_is_rounded_too():
    graphs = graphs_of(12)
    lists = {"depth": [0, 2], "lam": [0.5, 1.0]}
    grid = ODDCL(dtype="float32").gram_grid(graphs, **lists)
    assert grid.dtype == np.float32
    np.testing.assert_array_equal(grid, ODDCL().gram_grid(graphs, **lists).astype(np.float32))


def test_the_matrix_in_double_precision_is_never_there(monkeypatch):
    monkeypatch.setattr(_base, "NARROW_ROWS", 5)
    graphs, shapes = graphs_of(20), []
    sums = ODDCL._pair_sums
    monkeypatch.setattr(ODDCL, "_pair_sums", lambda *args: shapes.append((K := sums(*args)).shape) or K)
    ODDCL(dtype=np.float32).fit_transform(graphs)
    assert max(rows for *_, rows, _ in shapes) == 5


def test_numbers_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"ODDST gives numbers as large as .* which dtype='float32' cannot hold"):
        ODDST(3, lam=10.0, normalize=False, dtype="float32").fit_transform(graphs_of(4))


@pytest.mark.parametrize("wrong", ["float16", np.int64, np.float16, 32, None])
def test_other_types_are_refused(wrong):
    with pytest.raises(ParameterError, match="dtype of ODDCL must be one of 'float32', 'float64'"):
        ODDCL(dtype=wrong).fit(graphs_of(4))


def test_the_type_is_kept_in_a_model_file(tmp_path):
    kernel = ODDCL(1, dtype=np.float32).fit(graphs_of(4))
    save_model(kernel, tmp_path / "model.treegram")
    loaded = load_model(tmp_path / "model.treegram")
    np.testing.assert_array_equal(loaded.transform(graphs_of(6)), kernel.transform(graphs_of(6)))
    assert loaded.dtype == "float32"
