"""Read studies from TOML files and check them; errors name the file and the key, as in ``kernels[2].param_grid.depth``.

The files in ``papers/`` are the reference for the format; every key is explained in ``papers/paper.toml``. Tables become the
classes of ``protocol`` key by key; a study that was built in Python is checked in the same way.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from treegram._core.params import FLAG, NOTHING, Allowed, Instance, Number, Whole, Words, allowed_values, check_value
from treegram._core.text import suggest
from treegram.exceptions import ParameterError, StudyError
from treegram.study.metrics import METRICS, main_metric
from treegram.study.protocol import (
    SPLITS,
    KernelSpec,
    Protocol,
    Study,
    StudyEntry,
    changed_fields,
    estimator_text,
    shipped_studies,
)

_MOST_REPEATS = 10_000  # a repeat has its own folds and random numbers; more would only be waited for
_SHOWN = 60  # characters of a wrong value
_TEXT = Instance((str,), "a text")
_POSITIVE = Number(0, above=True)
# The allowed values of all keys that are neither tables, nor strings, nor parameters of kernels.
_ALLOWED: dict[str, Allowed] = {
    "repeats": (Whole(1, _MOST_REPEATS),),
    "repeats_on": (Whole(1, _MOST_REPEATS),),
    "outer_folds": (Whole(2),),
    "inner_folds": (Whole(2),),
    "seed": (Whole(0, 2**32 - 1),),
    "C": (_POSITIVE,),
    "alpha": (_POSITIVE,),
    "fitted_on": (Words("training", "all"),),
    "task": (Words(*METRICS),),
    "min_class_size": (Whole(1),),
    "split": (Words(*SPLITS),),
    "accuracy": (Number(0, 100), _TEXT),
    "deviation": (Number(0),),
    "seconds": (_POSITIVE,),
    "reseed": (FLAG,),
    "estimator": (Instance((str,), "the name of an estimator, or in Python an estimator of graphs"),),
}
_SPEC = [spec.name for spec in fields(KernelSpec)]
_PLAIN: Allowed = (_TEXT, Number(), FLAG, NOTHING)  # values of parameters


def read_study(study: str | os.PathLike[str]) -> Study:
    """Read a study file and check it completely.

    Parameters
    ----------
    study : str or path
        The name of a study that comes with the package ("paper", "beyond", "wide"), or the path to a file.

    Returns
    -------
    Study
        The study. Its kernels exist, and accept all the parameters and values in the file.

    Raises
    ------
    StudyError
        If anything in the file is wrong; the message begins with the file and the key.
    """
    if isinstance(study, str) and study in shipped_studies():
        file = resources.files("treegram.study").joinpath("papers", f"{study}.toml")
        return parse_study(study, file.read_bytes(), file.name)
    path = Path(study)
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        reason = error.strerror if isinstance(error, OSError) else error
        names = shipped_studies()
        raise StudyError(
            f"{path}: the study cannot be read ({reason}). Give the path of a file, or the name of a study that comes "
            f"with the package: {', '.join(names)}{suggest(str(study), names)}"
        ) from None
    return parse_study(path.stem, content, str(path))


def parse_study(name: str, content: bytes, file: str, *, is_stored: bool = False) -> Study:
    """Build a study from the content of its file; errors call the file ``file``.

    A stored study is parsed only to read its results: its kernels and parameters need not exist in this version.
    """
    try:
        text = content.decode("utf-8-sig")
        table = json.loads(text) if text.startswith("{") else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise StudyError(f"{file}: not valid TOML in UTF-8: {error}") from None
    whole = {"name": name, **table} if isinstance(table, dict) else table
    return replace(_checked(whole, file, is_stored=is_stored), source=text)


def check_study(study: Study) -> Study:
    """Return the study if it is valid, with the classes, types and text of one that was read from a file."""
    if study.source:
        return study
    checked = _checked(study, f"the study {study.name}", is_stored=False)
    return replace(checked, source=checked.text)


def _checked(content: Any, file: str, *, is_stored: bool) -> Study:
    try:
        study: Study = _build(Study, content, "")
        _check_protocol(study.protocol)
        _check_names(study)
        _check_datasets(study)
        _check_tests(study)
        for path, entry in _numbered("kernels", study.kernels):
            _check_entry(entry, study.protocol, path)
            if not is_stored:
                _check_vocabulary(entry, path)
    except _InvalidKeyError as problem:
        raise StudyError(f"{file}: {problem}") from None
    return study


# -------------------------------------------------------------------- from tables to classes


class _InvalidKeyError(Exception):
    """An error in a study; its message begins with the key."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)


