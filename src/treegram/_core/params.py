"""Describe the allowed values of parameters as data, so that estimators, the command and study files can check them.

A parameter has a tuple of alternatives, such as ``(Whole(1), NOTHING)``; a value is valid if one of them accepts it. A class
declares its own parameters in ``_allowed`` and inherits those of its bases.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from numbers import Integral, Real
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar, dataclass_transform

import numpy as np

from treegram.exceptions import ParameterError


class Alternative(Protocol):
    """A set of allowed values; its text completes "must be ..."."""

    def accepts(self, value: Any) -> bool:
        """Return whether the value is allowed."""


T = TypeVar("T")
Allowed: TypeAlias = tuple[Alternative, ...]


@dataclass(frozen=True)
class Number:
    """A finite number within inclusive bounds; with ``above``, the lower bound is exclusive."""

    least: float | None = None
    most: float | None = None
    above: bool = False

    _noun: ClassVar[str] = "a number"
    _type: ClassVar[type[Any]] = Real

    def accepts(self, value: Any) -> bool:
        """Return whether the value is such a number; True and False are not."""
        if not isinstance(value, self._type) or isinstance(value, bool) or not -math.inf < value < math.inf:
            return False
        is_large = self.least is None or value > self.least or (value == self.least and not self.above)
        return is_large and (self.most is None or bool(value <= self.most))

    def __str__(self) -> str:
        if self.least is not None and self.least == self.most:
            return f"{self.least:.15g}"
        lower = "greater than" if self.above else "at least"
        bounds = [] if self.least is None else [f"{lower} {self.least:.15g}"]
        bounds += [] if self.most is None else [f"at most {self.most:.15g}"]
        if not bounds:
            return self._noun
        return f"{self._noun} {'' if self.above else 'of '}{' and '.join(bounds)}"


class Whole(Number):
    """A whole number within inclusive bounds."""

    _noun = "a whole number"
    _type = Integral


class Words:
    """A choice of words."""

    def __init__(self, *words: str) -> None:
        self.words = tuple(sorted(words))

    def accepts(self, value: Any) -> bool:
        """Return whether the value is one of the words."""
        return isinstance(value, str) and value in self.words

    def __str__(self) -> str:
        return "one of " + ", ".join(repr(word) for word in self.words)


@dataclass(frozen=True)
class Instance:
    """An instance of one of several classes, which ``text`` describes."""

    classes: tuple[type[Any], ...]
    text: str

    def accepts(self, value: Any) -> bool:
        """Return whether the value is an instance."""
        return isinstance(value, self.classes)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class _Test:
    """Anything that passes a test."""

    test: Callable[[Any], bool]
    text: str

    def accepts(self, value: Any) -> bool:
        """Return whether the value passes."""
        return self.test(value)

    def __str__(self) -> str:
        return self.text


FLAG = Instance((bool, np.bool_), "True or False")
NOTHING = _Test(lambda value: value is None, "None")
FUNCTION = _Test(callable, "a function")
LIST = _Test(
    lambda value: hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping), "a list of numbers"
)
SPLITTER = _Test(lambda value: hasattr(value, "split") and hasattr(value, "get_n_splits"), "a splitter of scikit-learn")
SEED: Allowed = (
    Whole(0, 2**32 - 1),
    Instance((np.random.RandomState,), "a numpy RandomState"),
    NOTHING,
)


def allowed_values(owner: type[Any]) -> dict[str, Allowed]:
    """Return the allowed values of each parameter of a class, in the order of its signature."""
    declared: dict[str, Allowed] = {}
    for base in reversed(owner.__mro__):
        declared |= vars(base).get("_allowed", {})
    return {name: declared[name] for name in inspect.signature(owner).parameters}


def words_of(allowed: Allowed) -> list[str]:
    """Return the words among the allowed values."""
    return [word for alternative in allowed if isinstance(alternative, Words) for word in alternative.words]


def check_value(name: str, owner: str, value: Any, allowed: Allowed) -> None:
    """Raise ParameterError unless the value of the parameter ``name`` of ``owner`` is allowed."""
    if not any(alternative.accepts(value) for alternative in allowed):
        texts = [str(alternative) for alternative in allowed]
        text = " or ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
        shown = value.item() if isinstance(value, np.generic) else value
        raise ParameterError(f"{name} of {owner} must be {text}; got {shown!r}.")


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def parameters(owner: type[T]) -> type[T]:
    """Give a class the keyword parameters that it and its bases declare as ``name: type = default``.

    The class becomes a dataclass whose ``__init__`` only assigns, as scikit-learn requires. The first parameter of a class may
    be positional: ``depth: int = field(default=3, kw_only=False)``.
    """
    return dataclass(eq=False, repr=False, kw_only=True)(owner)


def _all_or_nothing(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method of an estimator, changed to leave the estimator exactly as it was whenever it raises."""

    @wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        before = dict(vars(self))
        try:
            return method(self, *args, **options)
        except BaseException:  # also KeyboardInterrupt
            self.__dict__ = before
            raise

    return call


class Checked:
    """An estimator on graphs that checks its parameters against ``_allowed``, in ``fit`` only, as scikit-learn does.

    A ``fit`` or ``fit_transform`` that raises leaves it exactly as it was, here and in all subclasses.
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in {"fit", "fit_transform"} & set(vars(cls)):
            setattr(cls, name, _all_or_nothing(vars(cls)[name]))

    def _check_parameters(self) -> None:
        for name, allowed in allowed_values(type(self)).items():
            check_value(name, type(self).__name__, getattr(self, name), allowed)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc] # of BaseEstimator, which comes after this class
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        return tags
