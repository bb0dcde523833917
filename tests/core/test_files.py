"""Files are complete in their place or not there at all, whoever disturbs the writer and whenever it is killed."""

import contextlib
import errno
import os
import re
import resource
import stat
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from treegram._core import files as _files
from treegram._core.files import check_space, check_writable, remove_leftovers, replacing, scratch_folder

unix = pytest.mark.skipif(os.name != "posix", reason="locks, links and permissions as on Unix")
LEFTOVER = ".treegram-" + 32 * "0" + ".part"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write(path, content=b"new"):
    with replacing(path) as file:
        file.write(content)


# -------------------------------------------------------------------- one file


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, error):
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
def test_a_full_disk_leaves_nothing_and_is_named(tmp_path):
    """Closing the file fails as well, since it writes what is buffered."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match=re.escape(repr(str(tmp_path / "file")))):
            write(tmp_path / "file", b"x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert names(tmp_path) == []


def test_two_writers_do_not_share_a_temporary_file(tmp_path):
    path = tmp_path / "file"
    with replacing(path) as first:
        first.write(b"first")
        with replacing(path) as second:
            second.write(b"2nd")
            assert len(names(tmp_path)) == 2
        assert path.read_bytes() == b"2nd"
    assert path.read_bytes() == b"first"


@unix
def test_temporary_names_cannot_be_guessed_and_are_created_exclusively(tmp_path, monkeypatch):
    used = set()
    for _ in range(3):
        with replacing(tmp_path / "file"):
            (name,) = (path.name for path in tmp_path.iterdir() if path.name != "file")
            used.add(name)
    assert len(used) == 3
    assert all(re.fullmatch(r"\.treegram-[0-9a-f]{32}\.part", name) for name in used)
    monkeypatch.setattr(_files.secrets, "token_hex", lambda n: "0" * 2 * n)  # as if it had been guessed
    (tmp_path / LEFTOVER).symlink_to(tmp_path / "victim")
    (tmp_path / "victim").write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        write(tmp_path / "file")
    assert (tmp_path / "victim").read_bytes() == b"precious"


@unix
def test_a_link_in_the_place_of_the_target_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "victim").write_bytes(b"precious")
    (tmp_path / "file").symlink_to(tmp_path / "victim")
    write(tmp_path / "file")
    assert (tmp_path / "victim").read_bytes() == b"precious"
    assert (tmp_path / "file").read_bytes() == b"new"
    assert not (tmp_path / "file").is_symlink()


@unix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_the_permissions_of_an_older_file_stay(tmp_path, mode):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)
    with replacing(path) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == mode  # from the first byte on
    assert stat.S_IMODE(path.stat().st_mode) == mode


@unix
def test_a_new_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "usual").touch()
    write(tmp_path / "file")
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_content_is_synced_before_the_rename_and_the_folder_after_it(tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr(_files.os, "fsync", lambda descriptor: done.append("sync"))
    monkeypatch.setattr(Path, "replace", lambda self, target: done.append("rename"))
    write(tmp_path / "file")
    assert done == ["sync", "rename", "sync"][: 3 if os.name == "posix" else 2]


# -------------------------------------------------------------------- what killed writers left


def start_writer(folder, kind):
    """A process that holds a temporary file or folder and waits."""
    code = (
        "import sys, pathlib; from treegram._core.files import replacing, scratch_folder\n"
        f"with {'replacing' if kind == 'file' else 'scratch_folder'}(pathlib.Path(sys.argv[1])) as it:\n"
        "    it.write(b'half') if hasattr(it, 'write') else (it / 'half').touch()\n"
        "    print('ready', flush=True); sys.stdin.read()"
    )
    target = folder / "other" if kind == "file" else folder
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(target)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    return process


@unix
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_writer_left_goes_and_what_a_living_one_has_stays(tmp_path, kind):
    with start_writer(tmp_path, kind) as writer:
        try:
            (held,) = names(tmp_path)
            write(tmp_path / "file")
            with scratch_folder(tmp_path):
                assert held in names(tmp_path)
            assert names(tmp_path) == [held, "file"]
        finally:
            writer.kill()
            writer.communicate()
        assert names(tmp_path) == [held, "file"]
        write(tmp_path / "file")
        assert names(tmp_path) == ["file"]


@unix
def test_only_our_own_leftovers_are_removed(tmp_path):
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / LEFTOVER).symlink_to(tmp_path / "precious")
    os.mkfifo(tmp_path / LEFTOVER.replace("0", "1"))  # must not block
    others = [".treegram-notes.part", "treegram.part", LEFTOVER + "2", "precious"]
    for name in others[:3]:
        (tmp_path / name).touch()
    remove_leftovers(tmp_path)
    assert set(names(tmp_path)) == {LEFTOVER, *others}
    remove_leftovers(tmp_path / "no such folder")


@pytest.mark.parametrize("without", ["module", pytest.param("locks", marks=unix)])
def test_without_locks_leftovers_go_after_a_day(tmp_path, monkeypatch, without):
    def flock(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(
        _files, "fcntl", None if without == "module" else SimpleNamespace(flock=flock, LOCK_EX=1, LOCK_NB=2)
    )
    leftover = tmp_path / LEFTOVER
    leftover.touch()
    write(tmp_path / "file")
    with scratch_folder(tmp_path):
        assert leftover.exists()
    two_days_ago = time.time() - 2 * 86_400
    os.utime(leftover, (two_days_ago, two_days_ago))
    write(tmp_path / "file")
    assert names(tmp_path) == ["file"]


@unix
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_file_that_another_run_takes_for_a_leftover_is_made_anew(tmp_path, monkeypatch, kind):
    """Between its creation and its lock a temporary file looks abandoned; the writer then takes another name."""
    flock, removed = _files.fcntl.flock, []

    def late(descriptor, operation):
        if not removed:
            (victim,) = tmp_path.iterdir()
            victim.unlink() if kind == "file" else victim.rmdir()
            removed.append(victim)
        flock(descriptor, operation)

    monkeypatch.setattr(_files.fcntl, "flock", late)
    if kind == "file":
        write(tmp_path / "file")
        assert names(tmp_path) == ["file"]
    else:
        with scratch_folder(tmp_path) as folder:
            assert folder.is_dir()
            assert folder != removed[0]
    assert len(removed) == 1


def test_a_scratch_folder_is_private_and_goes_with_all_that_is_in_it(tmp_path):
    with contextlib.suppress(KeyboardInterrupt), scratch_folder(tmp_path) as folder:
        (folder / "finished").mkdir()
        (folder / "finished").rename(tmp_path / "finished")
        (folder / "rest").write_bytes(b"rest")
        if os.name == "posix":
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        raise KeyboardInterrupt
    assert names(tmp_path) == ["finished"]


@unix
def test_another_writer_that_tidies_up_just_before_the_rename_leaves_the_file(tmp_path, monkeypatch):
    rename = Path.replace

    def tidy_and_rename(part, target):
        remove_leftovers(tmp_path)
        return rename(part, target)

    monkeypatch.setattr(Path, "replace", tidy_and_rename)
    write(tmp_path / "file")
    assert names(tmp_path) == ["file"]


# -------------------------------------------------------------------- before the computation


@unix
def test_a_target_that_can_be_written_is_left_alone(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    check_writable(tmp_path / "file")
    check_writable(tmp_path / "new")
    check_writable(tmp_path / ("x" * 255))
    assert names(tmp_path) == ["file"]
    write(tmp_path / ("x" * 255))


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        pytest.param(
            "x" * 300, OSError, r"x cannot be written \(File name too long\); choose another name", marks=unix
        ),
        ("none/file", FileNotFoundError, r"none of the output file does not exist; create it first"),
        ("folder", IsADirectoryError, r"folder is a folder; the output must be a file"),
    ],
)
def test_a_target_that_cannot_be_written_is_refused(tmp_path, name, error, message):
    (tmp_path / "folder").mkdir()
    with pytest.raises(error, match=message):
        check_writable(tmp_path / name)


@unix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_write_permission_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match=r"cannot be written to \(Permission denied\)"):
        check_writable(tmp_path / "file")


def test_too_little_room_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(_files.shutil, "disk_usage", lambda path: SimpleNamespace(free=2_000_000))
    check_space(tmp_path / "file", 900_000)
    with pytest.raises(OSError, match=r"file needs 0.001 GB, but the disk has only 0.002 GB left"):
        check_space(tmp_path / "file", 1_000_000)
