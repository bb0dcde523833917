"""Check the data sets of a study, and split them; a digest identifies each.

**Groups** are sets of graphs that folds keep together.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold
from sklearn.utils.multiclass import type_of_target

from treegram._core.text import counted, listed
from treegram._core.types import Floats, Ints
from treegram.exceptions import StudyError
from treegram.graphs import Graphs
from treegram.graphs.digest import digest_graphs
from treegram.models.base import check_numbers, check_targets, encode_classes
from treegram.models.ridge import number_folds
from treegram.models.svc import folds
from treegram.study.protocol import Protocol
from treegram.study.store import DatasetFacts, Store

_MOST_NAMED = 5  # classes in a warning


# Graphs and targets, and the group of each graph if folds keep groups together.
Loaded = tuple[Graphs, Any] | tuple[Graphs, Any, Any]


@dataclass(frozen=True)
class CheckedData:
    """A data set that can be cross-validated, with its properties for the report."""

    name: str
    graphs: Graphs
    targets: Any  # positions among the sorted classes, or regression targets
    facts: DatasetFacts
    groups: Ints | None = None


def check_data(data: Mapping[str, Loaded], protocol: Protocol) -> list[CheckedData]:
    """Check and hash the data sets; a `StudyError` names the first one that cannot be cross-validated."""
    return [_check_set(name, *loaded, protocol=protocol) for name, loaded in data.items()]


def _check_set(name: str, graphs: Graphs, y: Any, groups: Any = None, *, protocol: Protocol) -> CheckedData:
    if y is None:
        raise StudyError(f"{name} has no targets; a study needs a class or a number for each graph.")
    try:
        targets, n = check_targets(y), len(graphs)
        if len(targets) != n:
            raise ValueError(f"There are {counted(n, 'graph')}, but {counted(len(targets), 'target')}.")
        codes = _check_groups(groups, n, protocol)
        numbers: dict[str, float] = {}
        class_counts: dict[str, int] = {}
        if protocol.task == "regression":
            targets, numbers = _check_regression(targets, protocol)
        else:
            kept = _in_large_classes(name, targets, protocol.min_class_size)
            if len(kept) < n:
                graphs, targets, codes = graphs[kept], targets[kept], None if codes is None else codes[kept]
            targets, class_counts = _check_classes(name, targets, protocol)
    except ValueError as error:
        raise StudyError(f"{name}: {error}") from error
    digest = digest_graphs(graphs.assign(targets=targets))
    facts = DatasetFacts(
        name=name,
        n_graphs=len(graphs),
        class_counts=class_counts,
        mean_nodes=graphs.n_nodes / len(graphs),
        mean_edges=graphs.n_edges / len(graphs),
        n_attributes=graphs.n_attributes,
        digest=digest if codes is None else hashlib.sha256(digest.encode() + codes.tobytes()).hexdigest(),
        targets=numbers,
    )
    return CheckedData(name, graphs, targets, facts, codes)


def _check_groups(groups: Any, n_graphs: int, protocol: Protocol) -> Ints | None:
    """Return the groups as numbers; raise if there are too few for the outer folds."""
    if not protocol.split and groups is None:
        return None
    if not protocol.split or groups is None:
        raise ValueError('Groups, as in (graphs, targets, groups), and split = "groups" or "scaffold" need each other.')
    if len(groups) != n_graphs:
        raise ValueError(f"There are {counted(n_graphs, 'graph')}, but groups of {len(groups)}.")
    names, codes = np.unique(np.asarray(groups), return_inverse=True)
    if len(names) < protocol.outer_folds:
        raise ValueError(
            f"The graphs have {counted(len(names), 'group')}, fewer than the {protocol.outer_folds} outer folds."
        )
    return codes.astype(np.int64)


def outer_folds(data: CheckedData, n_folds: int, seed: int) -> list[tuple[Ints, Ints]]:
    """Return the (training, test) ids of shuffled folds that are stratified by class and keep groups together."""
    is_regression = bool(data.facts.targets)
    if data.groups is None:
        return number_folds(len(data.targets), n_folds, seed) if is_regression else folds(data.targets, n_folds, seed)
    splitter = (GroupKFold if is_regression else StratifiedGroupKFold)(n_folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        parts = list(splitter.split(data.targets, data.targets, data.groups))
    return [(train.astype(np.int64), test.astype(np.int64)) for train, test in parts]


# -------------------------------------------------------------------- targets


def _check_regression(y: Any, protocol: Protocol) -> tuple[Floats, dict[str, float]]:
    """Return the regression targets, and their properties for the report."""
    numbers = check_numbers(y)
    if len(numbers) < _enough(protocol):
        raise ValueError(f"There are too few graphs, {len(numbers)}, for {_folds(protocol)}. Use fewer folds.")
    if not numbers.std():
        raise ValueError(f"All targets are {numbers[0]:g}: there is nothing to learn.")
    mean = float(numbers.mean())
    return numbers, {
        "lowest": float(numbers.min()),
        "highest": float(numbers.max()),
        "mean": mean,
        "deviation": float(numbers.std()),
        "mean_error": float(np.abs(numbers - mean).mean()),
    }


def _check_classes(name: str, y: Any, protocol: Protocol) -> tuple[Ints, dict[str, int]]:
    """Return the targets as positions of classes, and the size of each class; warn about rare ones."""
    classes, codes = encode_classes(y)
    counts, enough = np.bincount(codes), _enough(protocol)
    if counts.max() < enough:
        raise ValueError(
            f"The largest class, {classes[counts.argmax()]!s}, has {counted(int(counts.max()), 'graph')}, too few for "
            f"{_folds(protocol)}. Use fewer folds."
        )
    if (counts < enough).any():
        warnings.warn(
            f"{name}: {_named(classes[counts < enough])} too few graphs for {_folds(protocol)}: some folds test or train "
            f"without any. To leave out such classes, use --min-class-size {enough}, or min_class_size = {enough} in the "
            "[protocol] of a study.",
            stacklevel=5,
        )
    return codes, {str(name): int(count) for name, count in zip(classes, counts, strict=True)}


def _in_large_classes(name: str, targets: NDArray[Any], least: int) -> Ints:
    """Return the ids of graphs in classes with at least ``least`` graphs; warn about classes left out."""
    if type_of_target(targets).startswith("continuous"):
        raise ValueError(
            'The targets are numbers, not classes. Use --task regression, or task = "regression" in the [protocol] of a study.'
        )
    classes, codes, counts = np.unique(targets, return_inverse=True, return_counts=True)
    is_small = counts < least
    if is_small.any() and (~is_small).sum() < 2:
        raise ValueError(
            f"Fewer than two classes have {least} graphs or more, as min_class_size requires; the largest has {counts.max()}."
        )
    if is_small.any():
        text = f"{name}: {_named(classes[is_small])} fewer than {least} graphs and is left out (min_class_size)."
        warnings.warn(text, stacklevel=5)
    return np.flatnonzero(~is_small[codes])


def _named(classes: NDArray[Any]) -> str:
    """Return ``class 7 has``, or ``each of classes 7 and 9 has``."""
    if len(classes) > _MOST_NAMED:
        return f"each of {len(classes)} classes has"
    return (
        f"class {classes[0]!s} has" if len(classes) == 1 else f"each of classes {listed(list(map(str, classes)))} has"
    )


def _enough(protocol: Protocol) -> int:
    """Return how many graphs a class needs to be in every outer fold, and in every inner fold of its training graphs."""
    n_outer, n_inner = protocol.outer_folds, protocol.inner_folds
    return next(n for n in count(n_outer) if n - -(-n // n_outer) >= n_inner)


def _folds(protocol: Protocol) -> str:
    return f"{protocol.outer_folds} outer and {protocol.inner_folds} inner folds, which need {_enough(protocol)}"


# -------------------------------------------------------------------- identity


def refuse_other_data(data: Sequence[CheckedData], store: Store) -> None:
    """Raise if the store has results for a different data set of the same name."""
    stored = {facts.name: facts for facts in store.datasets()}
    with_results = {row.dataset for row in store.rows()} if stored else set()
    for dataset in data:
        now, then = asdict(dataset.facts), asdict(stored.get(dataset.name, dataset.facts))
        if dataset.name in with_results and now != then:
            changes = ", ".join(f"{key} is {now[key]} and was {then[key]}" for key in now if now[key] != then[key])
            raise StudyError(
                f"{dataset.name} is not the data set that {store.path} has results for: {changes}. Use another store."
            )
