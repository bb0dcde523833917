"""Files of molecules, record by record: SMILES (.smi), SDF (.sdf) and tables with a column of SMILES (.csv, .tsv).

Every record knows its file and line. A problem with one record is noted in it, so that the caller can skip it; a problem with
the file is a DatasetError.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import DatasetError
from treegram._core.optional import optional_module
from treegram._core.text import suggest

_DEFAULT_COLUMN = "smiles"
_NAME_COLUMNS = ("id", "name")
_MISSING = {"", "na", "n/a", "nan", "none", "null", "-", "?"}
_MOST_NAMES = 20  # in a message

import_rdkit = partial(optional_module, "rdkit.Chem", "Molecules")


class InvalidMoleculeError(Exception):
    """A molecule that cannot become a graph; the message says why, and the caller adds which one."""


class Record(NamedTuple):
    """One molecule: its file and line, the SMILES or molecule, its target as text, its name, and a problem found while reading."""

    where: str
    molecule: Any
    target: str | None = None
    name: str = ""
    problem: str = ""


class _Columns(NamedTuple):
    """The columns, or properties, that the user named."""

    smiles: str | None
    target: str | None
    name: str | None


def read_records(
    path: Path, smiles_column: str | None = None, target: str | None = None, name_column: str | None = None
) -> Iterator[Record]:
    """Yield the molecules of a file one by one."""
    reader = SUFFIXES.get(path.suffix.lower())
    if reader is None:
        raise DatasetError(
            f"{path}: the name of a file of molecules must end in {', '.join(SUFFIXES)}; got {path.suffix or 'no ending'!r}."
        )
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            yield from reader(file, path, _Columns(smiles_column, target, name_column))
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{path} is not UTF-8 text: it has the byte 0x{error.object[error.start]:02x} where a character is expected. Save it "
            "as UTF-8."
        ) from error


# -------------------------------------------------------------------- tables


def _read_csv(file: TextIO, path: Path, columns: _Columns, *, delimiter: str) -> Iterator[Record]:
    rows = csv.reader(file, delimiter=delimiter, strict=True)
    try:
        names = [name.strip() for name in next(rows, [])]
        indices = _find_columns(names, columns, path)
        for row in rows:
            where = f"{path}:{rows.line_num}"
            if row and len(row) != len(names):
                problem = f"the line has {len(row)} fields, but the first line names {len(names)} columns"
                yield Record(where, "", problem=problem)
            elif row:  # a blank line has no fields
                yield _row_record(where, row, indices)
    except csv.Error as error:
        raise DatasetError(f"{path}:{rows.line_num}: {error}.") from error


def _read_smi(file: TextIO, path: Path, columns: _Columns) -> Iterator[Record]:
    """Read lines that begin with a SMILES; spaces separate columns, named by the first line or else numbered."""
    if columns.smiles not in (None, _DEFAULT_COLUMN):
        raise DatasetError(f"{path}: the SMILES come first in each line of a .smi file; leave out the column.")
    rows: Iterator[tuple[int, list[str]]] = enumerate(map(str.split, file), start=1)
    first = next(rows, (1, []))
    names = first[1]
    if not names or names[0].lower() != _DEFAULT_COLUMN:
        rows = chain([first], rows)  # it is a molecule
        names = [_DEFAULT_COLUMN, *map(str, range(2, len(names) + 1))]
        if columns.name is None and columns.target != "2" and len(names) > 1:
            columns = columns._replace(name="2")
    indices = _find_columns(names, columns, path)
    for number, row in rows:
        if row:
            yield _row_record(f"{path}:{number}", row, indices)


def _row_record(where: str, row: list[str], indices: list[int | None]) -> Record:
    """Return a record from the SMILES, target and name columns of a row, which may be too short."""
    smiles, target, name = (None if i is None else "".join(row[i : i + 1]).strip() for i in indices)
    return Record(where, smiles, target, name or "", _target_problem(target) if smiles else "the SMILES is missing")


def _target_problem(target: str | None) -> str:
    if target is None:
        return ""
    number = _number(target)
    if target.lower() in _MISSING or (number is not None and not math.isfinite(number)):
        return f"its target is {target!r}, which is not a value" if target else "its target is missing"
    return ""


def _find_columns(names: list[str], columns: _Columns, path: Path) -> list[int | None]:
    """Return the indices of the SMILES, target and name columns."""
    smiles = _find_column(names, columns.smiles or _DEFAULT_COLUMN, path)
    target = None if columns.target is None else _find_column(names, columns.target, path)
    if columns.name is not None:
        return [smiles, target, _find_column(names, columns.name, path)]
    known = [name.lower() for name in names]
    found = (known.index(name) for name in _NAME_COLUMNS if name in known)
    return [smiles, target, next((i for i in found if i != target), None)]


def _find_column(names: list[str], wanted: str, path: Path) -> int:
    """Return the index of a column; case is ignored unless a column matches exactly."""
    if not names:
        raise DatasetError(f"{path}: the file is empty; its first line must name the columns.")
    found = [i for i, name in enumerate(names) if name == wanted]
    found = found or [i for i, name in enumerate(names) if name.lower() == wanted.lower()]
    if len(found) > 1:
        raise DatasetError(f"{path}:1: {len(found)} columns are called {wanted!r}; rename all but one.")
    if not found:
        advice = ". Set smiles_column (on the command line: --smiles-column)." if wanted == _DEFAULT_COLUMN else "."
        hint = suggest(wanted, names) or advice
        raise DatasetError(f"{path}:1: no column is called {wanted!r}; there are {_list_names(names)}{hint}")
    return found[0]


def _list_names(names: Iterable[str]) -> str:
    known = list(map(repr, names))
    more = f" and {len(known) - _MOST_NAMES} more" if len(known) > _MOST_NAMES else ""
    return (", ".join(known[:_MOST_NAMES]) + more) or "none"


# -------------------------------------------------------------------- SDF


def _read_sdf(file: TextIO, path: Path, columns: _Columns) -> Iterator[Record]:
    if columns.smiles is not None:
        raise DatasetError(f"{path}: an SDF file holds molecules, not a column of SMILES; leave out the column.")
    supplier = import_rdkit().SDMolSupplier()
    supplier.SetData(file.read(), sanitize=True, removeHs=False)
    for i in range(len(supplier)):
        where = f"{path}: record {i + 1}"
        try:
            mol = parse_molecule(supplier.__getitem__, i)
        except InvalidMoleculeError as invalid:
            yield Record(where, "", problem=str(invalid))
            continue
        known = {name: mol.GetProp(name).strip() for name in mol.GetPropNames()}
        lacking = {columns.target, columns.name} - known.keys() - {None}
        problem = f"it has no property {min(map(str, lacking))!r}; it has {_list_names(known)}" if lacking else ""
        target = None if columns.target is None else known.get(columns.target, "")
        name = known.get(columns.name or "", "")
        yield Record(where, mol, target, name, problem or _target_problem(target))


SUFFIXES: dict[str, Callable[[TextIO, Path, _Columns], Iterator[Record]]] = {
    ".smi": _read_smi,
    ".sdf": _read_sdf,
    ".csv": partial(_read_csv, delimiter=","),
    ".tsv": partial(_read_csv, delimiter="\t"),
}


def parse_molecule(parse: Callable[[Any], Any], source: Any) -> Any:
    """Return the molecule that RDKit finds; raise with RDKit's reason, such as ``unclosed ring``, if it finds none."""
    from rdkit import rdBase

    # RDKit before 2026.3 can be silenced, but does not hand over its reasons.
    capture: Any = getattr(rdBase, "CaptureErrorLog", rdBase.BlockLogs)
    with capture() as log:
        mol = parse(source)
    if mol is not None:
        return mol
    messages = getattr(log, "messages", "")
    lines = [re.sub(r"^\[[\d:]+\] *((SMILES Parse )?(Error|ERROR):)? *", "", text) for text in messages.splitlines()]
    reason = re.split(r" while parsing: | for input: ", next(filter(None, lines), ""))[0].rstrip(". :")
    position = re.search(r"around position \d+", messages)
    where = f" {position.group()}" if position else ""
    raise InvalidMoleculeError(f"RDKit says: {reason}{where}" if reason else "RDKit cannot read it")


# -------------------------------------------------------------------- targets


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def read_targets(records: Sequence[Record]) -> NDArray[Any]:
    """Convert the targets to integers, floats or strings: the most specific kind that fits all of them."""
    texts = [str(record.target) for record in records]
    numbers = [_number(text) for text in texts]
    words = [i for i, number in enumerate(numbers) if number is None]
    if words and len(words) < len(texts):
        word, number = words[0], next(i for i in range(len(texts)) if numbers[i] is not None)
        raise DatasetError(
            f"{records[word].where}: the target is {texts[word]!r}, but {records[number].where} has the number {texts[number]}. Targets "
            "must be all numbers or all words."
        )
    if words:
        return np.array(texts)
    if all(text.lstrip("+-").isdecimal() and len(text) < 18 for text in texts):
        return np.array([int(text) for text in texts], dtype=np.int64)
    return np.array(numbers, dtype=np.float64)
