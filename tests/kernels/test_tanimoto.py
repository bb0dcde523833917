"""Tests of normalize="tanimoto", K(G, G') / (K(G, G) + K(G', G') - K(G, G')), in all kernels and their uses."""

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.base import clone

from checks import assert_close, gram_array
from strategies import collections
from treegram import (
    CSM,
    GIK,
    NSPDK,
    ODDCL,
    ODDST,
    WL,
    WLCL,
    WLOA,
    FeatureMap,
    GraphHopper,
    Graphs,
    GraphSVC,
    KernelSum,
    Nystroem,
    OrderedTrees,
    explain,
    gram_to_zarr,
    load_digits_graphs,
    load_model,
    save_model,
)
from treegram.exceptions import ParameterError
from zoo import COLLECTIONS

MIXED = COLLECTIONS["edge_labels"].pack()
COUNTS = [WL(2), WLOA(2), ODDST(2), ODDST(2, lam=1.4), NSPDK(radius=1, distance=2)]
OTHERS = [ODDCL(2, lam=1.4), WLCL(1), GIK(radius=1), GraphHopper(), CSM(max_size=2), OrderedTrees(1, lam=1.3)]


def expected(kernel, graphs):
    """Return the definition, from the unnormalized kernel."""
    K = clone(kernel).set_params(normalize=False).fit_transform(graphs)
    own = K.diagonal()
    divisors = own[:, None] + own - K
    return np.divide(K, divisors, out=np.zeros_like(K), where=divisors > 0)


def tanimoto(kernel):
    return clone(kernel).set_params(normalize="tanimoto")


@pytest.mark.parametrize("kernel", [*COUNTS, *OTHERS], ids=repr)
def test_matches_the_definition(kernel):
    fitted = tanimoto(kernel)
    K = fitted.fit_transform(MIXED)
    np.testing.assert_allclose(K, expected(kernel, MIXED), atol=1e-12)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(K.diagonal(), MIXED.sizes > 0, atol=1e-14)
    assert_close(fitted.transform(MIXED), K)
    np.testing.assert_array_equal(fitted.diag(MIXED), MIXED.sizes > 0)


@settings(deadline=None)
@given(collections(min_graphs=2, scale="plain"))
def test_is_positive_semidefinite(collection):
    graphs = collection.pack()
    for kernel in (*COUNTS, ODDCL(1), KernelSum([WL(1), ODDCL(1)])):
        eigenvalues = np.linalg.eigvalsh(tanimoto(kernel).fit_transform(graphs))
        assert eigenvalues[0] >= -1e-10 * max(eigenvalues[-1], 1)


def test_distinguishes_sizes():
    path, twice = [(0, 1), (1, 2)], [(0, 1), (1, 2), (3, 4), (4, 5)]
    graphs = Graphs.from_edges([path, twice])
    assert WL(2).fit_transform(graphs)[0, 1] == pytest.approx(1.0)
    assert WL(2, normalize="tanimoto").fit_transform(graphs)[0, 1] == pytest.approx(2 / (1 + 4 - 2))


def test_other_normalizations_are_refused():
    with pytest.raises(
        ParameterError, match=r"normalize of WL must be True or False or one of 'tanimoto'; got 'cosine'"
    ):
        WL(normalize="cosine").fit(MIXED)


# -------------------------------------------------------------------- grids, sums, files, explanations


@pytest.mark.parametrize("kernel", [WL(), ODDST(), ODDCL(1)], ids=repr)
def test_grids_equal_single_computations(kernel):
    lists = {"n_iterations": [0, 2]} if "n_iterations" in kernel.get_params() else {"depth": [0, 2], "lam": [0.5, 1.3]}
    grid = gram_array(tanimoto(kernel), MIXED, **lists)
    for point, (values, _) in zip(
        grid.reshape(-1, len(MIXED), len(MIXED)), kernel.gram_grid(MIXED, lists), strict=True
    ):
        assert_close(point, tanimoto(kernel).set_params(**values).fit_transform(MIXED))


def test_sums_of_tanimoto_parts_and_tanimoto_sums():
    parts = [WL(1, normalize="tanimoto"), ODDCL(1)]
    total = sum(part.fit_transform(MIXED) for part in parts)
    kernel = KernelSum(parts, normalize=False)
    np.testing.assert_allclose(kernel.fit_transform(MIXED), total, atol=1e-12)
    np.testing.assert_allclose(kernel.transform(MIXED), total, atol=1e-12)
    np.testing.assert_allclose(
        KernelSum(parts, normalize="tanimoto").fit_transform(MIXED), expected(kernel, MIXED), atol=1e-12
    )


def test_gram_to_zarr_in_blocks(tmp_path):
    kernel = WL(2, normalize="tanimoto")
    stored = gram_to_zarr(kernel, MIXED, tmp_path / "K.zarr", chunk=3)
    np.testing.assert_allclose(stored[:], kernel.fit_transform(MIXED))


def test_nystroem_with_all_components_is_exact():
    kernel = WL(2, normalize="tanimoto")
    Z = Nystroem(kernel, n_components=len(MIXED)).fit_transform(MIXED)
    np.testing.assert_allclose(Z @ Z.T, kernel.fit_transform(MIXED), atol=1e-8)


@pytest.mark.parametrize("attribute_to", ["tree", "root"])
@pytest.mark.parametrize(
    "kernel", [WL(2, normalize="tanimoto"), ODDST(2, lam=1.3, normalize="tanimoto"), WLCL(1, normalize="tanimoto")]
)
def test_contributions_sum_to_decisions_and_models_are_saved(kernel, attribute_to, tmp_path):
    graphs, y = (found[:40] for found in load_digits_graphs())
    model = GraphSVC(KernelSum([kernel, WLOA(1)]), param_grid={}, C=10, cv=2).fit(graphs[:30], y[:30])
    found = explain(model, graphs[25:], attribute_to=attribute_to)
    assert np.abs(found.residual).max() < 1e-9
    save_model(model, tmp_path / "model.tgm")
    loaded = load_model(tmp_path / "model.tgm")
    np.testing.assert_array_equal(loaded.decision_function(graphs), model.decision_function(graphs))


def test_unsupported_uses_raise():
    with pytest.raises(ParameterError, match="rows whose inner products are Tanimoto kernels"):
        FeatureMap(WL(normalize="tanimoto")).fit(MIXED)
    graphs, y = (found[:20] for found in load_digits_graphs())
    model = GraphSVC(KernelSum([WL(1), ODDCL(0)], normalize="tanimoto"), param_grid={}, C=1, cv=2).fit(graphs, y)
    with pytest.raises(ParameterError, match="with normalize='tanimoto' cannot be explained"):
        explain(model, graphs)
