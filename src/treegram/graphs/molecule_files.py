"""Files of molecules: SMILES (.smi), SDF (.sdf) and tables with a column of SMILES (.csv, .tsv).

A file is read once, as rows that know their line. A problem with one row is noted there, so that the caller can skip it; a problem with
the file is a DatasetError.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from treegram._core.optional import optional_module
from treegram.exceptions import DatasetError
from treegram.graphs.cells import (
    DELIMITERS,
    CellTable,
    check_header,
    describe_width,
    is_missing,
    name_texts,
    parse_csv,
    read_text,
)

_DEFAULT_COLUMN = "smiles"
_NAME_COLUMNS = ("id", "name")
_EXTENSION = re.compile(r"(\S+\s+\|[^|]*\|)(?:\s|$)")  # a SMILES and a CXSMILES extension, which may have spaces
_END_OF_MOLECULE = re.compile(r"^M  END", re.MULTILINE)
_PROPERTY = re.compile(r"^>[^<\n]*<(.+)>[^>\n]*\n((?:(?!>.*<.+>).*\S.*\n?)*)", re.MULTILINE)
_ADVICE = "Set smiles_column."

import_rdkit = partial(optional_module, "rdkit.Chem", "Molecules")


class InvalidMoleculeError(Exception):
    """A molecule that cannot become a graph; the message says why, and the caller adds which one."""


class Record(NamedTuple):
    """One molecule: its place, the SMILES or molecule, its name, and a problem found while reading."""

    where: str
    molecule: Any
    name: str | None = None
    problem: str = ""


class MoleculeRows(NamedTuple):
    """The rows of a file, none of which is a graph yet; ``molecules`` holds SMILES, or parses a molecule when it is indexed."""

    cells: CellTable
    molecules: Sequence[Any]
    names: list[str | None]

    def records(self) -> Iterator[Record]:
        """Yield the molecules one by one."""
        for row, (name, problem) in enumerate(zip(self.names, self.cells.problems, strict=True)):
            where = self.cells.where(row)
            if problem:
                yield Record(where, self.molecules[row] if isinstance(self.molecules, list) else "", name, problem)
                continue
            try:
                yield Record(where, self.molecules[row], name)
            except InvalidMoleculeError as invalid:
                yield Record(where, "", name, str(invalid))


def read_molecule_rows(
    path: Path,
    smiles_column: str | None = None,
    name_column: str | None = None,
    targets: Sequence[str] = (),
    data: bytes | None = None,
) -> MoleculeRows:
    """Read the molecules of a file, or of ``data`` from standard input in the format that the name says; targets are not names."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise DatasetError(
            f"{path}: the name of a file of molecules must end in {', '.join(SUFFIXES)}; got {path.suffix or 'no ending'!r}."
        )
    source = str(path) if data is None else "standard input"
    text = read_text(path, source, data)
    if suffix == ".sdf":
        return _read_sdf(text, source, smiles_column, name_column)
    if suffix == ".smi":
        if smiles_column not in (None, _DEFAULT_COLUMN):
            raise DatasetError(f"{source}: the SMILES come first in each line of a .smi file; leave out the column.")
        cells, default_name = _read_smi(text, source)
    else:
        cells, default_name = parse_csv(text, source, DELIMITERS[suffix]), ""
    smiles = cells.cells(smiles_column or _DEFAULT_COLUMN, advice=_ADVICE)
    for row, molecule in enumerate(smiles):
        if not cells.problems[row] and is_missing(molecule):
            cells.problems[row] = "the SMILES is missing"
    names: list[str | None] = [None] * len(smiles)
    if column := name_column or _default_name_column(cells.columns, targets, default_name):
        names = name_texts(cells.cells(column))
    return MoleculeRows(cells, smiles, names)


def _default_name_column(columns: Iterable[str], targets: Sequence[str], default: str) -> str | None:
    """Return the column called id or name, or the default; a target is no name."""
    candidates = [name for usual in _NAME_COLUMNS for name in columns if name.lower() == usual]
    if default in columns:
        candidates.append(default)
    taken = set(map(str.lower, targets))
    return next((name for name in candidates if name.lower() not in taken), None)


# -------------------------------------------------------------------- lines of SMILES


