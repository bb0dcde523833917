"""Unpack the zip of a data set that may have been made to do harm.

Only the tables of the TU format, ``NAME/NAME_A.txt`` and so on, and ``NAME/README...`` are written, under their last name,
into one new folder. Other files are left out; a path that leads elsewhere, a link, an unusual compression or an oversized
archive is refused as a whole.
"""

from __future__ import annotations

import errno
import re
import stat
import struct
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from treegram._core.errors import DatasetError
from treegram.datasets.folder import TABLES

__all__ = ["unpack"]

_MAX_UNPACKED = 1 << 31  # bytes; the largest sets of the collection have less than half of it
_MAX_MEMBERS = 100
_MAX_DIRECTORY = 1 << 16  # bytes of the list of members: room for several hundred of them
_CHUNK = 1 << 20
_END = struct.Struct("<4s4H2LH")  # the record that ends every zip; its sixth number is the size of the list
_END_MARK, _LARGE_MARK = b"PK\x05\x06", b"PK\x06\x07"


def unpack(archive: Path, name: str, folder: Path) -> None:
    """Unpack the files of the data set ``name`` into the new folder."""
    folder.mkdir()
    try:
        _check_directory(archive, name)
        with zipfile.ZipFile(archive) as file:
            room = _MAX_UNPACKED
            for member in _wanted(file.infolist(), name):
                room -= _copy(file, member, folder / PurePosixPath(member.filename).name, room)
    except DatasetError:
        raise
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
        struct.error,
        ValueError,
        OSError,
    ) as error:
        if (
            isinstance(error, OSError) and error.errno != errno.EINVAL
        ):  # EINVAL: the archive names a place before its start
            raise
        raise DatasetError(
            f"The archive of {name!r} is damaged or not a zip file ({ascii(str(error))[1:-1]}). Try again."
        ) from None
    if not (folder / f"{name}_A.txt").is_file():
        raise DatasetError(f"The archive of {name!r} holds no {name}/{name}_A.txt; it is not a TU data set.")


def _check_directory(archive: Path, name: str) -> None:
    """Refuse a list of members that would fill the memory, before zipfile reads it."""
    with archive.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _END.size - (1 << 16)))
        tail = file.read()
    # Where zipfile looks: at the very end, else for the last mark before a comment.
    at = len(tail) - _END.size
    if at < 0 or tail[at : at + 4] != _END_MARK or tail[-2:] != b"\0\0":
        at = tail.rfind(_END_MARK)
    if at < 0 or len(tail) < at + _END.size:
        raise zipfile.BadZipFile("it has no end")
    if tail[max(0, at - 20) :].startswith(_LARGE_MARK):
        raise _refusal(name, "it is a zip64 file, made for more than a data set has")
    if _END.unpack_from(tail, at)[5] > _MAX_DIRECTORY:
        raise _refusal(name, f"it lists more than {_MAX_MEMBERS} files")


def _wanted(members: list[zipfile.ZipInfo], name: str) -> list[zipfile.ZipInfo]:
    if len(members) > _MAX_MEMBERS:
        raise _refusal(name, f"it lists more than {_MAX_MEMBERS} files")
    if sum(member.file_size for member in members) > _MAX_UNPACKED:
        raise _refusal(name, f"it unpacks to more than {_MAX_UNPACKED} bytes")
    for member in members:
        given = member.orig_filename
        if given.startswith("/") or re.search(r"[\\:\0]", given) or ".." in given.split("/"):
            raise _refusal(name, f"its member {given!r} leads out of the folder")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise _refusal(name, f"its member {given!r} is a link")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _refusal(name, f"its member {given!r} is compressed by a method other than deflate")
    pattern = re.compile(rf"{re.escape(name)}/(?:{re.escape(name)}_\w+\.txt|README[\w.]*)", re.ASCII)
    wanted = [member for member in members if pattern.fullmatch(member.filename)]
    if len({member.filename.lower() for member in wanted}) < len(wanted):
        raise _refusal(name, "it holds a file twice")
    tables = {f"{name}/{name}_{kind}.txt" for kind in TABLES}
    return [member for member in wanted if member.filename in tables or "/README" in member.filename]


def _copy(file: zipfile.ZipFile, member: zipfile.ZipInfo, goal: Path, room: int) -> int:
    """Unpack one file, counting what really comes out; gives its size."""
    size = 0
    with file.open(member) as source, goal.open("xb") as sink:
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            if size > room:
                raise _refusal(goal.parent.name, f"it unpacks to more than {_MAX_UNPACKED} bytes")
            sink.write(chunk)
    return size


def _refusal(name: str, reason: str) -> DatasetError:
    return DatasetError(f"The archive of {name!r} is refused: {reason}.")
