"""Keep results in one SQLite file, to which each finished outer fold is added immediately.

An added record survives a killed process or a power cut; an incomplete one leaves no trace. Records are numbers, text
and JSON, and are never changed. Several processes may use one file: SQLite locks it, and the first result of a fold stays.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import reprlib
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from treegram._core.machine import describe_checkout, describe_machine, package_versions
from treegram.exceptions import StoreError

T = TypeVar("T")

_APPLICATION_ID = 0x5472476D  # "TrGm"; marks the file as ours
_VERSION = 5  # of the tables below
_MOST_DIGITS = 300  # of a whole number, so that a float can hold it
_PATIENCE = 60.0  # seconds to wait while another process writes

_SCHEMA = """
CREATE TABLE IF NOT EXISTS run (id INTEGER PRIMARY KEY, started TEXT, command TEXT, versions TEXT, machine TEXT);
CREATE TABLE IF NOT EXISTS study (name TEXT PRIMARY KEY, text TEXT);
CREATE TABLE IF NOT EXISTS dataset (
    name TEXT PRIMARY KEY, n_graphs INTEGER, class_counts TEXT, mean_nodes REAL, mean_edges REAL, n_attributes INTEGER,
    digest TEXT, targets TEXT
);
CREATE TABLE IF NOT EXISTS result (
    key TEXT, dataset TEXT, kernel TEXT, repeat INTEGER, fold INTEGER, actual BLOB, predicted BLOB, chosen TEXT,
    inner_score REAL, n_fits INTEGER, n_unconverged INTEGER, seconds REAL, run INTEGER, roc_auc REAL,
    PRIMARY KEY (key, repeat, fold)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS gram_time (
    key TEXT PRIMARY KEY, dataset TEXT, kernel TEXT, parameters TEXT, seconds REAL, learns INTEGER, run INTEGER
) WITHOUT ROWID;
"""

_DAMAGED = "is not a store of results, or it is damaged; use another file, or a copy from a backup"
_TARGETS = {"lowest", "highest", "mean", "deviation", "mean_error"}


@dataclass(frozen=True)
class Row:
    """The result of one outer fold."""

    dataset: str
    kernel: str  # the entry's name in the study
    repeat: int  # from 0
    fold: int  # from 0
    # For each test graph, in ascending order of ids: its class, as an index into the sorted classes, or its regression target.
    actual: tuple[int, ...] | tuple[float, ...]
    predicted: tuple[int, ...] | tuple[float, ...]
    chosen: Mapping[str, Any]  # by inner cross-validation: kernel, its parameters, C or alpha
    # Mean over the inner folds of the choice: accuracy, or 1 - MSE / variance of the targets; None for an estimator without one.
    inner_score: float | None
    n_fits: int  # fits of a model, without those skipped because their result was known
    n_unconverged: int  # fits that ended before the solver's tolerance was met
    seconds: float  # processor time
    run: int  # id of the process, see Run
    roc_auc: float | None = None  # None if it is not defined or was not measured

    def __post_init__(self) -> None:
        if not len(self.actual) == len(self.predicted) > 0:
            raise ValueError("A fold must have as many predictions as test graphs, and at least one.")
        if not all(map(math.isfinite, (*self.actual, *self.predicted, self.inner_score or 0.0, self.seconds))):
            raise ValueError("Targets, predictions, scores and seconds must be finite.")

    @property
    def task(self) -> str:
        """The kind of targets: "regression" for floats, else "classification"."""
        return "regression" if isinstance(self.actual[0], float) else "classification"

    @property
    def score(self) -> float:
        """The accuracy, or for regression the mean absolute error."""
        pairs = zip(self.actual, self.predicted, strict=True)
        if self.task == "classification":
            return sum(actual == predicted for actual, predicted in pairs) / len(self.actual)
        return sum(abs(actual - predicted) for actual, predicted in pairs) / len(self.actual)


@dataclass(frozen=True)
class GramTime:
    """The time of one full Gram matrix of a kernel, on one thread."""

    dataset: str
    kernel: str
    parameters: Mapping[str, Any]
    seconds: float  # processor time
    learns: bool  # whether the kernel, or a transformation before it, is fitted to graphs
    run: int


@dataclass(frozen=True)
class DatasetFacts:
    """The properties of a data set that a report shows."""

    name: str
    n_graphs: int
    class_counts: Mapping[str, int]  # by sorted class; empty for regression
    mean_nodes: float
    mean_edges: float
    n_attributes: int
    digest: str  # SHA-256 of the graphs and their targets
    # For regression: lowest, highest, mean, deviation, and mean_error, the mean absolute error of predicting the mean.
    targets: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.n_graphs < 1 or bool(self.class_counts) == bool(self.targets):
            raise ValueError(f"{self.name} must have graphs, and either counts of classes or facts about numbers.")
        if any(type(count) is not int or count < 0 for count in self.class_counts.values()):
            raise ValueError(f"The classes of {self.name} must have whole numbers of graphs.")
        if self.targets and (self.targets.keys() != _TARGETS or not all(map(math.isfinite, self.targets.values()))):
            raise ValueError(f"The targets of {self.name} must be described by {', '.join(sorted(_TARGETS))}.")
        if self.targets and not self.targets["deviation"] > 0:
            raise ValueError(f"The targets of {self.name} must differ.")


@dataclass(frozen=True)
class Run:
    """One process that added to a store."""

    id: int
    started: str  # ISO 8601, UTC
    command: str
    # Of Python and of each package that matters; from a checkout also its "commit", and its "tree": "clean" or "changed".
    versions: Mapping[str, str]
    machine: Mapping[str, Any]  # processor, cores, memory in GiB, system; never a host's name or a path


class Store(contextlib.AbstractContextManager["Store"]):
    """An open file of results; as a context manager, it closes the file at the end.

    Open it with `Store.open`. Several processes may use one file at the same time; each process and thread must have its own
    `Store`. A copy of the file is a backup.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, create: bool = True) -> Self:
        """Open a store.

        Parameters
        ----------
        path : str or path
            The file.
        create : bool, default=True
            Create a store if there is no file or an empty one.

        Returns
        -------
        Store
            The open store.

        Raises
        ------
        StoreError
            If it does not exist, cannot be opened, is damaged, has another version, or is another kind of file.
        """
        path = Path(path)
        if not path.exists() and not create:
            raise StoreError(f"There is no store {path}; check its name, or run a study that writes it.")
        if not path.parent.is_dir():
            raise StoreError(f"The folder {path.parent} of the store {path} does not exist; create it first.")
        with _explaining(path):
            uri = f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
            connection = sqlite3.connect(uri, uri=True, timeout=_PATIENCE, isolation_level=None)
        try:
            with _explaining(path):
                _prepare(path, connection, create=create)
        except BaseException:
            connection.close()
            raise
        return cls(path, connection)

    def close(self) -> None:
        """Close the file; closing twice does no harm."""
        self._connection.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    # ------------------------------------------------------------------ about the run

    def begin_run(self, command: str, made_of: Mapping[str, str] | None = None) -> Run:
        """Record that a process starts adding to this store.

        Parameters
        ----------
        command : str
            The command that was run. It is stored as it is, so it should not name a private folder.
        made_of : mapping of str to str, optional
            Other versions that the rows depend on, stored with those of the packages.

        Returns
        -------
        Run
            The record; its ``id`` belongs in the rows that this process adds.
        """
        started = datetime.now(UTC).isoformat(timespec="seconds")
        versions = {**package_versions(), **describe_checkout(), **(made_of or {})}
        run = Run(0, started, command, versions, describe_machine())
        return replace(run, id=self._insert("run", run, id=None))

    def runs(self) -> list[Run]:
        """Return all processes that have added to this store, in the order of their ids."""
        return self._select(Run, "run", "ORDER BY id")

    def put_study(self, name: str, text: str) -> None:
        """Keep the text of the study file, replacing an older text of the same study.

        Raises
        ------
        StoreError
            If the store belongs to a study of another name.
        """
        kept = self.study()
        if kept and kept[0] != name:
            raise StoreError(f"{self.path} holds the study {kept[0]!r}; use another file for the study {name!r}.")
        with _explaining(self.path):
            self._connection.execute("INSERT OR REPLACE INTO study (name, text) VALUES (?, ?)", (name, text))

    def study(self) -> tuple[str, str] | None:
        """Return the name of the study and the text of its file, or None if there is no study yet."""
        rows = self._fetch("SELECT name, text FROM study")
        return (str(rows[0][0]), str(rows[0][1])) if rows else None

    def put_dataset(self, facts: DatasetFacts) -> None:
        """Keep the properties of a data set, replacing those kept under its name."""
        self._insert("dataset", facts, "REPLACE")

    def datasets(self) -> list[DatasetFacts]:
        """Return the properties of the data sets, sorted by name."""
        return self._select(DatasetFacts, "dataset", "ORDER BY name")

    # ------------------------------------------------------------------ results

    def add_row(self, key: str, row: Row) -> None:
        """Add the result of one outer fold; when this returns, it is on disk.

        If there is already a result for the same key, repeat and fold, it stays and this one is dropped.

        Parameters
        ----------
        key : str
            Identifies the conditions under which the row was computed, see `treegram.study.protocol.entry_key`.
        row : Row
            The result. Its ``chosen`` must be fit for JSON.
        """
        self._insert("result", row, "IGNORE", key=key)

    def rows(self, keys: Collection[str] | None = None) -> list[Row]:
        """Return the results of these keys, or all results, sorted by data set, kernel, repeat and fold."""
        rows = self._select_keys(Row, "result", keys)
        return sorted(rows, key=lambda row: (row.dataset, row.kernel, row.repeat, row.fold))

    def done(self, key: str) -> set[tuple[int, int]]:
        """Return the pairs (repeat, fold) that have a result under this key."""
        return set(self._fetch("SELECT repeat, fold FROM result WHERE key = ?", (key,)))

    def add_gram_time(self, key: str, time: GramTime) -> None:
        """Add the time of one Gram matrix, unless there is already one under this key."""
        self._insert("gram_time", time, "IGNORE", key=key)

    def gram_times(self, keys: Collection[str] | None = None) -> list[GramTime]:
        """Return the times of these keys, or all times, sorted by data set and kernel."""
        times = self._select_keys(GramTime, "gram_time", keys)
        return sorted(times, key=lambda time: (time.dataset, time.kernel))

    # ------------------------------------------------------------------ statements

    def _fetch(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with _explaining(self.path):
            return self._connection.execute(statement, values).fetchall()

    def _insert(self, table: str, record: Any, conflict: str = "ABORT", **more: Any) -> int:
        values = {column.name: _encode(getattr(record, column.name)) for column in fields(record)} | more
        marks = ", ".join("?" * len(values))
        statement = f"INSERT OR {conflict} INTO {table} ({', '.join(values)}) VALUES ({marks})"
        with _explaining(self.path):
            return self._connection.execute(statement, tuple(values.values())).lastrowid or 0

    def _select(self, record_class: type[T], table: str, condition: str, values: Sequence[Any] = ()) -> list[T]:
        columns = fields(record_class)  # type: ignore[arg-type]  # a dataclass
        names = ", ".join(column.name for column in columns)
        lines = self._fetch(f"SELECT {names} FROM {table} {condition}", values)
        try:
            return [
                record_class(*(_decode(str(column.type), value) for column, value in zip(columns, line, strict=True)))
                for line in lines
            ]
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise StoreError(f"{self.path} is damaged: it holds an impossible record ({error}).") from error

    def _select_keys(self, record_class: type[T], table: str, keys: Collection[str] | None) -> list[T]:
        if keys is None:
            return self._select(record_class, table, "ORDER BY key")
        return [
            record for key in sorted(set(keys)) for record in self._select(record_class, table, "WHERE key = ?", (key,))
        ]


def _encode(value: Any) -> Any:
    """Return a value as stored in a column: mappings as JSON, tuples of numbers as a dtype code and bytes."""
    if isinstance(value, Mapping):
        return json.dumps(dict(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if isinstance(value, tuple):
        is_class = not isinstance(value[0], float)
        array = np.asarray(value, np.min_scalar_type(max(value)) if is_class else np.float64)
        return array.dtype.char.encode() + array.astype(array.dtype.newbyteorder("<")).tobytes()
    return value


_TYPES = {"str": str, "int": int, "bool": int, "float": int | float, "float | None": int | float | None}


def _decode(annotation: str, value: Any) -> Any:
    """Decode a value for a field with this annotation; a file from elsewhere may contain anything."""
    if annotation.startswith("Mapping"):
        content = json.loads(value, parse_int=_parse_int)
        if not isinstance(content, dict):
            raise TypeError(f"{reprlib.repr(value)} is not a table")
        return content
    if annotation.startswith("tuple"):
        dtype = np.dtype(chr(value[0]))
        if dtype.kind not in "uif":
            raise TypeError(f"numbers have the type {dtype}")
        return tuple(np.frombuffer(value, dtype.newbyteorder("<"), offset=1).tolist())
    if not isinstance(value, _TYPES[annotation]):
        raise TypeError(f"{reprlib.repr(value)} is not of type {annotation}")
    return bool(value) if annotation == "bool" else value


def _parse_int(digits: str) -> int:
    """Convert a whole number in JSON; those that no float can hold are forged."""
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number has {len(digits)} digits")
    return int(digits)


# -------------------------------------------------------------------- the file


@contextlib.contextmanager
def _explaining(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into a `StoreError` that names the file, the reason, and what to do."""
    try:
        yield
    except sqlite3.ProgrammingError:  # a mistake of the caller, such as using a closed store
        raise
    except (sqlite3.Error, UnicodeDecodeError) as error:
        reason = str(error).split("\n")[0]
        # Text that is not UTF-8 is also an OperationalError, but one without a code.
        if isinstance(error, sqlite3.OperationalError) and hasattr(error, "sqlite_errorcode"):
            kept = " Everything that was finished before is safe in it." if path.is_file() else ""
            raise StoreError(f"{path} could not be read or written: {reason}.{kept}") from error
        raise StoreError(f"{path} {_DAMAGED} ({reason}).") from error


def _prepare(path: Path, connection: sqlite3.Connection, *, create: bool) -> None:
    """Create the tables in an empty file, or check that the file has them."""

    def ask(question: str) -> Any:
        return connection.execute(question).fetchone()[0]

    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA fullfsync = ON")  # macOS: through to the disk, as fsync means elsewhere
    is_empty = ask("SELECT count(*) FROM sqlite_master") == 0
    if is_empty and create:
        marks = f"PRAGMA application_id = {_APPLICATION_ID}; PRAGMA user_version = {_VERSION};"
        connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} {marks} COMMIT")  # two processes may create it at once
    if ask("PRAGMA application_id") != _APPLICATION_ID:
        content = "is empty" if is_empty else "is an SQLite file of another program"
        raise StoreError(f"{path} {content}, not a store of results; use another file.")
    if (version := ask("PRAGMA user_version")) != _VERSION:
        raise StoreError(
            f"{path} is a store of version {version}, but this treegram reads version {_VERSION}; use the treegram that "
            "wrote it, or another file."
        )
    if (verdict := ask("PRAGMA quick_check(1)")) != "ok":
        raise StoreError(f"{path} {_DAMAGED} ({verdict}).")
