"""Files and folders that are complete in their place or not there at all, whatever happens while they are written.

Content is written under a temporary name in the folder of its target, synced to the disk, and renamed. The name cannot
be guessed and is created exclusively, so no symbolic link is followed and no two processes share it. The writer holds a
lock on it; a temporary file or folder without a lock belongs to a process that was killed, and the next writer in the same
folder removes it.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from functools import partial
from io import BufferedRandom
from pathlib import Path

from treegram._core.errors import StoreError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "check_space",
    "check_writable",
    "only_writer",
    "remove_leftovers",
    "replacing",
    "scratch_folder",
    "sync",
    "sync_folder",
]

_TEMPORARY = re.compile(r"\.treegram-[0-9a-f]{32}\.part")
_DAY = 86_400  # seconds
_MARGIN = 1 << 20  # bytes that the rest of a file may need

# -------------------------------------------------------------------- before the computation


def check_writable(path: Path) -> None:
    """Raise if no file can be written to this path, so that nobody computes for an hour in vain."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} of the output file does not exist; create it first.")
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except FileNotFoundError:
        is_folder = False
    except OSError as error:  # a name that is too long, a loop of links
        raise OSError(f"{path} cannot be written ({error.strerror}); choose another name.") from error
    if is_folder:
        raise IsADirectoryError(f"{path} is a folder; the output must be a file.")
    remove_leftovers(path.parent)
    try:
        with _temporary_file(path.parent, 0o600):
            pass
    except OSError as error:
        raise PermissionError(f"The folder {path.parent} cannot be written to ({error.strerror}).") from error


def check_space(path: Path, n_bytes: int) -> None:
    """Raise if the disk of this path has no room for so many bytes."""
    free = shutil.disk_usage(path.parent).free
    if n_bytes + _MARGIN > free:
        raise OSError(f"{path} would need {n_bytes / 1e9:.3g} GB, but the disk has only {free / 1e9:.3g} GB left.")


# -------------------------------------------------------------------- writing


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BufferedRandom]:
    """A file to write to that takes its place, and that of an older one, only when all has gone well.

    It keeps the permissions of the older file. A symbolic link at this path is replaced, not followed.
    """
    remove_leftovers(path.parent)
    mode = _permissions(path)
    with _temporary_file(path.parent, 0o666 if mode is None else mode) as (file, part):
        if mode is not None and hasattr(os, "fchmod"):
            os.fchmod(file.fileno(), mode)  # the umask may have taken some
        yield file
        sync(file)
        if fcntl is None:  # Windows renames closed files only
            file.close()
        part.replace(path)  # still locked: without the lock, another writer would take it for a leftover
        sync_folder(path.parent)


@contextlib.contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """A new, private folder for work in progress, to rename finished files or folders from; it is removed in the end."""
    remove_leftovers(parent)
    folder, lock = _create_folder(parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


@contextlib.contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Make a folder if there is none, and write to it as the only process that does; a second one gets an error.

    What a killed writer left under temporary names (``*.partial``) is removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        if hasattr(os, "O_DIRECTORY"):  # Windows has no locks here: there the second writer is not noticed
            descriptor = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            if not _has_no_writer(descriptor):
                raise StoreError(
                    f"Another process is writing to {folder}. Wait until it has ended, or choose another path."
                )
        for leftover in folder.rglob("*.partial"):
            leftover.unlink(missing_ok=True)
        yield


def sync(file: BufferedRandom) -> None:
    """Bring what was written so far to the disk: a full disk shows here at the latest."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Bring renamed and removed names of a folder to the disk, on systems that can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _permissions(path: Path) -> int | None:
    """Those of the regular file at this path, if there is one."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return None
    return mode & 0o777 if stat.S_ISREG(mode) else None


# -------------------------------------------------------------------- temporary names


@contextlib.contextmanager
def _temporary_file(folder: Path, mode: int) -> Iterator[tuple[BufferedRandom, Path]]:
    """A new file and its name; it is removed in the end unless it was renamed."""
    file, path = _create_file(folder, mode)
    try:
        yield file, path
    finally:
        file.close()
        path.unlink(missing_ok=True)


def _create_file(folder: Path, mode: int) -> tuple[BufferedRandom, Path]:
    while True:
        path = _temporary_name(folder)
        file = open(path, "x+b", opener=partial(os.open, mode=mode))  # noqa: SIM115 (Path.open has no opener)
        if _lock(file.fileno(), path):
            return file, path
        file.close()


def _create_folder(parent: Path) -> tuple[Path, int | None]:
    while True:
        path = _temporary_name(parent)
        path.mkdir(mode=0o700)
        if fcntl is None:
            return path, None
        with contextlib.suppress(FileNotFoundError):  # removed as a leftover before it could be locked
            descriptor = os.open(path, os.O_RDONLY)
            if _lock(descriptor, path):
                return path, descriptor
            os.close(descriptor)


def _temporary_name(folder: Path) -> Path:
    return folder / f".treegram-{secrets.token_hex(16)}.part"


# -------------------------------------------------------------------- locks tell whether the writer still lives


def _lock(descriptor: int, path: Path) -> bool:
    """Lock what was just created; false if another process took it for a leftover and removed it."""
    if fcntl is not None:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    return path.exists()


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files and folders in this folder whose writer was killed; what cannot be removed stays."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    _remove_if_abandoned(Path(entry.path))


def _remove_if_abandoned(path: Path) -> None:
    if fcntl is None:
        if _is_old(path.lstat()):
            _remove(path)
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        # The lock is kept until the file is gone: a writer that has just created it waits, and then takes another name.
        if _has_no_writer(descriptor):
            _remove(path)
    finally:
        os.close(descriptor)


def _has_no_writer(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return _is_old(os.fstat(descriptor))
    return True


def _is_old(status: os.stat_result) -> bool:
    return time.time() - status.st_mtime > _DAY


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
