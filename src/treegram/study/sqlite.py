"""The SQLite file behind a store: its tables, and the way in that trusts nothing it finds.

A store may come from a stranger. Its schema must be exactly ours (so no trigger or view of it can run), the file must be
sound, and whatever is wrong with it ends in a `StoreError` that says what. The file is left as it was.
"""

from __future__ import annotations

import contextlib
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from treegram._core.errors import StoreError

__all__ = ["VERSION", "connect", "set_journal", "telling", "upgrade", "version_of"]

_APPLICATION_ID = 0x5472476D  # "TrGm"; marks the file as ours
VERSION = 4  # of the tables below
_OLDER = 3  # can be read too, and is upgraded by the first who writes
_SHORTEST = 100  # bytes, SQLite's header; SQLite itself takes a file of one byte for an empty one, and would fill it
_PATIENCE = 60.0  # seconds to wait for another process that writes: its writes take milliseconds, compacting seconds

_SCHEMA = """
CREATE TABLE run (
    id INTEGER PRIMARY KEY, started TEXT NOT NULL, command TEXT NOT NULL, versions TEXT NOT NULL, machine TEXT NOT NULL
);
CREATE TABLE study (only INTEGER PRIMARY KEY CHECK (only = 1), name TEXT NOT NULL, text TEXT NOT NULL);
CREATE TABLE dataset (
    name TEXT NOT NULL PRIMARY KEY, n_graphs INTEGER NOT NULL, class_counts TEXT NOT NULL,
    mean_nodes REAL NOT NULL, mean_edges REAL NOT NULL, n_attributes INTEGER NOT NULL, digest TEXT NOT NULL,
    numbers TEXT
) WITHOUT ROWID;
CREATE TABLE result (
    key TEXT NOT NULL, dataset TEXT NOT NULL, kernel TEXT NOT NULL, repeat INTEGER NOT NULL, fold INTEGER NOT NULL,
    score REAL NOT NULL, actual BLOB NOT NULL, predicted BLOB NOT NULL, chosen TEXT NOT NULL,
    inner_score REAL NOT NULL, n_fits INTEGER NOT NULL, n_unconverged INTEGER NOT NULL, seconds REAL NOT NULL,
    run INTEGER NOT NULL, target TEXT, decisions BLOB,
    PRIMARY KEY (key, repeat, fold)
) WITHOUT ROWID;
CREATE TABLE gram_time (
    key TEXT NOT NULL PRIMARY KEY, dataset TEXT NOT NULL, kernel TEXT NOT NULL, parameters TEXT NOT NULL,
    seconds REAL NOT NULL, learns INTEGER NOT NULL, run INTEGER NOT NULL
) WITHOUT ROWID;
"""

# Version 3 knew classes alone, and kept no decisions.
_OLDER_SCHEMA = _SCHEMA
for _now, _then in (
    (" NOT NULL,\n    numbers TEXT\n", " NOT NULL\n"),
    (" target TEXT, decisions BLOB,", ""),
    (" score REAL", " accuracy REAL"),
    (" inner_score REAL", " inner_accuracy REAL"),
):
    _OLDER_SCHEMA = _OLDER_SCHEMA.replace(_now, _then)
_SCHEMAS = {_OLDER: _OLDER_SCHEMA, VERSION: _SCHEMA}

_SAFE = "All that was finished before is safe in it"
_MEANINGS = {
    sqlite3.SQLITE_FULL: f"could not be written to: the disk is full. {_SAFE}; make room and run the same command again.",
    sqlite3.SQLITE_IOERR: f"could not be read or written to: the disk fails, or its quota is used up. {_SAFE}; "
    "run the same command again when the disk works.",
    sqlite3.SQLITE_READONLY: f"could not be written to: the file or its folder is read-only. {_SAFE}; "
    "make both writable, or work on a copy.",
    sqlite3.SQLITE_BUSY: f"is kept busy by another process. {_SAFE}; run the same command again when that process has ended.",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; the file must be readable, and its folder writable.",
    sqlite3.SQLITE_NOTADB: "is not a store of results, or it is damaged; give another file, or a copy from a backup.",
    sqlite3.SQLITE_CORRUPT: "is damaged; give another file, or a copy from a backup.",
}
_OTHER = f"could not be read or written to. {_SAFE}."


@contextlib.contextmanager
def telling(path: Path) -> Iterator[None]:
    """Turn what SQLite raises into a `StoreError` that names the file, what happened, and what to do."""
    try:
        yield
    except sqlite3.ProgrammingError:  # a mistake of the caller, such as a store that is closed
        raise
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)  # without a code: text that is no text
        meaning = _MEANINGS.get(code & 0xFF, _OTHER)
        raise StoreError(f"{path} {meaning} (SQLite says: {error}.)") from error
    except UnicodeDecodeError as error:  # SQLite quotes the damaged text in its message
        raise StoreError(f"{path} {_MEANINGS[sqlite3.SQLITE_CORRUPT]}") from error


