"""Tests of the warning about nearly diagonal Gram matrices, and of the remedies it suggests."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from treegram import ODDCL, WL, GraphRidge, GraphSVC, ScaleAttributes, make_synthetic
from treegram.models.search import nearest_similarity


def test_similarity_is_that_of_the_nearest_graph_after_normalization():
    rng = np.random.default_rng(0)
    X = rng.random((300, 4)) * np.arange(1, 301)[:, None]
    K = X @ X.T
    alike = K / np.sqrt(np.outer(K.diagonal(), K.diagonal()))
    np.fill_diagonal(alike, 0.0)
    assert nearest_similarity(K) == pytest.approx(np.median(alike.max(axis=1)), abs=1e-3)
    assert nearest_similarity(np.eye(300)) == 0.0
    assert nearest_similarity(np.eye(19)) == 1.0  # too few graphs to decide
    assert nearest_similarity(np.zeros((30, 30))) == 0.0


@pytest.fixture(scope="module")
def far_apart():
    graphs, y = make_synthetic(40, n_nodes=10, n_edges=15, random_state=0)
    return replace(graphs, attributes=graphs.attributes * 1e6), y


@pytest.mark.parametrize("model", [GraphSVC(ODDCL(), cv=2), GraphRidge(ODDCL(), cv=2)], ids=["svc", "ridge"])
def test_fit_warns_if_attributes_are_too_far_apart(far_apart, model):
    with pytest.warns(
        UserWarning, match=r"ODDCL: the Gram matrices are nearly diagonal\..* scale them \(ScaleAttributes"
    ):
        model.fit(*far_apart)


def test_remedies_work_and_one_good_kernel_is_enough(far_apart):
    for kernel in (make_pipeline(ScaleAttributes(), ODDCL()), ODDCL(gamma="scale"), [ODDCL(), WL()]):
        GraphSVC(kernel, cv=2).fit(*far_apart)  # a warning would be an error
