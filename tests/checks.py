"""The laws of every graph kernel, each a function of an unfitted kernel and a collection of graphs (``zoo.Collection``).

A law is any function here whose name starts with ``check_``; ``test_common.py`` finds them, and finds the kernels. The laws
use only scikit-learn's interface and what all kernels share (``n_jobs``); laws of what only some kernels have
(``n_jobs``, ``gram_grid``) apply only to these. Laws in ``ONCE`` take long and depend on no parameter: they are tested
with the default parameters on one collection. Laws in ``INHERITED`` depend on no parameter either.
"""

import importlib
import pickle
import pkgutil
import re
from contextlib import ExitStack, contextmanager
from itertools import product
from unittest import mock

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

import treegram._core.parallel
import treegram.kernels
import treegram.pairsum
import treegram.structure
from treegram import CSM, P2K, FeatureMap, Graphs, OrderedTrees, RandomWalk

TOLERANCE = 1e-10


def rdkit_says(reason):
    """Return the text of an error about a molecule: RDKit before 2026.3 does not hand over its reasons."""
    from rdkit import rdBase

    return f"RDKit says: {reason}" if hasattr(rdBase, "CaptureErrorLog") else "RDKit cannot read it"


def gram(kernel, graphs):
    return clone(kernel).fit_transform(graphs)


def gram_array(kernel, graphs, **lists):
    """Return the matrices of ``gram_grid`` as one array, with a leading axis for each list."""
    points = kernel.gram_grid(graphs, lists)
    return np.stack([K for _, K in points]).reshape(*(len(values) for values in lists.values()), *points[0][1].shape)


def feature_rows(kernel, graphs):
    """Return the rows that ``FeatureMap`` gives for a fitted kernel."""
    return _feature_map(kernel).transform(graphs)


def feature_names(kernel):
    """Return the names of these columns."""
    return list(_feature_map(kernel).get_feature_names_out())


def _feature_map(kernel):
    fitted = FeatureMap(kernel)
    fitted.kernel_, fitted.map_ = kernel, None
    return fitted


def assert_close(actual, expected, rows=None, columns=None):
    """Assert that entries agree relative to sqrt(K(G, G) K(G', G')); ``expected`` is a whole Gram matrix unless these are given."""
    assert actual.shape == expected.shape
    rows, columns = (expected.diagonal() if diagonal is None else diagonal for diagonal in (rows, columns))
    scale = np.sqrt(np.abs(rows))[:, None] * np.sqrt(np.abs(columns))[None, :]
    assert np.isfinite(actual).all()
    excess = np.abs(actual - expected) - TOLERANCE * scale
    assert (excess <= 0).all(), f"off by {excess.max()}:\n{actual}\n{expected}"


def _task_sizes():
    """Yield all constants that set the size of a task, as (module, name)."""
    for package in (treegram.kernels, treegram.pairsum, treegram.structure):
        for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if not info.ispkg:
                module = importlib.import_module(info.name)
                names = [name for name in vars(module) if re.fullmatch(r"\w+_PER_TASK|TILE_COLUMNS|SELF_COLUMNS", name)]
                yield from ((module, name) for name in names)


@contextmanager
def many_small_tasks():
    """Make tasks tiny, because few nodes are one task by default; yield the list of numbers of tasks."""
    ran = []

    track = treegram._core.parallel.track

    def counted(results, total, label):
        ran.append(total)
        return track(results, total, label)

    with ExitStack() as stack:
        for module, name in _task_sizes():
            stack.enter_context(mock.patch.object(module, name, 3))
        stack.enter_context(mock.patch.object(treegram._core.parallel, "track", counted))
        yield ran


def only_if(applies):
    """Restrict a law to some kernels; for others it is neither tested nor counted as passed."""

    def mark(law):
        law.applies = applies
        return law

    return mark


def graphs_without_nodes(collection):
    return np.flatnonzero(np.array(collection.n_nodes) == 0)


# -------------------------------------------------------------------- the Gram matrix


def check_gram_is_symmetric(kernel, collection):
    K = gram(kernel, collection.pack())
    assert K.shape == (len(collection), len(collection))
    assert K.dtype == np.float64
    np.testing.assert_array_equal(K, K.T)


def check_gram_is_positive_semidefinite(kernel, collection):
    eigenvalues = np.linalg.eigvalsh(gram(kernel, collection.pack()))
    assert eigenvalues[-1] > 0
    assert eigenvalues[0] >= -1e-9 * eigenvalues[-1]


def check_node_order_is_irrelevant(kernel, collection):
    K = gram(kernel, collection.pack())
    assert_close(gram(kernel, collection.reversed_nodes().pack()), K)
    rng = np.random.default_rng(0)
    shuffled = collection.renumbered([rng.permutation(n).tolist() for n in collection.n_nodes])
    assert_close(gram(kernel, shuffled.pack()), K)
    assert_close(clone(kernel).fit(collection.pack()).transform(shuffled.pack()), K)


