"""Files of molecules, record by record: SMILES (.smi), SDF (.sdf) and tables with a column of SMILES (.csv, .tsv).

Every record knows its ``file:line``. A problem with one record is noted in it, so that the caller can skip it; a problem with
the file is a DatasetError.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import DatasetError
from treegram._core.text import suggest
from treegram.graphs.atoms import InvalidMoleculeError, parse_record

__all__ = ["DEFAULT_COLUMN", "SUFFIXES", "Record", "read_records", "read_targets"]

DEFAULT_COLUMN = "smiles"
_NAME_COLUMNS = ("id", "name")
_MISSING = {"", "na", "n/a", "nan", "none", "null", "-", "?"}
_MOST_NAMES = 20  # in a message
_LONGEST_RECORD = 1 << 26  # characters; a file that never ends a record is no SDF


class Record(NamedTuple):
    """One molecule: its file and line, the SMILES or molecule, its target as text, a problem found while reading, its name."""

    where: str
    molecule: Any
    target: str | None = None
    problem: str = ""
    name: str = ""


class Wanted(NamedTuple):
    """The columns, or properties, that the user named."""

    smiles: str | None
    target: str | None
    name: str | None


def read_records(
    path: Path, smiles_column: str | None, target: str | None, name_column: str | None = None
) -> Iterator[Record]:
    """Yield the molecules of a file one by one."""
    reader = SUFFIXES.get(path.suffix.lower())
    if reader is None:
        raise DatasetError(
            f"{path}: the name of a file of molecules must end in {', '.join(SUFFIXES)}; got {path.suffix or 'no ending'!r}."
        )
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            yield from reader(file, path, Wanted(smiles_column, target, name_column))
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{path} is not UTF-8 text: it has the byte 0x{error.object[error.start]:02x} where a character is expected. Save it in "
            "that encoding."
        ) from error


# -------------------------------------------------------------------- tables


def _read_table(file: TextIO, path: Path, wanted: Wanted, *, delimiter: str) -> Iterator[Record]:
    rows = csv.reader(file, delimiter=delimiter, strict=True)
    try:
        names = [name.strip() for name in next(rows, [])]
        column = _find_column(names, wanted.smiles or DEFAULT_COLUMN, path, "--smiles-column")
        target_column = None if wanted.target is None else _find_column(names, wanted.target, path, "--target")
        name_column = _find_names(names, wanted, path)
        for row in rows:
            where = f"{path}:{rows.line_num}"
            if row and len(row) != len(names):
                problem = f"the line has {len(row)} fields, but the first line names {len(names)} columns"
                yield Record(where, "", problem=problem)
            elif row:  # a blank line has no fields
                text = None if target_column is None else row[target_column].strip()
                name = "" if name_column is None else row[name_column].strip()
                yield _checked_record(where, row[column].strip(), text, name)
    except csv.Error as error:
        raise DatasetError(f"{path}:{rows.line_num}: {error}.") from error


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
        raise DatasetError(f"{path}:1: no column is called {wanted!r}; the first line names {_listed(names)}{hint}")
    return found[0]


def _find_names(names: list[str], wanted: Wanted, path: Path) -> int | None:
    """Return the index of the column with the names of molecules, or None."""
    if wanted.name is not None:
        return _find_column(names, wanted.name, path, "name_column")
    known = [name.lower() for name in names]
    return next((known.index(name) for name in _NAME_COLUMNS if name in known and name != wanted.target), None)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:_MOST_NAMES]))
    return shown + (f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else "")


def _checked_record(where: str, molecule: Any, target: str | None, name: str) -> Record:
    problem = ""
    if isinstance(molecule, str) and not molecule:
        problem = "there is no SMILES"
    elif target is not None and _is_missing(target):
        problem = f"its target is {target!r}, which is not a value" if target else "its target is missing"
    return Record(where, molecule, target, problem, name)


def _read_smiles_lines(file: TextIO, path: Path, wanted: Wanted) -> Iterator[Record]:
    """Read lines that begin with a SMILES; spaces separate columns, which the first line may name (SMILES first)."""
    if wanted.smiles not in (None, DEFAULT_COLUMN):
        raise DatasetError(f"{path}: the SMILES come first in each line of a .smi file; leave out the column.")
    target_column = name_column = None
    for number, line in enumerate(file, start=1):
        fields = line.split()
        if number == 1:
            names = fields if fields and fields[0].lower() == DEFAULT_COLUMN else []
            target_column = None if wanted.target is None else _find_smiles_target(names, wanted.target, path)
            name_column = _find_names(names, wanted, path) if names else 1 if target_column != 1 else None
        if fields and not (number == 1 and names):
            target, name = (
                None if column is None else "".join(fields[column : column + 1])
                for column in (target_column, name_column)
            )
            yield _checked_record(f"{path}:{number}", fields[0], target, name or "")


def _find_smiles_target(names: list[str], target: str, path: Path) -> int:
    if names:
        return _find_column(names, target, path, "--target")
    if target.isdecimal() and int(target) >= 2:
        return int(target) - 1
    raise DatasetError(
        f"{path}: its columns have no names, so the target must be the number of a column, 2 or more; got {target!r}. A "
        f"first line such as 'SMILES {target}' names them."
    )


# -------------------------------------------------------------------- SDF


def _read_sdf(file: TextIO, path: Path, wanted: Wanted) -> Iterator[Record]:
    if wanted.smiles is not None:
        raise DatasetError(f"{path}: an SDF file holds molecules, not a column of SMILES; leave out the column.")
    for first_line, text in _records(file, path):
        where = f"{path}:{first_line}"
        try:
            mol = parse_record(text)
        except InvalidMoleculeError as invalid:
            yield Record(where, "", problem=str(invalid))
            continue
        lacking = [name for name in (wanted.target, wanted.name) if name is not None and not mol.HasProp(name)]
        if lacking:
            names = list(mol.GetPropNames())
            yield Record(where, mol, problem=f"it has no property {lacking[0]!r}; it has {_listed(names) or 'none'}")
            continue
        target, name = (None if key is None else str(mol.GetProp(key)).strip() for key in (wanted.target, wanted.name))
        yield _checked_record(where, mol, target, name or "")


def _records(file: TextIO, path: Path) -> Iterator[tuple[int, str]]:
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


Reader = Callable[[TextIO, Path, Wanted], Iterator[Record]]
SUFFIXES: dict[str, Reader] = {
    ".smi": _read_smiles_lines,
    ".sdf": _read_sdf,
    ".csv": lambda *arguments: _read_table(*arguments, delimiter=","),
    ".tsv": lambda *arguments: _read_table(*arguments, delimiter="\t"),
}


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
