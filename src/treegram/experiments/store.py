"""Where results are kept: one SQLite file to which each finished unit of work is added at once.

A unit that was added is there after ``kill -9`` and after a power cut; one that was not leaves no trace. Records are
never changed, and never pickled: numbers, text and JSON alone, so that a store of a stranger can be read without fear.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from treegram._machine import describe_machine, package_versions
from treegram.errors import StoreError
from treegram.experiments._claims import Claims
from treegram.experiments._sqlite import connect, set_journal, telling
from treegram.experiments.records import DatasetFacts, GramTime, Row, Run

__all__ = ["Store"]

T = TypeVar("T")
_LARGEST = 1e300  # of the numbers in JSON


class Store:
    """One file of results, open; a context manager that closes it.

    Make it by `Store.open`. Several processes may use one file at the same time, each with a store of its own, and a
    thread needs its own too. Reading changes no byte of the file.

    While there are writers, files that end in ``-wal`` and ``-shm`` stand beside it and belong to it. When the last one
    closes, one file holds all. What a killed process leaves behind is put in order by whoever opens the store next.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._claims = Claims(path.with_name(path.name + ".lock"))
        self._has_wal = False  # whether this store has made the journal a write-ahead log

    @classmethod
    def open(cls, path: str | Path, *, create: bool = True) -> Self:
        """Open a store.

        Parameters
        ----------
        path : str or Path
            The file.
        create : bool, default=True
            Whether a store is made where there is no file or an empty one.

        Returns
        -------
        Store
            The open store.

        Raises
        ------
        StoreError
            If there is none, if it cannot be opened, is damaged, of another version, or something else. A file that is
            there is left as it is.
        """
        path = Path(path)
        return cls(path, connect(path, create=create))

    def close(self) -> None:
        """Release all claims and close the file; closing twice does no harm."""
        self._claims.release_all()
        if self._has_wal:
            # A file without a log can also be read from a disk that is read-only. Other writers need the log still.
            with contextlib.suppress(sqlite3.DatabaseError):
                set_journal(self._connection, "delete")
            self._has_wal = False
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # ------------------------------------------------------------------ about the run

    def begin_run(self, command: str) -> Run:
        """Note that a process begins to add to this store, with what, and on what kind of machine.

        Parameters
        ----------
        command : str
            What was asked for. It is stored as it is, so it should name no private folder.

        Returns
        -------
        Run
            The record; its ``id`` belongs into the rows that this process adds.
        """
        started = datetime.now(UTC).isoformat(timespec="seconds")
        versions, machine = package_versions(), describe_machine()
        number = self._write(
            "INSERT INTO run (started, command, versions, machine) VALUES (?, ?, ?, ?)",
            (started, command, _to_json(versions), _to_json(machine)),
        )
        return Run(number, started, command, versions, machine)

    def runs(self) -> list[Run]:
        """All processes that have added to this store, in the order of their ids."""
        return self._read(_run, "SELECT id, started, command, versions, machine FROM run ORDER BY id")

    def put_study(self, name: str, text: str) -> None:
        """Keep the text of the study file, in place of an older text of the same study.

        Raises
        ------
        StoreError
            If the store belongs to a study of another name.
        """
        self._write(
            "INSERT INTO study (only, name, text) VALUES (1, ?, ?) "
            "ON CONFLICT (only) DO UPDATE SET text = excluded.text WHERE name = excluded.name",
            (name, text),
        )
        (kept,) = self._read(str, "SELECT name FROM study")
        if kept != name:
            raise StoreError(f"{self.path} holds the study {kept!r}; give another file for the study {name!r}.")

    def study_name(self) -> str | None:
        """The name of the study that was run; None if no study has been put in."""
        names = self._read(str, "SELECT name FROM study")
        return names[0] if names else None

    def study_text(self) -> str | None:
        """The text of the study file that was run; None if no study has been put in."""
        texts = self._read(str, "SELECT text FROM study")
        return texts[0] if texts else None

    def put_dataset(self, facts: DatasetFacts) -> None:
        """Keep what a report says about a data set, in place of what was kept under its name."""
        self._write(
            "INSERT OR REPLACE INTO dataset "
            "(name, n_graphs, class_counts, mean_nodes, mean_edges, n_attributes, digest) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                facts.name,
                int(facts.n_graphs),
                _to_json(facts.class_counts),
                float(facts.mean_nodes),
                float(facts.mean_edges),
                int(facts.n_attributes),
                facts.digest,
            ),
        )

    def datasets(self) -> list[DatasetFacts]:
        """What is known of the data sets, sorted by name."""
        return self._read(
            _facts,
            "SELECT name, n_graphs, class_counts, mean_nodes, mean_edges, n_attributes, digest FROM dataset "
            "ORDER BY name",
        )

    # ------------------------------------------------------------------ results

    def add_row(self, key: str, row: Row) -> None:
        """Add the result of one outer fold; when this returns, it is on the disk.

        If there is a result of the same key, repeat and fold already, it stays and this one is dropped.

        Parameters
        ----------
        key : str
            Says under which conditions the row was made: all that could change it, besides repeat and fold.
        row : Row
            The result. Its ``chosen`` holds texts, numbers, true, false, None and lists of these (a tuple comes back as a
            list), and its classes are below 65,536.
        """
        self._write(
            # Not OR IGNORE, which would swallow a broken row as well.
            "INSERT INTO result (key, dataset, kernel, repeat, fold, accuracy, actual, predicted, chosen, inner_accuracy, "
            "n_fits, n_unconverged, seconds, run) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (key, repeat, fold) DO NOTHING",
            (
                key,
                row.dataset,
                row.kernel,
                int(row.repeat),
                int(row.fold),
                row.accuracy,
                _pack(row.actual),
                _pack(row.predicted),
                _to_json(row.chosen, sort_keys=True),
                float(row.inner_accuracy),
                int(row.n_fits),
                int(row.n_unconverged),
                float(row.seconds),
                int(row.run),
            ),
        )

    def rows(self, keys: Collection[str] | None = None) -> list[Row]:
        """The results of the given keys, or all; sorted by data set, kernel, repeat and fold."""
        query = (
            "SELECT dataset, kernel, repeat, fold, accuracy, actual, predicted, chosen, inner_accuracy, "
            "n_fits, n_unconverged, seconds, run FROM result"
        )
        rows = self._read_keys(_row, query, keys)
        return sorted(rows, key=lambda row: (row.dataset, row.kernel, row.repeat, row.fold))

    def done(self, key: str) -> set[tuple[int, int]]:
        """Which (repeat, fold) have a result under this key."""
        return set(self._read(_repeat_and_fold, "SELECT repeat, fold FROM result WHERE key = ?", (key,)))

    def add_gram_time(self, key: str, time: GramTime) -> None:
        """Add the time of one Gram matrix, on the terms of `add_row`; there is one for each key."""
        self._write(
            "INSERT INTO gram_time (key, dataset, kernel, parameters, seconds, learns, run) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (key) DO NOTHING",
            (
                key,
                time.dataset,
                time.kernel,
                _to_json(time.parameters, sort_keys=True),
                float(time.seconds),
                int(time.learns),
                int(time.run),
            ),
        )

    def gram_times(self, keys: Collection[str] | None = None) -> list[GramTime]:
        """The times of the given keys, or all; sorted by data set and kernel."""
        query = "SELECT dataset, kernel, parameters, seconds, learns, run FROM gram_time"
        return sorted(self._read_keys(_gram_time, query, keys), key=lambda time: (time.dataset, time.kernel))

    # ------------------------------------------------------------------ sharing, tidying

    def claim(self, task_id: str) -> bool:
        """Try to become the only one who works on a task.

        A claim lasts until it is released, the store is closed, or the process ends in whatever way. Claims live in an
        empty file beside the store whose name ends in ``.lock``; it may be deleted when nobody is at work. Where the
        system has no such locks (Windows), every claim is granted: some work may be done twice, and the second result
        dropped.

        Parameters
        ----------
        task_id : str
            Any text that names the task.

        Returns
        -------
        bool
            False if somebody works on it, in another process or in this one.
        """
        return self._claims.claim(task_id)

    def release(self, task_id: str) -> None:
        """Give up a claim; a task that this store has not claimed is left alone."""
        self._claims.release(task_id)

    def compact(self) -> None:
        """Bring all into one file that is as small as it can be, to copy or to commit.

        Raises
        ------
        StoreError
            If another process has the store open.
        """
        with telling(self.path):
            set_journal(self._connection, "delete")
            self._has_wal = False
            self._connection.execute("VACUUM")

    # ------------------------------------------------------------------ the ways to the file

    def _write(self, statement: str, values: tuple[Any, ...]) -> int:
        """Run one statement as one transaction; gives the number of the row that was added."""
        with telling(self.path):
            if not self._has_wal:
                with contextlib.suppress(sqlite3.OperationalError):  # not now: the plain journal is as safe
                    self._has_wal = set_journal(self._connection, "wal")
            return self._connection.execute(statement, values).lastrowid or 0

    def _read(self, build: Callable[..., T], query: str, values: tuple[Any, ...] = ()) -> list[T]:
        """Build a record from each line that the query gives."""
        with telling(self.path):
            lines = self._connection.execute(query, values).fetchall()
        try:
            return [build(*line) for line in lines]
        except (ValueError, TypeError, OverflowError, RecursionError, struct.error) as error:
            raise StoreError(f"{self.path} is damaged: it holds a record that cannot be right ({error}).") from error

    def _read_keys(self, build: Callable[..., T], query: str, keys: Collection[str] | None) -> list[T]:
        """As `_read`, in the order of the keys, so that the result does not depend on how the file grew."""
        if keys is None:
            return self._read(build, f"{query} ORDER BY key")
        return [record for key in sorted(set(keys)) for record in self._read(build, f"{query} WHERE key = ?", (key,))]


