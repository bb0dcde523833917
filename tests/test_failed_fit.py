"""The law of a failed fit, for all estimators: a fit that raises leaves an estimator exactly as it was."""

import inspect
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import treegram
from treegram import GraphClassifier, GraphGP, GraphRegressor, GraphRidge, Graphs, GraphSVC, load_digits_graphs
from treegram.graphs.tables import TableGraphs

ARGUMENTS = {
    "FeatureMap": {"kernel": treegram.WL()},
    "KernelSum": {"kernels": [treegram.WL(), treegram.ODDCL()]},
    "Nystroem": {"kernel": treegram.WL()},
}
CLASSIFIERS, REGRESSORS = [GraphClassifier, GraphSVC], [GraphRegressor, GraphRidge, GraphGP]
MODELS = [*CLASSIFIERS, *REGRESSORS]
PUBLIC = [getattr(treegram, name) for name in treegram.__all__]
READERS = [treegram.MoleculeGraphs, treegram.ProteinGraphs, TableGraphs]  # their fit reads nothing
ESTIMATORS = [member for member in PUBLIC if inspect.isclass(member) and issubclass(member, BaseEstimator)]


@pytest.fixture(scope="module")
def data():
    """Return 24 graphs with everything that an estimator may need, and two classes."""
    rng = np.random.default_rng(0)
    y = np.arange(24) % 2
    sizes = rng.integers(4, 8, size=24)
    graphs = Graphs.from_edges(
        [[(i, i + 1) for i in range(size - 1)] for size in sizes],
        labels=[
            rng.choice(["C", "N"], size, p=[0.9 - 0.8 * c, 0.1 + 0.8 * c]).tolist()
            for size, c in zip(sizes, y, strict=True)
        ],
        attributes=[rng.normal(size=(size, 2)) + c for size, c in zip(sizes, y, strict=True)],
        edge_attributes=[rng.normal(size=(size - 1, 1)) for size in sizes],
    )
    return graphs, y


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about data that a kernel does not use
        yield


def make(kind):
    return kind(["wl", "oddcl"]) if kind in MODELS else kind(**ARGUMENTS.get(kind.__name__, {}))


def test_estimators_of_all_rooms_are_here():
    assert {*MODELS, treegram.WL, treegram.KernelSum, treegram.Nystroem, treegram.ScaleAttributes} <= set(ESTIMATORS)


def test_graphs_that_cannot_be_read(data):
    graphs, y = data
    for kind in set(ESTIMATORS) - set(READERS):
        fresh, estimator = make(kind), make(kind).fit(graphs, y)
        for unchanged in (fresh, estimator):
            before, contents = dict(vars(unchanged)), pickle.dumps(unchanged)
            for method in {"fit", "fit_transform"} & set(dir(unchanged)):
                with pytest.raises((TypeError, ValueError)):
                    getattr(unchanged, method)([object()] * 24, y)
            assert vars(unchanged) == before, kind  # the same objects
            assert pickle.dumps(unchanged) == contents, kind
        assert vars(fresh) == fresh.get_params(deep=False), kind


def test_interrupt_at_any_attribute(data):
    """Raise where the fit sets its first, second, ... attribute: none of them may stay."""
    graphs, y = data
    for kind in ESTIMATORS:

        class Interrupted(kind):  # type: ignore[misc, valid-type]
            n_left = np.inf  # attributes to set

            def __setattr__(self, name, value):
                type(self).n_left -= name != "__dict__"
                if type(self).n_left < 0:
                    type(self).n_left = np.inf
                    raise KeyboardInterrupt
                super().__setattr__(name, value)

        fresh = Interrupted(**make(kind).get_params(deep=False))
        fitted, refitted = clone(fresh).fit(graphs, y), clone(fresh)
        Interrupted.n_left = 1000
        refitted.fit(graphs[:20], y[:20])
        n_attributes, Interrupted.n_left = 1000 - Interrupted.n_left, np.inf
        assert n_attributes > 0 or vars(fitted) == fresh.get_params(deep=False), kind
        for unchanged in (fresh, fitted):
            before = dict(vars(unchanged))
            for n_left in range(n_attributes):
                Interrupted.n_left = n_left
                with pytest.raises(KeyboardInterrupt):
                    unchanged.fit(graphs[:20], y[:20])
                assert vars(unchanged) == before, kind


@pytest.mark.parametrize("kind", MODELS)
def test_kernel_that_raises(kind, data, monkeypatch):
    """The second kernel raises, after the first was fitted."""
    graphs, y = data
    model = make(kind).fit(graphs, y)
    before, predicted = dict(vars(model)), model.predict(graphs)
    for error in (ValueError("no"), MemoryError(), KeyboardInterrupt()):

        def fail(*_, error=error, **__):
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(treegram.ODDCL, "_features", fail)
            with pytest.raises(type(error)):
                model.fit(graphs[:20], ["a", "b"] * 10 if kind in CLASSIFIERS else np.arange(20.0))
        assert vars(model) == before
        np.testing.assert_array_equal(model.predict(graphs), predicted)


def refused_arguments(kind):
    """Yield changes of parameters, and targets, that a model refuses."""
    names = ("kernels", ["x"], []) if kind in (GraphClassifier, GraphRegressor) else ("kernel", "x", "auto")
    for value in names[1:]:
        yield {names[0]: value}, [0, 1] * 12
    yield {"n_jobs": "many"}, [0, 1] * 12
    for y in ([0, 1] * 10, [0, None] * 12, [0, np.inf] * 12, None, np.zeros((24, 2, 2))):
        yield {}, y
    yield {}, [1] * 24 if kind in CLASSIFIERS else ["a", "b"] * 12


@pytest.mark.parametrize("kind", MODELS)
def test_arguments_that_are_refused(kind, data):
    graphs, targets = data
    for changes, y in refused_arguments(kind):
        fresh = make(kind).set_params(**changes)
        with pytest.raises(ValueError):
            fresh.fit(graphs, y)
        with pytest.raises(NotFittedError):
            check_is_fitted(fresh)
        model = make(kind).fit(graphs, targets)
        predicted = model.predict(graphs)
        before = dict(vars(model.set_params(**changes)))
        with pytest.raises(ValueError):
            model.fit(graphs, y)
        assert vars(model) == before
        np.testing.assert_array_equal(model.predict(graphs), predicted)


@pytest.mark.parametrize("kind", REGRESSORS)
def test_one_of_several_targets_fails(kind, data):
    graphs, y = data
    model = make(kind).fit(graphs, np.column_stack([y, np.arange(24.0)]))
    before = dict(vars(model))
    with pytest.raises(ValueError, match="at least two graphs"):
        model.fit(graphs, np.column_stack([y, np.full(24, np.nan)]))
    assert vars(model) == before


def test_kernels_of_users_inherit_the_law():
    class Unfinished(treegram.WL):
        def fit(self, X, y=None):
            """Learn half."""
            self.half_ = True
            raise RuntimeError("no")

    kernel = Unfinished()
    with pytest.raises(RuntimeError, match="no"):
        kernel.fit(load_digits_graphs()[0][:3])
    assert vars(kernel) == kernel.get_params()
    assert list(inspect.signature(Unfinished.fit).parameters) == ["self", "X", "y"]
    assert Unfinished.fit.__doc__ == "Learn half."
