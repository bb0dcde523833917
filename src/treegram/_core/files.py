"""Write files and folders that appear complete or not at all, whatever happens while they are written.

Content is written under a temporary name in the folder of its target, synced to the disk, and renamed. The temporary name is
random and created exclusively, so that no symbolic link is followed and no two processes share it. The writer holds a lock on
it; a temporary file or folder without a lock belongs to a killed process, and the next writer in the same folder removes it.
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
_MARGIN = 1 << 20  # bytes for whatever else a file contains

# -------------------------------------------------------------------- before the computation


def check_writable(path: Path) -> None:
    """Raise if no file can be written to this path, before an hour of computation is lost."""
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
    """Raise if the disk of this path has less free space than this."""
    free = shutil.disk_usage(path.parent).free
    if n_bytes + _MARGIN > free:
        raise OSError(f"{path} needs {n_bytes / 1e9:.3g} GB, but the disk has only {free / 1e9:.3g} GB left.")


# -------------------------------------------------------------------- writing


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BufferedRandom]:
    """Open a file for writing that appears at this path, or replaces an older file, only if no error occurs.

    It gets the permissions of the older file. A symbolic link at this path is replaced, not followed.
    """
    remove_leftovers(path.parent)
    mode = _permissions(path)
    try:
        with _temporary_file(path.parent, 0o666 if mode is None else mode) as (file, temporary):
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), mode)  # the umask may have removed some
            yield file
            sync(file)
            if fcntl is None:  # Windows renames closed files only
                file.close()
            temporary.replace(path)  # still locked: otherwise another writer would take it for a leftover
            sync_folder(path.parent)
    except OSError as error:
        if error.filename is None:  # a full disk: say which
            error.filename = str(path)
        raise


@contextlib.contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """Create a private folder for work in progress, from which finished results are renamed; it is removed in the end."""
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
    """Lock a folder, or raise StoreError if another process has locked it. Windows has no such locks."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise StoreError(
            f"Another process is writing to {folder}. Wait until it has ended, or choose another path."
        ) from None
    except OSError:  # a file system without locks
        pass
    try:
        yield
    finally:
        os.close(descriptor)


def sync(file: BufferedRandom) -> None:
    """Flush what was written so far to the disk; a full disk raises here at the latest."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, on systems that can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _permissions(path: Path) -> int | None:
    """Return the permissions of the regular file at this path, or None."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return None
    return mode & 0o777 if stat.S_ISREG(mode) else None


# -------------------------------------------------------------------- temporary names


@contextlib.contextmanager
def _temporary_file(folder: Path, mode: int) -> Iterator[tuple[BufferedRandom, Path]]:
    """Create a file; it is removed in the end unless it was renamed."""
    file, path = _create_file(folder, mode)
    try:
        yield file, path
    finally:
        try:
            file.close()  # writes what is buffered, which a full disk refuses
        finally:
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


# -------------------------------------------------------------------- locks of living writers


def _lock(descriptor: int, path: Path) -> bool:
    """Lock a new file or folder; return False if another process took it for a leftover and removed it."""
    if fcntl is not None:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    return path.exists()


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files and folders in this folder whose writers were killed, as far as that is possible."""
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
        # Keep the lock until the file is gone: a writer that has just created it waits, and then chooses another name.
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