def _to_json(value: Mapping[str, Any], *, sort_keys: bool = False) -> str:
    return json.dumps(_check_values(dict(value)), sort_keys=sort_keys, ensure_ascii=False)


def _from_json(text: Any) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise TypeError(f"expected a JSON object, got {type(value).__name__}")
    return _check_values(value)


def _check_values(values: dict[str, Any]) -> dict[str, Any]:
    """The same; raise unless they are texts, numbers of a usual size, true, false, None, or lists of these."""
    for name, value in values.items():
        for one in value if isinstance(value, list | tuple) else [value]:
            if not isinstance(one, str | bool | None) and not (isinstance(one, int | float) and abs(one) < _LARGEST):
                raise ValueError(f"{str(name)[:40]!r} is neither a text, nor a number below 1e300, nor a list of these")
    return values


def _pack(classes: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(classes)}H", *classes)


def _unpack(content: Any) -> tuple[int, ...]:
    return struct.unpack(f"<{len(content) // 2}H", content)


# Each takes the columns of its query and insists on their types: SQLite does not.


def _run(number: Any, started: Any, command: Any, versions: Any, machine: Any) -> Run:
    return Run(int(number), str(started), str(command), _from_json(versions), _from_json(machine))


def _facts(
    name: Any, n_graphs: Any, counts: Any, mean_nodes: Any, mean_edges: Any, n_attributes: Any, digest: Any
) -> DatasetFacts:
    class_counts = {label: int(count) for label, count in _from_json(counts).items()}
    sizes = float(mean_nodes), float(mean_edges)
    return DatasetFacts(str(name), int(n_graphs), class_counts, *sizes, int(n_attributes), str(digest))