def check_graph_order_permutes_rows_and_columns(kernel, collection):
    order = np.random.default_rng(1).permutation(len(collection))
    expected = gram(kernel, collection.pack())[np.ix_(order, order)]
    assert_close(gram(kernel, collection.take(order).pack()), expected)


def check_isomorphic_graphs_have_equal_rows(kernel, collection):
    copies = Graphs.concatenate([collection.pack(), collection.reversed_nodes().pack()])
    K, n = gram(kernel, copies), len(collection)
    assert_close(K[:n, n:], K[:n, :n])
    assert_close(K[n:, n:], K[:n, :n])


def is_optional(kernel):
    """Some kernels are 1 for each graph with itself by definition."""
    return "normalize" in kernel.get_params(deep=False)


def check_normalized_diagonal_is_1(kernel, collection):
    kernel = clone(kernel).set_params(normalize=True) if is_optional(kernel) else kernel
    K = gram(kernel, collection.pack())
    expected = np.array(collection.n_nodes) > 0
    np.testing.assert_allclose(K.diagonal(), expected, rtol=0, atol=1e-14)
    assert (np.abs(K) <= 1 + 1e-12).all()


@only_if(is_optional)
def check_normalized_equals_the_divided_plain_kernel(kernel, collection):
    normalized = clone(kernel).set_params(normalize=True).fit(collection.pack())
    plain = gram(clone(kernel).set_params(normalize=False), collection.pack())
    roots = np.sqrt(plain.diagonal())
    scale = np.outer(roots, roots)
    expected = np.divide(plain, scale, out=np.zeros_like(plain), where=scale > 0)
    np.testing.assert_allclose(normalized.transform(collection.pack()), expected, rtol=0, atol=TOLERANCE)


def check_graphs_without_nodes_give_zeros(kernel, collection):
    empty = graphs_without_nodes(collection)
    assert len(empty)
    fitted = clone(kernel)
    for K in (fitted.fit_transform(collection.pack()), fitted.transform(collection.pack())):
        assert not K[empty].any()
        assert not K[:, empty].any()
    alone = collection.take(empty).pack()
    assert not gram(kernel, alone).any()
    assert not fitted.transform(alone).any()
    assert not clone(kernel).fit(alone).transform(collection.pack()).any()


def check_no_graphs_give_an_empty_matrix(kernel, collection):
    whole, nothing, n = collection.pack(), collection.take([]).pack(), len(collection)
    for empty in (nothing, whole[:0], []):
        assert gram(kernel, empty).shape == (0, 0)
        assert clone(kernel).fit(whole).transform(empty).shape == (0, n)
        assert clone(kernel).fit(empty).transform(whole).shape == (n, 0)


# -------------------------------------------------------------------- fit and transform


def check_transform_equals_fit_transform(kernel, collection):
    graphs = collection.pack()
    fitted = clone(kernel)
    K = fitted.fit_transform(graphs)
    assert_close(fitted.transform(graphs), K)
    assert_close(clone(kernel).fit(graphs).transform(graphs), K)


@only_if(lambda kernel: not kernel.learns_from_data)  # otherwise another part gives another kernel
def check_transform_of_a_part_equals_the_block_of_the_whole(kernel, collection):
    """New graphs have labels and trees that the fitted graphs do not have."""
    K = gram(kernel, collection.pack())
    n = len(collection)
    for fitted in (np.arange(n) % 2 == 0, np.arange(n) % 2 == 1, np.arange(n) < 3, np.arange(n) >= n - 1):
        old, new = np.flatnonzero(fitted), np.flatnonzero(~fitted)
        # Packed separately: the two parts share no table of labels.
        part = clone(kernel).fit(collection.take(old).pack()).transform(collection.take(new).pack())
        assert_close(part, K[np.ix_(new, old)], K.diagonal()[new], K.diagonal()[old])
        cut = clone(kernel).fit(collection.pack()[fitted]).transform(collection.pack()[~fitted])
        assert_close(cut, K[np.ix_(new, old)], K.diagonal()[new], K.diagonal()[old])


def check_list_of_graphs_equals_a_collection(kernel, collection):
    graphs = collection.pack()
    K = gram(kernel, graphs)
    for same in (list(graphs), tuple(graphs), (graph for graph in graphs), [graphs[:4], graphs[4:]]):
        fitted = clone(kernel)
        np.testing.assert_array_equal(fitted.fit_transform(same), K)
        assert_close(fitted.transform(list(graphs)), K)
    one_by_one = [collection.take([i]).pack() for i in range(len(collection))]
    assert_close(gram(kernel, one_by_one), K)


