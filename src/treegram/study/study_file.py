"""A study as a TOML file, all of which is checked when it is read: a mistake is an error with its line.

The files in ``papers/`` are the reference for the format; every key is explained in ``papers/paper.toml``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from treegram._core.errors import StudyError
from treegram._core.text import suggest
from treegram.study.protocol import (
    BASELINES,
    CONTROLS,
    Candidate,
    Comparison,
    Pair,
    Protocol,
    Published,
    Study,
    StudyEntry,
)
from treegram.study.toml import (
    MAX_BYTES,
    Item,
    any_keys,
    elements,
    integer,
    known_keys,
    known_name,
    number,
    plain,
    printable_name,
    read_toml,
    refuse_repetition,
    text,
    texts,
)

__all__ = ["parse_stored_study", "parse_study", "read_study", "shipped_studies"]

Read = TypeVar("Read")
Default = TypeVar("Default")


@dataclass(frozen=True)
class _Vocabulary:
    """How a file's kernels, baselines, parameters and transformations are read: any of the right form, unless told otherwise."""

    kernel: Callable[[Item], str] = printable_name
    baseline: Callable[[Item], str] = printable_name
    parameter: Callable[[Sequence[str], Item], Any] = lambda _kernels, item: plain(item)
    transformations: Callable[[Item], tuple[str, ...]] = lambda item: tuple(map(printable_name, elements(item)))


