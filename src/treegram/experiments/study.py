"""A study is a data file: kernels, grids, data sets, folds, seeds and, for a paper, its published numbers.

:func:`read_study` reads one and checks all of it before anything runs. The files in ``papers/`` are the reference for the
format; every key is explained in ``papers/paper.toml``.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from treegram.errors import StudyError
from treegram.experiments._parameters import needs_seed, read_parameter, read_transformations
from treegram.experiments._toml import (
    MAX_BYTES,
    Place,
    closest,
    elements,
    entries,
    integer,
    known_name,
    number,
    read_toml,
    refuse_repetition,
    table,
    text,
    texts,
)
from treegram.kernels.registry import KERNELS

__all__ = [
    "Choice",
    "Comparison",
    "Entry",
    "Protocol",
    "Published",
    "Study",
    "entry_key",
    "parse_study",
    "read_study",
    "shipped_studies",
]

Read = TypeVar("Read")
Default = TypeVar("Default")


@dataclass(frozen=True)
class Choice:
    """One kernel with the lists that inner cross-validation chooses from."""

    kernel: str  # a key of treegram.kernels.registry.KERNELS, or "sum" (then parts is not empty)
    parameters: Mapping[str, Any] = field(default_factory=dict)  # fixed
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # parameter -> values, in order of preference
    attributes: tuple[str, ...] = ()  # names of transformations applied to the attributes first, in order
    parts: tuple[Choice, ...] = ()  # of a sum; the grid of the sum is set in every part


@dataclass(frozen=True)
class Published:
    """Numbers that a paper prints for one kernel, by data set."""

    accuracy: Mapping[str, float | str] = field(default_factory=dict)  # percent, or words such as "out of memory"
    deviation: Mapping[str, float] = field(default_factory=dict)  # standard deviation over repeats, percent
    seconds: Mapping[str, float] = field(default_factory=dict)  # of one Gram matrix


@dataclass(frozen=True)
class Entry:
    """One line of the study's table: what is selected from, under one name."""

    name: str
    choices: tuple[Choice, ...]
    timed: Mapping[str, Any] = field(default_factory=dict)  # parameters for the time of one Gram matrix
    note: str = ""
    published: Published = field(default_factory=Published)
    fitted_on: str = ""  # in the place of the protocol's, unless empty


@dataclass(frozen=True)
class Protocol:
    """How the kernels are compared."""

    repeats: int = 10
    outer_folds: int = 10
    inner_folds: int = 10
    seed: int = 0
    C: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0)
    fitted_on: str = (
        "training"  # what learns from data sees: "training" graphs of the outer fold, or "all" (declared label-free)
    )


@dataclass(frozen=True)
class Comparison:
    """A set of kernels and data sets on which a Friedman test is run, and the pairs that are tested one by one."""

    name: str
    kernels: tuple[str, ...]
    datasets: tuple[str, ...]


@dataclass(frozen=True)
class Study:
    """A whole study, checked."""

    name: str
    title: str
    datasets: tuple[str, ...]
    entries: tuple[Entry, ...]
    protocol: Protocol = field(default_factory=Protocol)
    about: str = ""  # a paragraph for the report
    reference: str = ""
    comparisons: tuple[Comparison, ...] = ()
    pairs: tuple[tuple[str, str, tuple[str, ...]], ...] = ()  # (kernel, baseline, data sets) for the t-tests
    dataset_notes: Mapping[str, str] = field(default_factory=dict)  # data set -> what a reader should know
    text: str = field(default="", compare=False)  # the file it was read from


# -------------------------------------------------------------------- identity


