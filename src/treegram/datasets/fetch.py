"""Data sets from the network: download one zip archive, check it, unpack it, and move it into place in one step."""

from __future__ import annotations

import difflib
import os
import shutil
import warnings
import zipfile
from collections.abc import Callable
from importlib import resources
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from treegram._core.files import scratch_folder
from treegram.exceptions import DatasetError

_COLLECTION = "https://www.chrsmrrs.com/graphkerneldatasets"
_TIMEOUT = 30.0  # seconds without receiving a byte
_MAX_UNPACKED = 1 << 31  # bytes; the largest sets of the collection have less than half as many


def data_home(data_dir: str | os.PathLike[str] | None) -> Path:
    """Return the folder that holds one folder per data set: the argument, else TREEGRAM_DATA, else the user's cache."""
    folder = data_dir if data_dir is not None else os.environ.get("TREEGRAM_DATA")
    if folder:
        return Path(folder).expanduser()
    import pooch

    return Path(pooch.os_cache("treegram"))


def is_known(name: str) -> bool:
    """Return whether the public collection has a data set with this name."""
    return name in _known_names()


def unknown_set(name: str, home: Path) -> DatasetError:
    """Return the error for an unknown data set, with the three closest names."""
    names = {existing.lower(): existing for existing in _known_names()}
    close = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.0)
    return DatasetError(
        f"Unknown data set {name!r}: there is no such folder here or in {home}, and the public TU collection has none. "
        f"Close names are {', '.join(names[match] for match in close)}."
    )


def _known_names() -> list[str]:
    return resources.files("treegram.datasets").joinpath("tu_names.txt").read_text(encoding="utf-8").split()


def _checksums(name: str) -> dict[str, str]:
    """Return the known SHA-256 sums of the files of a data set."""
    text = resources.files("treegram.datasets").joinpath("checksums.txt").read_text(encoding="utf-8")
    rows = (line.split() for line in text.splitlines())
    return {PurePosixPath(path).name: digest for digest, path in rows if PurePosixPath(path).parent.name == name}


def fetch(name: str, home: Path, check: Callable[[Path], object]) -> Path:
    """Download a data set into ``home/name``. Parallel callers do not interfere with each other; the first one wins.

    ``check`` reads the unpacked folder; the folder is kept only if that raises no error.
    """
    mirror = os.environ.get("TREEGRAM_MIRROR")
    if not mirror and not is_known(name):  # a mirror may hold more than the collection
        raise unknown_set(name, home)
    checksums = _checksums(name)
    url = f"{(mirror or _COLLECTION).rstrip('/')}/{quote(name)}.zip"
    try:
        home.mkdir(parents=True, exist_ok=True)
        with scratch_folder(home) as work:
            _download(url, work / "archive.zip")
            _unpack(work / "archive.zip", name, work / name, checksums)
            _verify(work / name, name, checksums)
            check(work / name)
            return _publish(work / name, home / name)
    except OSError as error:
        raise DatasetError(
            f"The data set {name!r} cannot be stored in {home} ({error.strerror or error}). Choose another folder with data_dir "
            "or the environment variable TREEGRAM_DATA."
        ) from None


def _download(url: str, goal: Path) -> None:
    import pooch
    import requests

    if not url.lower().startswith(("https://", "http://")):
        raise DatasetError(f"TREEGRAM_MIRROR must be an http or https address; got {url.rpartition('/')[0]!r}.")
    try:
        pooch.HTTPDownloader(timeout=_TIMEOUT)(url, str(goal), None)
    except (requests.RequestException, ValueError) as error:  # ValueError: an address that cannot be parsed
        reason = "".join(char if char.isprintable() else " " for char in str(error))[:300]
        raise DatasetError(
            f"{url} cannot be downloaded ({reason}). Without a network, put the unpacked files into a folder and load that."
        ) from None


def _unpack(archive: Path, name: str, folder: Path, checksums: dict[str, str]) -> None:
    """Unpack the tables and the README of a data set into a new folder; all other members are ignored."""
    folder.mkdir()
    try:
        with zipfile.ZipFile(archive) as file:
            members = {PurePosixPath(member.filename): member for member in file.infolist()}
            contents = {path: member for path, member in members.items() if _is_wanted(path, name, checksums)}
            if sum(member.file_size for member in contents.values()) > _MAX_UNPACKED:  # zipfile reads no more than this
                raise DatasetError(
                    f"The archive of {name!r} unpacks to more than {_MAX_UNPACKED} bytes, more than any data set of the "
                    "collection. If this is right, download and unpack it yourself, and load the folder."
                )
            for path, member in contents.items():
                with file.open(member) as source, (folder / path.name).open("wb") as goal:
                    shutil.copyfileobj(source, goal)
    except DatasetError:
        raise
    except Exception as error:  # zipfile and its decompressors raise many kinds of errors, some without a text
        reason = ascii(str(error))[1:-1] or type(error).__name__
        raise DatasetError(f"The archive of {name!r} cannot be unpacked ({reason}). Try again.") from None
    if not (folder / f"{name}_A.txt").is_file():
        raise DatasetError(f"The archive of {name!r} holds no {name}/{name}_A.txt; it is not a TU data set.")


def _is_wanted(path: PurePosixPath, name: str, checksums: dict[str, str]) -> bool:
    if path.parts[:-1] != (name,) or "\\" in path.name:
        return False
    is_table = path.name in checksums or (not checksums and path.match(f"{name}_*.txt"))
    return is_table or path.match("README*")


def _verify(folder: Path, name: str, checksums: dict[str, str]) -> None:
    """Compare the files with the known checksums."""
    import pooch

    if not checksums:
        warnings.warn(
            f"There are no checksums for the data set {name!r}: its files are used as downloaded.",
            UserWarning,
            stacklevel=5,
        )
    for file, expected in checksums.items():
        if not (folder / file).is_file():
            raise DatasetError(f"The archive of {name!r} lacks {file}; it is not the known data set.")
        digest = pooch.file_hash(str(folder / file))
        if digest != expected:
            raise DatasetError(
                f"{file} of the archive of {name!r} is damaged or has changed: expected SHA-256 {expected}, got {digest}."
            )


def _publish(folder: Path, goal: Path) -> Path:
    """Rename the finished folder; if another caller was faster, use theirs."""
    try:
        folder.rename(goal)
    except OSError:
        if not (goal.is_dir() and any(goal.iterdir())):
            raise
    return goal
