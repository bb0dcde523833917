"""Read studies from TOML files and check them; errors name the file and the key, as in ``kernels[2].param_grid.depth``.

The files in ``papers/`` are the reference for the format; every key is explained in ``papers/paper.toml``. Tables become the
classes of ``protocol`` field by field; a study that was built in Python is checked in the same way.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import tomllib
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from importlib import resources
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from treegram._core.errors import ParameterError, StudyError
from treegram._core.text import suggest
from treegram.study.protocol import BASELINES, KernelSpec, Pair, Published, Study, StudyEntry, as_table

_SHOWN = 60  # characters of a wrong value


def shipped_studies() -> tuple[str, ...]:
    """Return the names of the studies that come with the package."""
    files = resources.files("treegram.study").joinpath("papers").iterdir()
    return tuple(sorted(Path(file.name).stem for file in files if file.name.endswith(".toml")))


def read_study(study: str | os.PathLike[str]) -> Study:
    """Read a study file and check all of it.

    Parameters
    ----------
    study : str or path
        The name of a study that comes with the package ("paper", "beyond", "wide"), or the path of a file.

    Returns
    -------
    Study
        The study. Its kernels exist, and have all the parameters and values that the file names.

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
    """Build a study from the content of its file, which errors call ``file``.

    A stored study is parsed to read its results: its kernels and parameters need not be those of this version.
    """
    try:
        text = content.decode("utf-8-sig")
        table = json.loads(text) if text.startswith("{") else tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise StudyError(f"{file}:{line}: not UTF-8; save the file with this encoding.") from None
    except (ValueError, RecursionError) as error:
        raise StudyError(f"{file}: not valid TOML: {error}") from None
    return _checked(name, table, file, text, is_stored=is_stored)


def check_study(study: Study) -> Study:
    """Return the study if it is valid, with the classes and types of one that was read from a file."""
    if study.source:
        return study
    return _checked(study.name, as_table(study), f"the study {study.name}", "", is_stored=False)


def _checked(name: str, table: Any, file: str, source: str, *, is_stored: bool) -> Study:
    try:
        study = _build(Study, {"name": name, **_as_dict(table, "")}, "")
        _check(study, table, vocabulary=not is_stored)
    except _InvalidKeyError as problem:
        raise StudyError(f"{file}: {problem}") from None
    return replace(study, source=source)


# -------------------------------------------------------------------- from tables to classes