def _gram_time(dataset: Any, kernel: Any, parameters: Any, seconds: Any, learns: Any, run: Any) -> GramTime:
    return GramTime(str(dataset), str(kernel), _from_json(parameters), float(seconds), bool(learns), int(run))


def _repeat_and_fold(repeat: Any, fold: Any) -> tuple[int, int]:
    return int(repeat), int(fold)


def _row(
    dataset: Any,
    kernel: Any,
    repeat: Any,
    fold: Any,
    accuracy: Any,
    actual: Any,
    predicted: Any,
    chosen: Any,
    inner_accuracy: Any,
    n_fits: Any,
    n_unconverged: Any,
    seconds: Any,
    run: Any,
) -> Row:
    row = Row(
        dataset=str(dataset),
        kernel=str(kernel),
        repeat=int(repeat),
        fold=int(fold),
        actual=_unpack(actual),
        predicted=_unpack(predicted),
        chosen=_from_json(chosen),
        inner_accuracy=float(inner_accuracy),
        n_fits=int(n_fits),
        n_unconverged=int(n_unconverged),
        seconds=float(seconds),
        run=int(run),
    )
    if row.accuracy != float(accuracy):
        raise ValueError(f"the accuracy {accuracy}, where the predicted classes give {row.accuracy}")
    return row
