"""Write a collection in the TU text format, so that it reads back equal; complete in its place or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import DatasetError
from treegram._core.files import scratch_folder
from treegram._core.types import Ints
from treegram.datasets.label_names import name_lines
from treegram.graphs import Graphs

__all__ = ["save_tu"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
_LARGEST = 2**53  # what the reader takes for a whole number


def save_tu(graphs: Graphs, folder: str | os.PathLike[str], name: str | None = None) -> None:
    """Write a collection as a folder in the TU text format.

    :func:`load_tu` gives an equal collection back, numbers to the last bit. The format knows whole numbers as labels:
    labels and targets that are strings or the like are written as numbers, and a file beside them says what the numbers
    stand for.

    Parameters
    ----------
    graphs : Graphs
        The collection. Tuples of whole numbers become several columns of labels; whole targets become graph labels,
        other numbers graph attributes.
    folder : str or path-like
        The folder to make. It may exist if it is empty; the folder around it must exist.
    name : str, optional
        Name of the data set, with which each file begins; by default that of the folder.

    Raises
    ------
    DatasetError
        If the folder is not empty or cannot be written, or if the format cannot hold the collection: without any
        node, with a last graph that has no node and no target, or with vectors of length 0.

    See Also
    --------
    load_tu : Read a folder in this format.

    Notes
    -----
    Labels that are not whole numbers are numbered in ``NAME_node_labels.txt``, and line ``i + 1`` of
    ``NAME_node_label_names.txt`` is the label with the number ``i``, as JSON: ``"C"``, ``2.5`` or ``["C", 1]`` for a tuple.
    ``NAME_edge_label_names.txt`` and ``NAME_graph_label_names.txt`` are alike. Other readers of the format take no notice
    of these files. Numbers are given anew in each folder, so only readers that know the names may compare two of them.

    Whether edges are directed is not written: load with ``directed=True`` what was directed.

    Examples
    --------
    >>> import tempfile
    >>> from treegram import Graphs, load_tu, save_tu
    >>> graphs = Graphs.from_edges([[(0, 1)], []], attributes=[[0.1, 1e-9], [7.0]], targets=[0.5, 2.5])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_tu(graphs, folder, name="TINY")
    ...     load_tu(folder)[0] == graphs
    True
    """
    goal = Path(folder).expanduser().absolute()
    name = goal.name if name is None else name
    if not _NAME.fullmatch(name):
        raise DatasetError(f"name must begin with a letter or digit and go on with these or _ . + -; got {name!r}.")
    _check_storable(graphs)
    files = _tables(graphs)
    try:
        _write_folder(goal, {f"{name}_{kind}": lines for kind, lines in files.items()})
    except OSError as error:
        raise DatasetError(f"The folder {goal} cannot be written ({error.strerror or error}).") from None


def _check_storable(graphs: Graphs) -> None:
    if not graphs.n_nodes:
        raise DatasetError(f"A TU folder cannot hold a collection without nodes; got {graphs!r}.")
    if graphs.targets is None and not graphs.sizes[-1]:
        raise DatasetError(
            f"Graph {len(graphs) - 1}, the last one, has no node: without targets a TU folder cannot show that it exists."
        )
    for name, vectors in (("attributes", graphs.attributes), ("edge attributes", graphs.edge_attributes)):
        if vectors is not None and len(vectors) and not vectors.shape[1]:
            raise DatasetError(f"A TU folder cannot hold {name} of length 0.")


def _write_folder(goal: Path, files: dict[str, list[str]]) -> None:
    if goal.exists() and (not goal.is_dir() or any(goal.iterdir())):
        raise DatasetError(f"The folder {goal} exists and is not empty; nothing was written.")
    with scratch_folder(goal.parent) as work:
        (work / goal.name).mkdir()  # a folder with the usual rights; the one for work is for its owner only
        for file, lines in files.items():
            (work / goal.name / f"{file}.txt").write_bytes("".join(f"{line}\n" for line in lines).encode())
        if goal.exists():
            goal.rmdir()  # it is empty; a rename over it would fail on Windows
        (work / goal.name).rename(goal)


# -------------------------------------------------------------------- the lines of each file


def _tables(graphs: Graphs) -> dict[str, list[str]]:
    sources = np.repeat(np.arange(graphs.n_nodes), graphs.degrees)
    pairs = np.stack([sources, graphs.indices], axis=1) + 1
    files = {"A": _join(pairs.tolist()), "graph_indicator": _join((graphs.graph_ids[:, None] + 1).tolist())}
    if graphs.labels is not None:
        files |= _label_files("node_label", graphs.labels, graphs.label_values)
    if graphs.edge_labels is not None:
        files |= _label_files("edge_label", graphs.edge_labels, graphs.edge_label_values)
    if graphs.attributes is not None:
        files["node_attributes"] = _join(graphs.attributes.tolist())
    if graphs.edge_attributes is not None:
        files["edge_attributes"] = _join(graphs.edge_attributes.tolist())
    if graphs.targets is not None:
        files |= _target_files(graphs.targets)
    return files


def _join(rows: Iterable[Sequence[float]]) -> list[str]:
    """One line per row; repr gives the shortest digits that read back as the same double."""
    return [", ".join(map(repr, row)) for row in rows]


def _label_files(kind: str, codes: Ints, values: Sequence[Hashable]) -> dict[str, list[str]]:
    """The table of labels, and that of their names where they are not what the reader makes of numbers."""
    used, numbers = np.unique(codes, return_inverse=True)
    labels: list[Any] = [values[code] for code in used]
    names = []
    if all(map(_is_whole, labels)):
        texts = list(map(str, labels))
    elif _are_rows(labels):
        texts = [", ".join(map(str, label)) for label in labels]
    else:
        texts, names = list(map(str, range(len(labels)))), name_lines(labels)
    files = {f"{kind}s": [texts[number] for number in numbers.tolist()]}
    return files | ({f"{kind}_names": names} if names else {})


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and abs(value) <= _LARGEST


def _are_rows(labels: list[Any]) -> bool:
    """Whether the labels are tuples of whole numbers, all of one length of at least 2."""
    if not all(isinstance(label, tuple) and all(map(_is_whole, label)) for label in labels):
        return False
    return len({len(label) for label in labels}) == 1 and len(labels[0]) > 1


def _target_files(targets: NDArray[Any]) -> dict[str, list[str]]:
    """Whole numbers and strings are classes, other numbers are measured values."""
    rows = targets[:, None] if targets.ndim == 1 else targets
    if rows.ndim != 2 or (targets.ndim == 2 and rows.shape[1] < 2):
        raise DatasetError(f"A TU folder cannot hold targets of shape {targets.shape}.")
    if rows.dtype.kind in "biu" and (not rows.size or int(np.abs(rows.astype(object)).max()) <= _LARGEST):
        return {"graph_labels": _join(rows.astype(np.int64).tolist())}
    if rows.dtype.kind == "f" and rows.dtype.itemsize <= 8 and np.isfinite(rows).all():
        return {"graph_attributes": _join(rows.astype(np.float64).tolist())}
    if targets.ndim == 1 and all(isinstance(target, str) and not target.endswith("\0") for target in targets.tolist()):
        classes, numbers = np.unique(targets.astype(object), return_inverse=True)
        return _label_files("graph_label", numbers, classes.tolist())
    raise DatasetError(
        f"A TU folder can hold targets that are whole numbers up to 2^53, finite numbers or strings; got {targets.dtype} {targets!r}."
    )