def shipped_studies() -> tuple[str, ...]:
    """Names of the studies that come with the package."""
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
        If anything in the file is wrong; the message begins with the file and the line.
    """
    if isinstance(study, str) and study in shipped_studies():
        file = resources.files("treegram.study").joinpath("papers", f"{study}.toml")
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
            f"with the package: {', '.join(names)}{suggest(str(study), names)}"
        ) from None
    return parse_study(path.stem, content, str(path))


def parse_study(name: str, content: bytes, file: str) -> Study:
    """A study from the content of its file, to run it; ``file`` is what errors call it."""
    from treegram.kernels.registry import AUTO, KERNELS
    from treegram.study.parameters import read_parameter, read_transformations

    kernel = partial(known_name, known=[*KERNELS, AUTO], what="kernel")
    baseline = partial(known_name, known=BASELINES, what="baseline")
    vocabulary = _Vocabulary(kernel, baseline, read_parameter, read_transformations)
    return _study(name, read_toml(file, content), vocabulary, content.decode())


def parse_stored_study(name: str, content: bytes, file: str) -> Study:
    """A study from a store, to read its results; kernels and parameters need not be among those of this version."""
    return _study(name, read_toml(file, content), _Vocabulary(), content.decode())


# -------------------------------------------------------------------- all but the entries


def _optional(keys: Mapping[str, Item], key: str, read: Callable[[Item], Read], default: Default) -> Read | Default:
    return read(keys[key]) if key in keys else default


def _optional_keys(keys: Mapping[str, Item], key: str) -> dict[str, Item]:
    return any_keys(keys[key]) if key in keys else {}


def _study(name: str, root: Item, vocabulary: _Vocabulary, source: str) -> Study:
    optional = ("about", "reference", "remarks", "dataset_notes", "protocol", "comparisons", "pairs")
    keys = known_keys(root, ("title", "datasets", "kernels"), optional)
    datasets = _names(keys["datasets"])
    items = elements(keys["kernels"])
    rows = tuple(_entry(item, datasets, vocabulary) for item in items)
    names = [row.name for row in rows]
    refuse_repetition([item.at("name") for item in items], names, "name")
    protocol = _optional(keys, "protocol", partial(_protocol, datasets=datasets), Protocol())
    for item, row in zip(items, rows, strict=True):
        if protocol.target == "numbers" and row.published.accuracy:
            raise item.at("published").error('published accuracies do not go with target = "numbers"')
        if protocol.target == "numbers" and row.baseline:
            raise item.at("baseline").error('baselines predict classes, and do not go with target = "numbers"')
    comparisons = _optional(keys, "comparisons", partial(_comparisons, kernels=names, datasets=datasets), ())
    return Study(
        name=name,
        title=text(keys["title"]),
        datasets=datasets,
        entries=rows,
        protocol=protocol,
        about=_optional(keys, "about", text, "").strip(),
        reference=_optional(keys, "reference", text, "").strip(),
        remarks=_optional(keys, "remarks", texts, ()),
        comparisons=comparisons,
        pairs=_optional(keys, "pairs", partial(_pairs, kernels=names, datasets=datasets), ()),
        dataset_notes=_optional(keys, "dataset_notes", partial(_by_dataset, datasets=datasets, read=text), {}),
        text=source,
    )


def _protocol(item: Item, datasets: Collection[str]) -> Protocol:
    default = Protocol()
    keys = known_keys(item, (), tuple(field.name for field in fields(Protocol)))
    target = _optional(
        keys, "target", partial(known_name, known=("classes", "numbers"), what="kind of target"), default.target
    )
    for key in ("alpha",) if target == "classes" else ("C", "min_class_size"):
        if key in keys:
            raise keys[key].error(f'{key!r} does not go with target = "{target}"')
    return Protocol(
        repeats=_optional(keys, "repeats", partial(integer, least=1), default.repeats),
        outer_folds=_optional(keys, "outer_folds", partial(integer, least=2), default.outer_folds),
        inner_folds=_optional(keys, "inner_folds", partial(integer, least=2), default.inner_folds),
        seed=_optional(keys, "seed", partial(integer, least=0, most=2**32 - 1), default.seed),
        C=_optional(keys, "C", _strengths, default.C),
        fitted_on=_optional(keys, "fitted_on", _fitted_on, default.fitted_on),
        target=target,
        alpha=_optional(keys, "alpha", _strengths, default.alpha),
        min_class_size=_optional(keys, "min_class_size", partial(integer, least=1), default.min_class_size),
        control=_optional(keys, "control", partial(known_name, known=CONTROLS, what="control"), default.control),
        repeats_on=_optional(
            keys, "repeats_on", partial(_by_dataset, datasets=datasets, read=partial(integer, least=1)), {}
        ),
    )


def _fitted_on(item: Item) -> str:
    return known_name(item, ("training", "all"), "choice")


def _strengths(item: Item) -> tuple[float, ...]:
    found = elements(item)
    values = tuple(number(one, above=0.0) for one in found)
    refuse_repetition(found, values, "value")
    return values


def _names(item: Item) -> tuple[str, ...]:
    """Names of data sets: folds and rows follow from them, so they must not depend on where the data is."""
    names = texts(item, what="data set")
    for one in elements(item):
        name = printable_name(one)
        if name in (".", "..") or {"/", "\\"} & set(name):
            raise one.error(
                f"{name!r} is not the name of a data set; give the name of its folder, which is looked for beside this file "
                "and in the folder that --data-dir names"
            )
    return names


def _by_dataset(item: Item, datasets: Collection[str], read: Callable[[Item], Read]) -> dict[str, Read]:
    found = any_keys(item)
    for name, value in found.items():
        if name not in datasets:
            raise value.error(
                f"unknown data set {name!r}{suggest(name, datasets)} (the study has {', '.join(datasets)})"
            )
    return {name: read(value) for name, value in found.items()}


def _comparisons(item: Item, kernels: Collection[str], datasets: Collection[str]) -> tuple[Comparison, ...]:
    items = elements(item)
    found = tuple(_comparison(one, kernels, datasets) for one in items)
    refuse_repetition([one.at("name") for one in items], [one.name for one in found], "name")
    return found


def _comparison(item: Item, kernels: Collection[str], datasets: Collection[str]) -> Comparison:
    keys = known_keys(item, ("name", "kernels", "datasets"))
    compared = texts(keys["kernels"], kernels, "kernel")
    if len(compared) < 3:
        raise keys["kernels"].error("a Friedman test needs at least three kernels; two are compared in [[pairs]]")
    over = texts(keys["datasets"], datasets, "data set")
    if len(over) < 2:
        raise keys["datasets"].error("a Friedman test needs at least two data sets")
    return Comparison(text(keys["name"]), compared, over)


def _pairs(item: Item, kernels: Collection[str], datasets: Collection[str]) -> tuple[Pair, ...]:
    pairs = []
    for one in elements(item):
        keys = known_keys(one, ("kernel", "baseline", "datasets"))
        kernel, baseline = known_name(keys["kernel"], kernels, "kernel"), keys["baseline"]
        several = isinstance(baseline.value, list)
        rivals = texts(baseline, kernels, "kernel") if several else (known_name(baseline, kernels, "kernel"),)
        if kernel in rivals:
            raise baseline.error(f"{kernel!r} is compared with itself")
        pairs.append(Pair(kernel, rivals, texts(keys["datasets"], datasets, "data set")))
    return tuple(pairs)


# -------------------------------------------------------------------- one entry

_SUMMAND = ("parameters", "attributes")
_CANDIDATE = ("kernel", "sum", "grid", *_SUMMAND)
_OF_KERNELS = (*_CANDIDATE, "choices", "timed", "fitted_on", "redraw")


def _entry(item: Item, datasets: Collection[str], vocabulary: _Vocabulary) -> StudyEntry:
    optional = (
        *(*_CANDIDATE, "choices", "baseline", "timed"),
        *("note", "published", "fitted_on", "datasets", "repeats", "redraw"),
    )
    keys = known_keys(item, ("name",), optional)
    if "baseline" in keys and (misplaced := next((key for key in _OF_KERNELS if key in keys), None)):
        raise keys[misplaced].error(f"{misplaced!r} does not go with 'baseline', which chooses by itself")
    candidates = () if "baseline" in keys else _candidates(item, keys, vocabulary)
    if any("auto" in (part.kernel for part in (one, *one.summands)) for one in candidates) and (
        candidates != (Candidate("auto"),) or {"timed", "fitted_on", "redraw"} & keys.keys()
    ):
        raise item.error("the kernel 'auto' goes alone: it has candidates of its own, fitted on training graphs")
    timed = [part.kernel for one in candidates[:1] for part in one.summands or (one,)]
    return StudyEntry(
        name=printable_name(keys["name"]),
        candidates=candidates,
        timed={key: vocabulary.parameter(timed, value) for key, value in _optional_keys(keys, "timed").items()},
        note=_optional(keys, "note", text, "").strip(),
        published=_optional(keys, "published", partial(_published, datasets=datasets), Published()),
        fitted_on=_optional(keys, "fitted_on", _fitted_on, ""),
        datasets=_optional(keys, "datasets", partial(texts, known=datasets, what="data set"), ()),
        baseline=_optional(keys, "baseline", vocabulary.baseline, ""),
        repeats=_optional(keys, "repeats", partial(integer, least=1), None),
        redraw=_optional(keys, "redraw", partial(_redraw, candidates=candidates, vocabulary=vocabulary), default=False),
    )


def _redraw(item: Item, candidates: Sequence[Candidate], vocabulary: _Vocabulary) -> bool:
    """True, of kernels that all draw random numbers, and leave the seed to the repeats."""
    if item.value is not True:
        raise item.error(f"'redraw' can only be true, got {item.value!r}; leave it out")
    for part in (part for one in candidates for part in one.summands or (one,)):
        if "random_state" in part.parameters:
            raise item.error("'random_state' is given, and 'redraw' sets it; leave out one of them")
        vocabulary.parameter([part.kernel], Item(item.file, item.lines, (*item.path, "random_state"), 0))
    return True


def _candidates(item: Item, keys: Mapping[str, Item], vocabulary: _Vocabulary) -> tuple[Candidate, ...]:
    """What inner cross-validation chooses from: the entry's one kernel or sum, or its choices."""
    if "choices" not in keys:
        return (_candidate(item, keys, vocabulary),)
    if misplaced := next((key for key in _CANDIDATE if key in keys), None):
        raise keys[misplaced].error(f"{misplaced!r} does not go with 'choices'; say it in each [[kernels.choices]]")
    return tuple(_candidate(one, known_keys(one, (), _CANDIDATE), vocabulary) for one in elements(keys["choices"]))


