"""Load, check and change the data sets of a study; a digest identifies each.

A **control** changes a data set once, by a seed that follows from the study's, to show what scores depend on: all kernels and
repeats see the same change.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from treegram._core.errors import StudyError
from treegram._core.text import counted, listed
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.kernels import WL, FeatureMap
from treegram.models.base import check_numbers
from treegram.models.crossval import check_targets, encode_classes, seed_of
from treegram.study.protocol import Protocol
from treegram.study.store import DatasetFacts, Store

__all__ = ["CheckedData", "apply_control", "check_data", "first_twins", "refuse_other_data"]

_MOST_NAMED = 5  # classes in a warning
_ROUNDS = 4  # of Weisfeiler-Lehman, by which twins are found
_HASHED = (  # fields of Graphs, in an order that must not change: stores keep the digest
    "offsets", "indptr", "indices", "labels", "label_values", "attributes", "edge_labels", "edge_label_values", "directed",
    "targets", "edge_attributes",
)  # fmt: skip


@dataclass(frozen=True)
class CheckedData:
    """A data set that can be cross-validated, with its properties for the report."""

    name: str
    graphs: Graphs
    targets: Any  # positions of the graphs' classes among the sorted classes, or numbers
    facts: DatasetFacts


def check_data(data: Mapping[str, tuple[Graphs, Any]], protocol: Protocol) -> list[CheckedData]:
    """Check and hash the data sets; a `StudyError` names the first one that cannot be cross-validated."""
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
        if protocol.task == "regression":
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
            'The targets are numbers, not classes. Use --task regression, or task = "regression" in the [protocol] of a study.'
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
    """Return whether n graphs of a class reach every outer fold, and every inner fold within its training graphs."""
    return n_graphs >= n_outer and n_graphs - -(-n_graphs // n_outer) >= n_inner


def _folds(protocol: Protocol) -> str:
    return f"{protocol.outer_folds} outer and {protocol.inner_folds} inner folds"


def _advise(n_graphs: int) -> str:
    """Advise the largest number of folds that n graphs allow."""
    folds = next((n for n in range(min(n_graphs, 10), 1, -1) if can_be_split(n_graphs, n, n)), None)
    return f"Use fewer folds, {folds} at most." if folds else "No number of folds works: more graphs are needed."


def _without_small_classes(name: str, graphs: Graphs, targets: NDArray[Any], least: int) -> tuple[Graphs, NDArray[Any]]:
    """Return the graphs of classes with at least ``least`` graphs; a warning names the classes left out."""
    classes, codes, counts = np.unique(targets, return_inverse=True, return_counts=True)
    is_small = counts < least
    if not is_small.any():
        return graphs, targets
    if (~is_small).sum() < 2:
        raise ValueError(
            f"Fewer than two classes have {least} graphs or more, as min_class_size requires; the largest has {counts.max()}."
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
    """Return ``class 7 (3 graphs) is`` or ``classes 7 (3 graphs) and 9 (1 graph) are``."""
    if len(classes) > _MOST_NAMED:
        return f"{len(classes)} classes ({counted(int(counts.sum()), 'graph')} together) are"
    named = [f"{one!s} ({counted(int(count), 'graph')})" for one, count in zip(classes, counts, strict=True)]
    return f"class {named[0]} is" if len(named) == 1 else f"classes {listed(named)} are"


# -------------------------------------------------------------------- identity


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
        targets=numbers,
    )


def _digest(graphs: Graphs, targets: Ints | Floats) -> str:
    """Return the SHA-256 of every array and label of the graphs, and of their targets."""
    digest = hashlib.sha256()
    for name in _HASHED:
        value = targets if name == "targets" else getattr(graphs, name)
        if isinstance(value, np.ndarray):
            digest.update(f"{name} {value.dtype.str} {value.shape}".encode() + value.tobytes())
        else:
            digest.update(f"{name} {value}".encode())
    return digest.hexdigest()


def refuse_other_data(data: Sequence[CheckedData], store: Store) -> None:
    """Raise if the store has results for a different data set of the same name."""
    known = {facts.name: asdict(facts) for facts in store.datasets()}
    used = {row.dataset for row in store.rows()} if known else set()
    for one in data:
        now, then = asdict(one.facts), known.get(one.name, asdict(one.facts))
        if one.name in used and now != then:
            changed = [key for key in now if now[key] != then[key] and key != "digest"]
            changes = ", ".join(f"{key} is {now[key]} and was {then[key]}" for key in changed)
            raise StudyError(
                f"{one.name} is not the data set that {store.path} has results for: "
                f"{changes or 'graphs of the same number and size, but with other edges, labels, vectors or targets'}. "
                "Use another store."
            )


# -------------------------------------------------------------------- controls


def apply_control(control: str, name: str, graphs: Graphs, targets: Any, seed: int) -> tuple[Graphs, Any]:
    """Return the data set after the control of this name; an empty name changes nothing."""
    return _CHANGES[control](name, graphs, targets, np.random.default_rng(seed)) if control else (graphs, targets)


def _permute_targets(_: str, graphs: Graphs, targets: Any, rng: np.random.Generator) -> tuple[Graphs, Any]:
    return graphs, targets[rng.permutation(len(targets))]


def _permute_vectors(_: str, graphs: Graphs, targets: Any, rng: np.random.Generator) -> tuple[Graphs, Any]:
    vectors = _vectors(graphs, 1, "permuted-vectors")
    return replace(graphs, attributes=vectors[rng.permutation(len(vectors))]), targets


def _rotate(_: str, graphs: Graphs, targets: Any, rng: np.random.Generator) -> tuple[Graphs, Any]:
    """Rotate the vectors of each graph about their mean, by a rotation that is uniform among all."""
    vectors = _vectors(graphs, 2, "rotated").copy()
    for start, end in zip(graphs.offsets[:-1], graphs.offsets[1:], strict=True):
        if end > start:
            center = vectors[start:end].mean(axis=0)
            vectors[start:end] = (vectors[start:end] - center) @ _rotation(vectors.shape[1], rng) + center
    return replace(graphs, attributes=vectors), targets


def _rotation(d: int, rng: np.random.Generator) -> Any:
    """Return an orthogonal matrix with determinant 1: a QR decomposition made unique, one column negated if it reflects."""
    Q, R = np.linalg.qr(rng.normal(size=(d, d)))
    Q = Q * np.sign(R.diagonal())
    Q[:, 0] *= np.sign(np.linalg.det(Q))
    return Q


def _leave_out_twins(name: str, graphs: Graphs, targets: Any, _: np.random.Generator) -> tuple[Graphs, Any]:
    first = first_twins(graphs)
    kept = np.flatnonzero(first == np.arange(len(graphs)))
    n_others = int((targets != targets[first]).sum())
    warnings.warn(
        f"{name}: {counted(len(graphs) - len(kept), 'graph')} of {len(graphs)} left out, each equal to an earlier one; "
        f"{n_others} of these had another target.",
        stacklevel=7,
    )
    return graphs[kept], targets[kept]


def first_twins(graphs: Graphs) -> Ints:
    """Return for each graph the first one that equals it in labels, vectors and edges, up to the order of nodes.

    Graphs are equal if the Weisfeiler-Lehman test on labels and exact vectors does not distinguish them; edge labels are
    ignored.
    """
    codes = _node_codes(graphs)
    colored = replace(graphs, labels=codes, label_values=tuple(range(int(codes.max(initial=-1)) + 1)))
    colored = colored.assign(attributes=None)
    rows = FeatureMap(WL(n_iterations=_ROUNDS, normalize=False)).fit_transform(colored).tocsr()
    rows.sort_indices()
    seen: dict[tuple[bytes, bytes], int] = {}
    first = []
    for i, (start, end) in enumerate(zip(rows.indptr[:-1], rows.indptr[1:], strict=True)):
        key = rows.indices[start:end].tobytes(), rows.data[start:end].tobytes()
        first.append(seen.setdefault(key, i))
    return np.array(first, dtype=np.int64)


def _node_codes(graphs: Graphs) -> Ints:
    """Return an integer for each distinct pair of label and vector."""
    labels = np.zeros(graphs.n_nodes) if graphs.labels is None else graphs.labels
    vectors = np.zeros((graphs.n_nodes, 0)) if graphs.attributes is None else np.asarray(graphs.attributes)
    table = np.column_stack([labels, vectors])
    return np.unique(table, axis=0, return_inverse=True)[1].astype(np.int64).ravel()


def _vectors(graphs: Graphs, least: int, control: str) -> Any:
    if graphs.n_attributes < least:
        raise ValueError(
            f"The control {control} needs graphs with {counted(least, 'attribute')} or more; these have {graphs.n_attributes}."
        )
    return np.asarray(graphs.attributes)


_CHANGES: dict[str, Callable[[str, Graphs, Any, np.random.Generator], tuple[Graphs, Any]]] = {
    "permuted-targets": _permute_targets,
    "permuted-vectors": _permute_vectors,
    "rotated": _rotate,
    "without-twins": _leave_out_twins,
}
