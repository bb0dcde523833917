"""Where results are kept: one SQLite file to which each finished unit of work is added at once.

A unit that was added is there after ``kill -9`` and after a power cut; one that was not leaves no trace. Records are
never changed, and never pickled: they are numbers, text and JSON, so a store from a stranger can be read safely.
"""

from __future__ import annotations

import contextlib
import sqlite3
import struct
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from treegram._core.errors import StoreError
from treegram._core.machine import describe_machine, package_versions
from treegram.study.claims import Claims
from treegram.study.records import DatasetFacts, GramTime, Row, Run
from treegram.study.sqlite import VERSION, connect, set_journal, telling, upgrade, version_of
from treegram.study.tables import DATASET, GRAM_TIME, RESULT, RUN, Table

__all__ = ["Store"]

T = TypeVar("T")


class Store:
    """One file of results, open; a context manager that closes it.

    Make it by `Store.open`. Several processes may use one file at the same time, each with a store of its own, and a
    thread needs its own too. Reading changes no byte of the file. A store of version 3 becomes one of this version when
    something is added to it.

    While there are writers, files that end in ``-wal`` and ``-shm`` stand beside it and belong to it, but what was added is
    in the file itself as well, so that a copy of it is a backup; one that is made during a write may lack that row, or be
    refused as damaged. When the last writer closes, one file holds all. What a killed process leaves behind is put in order
    by whoever opens the store next.
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

    def begin_run(self, command: str, made_of: Mapping[str, str] | None = None) -> Run:
        """Note that a process begins to add to this store, with what, and on what kind of machine.

        Parameters
        ----------
        command : str
            What was asked for. It is stored as it is, so it should name no private folder.
        made_of : mapping of str to str, optional
            What the rows depend on beside the versions of packages, to be kept with these.

        Returns
        -------
        Run
            The record; its ``id`` belongs into the rows that this process adds.
        """
        started = datetime.now(UTC).isoformat(timespec="seconds")
        versions, machine = package_versions(), describe_machine()
        run = Run(0, started, command, {**versions, **(made_of or {})}, machine)
        return replace(run, id=self._write(*RUN.insertion(run)))

    def runs(self) -> list[Run]:
        """All processes that have added to this store, in the order of their ids."""
        return self._read(RUN, "ORDER BY id")

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
        kept = self.study_name()
        if kept != name:
            raise StoreError(f"{self.path} holds the study {kept!r}; give another file for the study {name!r}.")

    def study_name(self) -> str | None:
        """The name of the study that was run; None if no study has been put in."""
        return self._study()[0]

    def study_text(self) -> str | None:
        """The text of the study file that was run; None if no study has been put in."""
        return self._study()[1]

    def _study(self) -> tuple[str, str] | tuple[None, None]:
        lines = self._lines("SELECT name, text FROM study")
        return (str(lines[0][0]), str(lines[0][1])) if lines else (None, None)

    def put_dataset(self, facts: DatasetFacts) -> None:
        """Keep what a report says about a data set, in place of what was kept under its name."""
        statement, values = DATASET.insertion(facts)
        self._write(statement.replace("INSERT", "INSERT OR REPLACE", 1), values)

    def datasets(self) -> list[DatasetFacts]:
        """What is known of the data sets, sorted by name."""
        return self._read(DATASET, "ORDER BY name")

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
            list), its classes are below 65,536, and its decisions are numbers of single precision.
        """
        statement, values = RESULT.insertion(row, key=key)
        # Not OR IGNORE, which would swallow a broken row as well.
        self._write(f"{statement} ON CONFLICT (key, repeat, fold) DO NOTHING", values)

    def rows(self, keys: Collection[str] | None = None) -> list[Row]:
        """The results of the given keys, or all; sorted by data set, kernel, repeat and fold."""
        rows = self._read_keys(RESULT, keys)
        return sorted(rows, key=lambda row: (row.dataset, row.kernel, row.repeat, row.fold))

    def done(self, key: str) -> set[tuple[int, int]]:
        """Which (repeat, fold) have a result under this key."""
        return {(repeat, fold) for repeat, fold in self._lines("SELECT repeat, fold FROM result WHERE key = ?", (key,))}

    def add_gram_time(self, key: str, time: GramTime) -> None:
        """Add the time of one Gram matrix, on the terms of `add_row`; there is one for each key."""
        statement, values = GRAM_TIME.insertion(time, key=key)
        self._write(f"{statement} ON CONFLICT (key) DO NOTHING", values)

    def gram_times(self, keys: Collection[str] | None = None) -> list[GramTime]:
        """The times of the given keys, or all; sorted by data set and kernel."""
        return sorted(self._read_keys(GRAM_TIME, keys), key=lambda time: (time.dataset, time.kernel))

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
            if version_of(self._connection) != VERSION:
                upgrade(self._connection)
            return self._connection.execute(statement, values).lastrowid or 0

    def _lines(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with telling(self.path):
            return self._connection.execute(query, values).fetchall()

    def _read(self, table: Table[T], condition: str, values: tuple[Any, ...] = ()) -> list[T]:
        """The records of the lines that meet a condition."""
        with telling(self.path):
            version = version_of(self._connection)
        lines = self._lines(f"{table.selection(version)} {condition}", values)
        try:
            return [table.build(line) for line in lines]
        except (ValueError, TypeError, OverflowError, RecursionError, struct.error) as error:
            raise StoreError(f"{self.path} is damaged: it holds a record that cannot be right ({error}).") from error

    def _read_keys(self, table: Table[T], keys: Collection[str] | None) -> list[T]:
        """As `_read`, in the order of the keys, so that the result does not depend on how the file grew."""
        if keys is None:
            return self._read(table, "ORDER BY key")
        return [record for key in sorted(set(keys)) for record in self._read(table, "WHERE key = ?", (key,))]
