"""Who works on what: claims on tasks that end with the process that made them, however it ends.

A claim is an exclusive lock on one byte of a file, which nobody ever writes to: the byte's position is a hash of the
task's id. The operating system drops the locks of a process that dies, by ``kill -9`` too, so nothing needs to expire.

Such locks belong to a process, not to an open file: a second lock by the same process always succeeds, and closing *any*
descriptor of the file drops them all. Hence each process opens a lock file once, keeps the list of what it holds, and
closes the file when it holds nothing. (A forked child inherits neither locks nor the duty to release them.)
"""

from __future__ import annotations

import hashlib
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path

from treegram._core.errors import StoreError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["Claims"]


@dataclass
class _LockFile:
    """A lock file that this process has open because it holds something in it."""

    descriptor: int
    held: set[int] = field(default_factory=set)


_open_files: dict[Path, _LockFile] = {}
_guard = threading.Lock()  # of _open_files, and of all that is in it


class Claims:
    """The claims of one user of a lock file, which is made when the first task is claimed.

    Parameters
    ----------
    path : Path
        The lock file. It stays when all is done: to delete it would race with a process that has just opened it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()
        self._mine: set[int] = set()

    def claim(self, task_id: str) -> bool:
        """Try to become the only one who works on the task; False if somebody is, in this process or another."""
        if fcntl is None:
            return True
        position = _position(task_id)
        with _guard:
            file = _open_files.get(self._path) or self._open()
            try:
                if position in file.held or not self._lock(file, position):
                    return False
                file.held.add(position)
                self._mine.add(position)
                return True
            finally:
                self._close_if_unused(file)

    def release(self, task_id: str) -> None:
        """Give up the claim on a task, if it was made here."""
        self._release({_position(task_id)} & self._mine)

    def release_all(self) -> None:
        """Give up all claims that were made here."""
        self._release(set(self._mine))

    def _release(self, positions: set[int]) -> None:
        with _guard:
            for position in positions:
                file = _open_files[self._path]
                fcntl.lockf(file.descriptor, fcntl.LOCK_UN, 1, position)
                file.held.remove(position)
                self._mine.remove(position)
                self._close_if_unused(file)

    def _open(self) -> _LockFile:
        try:
            file = _LockFile(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666))
        except OSError as error:
            raise StoreError(
                f"{self._path}, by which processes share the work, cannot be opened for writing ({error.strerror}); "
                "the folder of the store must be writable."
            ) from error
        _open_files[self._path] = file
        return file

    def _lock(self, file: _LockFile, position: int) -> bool:
        try:
            fcntl.lockf(file.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, position)
        except (BlockingIOError, PermissionError):  # systems differ in which of the two says "taken"
            return False
        except OSError as error:
            raise StoreError(
                f"{self._path}, by which processes share the work, cannot be locked ({error.strerror}); "
                "put the store on a disk whose file system has locks."
            ) from error
        return True

    def _close_if_unused(self, file: _LockFile) -> None:
        if not file.held:
            os.close(file.descriptor)
            del _open_files[self._path]


def _position(task_id: str) -> int:
    """62 bits of a hash: file positions are signed 64-bit numbers, and no two tasks of a study will meet."""
    return int.from_bytes(hashlib.sha256(task_id.encode()).digest()[:8], "big") >> 2