def entry_key(study: Study, entry: Entry, dataset: str) -> str:
    """What determines an entry's results on a data set, as 16 hexadecimal digits.

    Equal keys mean equal rows: the key covers the choices, the folds, the seed and the values of C, and nothing else. So
    a new entry, another data set, more repeats, a note or another name leave it as it is, and a changed grid does not.

    Parameters
    ----------
    study : Study
        The study.
    entry : Entry
        One of its entries.
    dataset : str
        Name of the data set.

    Returns
    -------
    str
        The first digits of a SHA-256.
    """
    protocol = study.protocol
    content = {
        "dataset": dataset,
        "choices": [_content(choice) for choice in entry.choices],
        "outer_folds": protocol.outer_folds,
        "inner_folds": protocol.inner_folds,
        "seed": protocol.seed,
        "C": _canonical(protocol.C),
        "fitted_on": entry.fitted_on or protocol.fitted_on,
    }
    words = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(words.encode()).hexdigest()[:16]


def _content(choice: Choice) -> dict[str, Any]:
    """A choice as JSON has it; what is empty is left out, so that a new field with a default changes no old key."""
    content = {
        "kernel": choice.kernel,
        "parameters": _canonical(choice.parameters),
        # Pairs, as their order counts: of two equally good points of a grid, the first one is chosen.
        "grid": [[name, _canonical(values)] for name, values in choice.grid.items()],
        "attributes": list(choice.attributes),
        "parts": [_content(part) for part in choice.parts],
    }
    return {name: value for name, value in content.items() if value}