def check_targets_are_ignored(kernel, collection):
    graphs, y = collection.pack(), np.arange(len(collection)) % 2
    K = gram(kernel, graphs)
    np.testing.assert_array_equal(clone(kernel).fit_transform(graphs, y), K)
    np.testing.assert_array_equal(
        clone(kernel).fit(graphs, y).transform(graphs), clone(kernel).fit(graphs).transform(graphs)
    )


def has_many_tasks(kernel, collection):
    """P2K divides the columns of vectors, of which there may be one; CSM and OrderedTrees have no tasks without vectors; RandomWalk
    has tasks only where pairs of nodes are compared; all others divide the graphs.
    """
    n_columns = 0 if collection.attributes is None else len(next(rows for rows in collection.attributes if rows)[0])
    if isinstance(kernel, CSM | OrderedTrees | RandomWalk):
        return not isinstance(kernel, RandomWalk) and n_columns > 0
    return not isinstance(kernel, P2K) or n_columns > 1 or (kernel.mode == "gmm" and n_columns)


@only_if(lambda kernel: "n_jobs" in kernel.get_params())
def check_n_jobs_changes_no_bit(kernel, collection):
    graphs, results = collection.pack(), []
    for n_jobs in (1, 2):
        fitted = clone(kernel).set_params(n_jobs=n_jobs)
        with many_small_tasks() as ran:
            K = fitted.fit_transform(graphs)
        assert max(ran, default=0) > 1 or not has_many_tasks(kernel, collection)
        with many_small_tasks() as ran:
            results.append((K, fitted.transform(graphs[::2])))
        assert max(ran, default=0) > 1 or not has_many_tasks(kernel, collection)
    (K, part), (K2, part2) = results
    np.testing.assert_array_equal(K2, K)
    np.testing.assert_array_equal(part2, part)


def check_task_size_does_not_change_the_result(kernel, collection):
    K = gram(kernel, collection.pack())
    with many_small_tasks() as ran:
        assert_close(gram(kernel, collection.pack()), K)
    assert max(ran, default=0) > 1 or not has_many_tasks(kernel, collection)


# Values of parameters that one pass can vary (GRIDS), and of some that need a loop (LOOPED).
GRIDS = {
    "depth": [2, 0, 1],
    "n_steps": [2, 0],
    "lam": [0.5, 1.3],
    "decay": [0.02, 0.1],
    "n_iterations": [2, 0],
    "max_size": [2, 1],
    "width": [0.5, 3.0],
}
LOOPED = {"most": [1, 3], "radius": [0, 1], "missing_labels": ["constant", "degree"]}


@only_if(lambda kernel: {*GRIDS, *LOOPED} & kernel.get_params(deep=False).keys())
def check_grid_equals_single_computations(kernel, collection):
    graphs, parameters = collection.pack(), kernel.get_params()
    lists = {name: values for name, values in GRIDS.items() if name in kernel._one_pass}
    assert lists.keys() == set(kernel._one_pass)
    lists |= {name: values for name, values in LOOPED.items() if name in parameters}
    shape = tuple(len(values) for values in lists.values())
    for counting in ("paper", "visits", "capped") if "counting" in parameters else [None]:
        one = clone(kernel).set_params(**({"counting": counting} if counting else {}))
        grid = gram_array(one, graphs, **lists)
        assert grid.shape == (*shape, len(graphs), len(graphs))
        for place, values in zip(np.ndindex(shape), product(*lists.values()), strict=True):
            single = clone(one).set_params(**dict(zip(lists, values, strict=True)))
            assert_close(grid[place], gram(single, graphs))
        assert not vars(one).keys() - one.get_params().keys(), "gram_grid must not set attributes"
    assert gram_array(kernel, collection.take([]).pack(), **lists).shape == (*shape, 0, 0)


# -------------------------------------------------------------------- the estimator


def check_fit_returns_self_and_keeps_the_parameters(kernel, collection):
    fitted = clone(kernel)
    before = fitted.get_params()
    assert fitted.fit(collection.pack()) is fitted
    fitted.fit_transform(collection.pack())
    after = fitted.get_params()
    assert before.keys() == after.keys()
    assert all(before[name] is after[name] for name in before)
    learned = [name for name in vars(fitted) if name not in before]
    assert learned
    assert all(name.startswith("_") or name.endswith("_") for name in learned), learned