class _InvalidKeyError(Exception):
    """An error in a study; its message begins with the key."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)


def _build(kind: type[Any], value: Any, path: str) -> Any:
    """Build one of the classes of a study from a table."""
    table = _as_dict(value, path)
    if kind is StudyEntry:
        table = _with_choices(table, path)
    known = {one.name: one for one in fields(kind) if one.name != "source"}
    for key in table:
        if key not in known:
            there = [*known, *(["kernel", "sum", "param_grid"] if kind is StudyEntry else [])]
            raise _InvalidKeyError(
                _join(path, key), f"unknown key{suggest(key, there)} (known here: {', '.join(there)})"
            )
    for key, one in known.items():
        if one.default is one.default_factory is MISSING and key not in table:
            raise _InvalidKeyError(path, f"the key {key!r} is missing")
    types = get_type_hints(kind)
    return kind(
        **{key: _convert(types[key], value, _join(path, key), known[key].metadata) for key, value in table.items()}
    )


def _with_choices(table: dict[str, Any], path: str) -> dict[str, Any]:
    """Return the table of an entry with its one kernel or sum moved into ``choices``."""
    here = [one.name for one in fields(KernelSpec) if one.name in table]
    for key, others in (("choices", here), ("baseline", [*here, "choices", "timed", "fitted_on", "reseed"])):
        if key in table and (misplaced := next((one for one in others if one in table), None)):
            raise _InvalidKeyError(_join(path, misplaced), f"cannot be combined with {key!r}")
    if not {"kernel", "sum", "choices", "baseline"} & table.keys():
        raise _InvalidKeyError(path, "one of 'kernel', 'sum', 'choices' and 'baseline' is required")
    spec = {key: table[key] for key in here}
    rest = {key: value for key, value in table.items() if key not in here}
    return {**rest, "choices": _Single([spec])} if spec else rest


class _Single(list[Any]):
    """The choices of an entry whose kernel is written without ``choices``."""


def _convert(kind: Any, value: Any, path: str, limits: Mapping[str, Any]) -> Any:
    """Return the value as a field of this type has it."""
    if is_dataclass(kind):
        return _build(kind, value, path)  # type: ignore[arg-type]  # a class
    if get_origin(kind) is tuple:
        if not isinstance(value, list | tuple) or not value:
            raise _wrong(path, "a list of at least one element", value)
        parent = path.rpartition(".")[0]
        items = [
            _convert(get_args(kind)[0], one, parent if isinstance(value, _Single) else f"{path}[{i}]", limits)
            for i, one in enumerate(value)
        ]
        if not limits.get("may_repeat"):
            _refuse_duplicates(items, path)
        return tuple(items)
    if get_origin(kind) is not None and issubclass(get_origin(kind), Mapping):
        return {
            key: _convert(get_args(kind)[1], one, _join(path, key), limits)
            for key, one in _as_dict(value, path).items()
        }
    if alternatives := get_args(kind):  # a union
        wanted = str if isinstance(value, str) and str in alternatives else None
        return _convert(wanted or next(one for one in alternatives if one not in (str, NoneType)), value, path, limits)
    return _scalar(kind, value, path, limits)


def _scalar(kind: Any, value: Any, path: str, limits: Mapping[str, Any]) -> Any:
    if kind is Any:
        return _plain(value, path)
    if kind is bool:
        if value is not True:
            raise _InvalidKeyError(path, f"can only be true, got {_show(value)}; leave it out")
        return True
    if kind is str:
        if not isinstance(value, str) or not value.strip():
            raise _wrong(path, "a text that is not empty", value)
        if words := limits.get("words"):
            _known(value, words, path, path.rpartition(".")[2])
        return value.strip()
    return _number(value, path, limits, is_whole=kind is int)


def _number(value: Any, path: str, limits: Mapping[str, Any], *, is_whole: bool) -> float:
    if (
        not _is_finite(value)
        or (is_whole and not isinstance(value, int))
        or not limits.get("least", -math.inf) <= value <= limits.get("most", math.inf)
        or value <= limits.get("above", -math.inf)
    ):
        words = {"least": "of at least", "above": "above", "most": "of at most"}
        bounds = " and ".join(f"{words[key]} {limits[key]:.12g}" for key in words if key in limits)
        raise _wrong(path, f"a {'whole ' * is_whole}number {bounds}".strip(), value)
    return value if is_whole else float(value)


def _plain(value: Any, path: str) -> Any:
    """Return the value of a parameter: a text, a number, true, false, or a tuple of these."""
    if isinstance(value, list | tuple):
        return tuple(_plain(one, f"{path}[{i}]") for i, one in enumerate(value))
    if not isinstance(value, str | bool | None) and not _is_finite(value):
        raise _wrong(path, "a text, a finite number, true, false, or a list of these", value)
    return value


def _is_finite(value: Any) -> bool:
    """Return whether the value is a finite number; whole numbers must fit into 64 bits, as TOML requires."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 2**63 if isinstance(value, int) else math.isfinite(value)