def _read_smi(text: str, source: str) -> tuple[CellTable, str]:
    """Read lines that begin with a SMILES, and return the column of names if the first line does not name the columns.

    Tabs or spaces separate columns, which are numbered from 2 if the first line does not name them.
    """
    rows, lines, problems = [], [], []
    for number, line in enumerate(_plain_lines(text).split("\n"), start=1):
        if line.strip():
            fields, problem = _split_line(line.strip(" "))
            rows.append(fields)
            lines.append(number)
            problems.append(problem)
    if not rows:
        raise DatasetError(f"{source}: the file is empty; each line must begin with a SMILES.")
    width = max(map(len, rows))
    names = [_DEFAULT_COLUMN, *map(str, range(2, width + 1))]
    default_name = "2"
    if rows[0][0].lower() == _DEFAULT_COLUMN:
        names, rows, lines, problems, default_name = rows[0], rows[1:], lines[1:], problems[1:], ""
        check_header(names, source)
        for row, fields in enumerate(rows):
            if len(fields) > len(names):
                problems[row] = problems[row] or describe_width(len(fields), len(names))
    columns = {name: [fields[i] if i < len(fields) else "" for fields in rows] for i, name in enumerate(names) if name}
    return CellTable(source, columns, len(lines), lambda row: f"{source}:{lines[row]}", problems), default_name


def _split_line(line: str) -> tuple[list[str], str]:
    """Return the columns of a line, the first of which keeps a CXSMILES extension, and what is wrong with it, if anything."""
    if "\t" in line:
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) > 1 and fields[1].startswith("|"):
            fields[:2] = [" ".join(fields[:2])]
        if " " in fields[0] and not _EXTENSION.fullmatch(fields[0]):
            return fields, "spaces and tabs both separate its columns"
        return fields, ""
    extended = _EXTENSION.match(line)
    if extended:
        return [extended.group(1), *line[extended.end() :].split()], ""
    fields = line.split()
    has_extension = len(fields) > 1 and fields[1].startswith("|")
    return fields, "its CXSMILES extension has no second '|'" if has_extension else ""


def _plain_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


# -------------------------------------------------------------------- SDF


class _SdfMolecules(Sequence[Any]):
    """The molecules of an SDF file, each parsed when it is indexed."""

    def __init__(self, text: str) -> None:
        self.supplier = import_rdkit().SDMolSupplier()
        self.supplier.SetData(_plain_lines(text), sanitize=True, removeHs=False)

    def __len__(self) -> int:
        return len(self.supplier)

    def __getitem__(self, row: Any) -> Any:
        mol = parse_molecule(self.supplier.__getitem__, int(row))
        if not mol.GetNumAtoms():
            raise InvalidMoleculeError("the record has no atoms")
        return mol

    def text(self, row: int) -> str:
        """Return the record as it was written."""
        return str(self.supplier.GetItemText(row))


def _read_sdf(text: str, source: str, smiles_column: str | None, name_column: str | None) -> MoleculeRows:
    """Read records; their titles and properties are known before a molecule is parsed, and if it cannot be parsed."""
    if smiles_column is not None:
        raise DatasetError(f"{source}: an SDF file holds molecules, not a column of SMILES; leave out the column.")
    molecules = _SdfMolecules(text)
    titles, properties = [], []
    for row in range(len(molecules)):
        record = molecules.text(row)
        n_molecules = len(_END_OF_MOLECULE.findall(record))
        if n_molecules > 1:
            raise DatasetError(
                f"{source}: record {row + 1} holds {n_molecules} molecules: the line '$$$$', which ends a record, is missing between them."
            )
        titles.append(record.partition("\n")[0].strip())
        properties.append({name: value.strip() for name, value in _PROPERTY.findall(record)})
    names = dict.fromkeys(name for record in properties for name in record)
    columns = {name: [record.get(name, "") for record in properties] for name in names}
    problems = [""] * len(properties)
    cells = CellTable(
        source, columns, len(properties), lambda row: f"{source}: record {row + 1}", problems, noun="property"
    )
    return MoleculeRows(cells, molecules, name_texts(cells.cells(name_column) if name_column else titles))


SUFFIXES = (".smi", ".sdf", *DELIMITERS)


def parse_molecule(parse: Any, source: Any) -> Any:
    """Return the molecule that RDKit makes; raise with RDKit's reason, such as ``unclosed ring``, if it makes none."""
    from rdkit import rdBase

    # RDKit before 2026.3 can be silenced, but does not hand over its reasons.
    capture: Any = getattr(rdBase, "CaptureErrorLog", rdBase.BlockLogs)
    with capture() as log:
        mol = parse(source)
    if mol is not None:
        return mol
    messages = getattr(log, "messages", "")
    lines = [re.sub(r"^\[[\d:]+\] *((SMILES Parse )?(Error|ERROR):)? *", "", text) for text in messages.splitlines()]
    plain = (line for line in lines if line.strip("* ") and not line.endswith("Violation"))  # a frame of asterisks
    reason = re.split(r" while parsing: | for input: ", next(plain, ""))[0].rstrip(". :")
    position = re.search(r"around position \d+", messages)
    where = f" {position.group()}" if position else ""
    raise InvalidMoleculeError(f"RDKit says: {reason}{where}" if reason else "RDKit cannot read it")
