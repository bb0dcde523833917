"""Data sets of a study: checked before anything runs, and told apart by a digest."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from treegram._core.errors import StudyError
from treegram._core.text import counted, listed
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.models.crossval import check_targets, encode_classes, seed_of
from treegram.models.model import check_numbers
from treegram.study.controls import apply_control
from treegram.study.protocol import Protocol
from treegram.study.records import DatasetFacts
from treegram.study.store import Store

__all__ = ["CheckedData", "check_data", "refuse_other_data"]

_MOST_NAMED = 5  # classes in a warning


@dataclass(frozen=True)
class CheckedData:
    """A data set that can be cross-validated, with what a report says of it."""

    name: str
    graphs: Graphs
    targets: Any  # positions of the graphs' classes among the sorted classes, or numbers
    facts: DatasetFacts


def check_data(data: Mapping[str, tuple[Graphs, Any]], protocol: Protocol) -> list[CheckedData]:
    """The data sets, each hashed; a `StudyError` names the first one that cannot be cross-validated."""
    return [_check_one(name, graphs, y, protocol) for name, (graphs, y) in data.items()]


def _check_one(name: str, graphs: Graphs, y: Any, protocol: Protocol) -> CheckedData:
    if y is None:
        raise StudyError(f"{name} has no targets; a study needs a class or a number for each graph.")
    try:
        targets = check_targets(y)
        if len(targets) != len(graphs):
            raise ValueError(f"There are {counted(len(graphs), 'graph')}, but {counted(len(targets), 'target')}.")
        seed = seed_of(protocol.seed, name, protocol.control)
        graphs, targets = apply_control(protocol.control, name, graphs, targets, seed)
        if protocol.target == "numbers":
            return _with_numbers(name, graphs, check_numbers(targets), protocol)
        return _with_classes(name, graphs, targets, protocol)
    except ValueError as error:
        raise StudyError(f"{name}: {error}") from error


def _with_numbers(name: str, graphs: Graphs, numbers: Floats, protocol: Protocol) -> CheckedData:
    if not can_be_split(len(numbers), protocol.outer_folds, protocol.inner_folds):
        raise ValueError(f"There are too few graphs, {len(numbers)}, for {_folds(protocol)}. {_advise(len(numbers))}")
    deviation = float(numbers.std())
    if not deviation:
        raise ValueError(f"All targets are {numbers[0]:g}: there is nothing to learn.")
    mean = float(numbers.mean())
    known = {
        "lowest": float(numbers.min()),
        "highest": float(numbers.max()),
        "mean": mean,
        "deviation": deviation,
        "mean_error": float(np.abs(numbers - mean).mean()),
    }
    return CheckedData(name, graphs, numbers, _facts(name, graphs, numbers, {}, known))


def _with_classes(name: str, graphs: Graphs, targets: NDArray[Any], protocol: Protocol) -> CheckedData:
    if type_of_target(targets).startswith("continuous"):
        raise ValueError(
            'The targets are numbers, not classes. Use --task numbers, or target = "numbers" in the [protocol] of a study.'
        )
    graphs, targets = _without_small_classes(name, graphs, targets, protocol.min_class_size)
    classes, codes = encode_classes(targets)
    counts = np.bincount(codes)
    if not can_be_split(int(counts.max()), protocol.outer_folds, protocol.inner_folds):
        raise ValueError(
            f"The largest class, {classes[counts.argmax()]!s}, has {counted(int(counts.max()), 'graph')}, too few for "
            f"{_folds(protocol)}. {_advise(int(counts.max()))}"
        )
    _warn_of_rare_classes(name, classes, counts, protocol)
    by_class = {str(one): int(count) for one, count in zip(classes, counts, strict=True)}
    return CheckedData(name, graphs, codes, _facts(name, graphs, codes, by_class, {}))


# -------------------------------------------------------------------- enough graphs for the folds


def can_be_split(n_graphs: int, n_outer: int, n_inner: int) -> bool:
    """Whether so many graphs of a class reach every outer fold, and every inner fold within its training part."""
    return n_graphs >= n_outer and n_graphs - -(-n_graphs // n_outer) >= n_inner


def _folds(protocol: Protocol) -> str:
    return f"{protocol.outer_folds} outer and {protocol.inner_folds} inner folds"


def _advise(n_graphs: int) -> str:
    """The largest number of folds that so many graphs allow."""
    folds = next((n for n in range(min(n_graphs, 10), 1, -1) if can_be_split(n_graphs, n, n)), None)
    return f"Use fewer folds, {folds} at most." if folds else "No number of folds would do: more graphs are needed."


def _without_small_classes(name: str, graphs: Graphs, targets: NDArray[Any], least: int) -> tuple[Graphs, NDArray[Any]]:
    """The graphs of classes that have at least so many; a warning says which are left out."""
    classes, codes, counts = np.unique(targets, return_inverse=True, return_counts=True)
    is_small = counts < least
    if not is_small.any():
        return graphs, targets
    if (~is_small).sum() < 2:
        raise ValueError(
            f"Fewer than two classes have {least} graphs or more, which min_class_size asks for; the largest has {counts.max()}."
        )
    warnings.warn(
        f"{name}: {_named(classes[is_small], counts[is_small])} left out, fewer than {least} graphs (min_class_size).",
        stacklevel=6,
    )
    kept = np.flatnonzero(~is_small[codes])
    return graphs[kept], targets[kept]


def _warn_of_rare_classes(name: str, classes: NDArray[Any], counts: Ints, protocol: Protocol) -> None:
    enough = next(n for n in range(2, 2**31) if can_be_split(n, protocol.outer_folds, protocol.inner_folds))
    is_rare = counts < enough
    if is_rare.any():
        warnings.warn(
            f"{name}: {_named(classes[is_rare], counts[is_rare])} too few for {_folds(protocol)}: some folds test or train "
            f"without any. To leave out such classes, use --min-class-size {enough}, or min_class_size = {enough} in the "
            "[protocol] of a study.",
            stacklevel=6,
        )


def _named(classes: NDArray[Any], counts: Ints) -> str:
    """``class 7 (3 graphs) is`` or ``classes 7 (3 graphs) and 9 (1 graph) are``."""
    if len(classes) > _MOST_NAMED:
        return f"{len(classes)} classes ({counted(int(counts.sum()), 'graph')} together) are"
    named = [f"{one!s} ({counted(int(count), 'graph')})" for one, count in zip(classes, counts, strict=True)]
    return f"class {named[0]} is" if len(named) == 1 else f"classes {listed(named)} are"


# -------------------------------------------------------------------- what a store says of a data set


def _facts(
    name: str, graphs: Graphs, targets: Ints | Floats, class_counts: dict[str, int], numbers: dict[str, float]
) -> DatasetFacts:
    return DatasetFacts(
        name=name,
        n_graphs=len(graphs),
        class_counts=class_counts,
        mean_nodes=graphs.n_nodes / len(graphs),
        mean_edges=graphs.n_edges / len(graphs),
        n_attributes=graphs.n_attributes,
        digest=_digest(graphs, targets),
        numbers=numbers,
    )


def _digest(graphs: Graphs, targets: Ints | Floats) -> str:
    """SHA-256 of every array and label of the graphs, and of their targets."""
    digest = hashlib.sha256()
    parts = {field.name: getattr(graphs, field.name) for field in fields(graphs)} | {"targets": targets}
    for name, value in parts.items():
        if isinstance(value, np.ndarray):
            digest.update(f"{name} {value.dtype.str} {value.shape}".encode() + value.tobytes())
        else:
            digest.update(f"{name} {value}".encode())
    return digest.hexdigest()


def refuse_other_data(data: Sequence[CheckedData], store: Store) -> None:
    """Raise if the store has results for a data set of the same name that is another one."""
    known = {facts.name: asdict(facts) for facts in store.datasets()}
    used = {row.dataset for row in store.rows()} if known else set()
    for one in data:
        now, then = asdict(one.facts), known.get(one.name, asdict(one.facts))
        if one.name in used and now != then:
            changed = [key for key in now if now[key] != then[key] and key != "digest"]
            changes = ", ".join(f"{key} is {now[key]} and was {then[key]}" for key in changed)
            raise StudyError(
                f"{one.name} is not the data set that {store.path} has results for: "
                f"{changes or 'as many graphs of the same sizes, but other edges, labels, vectors or targets'}. "
                "Use another store."
            )