def _candidate(item: Item, keys: Mapping[str, Item], vocabulary: _Vocabulary) -> Candidate:
    """One kernel, or a sum of several, with the grid that is selected from."""
    if ("kernel" in keys) == ("sum" in keys):
        raise item.error("one of 'kernel', 'sum', 'choices' and 'baseline' must be here, and only one")
    if "kernel" in keys:
        kernel = _summand(keys, vocabulary)
        return replace(kernel, grid=_grid(keys, [kernel], vocabulary))
    if misplaced := next((key for key in _SUMMAND if key in keys), None):
        raise keys[misplaced].error(f"{misplaced!r} does not go with 'sum'; say it in each part of the sum")
    found = [known_keys(one, ("kernel",), _SUMMAND) for one in elements(keys["sum"])]
    if len(found) < 2:
        raise keys["sum"].error("a sum has at least two parts")
    summands = tuple(_summand(one, vocabulary) for one in found)
    return Candidate("sum", grid=_grid(keys, summands, vocabulary), summands=summands)


def _summand(keys: Mapping[str, Item], vocabulary: _Vocabulary) -> Candidate:
    kernel = vocabulary.kernel(keys["kernel"])
    found = _optional_keys(keys, "parameters")
    parameters = {key: vocabulary.parameter([kernel], value) for key, value in found.items()}
    return Candidate(kernel, parameters, attributes=_optional(keys, "attributes", vocabulary.transformations, ()))


def _grid(
    keys: Mapping[str, Item], summands: Sequence[Candidate], vocabulary: _Vocabulary
) -> dict[str, tuple[Any, ...]]:
    """Lists of values, each of which every summand can take."""
    grid = {}
    for key, item in _optional_keys(keys, "grid").items():
        if any(key in one.parameters for one in summands):
            raise item.error(f"{key!r} is both fixed in 'parameters' and listed in 'grid'")
        found = elements(item)
        grid[key] = tuple(vocabulary.parameter([one.kernel for one in summands], value) for value in found)
        refuse_repetition(found, grid[key], "value")
    return grid


def _published(item: Item, datasets: Collection[str]) -> Published:
    keys = known_keys(item, (), ("accuracy", "deviation", "seconds"))

    def numbers(key: str, read: Callable[[Item], Read]) -> dict[str, Read]:
        return _optional(keys, key, partial(_by_dataset, datasets=datasets, read=read), {})

    accuracy = numbers("accuracy", _accuracy)
    deviation = numbers("deviation", partial(number, least=0.0))
    for name in deviation:
        if not isinstance(accuracy.get(name), float):
            raise keys["deviation"].at(name).error(f"a deviation for {name!r}, but no accuracy")
    return Published(accuracy, deviation, numbers("seconds", partial(number, above=0.0)))


def _accuracy(item: Item) -> float | str:
    """Percent, or the words that stand in place of a number."""
    return text(item) if isinstance(item.value, str) else number(item, least=0.0, most=100.0)