def connect(path: Path, *, create: bool) -> sqlite3.Connection:
    """A connection to a sound store of this version, each statement a transaction; to a new one if it may be created."""
    _check_path(path, create=create)
    mode = "rwc" if create else "rw"
    with telling(path):
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=_PATIENCE, isolation_level=None
        )
    try:
        with telling(path):
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA fullfsync = ON")  # macOS: through to the disk, as fsync means elsewhere
            # The log goes into the file after each write, so that a copy of the file alone lacks nothing that was finished.
            connection.execute("PRAGMA wal_autocheckpoint = 1")
            if create:
                _create_tables(connection)
            connection.execute("BEGIN")  # so that no other process writes between two checks
            _check_content(path, connection)
            connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def version_of(connection: sqlite3.Connection) -> int:
    """The version of a store's tables, which another process may just have upgraded."""
    return int(_pragma(connection, "user_version"))


def upgrade(connection: sqlite3.Connection) -> None:
    """Make the tables those of this version, with all that is in them; all or nothing."""
    statements = {statement.split()[2]: statement for statement in _SCHEMA.split(";\n") if statement}
    with _writing(connection):
        if version_of(connection) == VERSION:
            return
        for table in ("dataset", "result"):
            connection.execute(f"CREATE TEMPORARY TABLE older AS SELECT * FROM main.{table}")
            connection.execute(f"DROP TABLE main.{table}")
            connection.execute(statements[table])
            # New columns come last, and nothing is known of them.
            new = ", NULL" if table == "dataset" else ", NULL, NULL"
            connection.execute(f"INSERT INTO main.{table} SELECT *{new} FROM older")
            connection.execute("DROP TABLE older")
        connection.execute(f"PRAGMA user_version = {VERSION}")


def set_journal(connection: sqlite3.Connection, mode: str) -> bool:
    """Change the journal; whether this disk can have it. An error at once if another process uses the file."""
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        return bool(_pragma(connection, f"journal_mode = {mode}") == mode)
    finally:
        connection.execute(f"PRAGMA busy_timeout = {round(_PATIENCE * 1000)}")


def _check_path(path: Path, *, create: bool) -> None:
    """Raise if there can be no store at this path."""
    try:
        found = path.stat()
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise StoreError(f"The folder {path.parent} of the store {path} does not exist; create it first.") from None
        if not create:
            raise StoreError(f"There is no store {path}; check its name, or run a study that writes it.") from None
    except OSError as error:
        raise StoreError(f"The store {path} cannot be reached ({error.strerror}).") from error
    else:
        if stat.S_ISDIR(found.st_mode):
            raise StoreError(f"{path} is a folder; a store is a file, for example {path / 'results.db'}.")
        if not stat.S_ISREG(found.st_mode):
            raise StoreError(f"{path} is not an ordinary file, as a store must be.")
        if 0 < found.st_size < _SHORTEST:
            raise StoreError(f"{path} {_MEANINGS[sqlite3.SQLITE_NOTADB]}")


def _create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables if the file is empty. All or nothing, also if two processes try at once or one is killed."""
    if not _is_empty(connection):
        return
    with _writing(connection):
        if _is_empty(connection):
            for statement in _SCHEMA.split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")


@contextlib.contextmanager
def _writing(connection: sqlite3.Connection) -> Iterator[None]:
    """One transaction, in which nobody else writes: all of it, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite has rolled back by itself after some errors
            connection.execute("ROLLBACK")
        raise


def _is_empty(connection: sqlite3.Connection) -> bool:
    (n_objects,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return bool(n_objects == 0 and _pragma(connection, "application_id") == _pragma(connection, "user_version") == 0)


def _check_content(path: Path, connection: sqlite3.Connection) -> None:
    """Raise if the file is not a sound store of this version."""
    if _pragma(connection, "application_id") != _APPLICATION_ID:
        content = "is empty" if _is_empty(connection) else "is an SQLite file of another program"
        raise StoreError(f"{path} {content}, not a store of results; give another file.")
    version = version_of(connection)
    if version not in _SCHEMAS:
        raise StoreError(
            f"{path} is a store of version {version}, but this treegram reads versions {_OLDER} and {VERSION}; "
            "use the treegram that wrote it, or give another file."
        )
    with contextlib.closing(sqlite3.connect(":memory:")) as model:
        model.executescript(_SCHEMAS[version])
        if _objects(connection) != _objects(model):
            raise StoreError(
                f"{path} does not have exactly the tables of a store: it is damaged or not to be trusted; give another file."
            )
    verdict = _pragma(connection, "quick_check(1)")
    if verdict != "ok":
        raise StoreError(f"{path} {_MEANINGS[sqlite3.SQLITE_CORRUPT]} (SQLite says: {verdict}.)")
    # SQLite reads what is missing of the last page as zeros. A log may hold the rest of it; without one it is lost.
    if _pragma(connection, "journal_mode") != "wal" and path.stat().st_size % _pragma(connection, "page_size"):
        raise StoreError(f"{path} {_MEANINGS[sqlite3.SQLITE_CORRUPT]} (The end is missing.)")


def _objects(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
    return connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()


def _pragma(connection: sqlite3.Connection, name: str) -> Any:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return value
