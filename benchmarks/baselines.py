"""Models that are not graph kernels, as scikit-learn estimators of graphs, for studies that compare kernels with them.

Three are models on the columns of `GraphStatistics`, after Cai and Wang (2019); the fourth is the network of `graph_network.py`. Importing this
module registers all four under the names that study files use, so that

    PYTHONPATH=benchmarks treegram reproduce wide2 --allow-import baselines

runs them. Targets that are floats mean regression. Where a study chooses parameters by inner folds, so do they.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import GridSearchCV, ParameterGrid
from sklearn.utils.class_weight import compute_sample_weight
from threadpoolctl import threadpool_limits

from treegram import GraphRidge, GraphStatistics, GraphSVC
from treegram.models.ridge import number_folds
from treegram.models.svc import folds
from treegram.study.protocol import Protocol
from treegram.study.selection import register_estimator

WIDTHS = (0.1, 1.0, 10.0)  # divided by the number of columns, which is scikit-learn's gamma="scale" here
FOREST = {"max_features": ["sqrt", 0.3], "min_samples_leaf": [1, 3]}
N_TREES = 200
BOOSTING = {"learning_rate": [0.03, 0.1], "max_leaf_nodes": [7, 31]}


class StatisticsModel(BaseEstimator):
    """A model on the columns of `GraphStatistics`, which the training graphs determine."""

    def __init__(self, cv: int = 10, class_weight: str | None = None, random_state: Any = None) -> None:
        self.cv = cv
        self.class_weight = class_weight
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> StatisticsModel:
        """Choose parameters, and fit the model with the best."""
        y = np.asarray(y)
        self.statistics_ = GraphStatistics().fit(X)
        if y.dtype.kind != "f":
            self.classes_ = np.unique(y)
        self._fit_rows(self.statistics_.transform(X), y)
        return self

    def predict(self, X: Any) -> Any:
        """Predict classes or numbers."""
        return self._model_.predict(self._rows(X))

    def _rows(self, X: Any) -> Any:
        return self.statistics_.transform(X)

    def _folds(self, y: Any) -> Any:
        if y.dtype.kind == "f":
            return number_folds(len(y), self.cv, self.random_state)
        return folds(y, self.cv, self.random_state)


class SummarySVM(StatisticsModel):
    """A support vector machine, or ridge regression, with a Gaussian kernel on the scaled columns.

    Inner folds choose the width and C, or alpha.
    """

    def __init__(
        self,
        C: Any = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0),
        alpha: Any = (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0),
        cv: int = 10,
        class_weight: str | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(cv, class_weight, random_state)
        self.C = C
        self.alpha = alpha

    def _fit_rows(self, rows: Any, y: Any) -> None:
        mean, deviation = rows.mean(axis=0), rows.std(axis=0)
        self.mean_, self.scale_ = mean, np.where(deviation > 1e-12 * np.abs(mean), deviation, np.inf)
        self.fitted_ = (rows - mean) / self.scale_
        options: dict[str, Any] = {"cv": self._folds(y)}
        weights = None
        if y.dtype.kind == "f":
            make: Any = partial(GraphRidge, "precomputed", alpha=self.alpha, **options)
        else:
            make = partial(GraphSVC, "precomputed", C=self.C, **options)
            weights = compute_sample_weight(self.class_weight, y) if self.class_weight else None
        models = [make().fit(self._gram(self.fitted_, width), y, sample_weight=weights) for width in WIDTHS]
        best = max(range(len(models)), key=lambda i: models[i].best_score_)  # ties go to the first
        self._model_, self.width_ = models[best], WIDTHS[best]
        strength = {name: value for name, value in self._model_.best_params_.items() if name in ("C", "alpha")}
        self.best_params_, self.best_score_ = {"gamma": self.width_, **strength}, self._model_.best_score_
        self.n_fits_ = sum(model.n_fits_ for model in models)
        self.n_unconverged_ = sum(getattr(model, "n_unconverged_", 0) for model in models)

    def _gram(self, rows: Any, width: float) -> Any:
        return np.exp(-width * euclidean_distances(rows, self.fitted_, squared=True) / rows.shape[1])

    def _rows(self, X: Any) -> Any:
        return self._gram((super()._rows(X) - self.mean_) / self.scale_, self.width_)

    def decision_function(self, X: Any) -> Any:
        """Return decision values as `GraphSVC` does."""
        return self._model_.decision_function(self._rows(X))


class SummaryForest(StatisticsModel):
    """A random forest chosen by its out-of-bag score, which is as honest as inner folds and needs no further fits.

    With class weights, trees draw graphs of rare classes so often that few are left out: inner folds choose instead.
    """

    def _fit_rows(self, rows: Any, y: Any) -> None:
        if self.class_weight:
            forest = RandomForestClassifier(N_TREES, class_weight=self.class_weight, random_state=self.random_state)
            search_rows(self, forest, FOREST, rows, y)
            return
        make = RandomForestRegressor if y.dtype.kind == "f" else RandomForestClassifier
        points = list(ParameterGrid(FOREST))
        forests = [
            make(N_TREES, oob_score=True, random_state=self.random_state, **point).fit(rows, y) for point in points
        ]
        best = max(range(len(points)), key=lambda i: round(forests[i].oob_score_, 12))  # ties go to the first
        self._model_, self.best_params_, self.best_score_ = forests[best], points[best], forests[best].oob_score_
        self.n_fits_ = len(points)

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes."""
        return self._model_.predict_proba(self._rows(X))


class Boosting(StatisticsModel):
    """Gradient boosting; inner folds choose its parameters."""

    def _fit_rows(self, rows: Any, y: Any) -> None:
        if y.dtype.kind == "f":
            model: Any = HistGradientBoostingRegressor(random_state=self.random_state)
        else:
            model = HistGradientBoostingClassifier(random_state=self.random_state, class_weight=self.class_weight)
        search_rows(self, model, BOOSTING, rows, y)

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes."""
        return self._model_.predict_proba(self._rows(X))


def search_rows(self: StatisticsModel, model: Any, grid: dict[str, Any], rows: Any, y: Any) -> None:
    """Choose the parameters of a scikit-learn model by the inner folds."""
    split = self._folds(y)
    search = GridSearchCV(model, grid, cv=split, scoring="balanced_accuracy" if self.class_weight else None)
    with threadpool_limits(1):  # folds compete for the cores
        search.fit(rows, y)
    self._model_, self.best_params_, self.best_score_ = search, search.best_params_, search.best_score_
    self.n_fits_ = self.cv * len(search.cv_results_["params"]) + 1


# -------------------------------------------------------------------- the names in study files


def summary_svm(protocol: Protocol) -> SummarySVM:
    return SummarySVM(protocol.C, protocol.alpha, protocol.inner_folds, protocol.class_weight or None)


def with_folds(model: type[StatisticsModel], protocol: Protocol) -> StatisticsModel:
    return model(protocol.inner_folds, protocol.class_weight or None)


def gin(protocol: Protocol) -> Any:
    from graph_network import GIN  # needs torch

    return GIN(class_weight=protocol.class_weight or None)


register_estimator("summary-svm", summary_svm)
register_estimator("summary-forest", partial(with_folds, SummaryForest))
register_estimator("boosting", partial(with_folds, Boosting))
register_estimator("gin", gin)
