"""Files of molecules, record by record: SMILES (.smi), SDF (.sdf) and tables with a column of SMILES (.csv, .tsv).

Every record knows its ``file:line``. A problem with one record is noted in it, so that the caller can skip it; a problem with
the file is a DatasetError.
"""

from __future__ import annotations

import contextlib
import csv
import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
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
_LONGEST_RECORD = 1 << 26  # characters; a file with a longer record is not SDF

import_rdkit = partial(optional_module, "rdkit.Chem", "Molecules")


class InvalidMoleculeError(Exception):
    """A molecule that cannot become a graph; the text says why, and the caller adds which one."""


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


def _checked_record(where: str, molecule: Any, target: str | None, name: str) -> Record:
    problem = ""
    if isinstance(molecule, str) and not molecule:
        problem = "the SMILES is missing"
    elif target is not None and _is_missing(target):
        problem = f"its target is {target!r}, which is not a value" if target else "its target is missing"
    return Record(where, molecule, target, name, problem)


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
    """Read lines that begin with a SMILES; spaces separate columns, which the first line may name (SMILES first)."""
    if columns.smiles not in (None, _DEFAULT_COLUMN):
        raise DatasetError(f"{path}: the SMILES come first in each line of a .smi file; leave out the column.")
    indices: list[int | None] = []
    for number, line in enumerate(file, start=1):
        row = line.split()
        has_names = number == 1 and bool(row) and row[0].lower() == _DEFAULT_COLUMN
        if number == 1:
            indices = _find_columns(row, columns, path) if has_names else _number_columns(columns, path)
        if row and not has_names:
            yield _row_record(f"{path}:{number}", row, indices)


def _row_record(where: str, row: list[str], indices: list[int | None]) -> Record:
    """Return the record of the columns of SMILES, target and name in a row, which may be too short."""
    smiles, target, name = (None if i is None else "".join(row[i : i + 1]).strip() for i in indices)
    return _checked_record(where, smiles, target, name or "")


def _find_columns(names: list[str], columns: _Columns, path: Path) -> list[int | None]:
    """Return the indices of the columns of SMILES, target and name in a table with a header."""
    smiles = _find_column(names, columns.smiles or _DEFAULT_COLUMN, path, "--smiles-column")
    target = None if columns.target is None else _find_column(names, columns.target, path, "--target")
    if columns.name is not None:
        return [smiles, target, _find_column(names, columns.name, path, "name_column")]
    known = [name.lower() for name in names]
    found = (known.index(name) for name in _NAME_COLUMNS if name in known)
    return [smiles, target, next((i for i in found if i != target), None)]


def _number_columns(columns: _Columns, path: Path) -> list[int | None]:
    """Return the same indices for lines without a header, where a column is named by its number."""
    numbers: list[int | None] = []
    for role, text in (("target", columns.target), ("name", columns.name)):
        if text is not None and not (text.isdecimal() and int(text) >= 2):
            raise DatasetError(
                f"{path}: its columns have no names, so the {role} must be the number of a column, 2 or more; got {text!r}. A "
                f"first line such as 'SMILES {text}' names them."
            )
        numbers.append(None if text is None else int(text) - 1)
    target, name = numbers
    return [0, target, 1 if name is None and target != 1 else name]


def _find_column(names: list[str], wanted: str, path: Path, option: str) -> int:
    """Return the index of a column; case is ignored unless a column matches exactly."""
    if not names:
        raise DatasetError(f"{path}: the file is empty; its first line must name the columns.")
    found = [i for i, name in enumerate(names) if name == wanted]
    found = found or [i for i, name in enumerate(names) if name.lower() == wanted.lower()]
    if len(found) > 1:
        raise DatasetError(f"{path}:1: {len(found)} columns are called {wanted!r}; rename all but one.")
    if not found:
        hint = suggest(wanted, names) or f". Name the right one (on the command line with {option})."
        raise DatasetError(f"{path}:1: no column is called {wanted!r}; the first line names {_list_names(names)}{hint}")
    return found[0]


def _list_names(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:_MOST_NAMES]))
    return shown + (f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else "")


# -------------------------------------------------------------------- SDF


def _read_sdf(file: TextIO, path: Path, columns: _Columns) -> Iterator[Record]:
    if columns.smiles is not None:
        raise DatasetError(f"{path}: an SDF file holds molecules, not a column of SMILES; leave out the column.")
    supplier = import_rdkit().SDMolSupplier()

    def parse(text: str) -> Any:
        supplier.SetData(text, sanitize=True, removeHs=False)
        return next(iter(supplier), None)

    for first_line, text in _split_sdf(file, path):
        where = f"{path}:{first_line}"
        try:
            mol = parse_molecule(parse, text)
        except InvalidMoleculeError as invalid:
            yield Record(where, "", problem=str(invalid))
            continue
        properties = {name: mol.GetProp(name).strip() for name in mol.GetPropNames()}
        lacking = {name for name in (columns.target, columns.name) if name is not None} - properties.keys()
        if lacking:
            problem = f"it has no property {min(lacking)!r}; it has {_list_names(list(properties)) or 'none'}"
            yield Record(where, mol, problem=problem)
        else:
            target, name = (None if key is None else properties[key] for key in (columns.target, columns.name))
            yield _checked_record(where, mol, target, name or "")


def _split_sdf(file: TextIO, path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number of the first line and the text of each record."""
    lines: list[str] = []
    first, size = 1, 0
    for number, line in enumerate(file, start=1):
        lines.append(line)
        size += len(line)
        if size > _LONGEST_RECORD:
            raise DatasetError(
                f"{path}:{first}: this record has more than {_LONGEST_RECORD} characters; no $$$$ ends it."
            )
        if line.startswith("$$$$"):
            yield first, "".join(lines)
            lines, first, size = [], number + 1, 0
    if "".join(lines).strip():
        yield first, "".join(lines)


SUFFIXES: dict[str, Callable[[TextIO, Path, _Columns], Iterator[Record]]] = {
    ".smi": _read_smi,
    ".sdf": _read_sdf,
    ".csv": partial(_read_csv, delimiter=","),
    ".tsv": partial(_read_csv, delimiter="\t"),
}


# -------------------------------------------------------------------- RDKit's parsers


def parse_molecule(parse: Callable[[str], Any], text: str) -> Any:
    """Return the molecule that a parser of RDKit finds in a text; raise with RDKit's reason if it finds none."""
    from rdkit import rdBase

    capture: Any = getattr(rdBase, "CaptureErrorLog", lambda: contextlib.nullcontext(SimpleNamespace(messages="")))
    with capture() as log:
        mol = parse(text)
    if mol is None:
        raise InvalidMoleculeError(_reason(log.messages))
    return mol


def _reason(messages: str) -> str:
    """Shorten RDKit's message, for example to ``syntax error around position 3``."""
    lines = [re.sub(r"^\[[\d:]+\] *((SMILES Parse )?(Error|ERROR):)? *", "", line) for line in messages.splitlines()]
    first = next((line for line in lines if line), "")
    if not first:
        return "RDKit cannot read it"
    first = re.split(r" while parsing: | for input: ", first)[0].rstrip(". :")
    position = re.search(r"around position \d+", messages)
    return f"RDKit says: {first}{' ' + position.group() if position else ''}"


# -------------------------------------------------------------------- targets


def _is_missing(text: str) -> bool:
    number = _number(text)
    return text.lower() in _MISSING or (number is not None and not math.isfinite(number))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def read_targets(records: Sequence[Record]) -> NDArray[Any]:
    """Convert the targets to whole numbers, numbers or words: the most specific kind that fits all of them."""
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
