"""Write a collection in the TU text format, so that it reads back equal."""

from __future__ import annotations

import json
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
from treegram.graphs import Graphs

__all__ = ["save_tu"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
_LARGEST = 2**53  # the largest whole number that the reader accepts


def save_tu(graphs: Graphs, folder: str | os.PathLike[str], name: str | None = None) -> None:
    """Write a collection as a folder in the TU text format.

    :func:`load_tu` gives an equal collection back, numbers to the last bit. The format knows only whole numbers as labels:
    other labels and targets, such as strings, are written as numbers, with an additional file that names them.

    Parameters
    ----------
    graphs : Graphs
        The collection. Tuples of whole numbers become several columns of labels; whole targets become graph labels,
        other numbers graph attributes.
    folder : str or path-like
        The folder to create. It may exist if it is empty; its parent must exist.
    name : str, optional
        Name of the data set, the prefix of each file; by default that of the folder.

    Raises
    ------
    DatasetError
        If the folder is not empty or cannot be written, or if the format cannot hold the collection: without nodes,
        with a last graph that has neither nodes nor a target, or with vectors of length 0.

    See Also
    --------
    load_tu : Read a folder in this format.

    Notes
    -----
    Line ``i + 1`` of ``NAME_node_label_names.txt`` is the label with the number ``i`` in ``NAME_node_labels.txt``, as JSON:
    ``"C"``, ``2.5`` or ``["C", 1]`` for a tuple. ``NAME_edge_label_names.txt`` and ``NAME_graph_label_names.txt`` work the
    same way. Other readers of the format ignore these files. Numbers are assigned per folder, so the numbers of two folders
    cannot be compared.

    The format does not record whether edges are directed: load directed graphs with ``directed=True``.

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
        raise DatasetError(f"name must be letters, digits and _ . + -, and begin with a letter or digit; got {name!r}.")
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
            f"Graph {len(graphs) - 1}, the last one, has no node: without targets a TU folder cannot represent it."
        )
    for name, vectors in (("attributes", graphs.attributes), ("edge attributes", graphs.edge_attributes)):
        if vectors is not None and len(vectors) and not vectors.shape[1]:
            raise DatasetError(f"A TU folder cannot hold {name} of length 0.")


def _write_folder(goal: Path, files: dict[str, list[str]]) -> None:
    if goal.exists() and (not goal.is_dir() or any(goal.iterdir())):
        raise DatasetError(f"The folder {goal} exists and is not empty; nothing was written.")
    with scratch_folder(goal.parent) as work:
        (work / goal.name).mkdir()  # with default permissions; the scratch folder is private
        for file, lines in files.items():
            (work / goal.name / f"{file}.txt").write_bytes("".join(f"{line}\n" for line in lines).encode())
        if goal.exists():
            goal.rmdir()  # it is empty; renaming over it would fail on Windows
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
    """Format one line per row; repr gives the shortest digits that read back as the same double."""
    return [", ".join(map(repr, row)) for row in rows]


def _label_files(kind: str, codes: Ints, values: Sequence[Hashable]) -> dict[str, list[str]]:
    """Format the table of labels, and the file of names if the labels are not whole numbers."""
    used, numbers = np.unique(codes, return_inverse=True)
    labels: list[Any] = [values[code] for code in used]
    names = []
    if all(map(_is_whole, labels)):
        texts = list(map(str, labels))
    elif _are_rows(labels):
        texts = [", ".join(map(str, label)) for label in labels]
    else:
        texts, names = list(map(str, range(len(labels)))), list(map(json.dumps, labels))
    files = {f"{kind}s": [texts[number] for number in numbers.tolist()]}
    return files | ({f"{kind}_names": names} if names else {})


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and abs(value) <= _LARGEST


def _are_rows(labels: list[Any]) -> bool:
    """Return whether the labels are tuples of whole numbers, all of one length of at least 2."""
    if not all(isinstance(label, tuple) and all(map(_is_whole, label)) for label in labels):
        return False
    return len({len(label) for label in labels}) == 1 and len(labels[0]) > 1


def _target_files(targets: NDArray[Any]) -> dict[str, list[str]]:
    """Format the targets: whole numbers and strings are classes, other numbers are measured values."""
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