def _build(part_class: type[Any], value: Any, path: str) -> Any:
    """Build one of the classes of a study from a table, or from an instance that was built in Python."""
    table = changed_fields(value) if isinstance(value, part_class) else _as_dict(value, path)
    if part_class is StudyEntry:
        table = _with_choices(table, path)
    specs = {spec.name: spec for spec in fields(part_class) if spec.name != "source"}
    for key in table:
        if key not in specs:
            names = [*specs, *(_SPEC if part_class is StudyEntry else [])]
            raise _InvalidKeyError(
                _join(path, key), f"unknown key{suggest(key, names)} (known here: {', '.join(names)})"
            )
    for key, spec in specs.items():
        if spec.default is spec.default_factory is MISSING and key not in table:
            raise _InvalidKeyError(path, f"the key {key!r} is missing")
    hints = get_type_hints(part_class)
    return part_class(**{key: _convert(hints[key], value, _join(path, key), key) for key, value in table.items()})


def _with_choices(table: dict[str, Any], path: str) -> dict[str, Any]:
    """Return the table of an entry with its one kernel or sum moved into ``choices``."""
    spec = {key: table[key] for key in _SPEC if key in table}
    rest = {key: value for key, value in table.items() if key not in spec}
    if "baseline" in rest:  # the name of the key in studies of 2026, whose files stay as they were run
        rest["estimator"] = rest.pop("baseline")
    if bool(spec) + ("choices" in rest) + ("estimator" in rest) != 1:
        raise _InvalidKeyError(path, "give exactly one of 'kernel', 'sum', 'choices' and 'estimator'")
    return {**rest, "choices": [_build(KernelSpec, spec, path)]} if spec else rest


def _convert(hint: Any, value: Any, path: str, key: str) -> Any:
    """Convert the value of a key for a field with this type hint."""
    inner = get_args(hint)
    if get_origin(hint) is tuple:
        if not isinstance(value, list | tuple) or not value:
            raise _wrong(path, "a list of at least one element", value)
        return tuple(_convert(inner[0], each, item_path, key) for item_path, each in _numbered(path, value))
    if get_origin(hint) is Mapping:
        return {name: _convert(inner[1], each, _join(path, name), key) for name, each in _as_dict(value, path).items()}
    if is_dataclass(hint):
        return _build(hint, value, path)  # type: ignore[arg-type]  # a class
    if key == "estimator" and hasattr(value, "fit"):
        return value
    if isinstance(value, list | tuple) and (key == "baseline" or (hint is Any and key != "estimator")):
        return _convert(tuple[hint, ...], value, path, key)
    if isinstance(value, int) and abs(value) >= 2**63:  # TOML does not allow such numbers, but tomllib reads them
        raise _wrong(path, "a number of at most 64 bits", value)
    allowed = _ALLOWED.get(key, _PLAIN if hint is Any else (_TEXT,))
    if not any(rule.accepts(value) for rule in allowed):
        raise _wrong(path, " or ".join(map(str, allowed)), value)
    return value.strip() if isinstance(value, str) else value