def _canonical(value: Any) -> Any:
    """Equal values in one form: 1.0 is 1, a tuple is a list."""
    if isinstance(value, Mapping):
        return {name: _canonical(one) for name, one in value.items()}
    if isinstance(value, tuple | list):
        return [_canonical(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


# -------------------------------------------------------------------- reading


def shipped_studies() -> tuple[str, ...]:
    """Names of the studies that come with the package."""
    files = resources.files("treegram.experiments").joinpath("papers").iterdir()
    return tuple(sorted(Path(file.name).stem for file in files if file.name.endswith(".toml")))


def read_study(study: str | os.PathLike[str]) -> Study:
    """Read a study file and check all of it.

    Parameters
    ----------
    study : str or path
        The name of a study that comes with the package ("paper", "beyond"), or the path of a file.

    Returns
    -------
    Study
        The study. Its kernels exist, and have all the parameters and values that the file names.

    Raises
    ------
    StudyError
        If anything in the file is wrong; the message begins with the file and the line.
    """
    if isinstance(study, str) and study in shipped_studies():
        file = resources.files("treegram.experiments").joinpath("papers", f"{study}.toml")
        return parse_study(study, file.read_bytes(), file.name)
    path = Path(study)
    try:
        with path.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        reason = error.strerror if isinstance(error, OSError) else error
        names = shipped_studies()
        raise StudyError(
            f"{path}: the study cannot be read ({reason}). Give the path of a file, or the name of a study that comes "
            f"with the package: {', '.join(names)}{closest(str(study), names)}"
        ) from None
    return parse_study(path.stem, content, str(path))


def parse_study(name: str, content: bytes, file: str) -> Study:
    """A study from the content of its file; ``file`` is what errors call it."""
    study = _study(name, read_toml(file, content))
    return replace(study, text=content.decode())


def _given(keys: Mapping[str, Place], key: str, read: Callable[[Place], Read], default: Default) -> Read | Default:
    return read(keys[key]) if key in keys else default


def _given_entries(keys: Mapping[str, Place], key: str) -> dict[str, Place]:
    return entries(keys[key]) if key in keys else {}


def _study(name: str, root: Place) -> Study:
    optional = ("about", "reference", "dataset_notes", "protocol", "comparisons", "pairs")
    keys = table(root, ("title", "datasets", "kernels"), optional)
    datasets = _names(keys["datasets"])
    places = elements(keys["kernels"])
    rows = tuple(_entry(place, datasets) for place in places)
    names = [row.name for row in rows]
    refuse_repetition([place.at("name") for place in places], names, "name")
    comparisons = _given(keys, "comparisons", partial(_comparisons, kernels=names, datasets=datasets), ())
    return Study(
        name=name,
        title=text(keys["title"]),
        datasets=datasets,
        entries=rows,
        protocol=_given(keys, "protocol", _protocol, Protocol()),
        about=_given(keys, "about", text, "").strip(),
        reference=_given(keys, "reference", text, "").strip(),
        comparisons=comparisons,
        pairs=_given(keys, "pairs", partial(_pairs, kernels=names, datasets=datasets), ()),
        dataset_notes=_given(keys, "dataset_notes", partial(_by_dataset, datasets=datasets, read=text), {}),
    )


def _protocol(place: Place) -> Protocol:
    default = Protocol()
    keys = table(place, (), ("repeats", "outer_folds", "inner_folds", "seed", "C", "fitted_on"))
    return Protocol(
        repeats=_given(keys, "repeats", partial(integer, least=1), default.repeats),
        outer_folds=_given(keys, "outer_folds", partial(integer, least=2), default.outer_folds),
        inner_folds=_given(keys, "inner_folds", partial(integer, least=2), default.inner_folds),
        seed=_given(keys, "seed", partial(integer, least=0, most=2**32 - 1), default.seed),
        C=_given(keys, "C", _penalties, default.C),
        fitted_on=_given(keys, "fitted_on", _fitted_on, default.fitted_on),
    )


def _fitted_on(place: Place) -> str:
    return known_name(place, ("training", "all"), "choice")


def _penalties(place: Place) -> tuple[float, ...]:
    found = elements(place)
    values = tuple(number(one, above=0.0) for one in found)
    refuse_repetition(found, values, "value")
    return values


def _names(place: Place) -> tuple[str, ...]:
    """Names of data sets: folds and rows follow from them, so they must not depend on where the data is."""
    names = texts(place, what="data set")
    for name in names:
        if name in ("", ".", "..") or {"/", "\\"} & set(name):
            raise place.error(
                f"{name!r} is not the name of a data set; give the name of its folder, which is looked for beside this file "
                "and in the folder that --data-dir names"
            )
    return names


def _by_dataset(place: Place, datasets: Collection[str], read: Callable[[Place], Read]) -> dict[str, Read]:
    found = entries(place)
    for name, value in found.items():
        if name not in datasets:
            raise value.error(
                f"unknown data set {name!r}{closest(name, datasets)} (the study has {', '.join(datasets)})"
            )
    return {name: read(value) for name, value in found.items()}


def _comparisons(place: Place, kernels: Collection[str], datasets: Collection[str]) -> tuple[Comparison, ...]:
    places = elements(place)
    found = tuple(_comparison(one, kernels, datasets) for one in places)
    refuse_repetition([one.at("name") for one in places], [one.name for one in found], "name")
    return found


def _comparison(place: Place, kernels: Collection[str], datasets: Collection[str]) -> Comparison:
    keys = table(place, ("name", "kernels", "datasets"))
    compared = texts(keys["kernels"], kernels, "kernel")
    if len(compared) < 3:
        raise keys["kernels"].error("a Friedman test needs at least three kernels; two are compared in [[pairs]]")
    over = texts(keys["datasets"], datasets, "data set")
    if len(over) < 2:
        raise keys["datasets"].error("a Friedman test needs at least two data sets")
    return Comparison(text(keys["name"]), compared, over)


def _pairs(
    place: Place, kernels: Collection[str], datasets: Collection[str]
) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    pairs = []
    for one in elements(place):
        keys = table(one, ("kernel", "baseline", "datasets"))
        kernel, baseline = (known_name(keys[key], kernels, "kernel") for key in ("kernel", "baseline"))
        if kernel == baseline:
            raise keys["baseline"].error(f"{kernel!r} is compared with itself")
        pairs.append((kernel, baseline, texts(keys["datasets"], datasets, "data set")))
    return tuple(pairs)


# -------------------------------------------------------------------- one entry

_OF_A_PART = ("parameters", "attributes")
_CHOICE = ("kernel", "sum", "grid", *_OF_A_PART)


def _entry(place: Place, datasets: Collection[str]) -> Entry:
    keys = table(place, ("name",), (*_CHOICE, "choices", "timed", "note", "published", "fitted_on"))
    name = text(keys["name"])
    if name != name.strip() or not name.isprintable():
        raise keys["name"].error(f"a name is one line without blanks at its ends, got {name!r}")
    if "choices" in keys:
        if misplaced := next((key for key in _CHOICE if key in keys), None):
            raise keys[misplaced].error(f"{misplaced!r} does not go with 'choices'; say it in each [[kernels.choices]]")
        choices = tuple(_choice(one, table(one, (), _CHOICE)) for one in elements(keys["choices"]))
    else:
        choices = (_choice(place, keys),)
    timed = [part.kernel for part in choices[0].parts or choices[:1]]
    return Entry(
        name=name,
        choices=choices,
        timed={key: read_parameter(timed, value) for key, value in _given_entries(keys, "timed").items()},
        note=_given(keys, "note", text, "").strip(),
        published=_given(keys, "published", partial(_published, datasets=datasets), Published()),
        fitted_on=_given(keys, "fitted_on", _fitted_on, ""),
    )


def _choice(place: Place, keys: Mapping[str, Place]) -> Choice:
    """One kernel, or a sum of several, with the grid that is selected from."""
    if ("kernel" in keys) == ("sum" in keys):
        raise place.error("one of 'kernel', 'sum' and 'choices' must be here, and only one")
    if "kernel" in keys:
        part = _part(keys)
        return replace(part, grid=_grid(keys, [part]))
    if misplaced := next((key for key in _OF_A_PART if key in keys), None):
        raise keys[misplaced].error(f"{misplaced!r} does not go with 'sum'; say it in each part of the sum")
    parts = tuple(_part(table(one, ("kernel",), _OF_A_PART)) for one in elements(keys["sum"]))
    if len(parts) < 2:
        raise keys["sum"].error("a sum has at least two parts")
    return Choice("sum", grid=_grid(keys, parts), parts=parts)


def _part(keys: Mapping[str, Place]) -> Choice:
    kernel = known_name(keys["kernel"], KERNELS, "kernel")
    found = _given_entries(keys, "parameters")
    parameters = {key: read_parameter([kernel], value) for key, value in found.items()}
    if needs_seed(kernel) and "random_state" not in parameters:
        raise keys["kernel"].error(f"{kernel!r} draws random numbers; fix them: parameters = {{ random_state = 0 }}")
    return Choice(kernel, parameters, attributes=_given(keys, "attributes", read_transformations, ()))


def _grid(keys: Mapping[str, Place], parts: Sequence[Choice]) -> dict[str, tuple[Any, ...]]:
    """Lists of values, each of which every part can take."""
    grid = {}
    for key, place in _given_entries(keys, "grid").items():
        if any(key in part.parameters for part in parts):
            raise place.error(f"{key!r} is both fixed in 'parameters' and listed in 'grid'")
        found = elements(place)
        grid[key] = tuple(read_parameter([part.kernel for part in parts], one) for one in found)
        refuse_repetition(found, grid[key], "value")
    return grid


def _published(place: Place, datasets: Collection[str]) -> Published:
    keys = table(place, (), ("accuracy", "deviation", "seconds"))

    def numbers(key: str, read: Callable[[Place], Read]) -> dict[str, Read]:
        return _given(keys, key, partial(_by_dataset, datasets=datasets, read=read), {})

    accuracy = numbers("accuracy", _accuracy)
    deviation = numbers("deviation", partial(number, least=0.0))
    for name in deviation:
        if not isinstance(accuracy.get(name), float):
            raise keys["deviation"].at(name).error(f"a deviation for {name!r}, and no accuracy that it belongs to")
    return Published(accuracy, deviation, numbers("seconds", partial(number, above=0.0)))


def _accuracy(place: Place) -> float | str:
    """Percent, or the words that stand in a number's place."""
    return text(place) if isinstance(place.value, str) else number(place, least=0.0, most=100.0)
