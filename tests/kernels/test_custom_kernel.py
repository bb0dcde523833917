"""A kernel defined outside of the package needs only public names, and models find it by its name."""

from dataclasses import field

import numpy as np
import pytest

from treegram import FeatureMap, GraphSVC, explain, load_digits_graphs, load_model, save_model
from treegram.exceptions import ParameterError
from treegram.kernels import KERNELS, ExplicitKernel, GraphKernel, Number, Whole, gather, parameters, register_kernel


@parameters
class Degrees(ExplicitKernel):
    """Count the nodes of each degree; degrees of ``most`` and above count as one."""

    name = "degrees"
    _explained_by = "nodes"
    _default_param_grid = {"most": [2, 4]}  # noqa: RUF012
    _allowed = {"most": (Whole(1),)}  # noqa: RUF012

    most: int = field(default=4, kw_only=False)

    def _features(self, graphs, grid):
        return [self._counts(graphs, graphs.offsets)]

    def _node_features(self, graphs):
        return self._counts(graphs, np.arange(graphs.n_nodes + 1))

    def _counts(self, graphs, offsets):
        features, _ = gather(offsets, np.minimum(graphs.degrees, self.most).astype(np.uint64), np.ones(graphs.n_nodes))
        features.counts.sum_duplicates()
        return features


@parameters
class Sizes(GraphKernel):
    """Multiply the numbers of nodes: only the three methods, without a base class for features or grids."""

    name = "sizes"
    _allowed = {"shift": (Number(0),)}  # noqa: RUF012

    shift: float = 1.0

    def _describe(self, graphs, grid):
        return graphs.sizes + self.shift

    def _pair_sums(self, left, right):
        return np.outer(left, left if right is None else right)

    def _self_sums(self, described):
        return described**2


@pytest.fixture
def registered():
    for kind in (Degrees, Sizes):
        register_kernel(kind)
    yield
    for kind in (Degrees, Sizes):
        del KERNELS[kind.name]


@pytest.mark.usefixtures("registered")
def test_models_find_save_and_explain_the_kernel_by_name(tmp_path):
    graphs, y = load_digits_graphs()
    graphs, y = graphs[:40], y[:40] > 4
    model = GraphSVC("degrees", C=1, cv=2).fit(graphs, y)
    assert isinstance(model.kernel_, Degrees)
    found = explain(model, graphs)
    assert found.residual < 1e-9
    save_model(model, tmp_path / "model.tg")
    np.testing.assert_array_equal(load_model(tmp_path / "model.tg").predict(graphs), model.predict(graphs))
    assert FeatureMap(Degrees()).fit_transform(graphs).shape[0] == 40


def test_kernel_of_three_methods_supports_grids_and_new_graphs():
    graphs = load_digits_graphs()[0][:10]
    kernel = Sizes(normalize=False)
    expected = np.outer(graphs.sizes + 1.0, graphs.sizes + 1.0)
    np.testing.assert_array_equal(kernel.fit_transform(graphs), expected)
    np.testing.assert_array_equal(kernel.fit(graphs[:4]).transform(graphs), expected[:, :4])
    (_, first), (params, second) = kernel.gram_grid(graphs, {"shift": [1.0, 0.0]})
    assert params == {"shift": 0.0}
    np.testing.assert_array_equal(first, expected)
    np.testing.assert_array_equal(second, np.outer(graphs.sizes, graphs.sizes))


@pytest.mark.usefixtures("registered")
def test_duplicate_or_empty_kernel_name_raises():
    assert register_kernel(Degrees) is Degrees
    with pytest.raises(ParameterError, match=r"name of Other is that of Degrees: 'degrees'"):
        register_kernel(type("Other", (Sizes,), {"name": "degrees"}))
    with pytest.raises(
        ParameterError, match=r"name of Unnamed must be a word other than 'auto' and 'precomputed'; got ''"
    ):
        register_kernel(type("Unnamed", (Sizes,), {"name": ""}))