def _as_dict(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(path, "a table", value)
    return value


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _wrong(path: str, wanted: str, value: Any) -> _InvalidKeyError:
    return _InvalidKeyError(path, f"must be {wanted}, got {_show(value)}")


def _show(value: Any) -> str:
    """Return a value as a file has it, shortened."""
    if isinstance(value, dict | list | tuple):
        return "a table" if isinstance(value, dict) else "a list" if value else "an empty list"
    shown = str(value).lower() if isinstance(value, bool) else repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."


def _refuse_duplicates(values: Sequence[Any], path: str) -> None:
    """Raise at the second of two equal values, or of two tables with the same name."""
    seen: set[Hashable] = set()
    for i, value in enumerate(values):
        name = getattr(value, "name", value)
        if isinstance(name, Hashable) and not is_dataclass(name):
            if name in seen:
                raise _InvalidKeyError(f"{path}[{i}]", f"duplicate {_show(name)}")
            seen.add(name)


def _known(name: str, known: Collection[str], path: str, what: str) -> None:
    if name not in known:
        raise _InvalidKeyError(path, f"unknown {what} {name!r}{suggest(name, known)} (there are {', '.join(known)})")


# -------------------------------------------------------------------- what does not fit together


def _check_datasets(study: Study) -> None:
    for i, name in enumerate(study.datasets):
        _check_name(name, f"datasets[{i}]")
        if name in (".", "..") or {"/", "\\"} & set(name):
            raise _InvalidKeyError(
                f"datasets[{i}]",
                f"{name!r} is not the name of a data set; give the name of its folder, which is looked for beside this "
                "file and in the folder that --data-dir names",
            )
    _known_datasets(study.protocol.repeats_on, study, "protocol.repeats_on")
    _known_datasets(study.dataset_notes, study, "dataset_notes")
    _known_datasets(study.sources, study, "sources")
    for name, source in study.sources.items():
        if not isinstance(source.get("file"), str):
            raise _InvalidKeyError(f"sources.{name}", "the key 'file' is missing, or not a text")


def _check(study: Study, table: Mapping[str, Any], *, vocabulary: bool) -> None:
    from treegram.study.metrics import main_metric  # numpy, which --help does not need

    _check_datasets(study)
    task = study.protocol.task
    for key in ("alpha",) if task == "classification" else ("C", "min_class_size"):
        if key in table.get("protocol", {}):
            raise _InvalidKeyError(f"protocol.{key}", f'cannot be combined with task = "{task}"')
    if study.protocol.metric and main_metric(study.protocol).name != study.protocol.metric:
        raise _InvalidKeyError("protocol.metric", f'{study.protocol.metric!r} cannot be combined with task = "{task}"')
    for i, entry in enumerate(study.kernels):
        path = f"kernels[{i}]"
        _check_entry(entry, study, path)
        if vocabulary:
            _check_vocabulary(entry, path, is_listed="choices" in table["kernels"][i])
    names = [entry.name for entry in study.kernels]
    for i, comparison in enumerate(study.comparisons):
        _check_listed(comparison.kernels, names, f"comparisons[{i}].kernels", "kernel", least=3)
        _check_listed(comparison.datasets, study.datasets, f"comparisons[{i}].datasets", "data set", least=2)
    for i, pair in enumerate(study.pairs):
        _check_pair(pair, names, study, f"pairs[{i}]")


def _check_name(name: str, path: str) -> None:
    if not name.isprintable():
        raise _InvalidKeyError(path, f"a name must be one line of printable characters, got {name!r}")


def _known_datasets(names: Collection[str], study: Study, path: str) -> None:
    for name in names:
        _known(name, study.datasets, _join(path, name), "data set")


def _check_listed(names: Sequence[str], known: Sequence[str], path: str, what: str, *, least: int) -> None:
    for j, name in enumerate(names):
        _known(name, known, f"{path}[{j}]", what)
    if len(names) < least:
        raise _InvalidKeyError(
            path, f"a Friedman test needs at least {least} {what}s; two kernels are compared in [[pairs]]"
        )


def _check_pair(pair: Pair, names: Sequence[str], study: Study, path: str) -> None:
    for key, name in (("kernel", pair.kernel), *(("baseline", one) for one in pair.baselines)):
        _known(name, names, f"{path}.{key}", "kernel")
    if pair.kernel in pair.baselines:
        raise _InvalidKeyError(f"{path}.baseline", f"{pair.kernel!r} is compared with itself")
    for j, name in enumerate(pair.datasets):
        _known(name, study.datasets, f"{path}.datasets[{j}]", "data set")


def _check_entry(entry: StudyEntry, study: Study, path: str) -> None:
    _check_name(entry.name, f"{path}.name")
    for j, name in enumerate(entry.datasets):
        _known(name, study.datasets, f"{path}.datasets[{j}]", "data set")
    _check_published(entry.published, study, f"{path}.published")
    if study.protocol.task == "regression" and entry.baseline == "gin":
        raise _InvalidKeyError(
            f"{path}.baseline", '"gin" predicts classes; cannot be combined with task = "regression"'
        )
    uses_auto = any(term.kernel == "auto" for spec in entry.choices for term in spec.terms)
    if uses_auto and (entry.choices != (KernelSpec("auto"),) or entry.timed or entry.fitted_on or entry.reseed):
        raise _InvalidKeyError(
            path,
            "the kernel 'auto' cannot be combined with anything: it has its own candidates, fitted on training graphs",
        )
    for spec in entry.choices:
        if bool(spec.kernel) == bool(spec.sum) or (spec.sum and (spec.parameters or spec.attributes)):
            raise _InvalidKeyError(
                path, "give either 'kernel', 'parameters' and 'attributes', or a 'sum' of such terms"
            )
        if len(spec.sum) == 1:
            raise _InvalidKeyError(f"{path}.sum", "a sum must have at least two terms")
        if any(not term.kernel or term.param_grid or term.sum for term in spec.sum):
            raise _InvalidKeyError(
                f"{path}.sum", "each term must have a 'kernel', and may have 'parameters' and 'attributes'"
            )


def _check_published(published: Published, study: Study, path: str) -> None:
    from treegram.study.metrics import main_metric  # numpy, which --help does not need

    for key in ("accuracy", "deviation", "seconds"):
        _known_datasets(getattr(published, key), study, f"{path}.{key}")
    for name in published.deviation:
        if not isinstance(published.accuracy.get(name), float):
            raise _InvalidKeyError(f"{path}.deviation.{name}", "there is no published accuracy that it belongs to")
    if published.accuracy and main_metric(study.protocol).name != "accuracy":
        raise _InvalidKeyError(
            path, f"accuracies cannot be combined with the metric {main_metric(study.protocol).name!r}"
        )


# -------------------------------------------------------------------- kernels and parameters that exist


def _check_vocabulary(entry: StudyEntry, path: str, *, is_listed: bool) -> None:
    """Raise if a kernel, baseline, transformation or parameter of the entry does not exist, or cannot have a value."""
    if entry.baseline:
        _known(entry.baseline, BASELINES, f"{path}.baseline", "baseline")
    for i, spec in enumerate(entry.choices):
        here = f"{path}.choices[{i}]" if is_listed else path
        for j, term in enumerate(spec.terms):
            _check_term(term, f"{here}.sum[{j}]" if spec.sum else here)
            if entry.reseed and "random_state" in term.parameters:
                raise _InvalidKeyError(f"{path}.reseed", "sets random_state, which is also fixed in 'parameters'")
            if entry.reseed:
                _check_parameter(term.kernel, "random_state", 0, f"{path}.reseed")
            _check_grid(spec.param_grid, term, f"{here}.param_grid")
    for key, value in entry.timed.items():
        for term in entry.choices[0].terms:
            _check_parameter(term.kernel, key, value, f"{path}.timed.{key}")


def _check_grid(grid: Mapping[str, Sequence[Any]], term: KernelSpec, path: str) -> None:
    for key, values in grid.items():
        if key in term.parameters:
            raise _InvalidKeyError(f"{path}.{key}", "also fixed in 'parameters'")
        for i, value in enumerate(values):
            _check_parameter(term.kernel, key, value, f"{path}.{key}[{i}]")


def _check_term(term: KernelSpec, path: str) -> None:
    from treegram.graphs.transforms import TRANSFORMATIONS
    from treegram.kernels.base import AUTO, KERNELS

    if term.kernel not in KERNELS:
        _known(term.kernel, [*KERNELS, AUTO], f"{path}.kernel", "kernel")
    for name in term.attributes:
        _known(name, TRANSFORMATIONS, f"{path}.attributes", "transformation")
    for key, value in term.parameters.items():
        _check_parameter(term.kernel, key, value, f"{path}.parameters.{key}")


def _check_parameter(kernel: str, key: str, value: Any, path: str) -> None:
    from treegram._core.params import FLAG, allowed_values, check_value, words_of
    from treegram.kernels.base import KERNELS

    if key == "n_jobs":
        raise _InvalidKeyError(path, "changes no result and is not part of a study; use --jobs when you run it")
    if kernel not in KERNELS:
        raise _InvalidKeyError(path, f"the kernel {kernel!r} has no parameters: it chooses them")
    kind = KERNELS[kernel]
    known = [name for name in inspect.signature(kind).parameters if name != "n_jobs"]
    if key not in known:
        raise _InvalidKeyError(
            path, f"the kernel {kernel!r} has no parameter {key!r}{suggest(key, known)} (it has {', '.join(known)})"
        )
    allowed = allowed_values(kind)[key]
    if isinstance(value, bool) and FLAG not in allowed:
        raise _InvalidKeyError(path, f"the parameter {key!r} of the kernel {kernel!r} cannot be true or false")
    if isinstance(value, str) and (words := words_of(allowed)):
        _known(value, words, path, key)
    try:
        check_value(key, kind.__name__, value, allowed)
    except ParameterError as error:
        raise _InvalidKeyError(path, str(error)) from None
