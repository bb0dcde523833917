"""Offer the base classes of scikit-learn under a name whose types bases.pyi declares.

To a type checker without stubs of scikit-learn its classes are ``Any``, and a subclass of ``Any`` has every attribute and
takes every parameter: ``model.predct()`` would pass.
"""

from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin

__all__ = ["BaseEstimator", "ClassifierMixin", "RegressorMixin", "TransformerMixin"]
