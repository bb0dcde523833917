"""Write files and folders atomically: they appear complete or not at all.

Content is written under a temporary name in the folder of its target, synced to the disk, and renamed. The temporary name is
random and created exclusively, so that no symbolic link is followed and no two processes share it. A killed process may leave
a file ``.treegram-*.part`` behind.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from functools import partial
from io import BufferedRandom
from pathlib import Path

from treegram._core.text import spell_bytes
from treegram.exceptions import StoreError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_PREFIX, _SUFFIX = ".treegram-", ".part"
_MARGIN = 1 << 20  # bytes for everything else in a file


def check_writable(path: Path) -> None:
    """Raise if no file can be written to this path, before an hour of computation is wasted."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} of the output file does not exist; create it first.")
    _check_replaceable(path)
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise PermissionError(f"The folder {path.parent} cannot be written to ({error.strerror}).") from error


def check_space(path: Path, n_bytes: int) -> None:
    """Raise if the disk of this path has less free space than ``n_bytes`` and a margin."""
    free = shutil.disk_usage(path.parent).free
    if n_bytes + _MARGIN > free:
        raise OSError(
            f"The disk of {path} is too full: it has {spell_bytes(free)} left, and the file takes {spell_bytes(n_bytes)}, with "
            f"a margin of {spell_bytes(_MARGIN)}. Make room, or choose another disk."
        )


def _check_replaceable(path: Path) -> None:
    """Raise if there is anything at this path but a regular file, or a link to one."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; the output must be a file.")
    if os.path.lexists(path) and not path.is_file():
        raise FileExistsError(
            errno.EEXIST, "it is no regular file, and would be lost. Choose another path, or remove it first", str(path)
        )


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BufferedRandom]:
    """Open a file for writing that appears at this path, or replaces an older file, only if no error occurs.

    It gets the permissions of the older file. A symbolic link to a file is replaced, not followed; anything else that is no regular
    file, such as a device or a pipe, raises FileExistsError.
    """
    _check_replaceable(path)
    older = path.lstat().st_mode if path.exists() else 0
    mode = older & 0o777 if stat.S_ISREG(older) else 0o666
    temporary = path.parent / f"{_PREFIX}{secrets.token_hex(16)}{_SUFFIX}"
    file = open(temporary, "x+b", opener=partial(os.open, mode=mode))  # noqa: SIM115 (Path.open has no opener)
    try:
        with file:
            if stat.S_ISREG(older) and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), mode)  # the umask may have removed some
            yield file
            file.flush()  # a full disk raises here at the latest
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        error.filename = error.filename or str(path)  # the error of a full disk names no file
        raise
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """Create a private folder for work in progress, and remove it at the end; finished results are moved out of it."""
    with tempfile.TemporaryDirectory(_SUFFIX, _PREFIX, parent, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextlib.contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Lock a folder, or raise StoreError if another process has locked it. Windows has no such locks."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(
                f"Another process is writing to {folder}. Wait until it has ended, or choose another path."
            ) from None
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(descriptor)