def check_transform_changes_nothing(kernel, collection):
    graphs = collection.pack()
    fitted = clone(kernel).fit(graphs)
    before = dict(vars(fitted))
    K = fitted.transform(graphs)
    fitted.transform(graphs[::-1])
    assert vars(fitted).keys() == before.keys()
    assert all(vars(fitted)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(fitted.transform(graphs), K)


def check_result_can_be_overwritten(kernel, collection):
    fitted = clone(kernel)
    K = fitted.fit_transform(collection.pack())
    expected = K.copy()
    K[:] = np.nan
    assert_close(fitted.transform(collection.pack()), expected)


def check_fit_can_be_called_again(kernel, collection):
    graphs = collection.pack()
    fitted = clone(kernel).fit(graphs[:4])
    assert fitted.transform(graphs).shape == (len(graphs), 4)
    fitted.fit(graphs[2:])
    expected = clone(kernel).fit(graphs[2:]).transform(graphs)
    np.testing.assert_array_equal(fitted.transform(graphs), expected)
    fitted.fit_transform(graphs[2:])
    np.testing.assert_allclose(fitted.transform(graphs), expected, rtol=1e-12, atol=1e-300)


def check_graphs_are_not_modified(kernel, collection):
    graphs, untouched = collection.pack(), collection.pack()
    fitted = clone(kernel)
    fitted.fit_transform(graphs)
    fitted.fit(graphs)
    fitted.transform(graphs)
    assert graphs == untouched


def check_transform_before_fit_raises(kernel, collection):
    for unfitted in (clone(kernel), clone(clone(kernel).fit(collection.pack()))):
        with pytest.raises(NotFittedError, match=type(kernel).__name__):
            unfitted.transform(collection.pack())


def check_pickled_kernel_gives_the_same_result(kernel, collection):
    graphs = collection.pack()
    fitted = clone(kernel).fit(graphs[:5])
    loaded = pickle.loads(pickle.dumps(fitted))
    assert loaded.get_params().keys() == fitted.get_params().keys()
    np.testing.assert_array_equal(loaded.transform(graphs), fitted.transform(graphs))
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(clone(kernel))).fit(graphs).transform(graphs),
        clone(kernel).fit(graphs).transform(graphs),
    )


def check_clone_is_unfitted_and_equal(kernel, collection):
    fitted = clone(kernel).fit(collection.pack())
    copy = clone(fitted)
    assert vars(copy).keys() == fitted.get_params(deep=False).keys()
    assert copy.get_params(deep=False).keys() == fitted.get_params(deep=False).keys()
    assert repr(copy) == repr(clone(kernel))
    np.testing.assert_array_equal(gram(copy, collection.pack()), gram(kernel, collection.pack()))


# -------------------------------------------------------------------- model selection


def _model(kernel):
    return Pipeline([("kernel", clone(kernel)), ("svc", SVC(kernel="precomputed"))])


def _two_classes(collection):
    """Return enough graphs of two classes for cross-validation: those with and without a cycle."""
    chosen = [*range(len(collection)), *range(len(collection))]
    y = np.array([len(collection.edges[i]) >= collection.n_nodes[i] for i in chosen])
    return collection.take(chosen).pack(), y


@only_if(lambda kernel: not kernel.learns_from_data)  # otherwise a fold gives another kernel than the whole
def check_cross_validation_accepts_graphs(kernel, collection):
    """In each fold the pipeline computes the same blocks that scikit-learn slices from the whole matrix."""
    graphs, y = _two_classes(collection)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    expected = cross_val_score(SVC(kernel="precomputed"), gram(kernel, graphs), y, cv=folds)
    for X in (graphs, list(graphs)):
        np.testing.assert_array_equal(cross_val_score(_model(kernel), X, y, cv=folds), expected)


def check_grid_search_accepts_graphs(kernel, collection):
    graphs, y = _two_classes(collection)
    options = {"kernel__normalize": [True, False]} if is_optional(kernel) else {"kernel__n_jobs": [None, 1]}
    grid = {**options, "svc__C": [0.1, 100.0]}
    searches = [GridSearchCV(_model(kernel), grid, cv=3).fit(X, y) for X in (graphs, list(graphs))]
    scores = [search.cv_results_["mean_test_score"] for search in searches]
    assert len(scores[0]) == 4
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(searches[0].predict(graphs), searches[1].predict(list(graphs)))


ONCE = {"cross_validation_accepts_graphs", "grid_search_accepts_graphs"}
# Laws of what all kernels inherit, whatever their parameters: tested with the defaults and the first variants only.
INHERITED = {
    "clone_is_unfitted_and_equal",
    "fit_returns_self_and_keeps_the_parameters",
    "graphs_are_not_modified",
    "list_of_graphs_equals_a_collection",
    "result_can_be_overwritten",
    "targets_are_ignored",
    "transform_before_fit_raises",
}
APPLIES = {
    name.removeprefix("check_"): getattr(law, "applies", lambda kernel: True)
    for name, law in list(globals().items())
    if name.startswith("check_")
}
LAWS = {name.removeprefix("check_"): law for name, law in list(globals().items()) if name.startswith("check_")}
