"""Data sets from the network: one zip, downloaded and unpacked with distrust, complete in its place or not at all."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import http.client
import os
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from treegram._core.errors import DatasetError
from treegram._core.files import scratch_folder
from treegram._core.progress import track
from treegram.datasets.unzip import unpack

__all__ = ["data_home", "fetch", "is_known", "unknown_set"]

_COLLECTION = "https://www.chrsmrrs.com/graphkerneldatasets"
_TIMEOUT = 30.0  # seconds without a byte
_MAX_SECONDS = 3600.0  # for the whole download
_CHUNK = 1 << 18
_MAX_DOWNLOAD = 1 << 30  # bytes; the largest sets of the collection are far below

# -------------------------------------------------------------------- what is known


def data_home(data_dir: str | os.PathLike[str] | None) -> Path:
    """The folder that holds one folder per data set: the argument, else TREEGRAM_DATA, else the platform's cache."""
    chosen = data_dir if data_dir is not None else os.environ.get("TREEGRAM_DATA")
    return Path(chosen).expanduser() if chosen else _cache_folder()


def _cache_folder() -> Path:
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "treegram"


def is_known(name: str) -> bool:
    """Whether the public collection has a data set of this name."""
    return name in _table("tu_names.txt").split()


def unknown_set(name: str, home: Path) -> DatasetError:
    """The error for a name that neither a folder nor the collection has, with the three closest names."""
    names = {known.lower(): known for known in _table("tu_names.txt").split()}
    close = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.0)
    return DatasetError(
        f"Unknown data set {name!r}: there is no such folder here or in {home}, and the public TU collection has none. "
        f"Close names are {', '.join(names[match] for match in close)}."
    )


def _checksums(name: str) -> dict[str, str]:
    """SHA-256 of the files of a data set, as far as we know them."""
    rows = (line.split() for line in _table("checksums.txt").splitlines())
    return {Path(path).name: digest for digest, path in rows if Path(path).parent.name == name}


def _table(file: str) -> str:
    return resources.files("treegram.datasets").joinpath(file).read_text(encoding="utf-8")


# -------------------------------------------------------------------- from the network to the disk


def fetch(name: str, home: Path, check: Callable[[Path], object]) -> Path:
    """Download a data set into ``home/name``; callers in parallel do not disturb each other, the first one wins.

    ``check`` reads the unpacked folder: what it refuses does not stay.
    """
    mirror = os.environ.get("TREEGRAM_MIRROR")
    if not mirror and not is_known(name):  # a mirror may hold more than the collection
        raise unknown_set(name, home)
    url = f"{(mirror or _COLLECTION).rstrip('/')}/{quote(name)}.zip"
    try:
        home.mkdir(parents=True, exist_ok=True)
        with scratch_folder(home) as work:
            _download(url, work / "archive.zip", name)
            unpack(work / "archive.zip", name, work / name)
            _verify(work / name, name)
            check(work / name)
            return _publish(work / name, home / name)
    except OSError as error:
        raise DatasetError(
            f"The data set {name!r} cannot be stored in {home} ({error.strerror or error}). Name another folder by data_dir "
            "or by the environment variable TREEGRAM_DATA."
        ) from None


