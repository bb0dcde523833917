"""Tests of atomic file writing: a file is complete or absent, whatever interrupts the writer."""

import contextlib
import errno
import os
import re
import resource
import socket
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from treegram._core import files as _files
from treegram._core.files import check_space, check_writable, only_writer, replacing, scratch_folder
from treegram.exceptions import StoreError

unix = pytest.mark.skipif(os.name != "posix", reason="locks, links and permissions as on Unix")
LEFTOVER = ".treegram-" + 32 * "0" + ".part"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write(path, content=b"new"):
    with replacing(path) as file:
        file.write(content)


# -------------------------------------------------------------------- one file


def test_file_appears_only_when_complete(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_error_keeps_the_old_file_and_leaves_nothing_else(tmp_path, error):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail():
        with replacing(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


@unix
def test_full_disk_leaves_nothing_and_is_reported(tmp_path):
    """Closing the file fails too, because it flushes the buffer."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match=re.escape(repr(str(tmp_path / "file")))):
            write(tmp_path / "file", b"x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert names(tmp_path) == []


def test_two_writers_use_different_temporary_files(tmp_path):
    path = tmp_path / "file"
    with replacing(path) as first:
        first.write(b"first")
        with replacing(path) as second:
            second.write(b"2nd")
            assert len(names(tmp_path)) == 2
        assert path.read_bytes() == b"2nd"
    assert path.read_bytes() == b"first"


@unix
def test_temporary_names_are_unpredictable_and_created_exclusively(tmp_path, monkeypatch):
    used = set()
    for _ in range(3):
        with replacing(tmp_path / "file"):
            (name,) = (path.name for path in tmp_path.iterdir() if path.name != "file")
            used.add(name)
    assert len(used) == 3
    assert all(re.fullmatch(r"\.treegram-[0-9a-f]{32}\.part", name) for name in used)
    monkeypatch.setattr(_files.secrets, "token_hex", lambda n: "0" * 2 * n)  # as if an attacker had guessed it
    (tmp_path / LEFTOVER).symlink_to(tmp_path / "victim")
    (tmp_path / "victim").write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        write(tmp_path / "file")
    assert (tmp_path / "victim").read_bytes() == b"precious"
    assert (tmp_path / LEFTOVER).is_symlink()  # files of others are not removed


@unix
def test_symlink_at_the_target_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "victim").write_bytes(b"precious")
    (tmp_path / "file").symlink_to(tmp_path / "victim")
    write(tmp_path / "file")
    assert (tmp_path / "victim").read_bytes() == b"precious"
    assert (tmp_path / "file").read_bytes() == b"new"
    assert not (tmp_path / "file").is_symlink()


@unix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_permissions_of_an_existing_file_are_kept(tmp_path, mode):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)
    with replacing(path) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == mode  # from the first byte on
    assert stat.S_IMODE(path.stat().st_mode) == mode


@unix
def test_new_file_has_default_permissions(tmp_path):
    (tmp_path / "usual").touch()
    write(tmp_path / "file")
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_content_is_synced_before_the_rename(tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr(_files.os, "fsync", lambda descriptor: done.append("sync"))
    monkeypatch.setattr(Path, "replace", lambda self, target: done.append("rename"))
    write(tmp_path / "file")
    assert done == ["sync", "rename"]


# -------------------------------------------------------------------- folders


def test_scratch_folder_is_private_and_removed_with_its_content(tmp_path):
    with contextlib.suppress(KeyboardInterrupt), scratch_folder(tmp_path) as folder:
        (folder / "finished").mkdir()
        (folder / "finished").rename(tmp_path / "finished")
        (folder / "rest").write_bytes(b"rest")
        if os.name == "posix":
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        raise KeyboardInterrupt
    assert names(tmp_path) == ["finished"]


@unix
def test_folder_has_one_writer(tmp_path):
    with only_writer(tmp_path), pytest.raises(StoreError, match="Another process is writing"), only_writer(tmp_path):
        pass
    with only_writer(tmp_path):
        pass


@pytest.mark.parametrize("without", ["module", pytest.param("locks", marks=unix)])
def test_systems_without_locks_allow_several_writers(tmp_path, monkeypatch, without):
    def flock(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    locks = None if without == "module" else SimpleNamespace(flock=flock, LOCK_EX=1, LOCK_NB=2)
    monkeypatch.setattr(_files, "fcntl", locks)
    with only_writer(tmp_path), only_writer(tmp_path):
        pass


# -------------------------------------------------------------------- checks before computing


@unix
def test_writable_target_is_not_changed(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    check_writable(tmp_path / "file")
    check_writable(tmp_path / "new")
    check_writable(tmp_path / ("x" * 255))
    assert names(tmp_path) == ["file"]
    write(tmp_path / ("x" * 255))


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        pytest.param("x" * 300, OSError, r"File name too long", marks=unix),
        ("none/file", FileNotFoundError, r"none of the output file does not exist; create it first"),
        ("folder", IsADirectoryError, r"folder is a folder; the output must be a file"),
    ],
)
def test_unwritable_target_raises(tmp_path, name, error, message):
    (tmp_path / "folder").mkdir()
    with pytest.raises(error, match=message):
        check_writable(tmp_path / name)


@unix
@pytest.mark.parametrize("kind", ["pipe", "socket", "dangling link", "link to a pipe", "link to a folder", "folder"])
def test_only_regular_files_are_replaced(kind, tmp_path):
    """A device or a pipe that became a file would be gone."""
    path = tmp_path / "file"
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    goals = {"dangling link": "nothing", "link to a pipe": "pipe", "link to a folder": "folder"}
    if kind in goals:
        path.symlink_to(tmp_path / goals[kind])
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    else:
        path = tmp_path / kind
    before = path.lstat()
    for attempt in (check_writable, write):
        with pytest.raises(OSError, match=r"it is no regular file, and would be lost|is a folder"):
            attempt(path)
    assert path.lstat() == before
    assert not list(tmp_path.glob(".treegram-*"))


def test_read_only_folder_raises(tmp_path, monkeypatch):
    def refuse(dir):  # noqa: A002 (tempfile's name)
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(_files.tempfile, "TemporaryFile", refuse)
    with pytest.raises(PermissionError, match=r"cannot be written to \(Permission denied\)"):
        check_writable(tmp_path / "file")


def test_too_little_disk_space_raises(tmp_path, monkeypatch):
    monkeypatch.setattr(_files.shutil, "disk_usage", lambda path: SimpleNamespace(free=2_000_000))
    check_space(tmp_path / "file", 900_000)
    with pytest.raises(
        OSError,
        match=r"file is too full: it has 1.91 MiB left, and the file takes 977 KiB, with a margin of 1 MiB. Make",
    ):
        check_space(tmp_path / "file", 1_000_000)