def _as_dict(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(path, "a table", value)
    return value


def _numbered(path: str, values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    return ((f"{path}[{i}]", value) for i, value in enumerate(values))


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _wrong(path: str, expected: str, value: Any) -> _InvalidKeyError:
    shown = repr(value)[:_SHOWN]
    if isinstance(value, dict | list):
        shown = "a table" if isinstance(value, dict) else "a list" if value else "an empty list"
    return _InvalidKeyError(path, f"must be {expected}, got {shown}")


def _check_exists(name: str, names: Collection[str], path: str, noun: str) -> None:
    if name not in names:
        raise _InvalidKeyError(path, f"unknown {noun} {name!r}{suggest(name, names)} (there are {', '.join(names)})")


# -------------------------------------------------------------------- what belongs together


def _check_protocol(protocol: Protocol) -> None:
    """Raise if keys of the protocol exclude each other."""
    for key in ("alpha",) if protocol.task == "classification" else ("C", "min_class_size"):
        if key in changed_fields(protocol):
            raise _InvalidKeyError(f"protocol.{key}", f'cannot be combined with task = "{protocol.task}"')
    if protocol.class_weight:
        _check_exists(protocol.class_weight, ("balanced",), "protocol.class_weight", "class weight")
        if protocol.task == "regression":
            raise _InvalidKeyError("protocol.class_weight", "only classes can be weighted; the task is regression")
    if protocol.metric:
        names = [metric.name for metric in METRICS[protocol.task]]
        _check_exists(protocol.metric, names, "protocol.metric", f"{protocol.task} metric")


def _check_names(study: Study) -> None:
    """Raise if data sets or kernels have equal or invalid names."""
    for path, names in (("datasets", study.datasets), ("kernels", [entry.name for entry in study.kernels])):
        for i, name in enumerate(names):
            if name in names[:i]:
                raise _InvalidKeyError(f"{path}[{i}]", f"duplicate {name!r}")
            if not name.isprintable() or not name:
                raise _InvalidKeyError(f"{path}[{i}]", f"a name must be one line of printable characters, got {name!r}")
    for path, name in _numbered("datasets", study.datasets):
        if name in (".", "..") or {"/", "\\"} & set(name):
            raise _InvalidKeyError(path, f"{name!r} is not the name of a data set; give the name of its folder")


def _check_datasets(study: Study) -> None:
    """Raise if a key refers to a data set that the study does not have."""
    named: dict[str, Collection[str]] = {
        "dataset_notes": study.dataset_notes,
        "protocol.repeats_on": study.protocol.repeats_on,
    }
    for key in ("kernels", "comparisons", "pairs"):
        named |= {f"{path}.datasets": part.datasets for path, part in _numbered(key, getattr(study, key))}
    for path, entry in _numbered("kernels", study.kernels):
        named |= {f"{path}.published.{key}": numbers for key, numbers in vars(entry.published).items()}
    for path, names in named.items():
        for name in names:
            _check_exists(name, study.datasets, path, "data set")


def _check_tests(study: Study) -> None:
    """Raise if a test names a kernel that the study does not have, or too few of them."""
    kernels = [entry.name for entry in study.kernels]
    for path, comparison in _numbered("comparisons", study.comparisons):
        for name in comparison.kernels:
            _check_exists(name, kernels, f"{path}.kernels", "kernel")
        if len(comparison.kernels) < 3 or len(comparison.datasets) < 2:
            raise _InvalidKeyError(
                path, "a Friedman test needs at least 3 kernels and 2 data sets; two kernels are compared in [[pairs]]"
            )
    for path, pair in _numbered("pairs", study.pairs):
        _check_exists(pair.kernel, kernels, f"{path}.kernel", "kernel")
        for name in pair.baselines:
            _check_exists(name, kernels, f"{path}.baseline", "kernel")
        if pair.kernel in pair.baselines:
            raise _InvalidKeyError(f"{path}.baseline", f"{pair.kernel!r} is compared with itself")


def _check_entry(entry: StudyEntry, protocol: Protocol, path: str) -> None:
    """Raise if parts of an entry exclude each other, or do not fit the protocol."""
    if " at 0x" in estimator_text(entry.estimator):
        raise _InvalidKeyError(
            f"{path}.estimator", "must not have functions or other objects as parameters, which a store cannot record"
        )
    if entry.published.accuracy and main_metric(protocol).name != "accuracy":
        raise _InvalidKeyError(f"{path}.published", "accuracies cannot be combined with another metric of the protocol")
    for spec in entry.choices:
        is_wrong = bool(spec.kernel) == bool(spec.sum) or (spec.sum and (spec.parameters or spec.attributes))
        if is_wrong or any(not term.kernel or term.param_grid or term.sum for term in spec.sum):
            raise _InvalidKeyError(
                path, "give either 'kernel', 'parameters' and 'attributes', or a 'sum' of such terms"
            )
    is_fixed = entry.estimator is not None or any(
        term.kernel == "auto" for spec in entry.choices for term in spec.terms
    )
    has_options = entry.choices not in ((), (KernelSpec("auto"),))
    if is_fixed and (has_options or entry.timed or entry.fitted_on or entry.reseed):
        raise _InvalidKeyError(
            path,
            "an estimator or the kernel 'auto' cannot be combined with options of kernels: it chooses everything itself",
        )


# -------------------------------------------------------------------- kernels and parameters that exist


def _check_vocabulary(entry: StudyEntry, path: str) -> None:
    """Raise if a kernel, transformation or parameter of the entry does not exist, or has an invalid value."""
    from treegram.graphs.transforms import TRANSFORMATIONS  # not needed to read results
    from treegram.kernels.registry import AUTO, KERNELS

    is_single = len(entry.choices) == 1
    for spec_path, spec in [(path, entry.choices[0])] if is_single else _numbered(f"{path}.choices", entry.choices):
        for term_path, term in _numbered(f"{spec_path}.sum", spec.sum) if spec.sum else [(spec_path, spec)]:
            if term.kernel not in KERNELS:
                _check_exists(term.kernel, [*KERNELS, AUTO], f"{term_path}.kernel", "kernel")
            for name in term.attributes:
                _check_exists(name, TRANSFORMATIONS, f"{term_path}.attributes", "transformation")
            for key_path, key, value in _parameters(entry, spec, term, (path, spec_path, term_path)):
                _check_parameter(KERNELS[term.kernel], key, value, key_path)


def _parameters(
    entry: StudyEntry, spec: KernelSpec, term: KernelSpec, paths: tuple[str, str, str]
) -> Iterator[tuple[str, str, Any]]:
    """Yield the path, name and value of all parameters of a term of a choice of an entry, which have these paths."""
    entry_path, spec_path, term_path = paths
    for key, value in term.parameters.items():
        yield f"{term_path}.parameters.{key}", key, value
    for key, values in spec.param_grid.items():
        if key in term.parameters:
            raise _InvalidKeyError(f"{spec_path}.param_grid.{key}", "also fixed in 'parameters'")
        yield from ((path, key, value) for path, value in _numbered(f"{spec_path}.param_grid.{key}", values))
    if spec is entry.choices[0]:
        yield from ((f"{entry_path}.timed", key, value) for key, value in entry.timed.items())
    if entry.reseed:
        if "random_state" in term.parameters:
            raise _InvalidKeyError(f"{entry_path}.reseed", "sets random_state, which is also fixed in 'parameters'")
        yield f"{entry_path}.reseed", "random_state", 0


def _check_parameter(kernel: type[Any], key: str, value: Any, path: str) -> None:
    allowed = allowed_values(kernel)
    names = [name for name in allowed if name != "n_jobs"]  # it changes no result
    if key not in names:
        raise _InvalidKeyError(
            path,
            f"the kernel {kernel.name!r} has no parameter {key!r}{suggest(key, names)} (it has {', '.join(names)})",
        )
    try:
        check_value(key, kernel.__name__, value, allowed[key])
    except ParameterError as error:
        raise _InvalidKeyError(path, str(error)) from None