class _Deadline:
    """The end of a download: it shuts connections, since what drips byte by byte, headers too, never meets a timeout."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._end = time.monotonic() + _MAX_SECONDS
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(_MAX_SECONDS, self._shut)
        self._timer.daemon = True

    def __enter__(self) -> _Deadline:
        self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()

    def watch(self, connection: socket.socket) -> None:
        """Shut this one, too, when time is over."""
        self._sockets.append(connection)

    def check(self) -> None:
        """Raise if time is over."""
        if time.monotonic() > self._end:
            raise DatasetError(
                f"{self._url}: the download took longer than {_MAX_SECONDS:.0f} seconds. Try again, or by hand."
            )

    def _shut(self) -> None:
        for connection in self._sockets:
            with contextlib.suppress(OSError):  # closed already
                connection.shutdown(socket.SHUT_RDWR)


def _download(url: str, goal: Path, name: str) -> None:
    with _Deadline(url) as deadline, _open(url, deadline) as response, goal.open("wb") as file:
        expected = _announced_size(response)
        n_chunks = None if expected is None else -(-expected // _CHUNK)
        received = 0
        for chunk in track(_chunks(response, url, deadline), n_chunks, f"Downloading {name}"):
            received += len(chunk)
            if max(received, expected or 0) > _MAX_DOWNLOAD:
                raise DatasetError(
                    f"{url} is larger than {_MAX_DOWNLOAD} bytes, more than a data set of the collection has. If this is "
                    "right, download and unpack it by hand, and load the folder."
                )
            file.write(chunk)
    if expected is not None and received != expected:
        raise DatasetError(f"{url}: the download broke off after {received} of {expected} bytes. Try again.")


def _announced_size(response: Any) -> int | None:
    length = response.headers.get("Content-Length") or ""
    is_number = (
        length.isascii() and length.isdigit() and len(length) < 20
    )  # isdigit alone also takes the digits of others
    return int(length) if is_number else None


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Redirects within http or https, and from http to https; no hop leads to anything less safe."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """The request to send, or an error before it is sent."""
        scheme = urlsplit(newurl).scheme
        if scheme != "https" and scheme != req.type:
            fp.close()
            raise DatasetError(
                f"{_plain(req.full_url)} leads to {_plain(newurl)}; a redirect to less than {req.type} is not followed."
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _plain(text: object) -> str:
    """What a server says, short and without anything that a terminal would obey."""
    shown = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in str(text)[:300])
    return shown + "..." * (len(str(text)) > 300)


class _Watched(urllib.request.AbstractHTTPHandler):
    """A way to open connections that a deadline knows of."""

    def __init__(self, deadline: _Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def do_open(self, http_class: Any, req: Any, **options: Any) -> Any:
        """Send the request."""
        deadline = self._deadline

        class Connection(http_class):
            def connect(self) -> None:
                super().connect()
                deadline.watch(self.sock)

        return super().do_open(Connection, req, **options)


class _WatchedHTTP(_Watched, urllib.request.HTTPHandler):
    pass


class _WatchedHTTPS(_Watched, urllib.request.HTTPSHandler):
    pass


def _open(url: str, deadline: _Deadline) -> Any:
    scheme = url.partition(":")[0].lower()
    if scheme not in ("https", "http", "file"):
        raise DatasetError(f"TREEGRAM_MIRROR must be an http, https or file address; got {url.rpartition('/')[0]!r}.")
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "treegram"})
        handlers = (_Redirects, _WatchedHTTP(deadline), _WatchedHTTPS(deadline))
        return urllib.request.build_opener(*handlers).open(request, timeout=_TIMEOUT)
    except DatasetError:
        raise
    except urllib.error.HTTPError as error:
        error.close()
        raise DatasetError(
            f"{url} cannot be downloaded: the server says {error.code} {_plain(error.reason)}."
        ) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        deadline.check()
        reason = _plain(getattr(error, "reason", error))
        raise DatasetError(
            f"{url} cannot be downloaded ({reason}). Without a network, put the unpacked files into a folder and load that."
        ) from None


def _chunks(response: Any, url: str, deadline: _Deadline) -> Iterator[bytes]:
    while True:
        try:
            chunk = response.read1(_CHUNK)  # what is there: read would wait for more, byte by byte, without an end
        except (OSError, http.client.HTTPException, ValueError) as error:
            deadline.check()
            raise DatasetError(f"{url}: the download broke off ({_plain(error)}). Try again.") from None
        deadline.check()
        if not chunk:
            return
        yield chunk


def _verify(folder: Path, name: str) -> None:
    """Compare with the checksums that we know: these files, unchanged, and no other tables."""
    known = _checksums(name)
    if not known:
        warnings.warn(
            f"There are no checksums for the data set {name!r}: its files are taken as they were downloaded.",
            UserWarning,
            stacklevel=5,
        )
        return
    for file, expected in known.items():
        path = folder / file
        if not path.is_file():
            raise DatasetError(f"The archive of {name!r} lacks {file}; it is not the known data set.")
        with path.open("rb") as stream:
            got = hashlib.file_digest(stream, "sha256").hexdigest()
        if got != expected:
            raise DatasetError(
                f"{file} of the archive of {name!r} is damaged or has changed: expected SHA-256 {expected}, got {got}."
            )
    for path in sorted(folder.glob(f"{name}_*")):
        if path.name not in known:
            raise DatasetError(f"The archive of {name!r} holds {path.name}, which is not part of the known data set.")


def _publish(folder: Path, goal: Path) -> Path:
    """Give the finished folder its name, in one step; what another caller has put there in the meantime is as good."""
    try:
        folder.rename(goal)
    except OSError:
        if not (goal.is_dir() and any(goal.iterdir())):
            raise
    return goal
