import functools
import hashlib
import http.server
import io
import os
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from treegram import Graphs, load_tu
from treegram.datasets import fetch as _fetch
from treegram.exceptions import DatasetError

# Most tests download a set that is not in the list of checksums, which has its own test.
# requests leaves the socket of an aborted download to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:There are no checksums"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

FILES = {"A": "1, 2\n2, 1\n", "graph_indicator": "1\n1\n2\n", "graph_labels": "1\n2\n"}
EXPECTED = Graphs.from_edges([[(0, 1)], []], n_nodes=[2, 1], targets=[1, 2])


def zipped(members, method=zipfile.ZIP_DEFLATED):
    """Return a zip file as bytes; members are pairs of a name or ZipInfo and a text."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, text in members:
            archive.writestr(name, text)
    return buffer.getvalue()


def members(name="SET", **changes):
    return [(f"{name}/{name}_{kind}.txt", text) for kind, text in (FILES | changes).items() if text is not None]


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def mirror(tmp_path, monkeypatch, server):
    """Set up a local mirror; return a function that adds an archive to it."""
    monkeypatch.setenv("TREEGRAM_MIRROR", server)

    def put(data, name="SET"):
        (tmp_path / "mirror" / f"{name}.zip").write_bytes(data)

    return put


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serve the mirror's files, with a failure mode under each special path."""

    def do_GET(self):
        if self.path.startswith("/short/"):  # promises more than it sends
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"PK")
        elif self.path.startswith("/elsewhere/"):
            self.send_response(302)
            self.send_header("Location", "ftp://127.0.0.1/SET.zip")
            self.end_headers()
        elif self.path.startswith("/red/"):
            self.wfile.write(b"HTTP/1.0 404 \x1b[31mred\x07\r\n\r\n")
        elif self.path.startswith("/garbage/"):
            self.wfile.write(b"garbage\r\n\r\n")
        else:
            super().do_GET()

    def log_message(self, *args):
        pass


@pytest.fixture
def server(tmp_path):
    """Return the address of a local HTTP server with the mirror's files."""
    (tmp_path / "mirror").mkdir()
    handler = functools.partial(Handler, directory=str(tmp_path / "mirror"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def assert_nothing_is_left(home):
    assert not home.exists() or list(home.iterdir()) == []


# -------------------------------------------------------------------- successful downloads


def test_data_set_is_downloaded_once(home, mirror, tmp_path):
    mirror(zipped([("SET/", ""), *members(), ("SET/README.txt", "hello")]))
    graphs, y = load_tu("SET", data_dir=home)
    assert graphs == EXPECTED
    assert y.tolist() == [1, 2]
    assert [path.name for path in home.iterdir()] == ["SET"]
    assert sorted(path.name for path in (home / "SET").iterdir()) == [
        "README.txt",
        "SET_A.txt",
        "SET_graph_indicator.txt",
        "SET_graph_labels.txt",
    ]
    (tmp_path / "mirror" / "SET.zip").unlink()
    assert load_tu("SET", data_dir=home)[0] == EXPECTED


@pytest.mark.skipif(os.name != "posix", reason="rights as on unix")
def test_downloaded_files_are_readable_by_others(home, mirror):
    mirror(zipped(members()))
    load_tu("SET", data_dir=home)
    assert (home / "SET").stat().st_mode & 0o777 == 0o777 & ~_umask()


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_extra_files_are_ignored(home, mirror):
    others = [
        "__MACOSX/SET/._SET_A.txt",
        "SET/SET_A.txt.exe",
        "SET/evil.py",
        "OTHER/OTHER_A.txt",
        "SET/SET_x/SET_y.txt",
    ]
    mirror(zipped([*members(), *((name, "x") for name in others)]))
    load_tu("SET", data_dir=home)
    assert len(list((home / "SET").iterdir())) == 3


def test_concurrent_callers_all_succeed(home, mirror):
    mirror(zipped(members()))
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: load_tu("SET", data_dir=home)[0], range(16)))
    assert results == [EXPECTED] * 16
    assert [path.name for path in home.iterdir()] == ["SET"]


def test_slower_of_two_callers_uses_the_existing_files(home, mirror, monkeypatch):
    mirror(zipped(members()))
    unpack = _fetch._unpack

    def overtaken(*args):
        unpack(*args)
        (home / "SET").mkdir()
        for name, text in members(graph_labels="8\n9\n"):
            (home / name).write_text(text)

    monkeypatch.setattr(_fetch, "_unpack", overtaken)
    assert load_tu("SET", data_dir=home)[1].tolist() == [8, 9]
    assert [path.name for path in home.iterdir()] == ["SET"]


def test_empty_target_folder_is_filled(home, mirror):
    mirror(zipped(members()))
    (home / "SET").mkdir(parents=True)
    assert load_tu("SET", data_dir=home)[0] == EXPECTED


def test_real_files_match_their_checksums(data_dir, home, mirror):
    files = sorted((data_dir / "MUTAG").iterdir())
    mirror(zipped([(f"MUTAG/{file.name}", file.read_bytes()) for file in files]), "MUTAG")
    assert len(load_tu("MUTAG", data_dir=home)[0]) == 188


def test_checksums_match_the_real_files(data_dir):
    names = [path.name for path in data_dir.iterdir() if path.is_dir()]
    for name in names:
        known = _fetch._checksums(name)
        assert known.keys() == {path.name for path in (data_dir / name).glob(f"{name}_*.txt")}
        for file, digest in known.items():
            assert hashlib.sha256((data_dir / name / file).read_bytes()).hexdigest() == digest, file


# -------------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/none", r"/none/SET.zip cannot be downloaded \(404 "),
        ("/short", "SET.zip cannot be downloaded"),
        ("/elsewhere", "SET.zip cannot be downloaded"),
        ("/garbage", "SET.zip cannot be downloaded"),
        ("/red", r"SET.zip cannot be downloaded \(404 "),
    ],
)
def test_server_errors_raise(home, mirror, server, monkeypatch, path, message):
    monkeypatch.setenv("TREEGRAM_MIRROR", server + path)
    with pytest.raises(DatasetError, match=message) as caught:
        load_tu("SET", data_dir=home)
    assert str(caught.value).isprintable()
    assert_nothing_is_left(home)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (
            "http://127.0.0.1:9",
            r"SET.zip cannot be downloaded \(.*refused.*\). Without a network, put the unpacked files",
        ),
        ("ftp://127.0.0.1", "TREEGRAM_MIRROR must be an http or https address; got 'ftp://127.0.0.1'"),
        ("nonsense", "TREEGRAM_MIRROR must be an http or https address; got 'nonsense'"),
        ("http://[", "SET.zip cannot be downloaded"),
    ],
)
def test_invalid_addresses_raise(home, monkeypatch, address, message):
    monkeypatch.setenv("TREEGRAM_MIRROR", address)
    with pytest.raises(DatasetError, match=message):
        load_tu("SET", data_dir=home)
    assert_nothing_is_left(home)


@pytest.mark.parametrize(
    "hostile",
    [
        "/etc/passwd",
        "/SET/SET_x.txt",
        "SET/../../SET_x.txt",
        "..",
        "SET/../SET/SET_x.txt",
        "SET\\..\\SET_x.txt",
        "SET/SET_\\..\\x.txt",
    ],
)
def test_nothing_is_written_outside_the_cache(home, mirror, tmp_path, hostile):
    before = set(tmp_path.rglob("*"))
    mirror(zipped([*members(), (hostile, "x")]))
    assert load_tu("SET", data_dir=home)[0] == EXPECTED
    allowed = {home, home / "SET", tmp_path / "mirror" / "SET.zip"}
    new = set(tmp_path.rglob("*")) - before - allowed
    assert new == {home / "SET" / f"SET_{kind}.txt" for kind in FILES}


def test_too_large_archives_raise(home, mirror, monkeypatch):
    monkeypatch.setattr(_fetch, "_MAX_UNPACKED", 20_000)
    mirror(zipped([*members(), ("SET/SET_node_labels.txt", "0" * 20_001)]))
    with pytest.raises(DatasetError, match="The archive of 'SET' unpacks to more than 20000 bytes"):
        load_tu("SET", data_dir=home)
    assert_nothing_is_left(home)


def test_archive_with_a_wrong_size_raises(home, mirror, monkeypatch):
    """The directory of the archive claims a few bytes, the data unpack to many."""
    monkeypatch.setattr(_fetch, "_MAX_UNPACKED", 20_000)
    data = bytearray(zipped([("SET/SET_A.txt", "0" * 1_000_000)]))
    for mark, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = data.index(mark) + offset
        data[at : at + 4] = (10).to_bytes(4, "little")
    mirror(bytes(data))
    with pytest.raises(DatasetError, match=r"The archive of 'SET' cannot be unpacked"):
        load_tu("SET", data_dir=home)
    assert_nothing_is_left(home)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"PK",
        lambda data: b"<html>not found</html>" * 100,
        lambda data: data[: len(data) // 2],
        lambda data: data[:45] + bytes(5) + data[50:],
    ],
)
def test_damaged_archives_raise(home, mirror, damage):
    mirror(damage(zipped(members(node_labels="1\n2\n3\n" * 100))))
    with pytest.raises(DatasetError, match="The archive of 'SET' cannot be unpacked"):
        load_tu("SET", data_dir=home)
    assert_nothing_is_left(home)


def test_error_without_a_text_is_named_by_its_type(home, mirror, monkeypatch):
    def fail(*_):
        raise EOFError

    mirror(zipped(members()))
    monkeypatch.setattr(zipfile.ZipFile, "open", fail)
    with pytest.raises(DatasetError, match=r"The archive of 'SET' cannot be unpacked \(EOFError\). Try again."):
        load_tu("SET", data_dir=home)
    assert_nothing_is_left(home)


def test_damaged_bzip2_stream_raises(home, mirror):
    data = zipped(members(), zipfile.ZIP_BZIP2)
    mirror(data.replace(b"BZh9", b"BZh0"))  # bz2 raises a plain OSError
    with pytest.raises(DatasetError, match="The archive of 'SET' cannot be unpacked"):
        load_tu("SET", data_dir=home)
    assert_nothing_is_left(home)


def test_member_before_the_start_of_the_archive_raises(home, mirror):
    data = bytearray(zipped(members()))
    at = data.index(b"PK\x05\x06") + 16  # start of the central directory: zipfile shifts all offsets by the difference
    data[at : at + 4] = (int.from_bytes(data[at : at + 4], "little") + 50).to_bytes(4, "little")
    mirror(bytes(data))
    with pytest.raises(DatasetError, match="The archive of 'SET' cannot be unpacked"):
        load_tu("SET", data_dir=home)
    assert_nothing_is_left(home)


def test_undecodable_member_name_raises(home, mirror):
    data = zipped([*members(), ("SET/\u00e9\u00e9.txt", "x")]).replace("\u00e9\u00e9".encode(), b"\xff\xfe\xff\xfe")
    mirror(data)
    with pytest.raises(DatasetError, match="The archive of 'SET' cannot be unpacked"):
        load_tu("SET", data_dir=home)
    assert_nothing_is_left(home)


def test_unreadable_tables_are_removed(home, mirror):
    mirror(zipped(members(node_labels="1\n2\nx\n")))
    with pytest.raises(DatasetError, match=r"SET_node_labels.txt:3: expected a finite number, got 'x'"):
        load_tu("SET", data_dir=home)
    assert_nothing_is_left(home)


@pytest.mark.filterwarnings("default:There are no checksums")
def test_missing_checksum_warns(home, mirror):
    mirror(zipped(members()))
    with pytest.warns(
        UserWarning, match="There are no checksums for the data set 'SET': its files are used as downloaded"
    ):
        load_tu("SET", data_dir=home)
    load_tu("SET", data_dir=home)  # only once, when it is downloaded


def test_extra_files_of_a_known_set_are_ignored(data_dir, home, mirror):
    files = [(f"MUTAG/{file.name}", file.read_bytes()) for file in sorted((data_dir / "MUTAG").iterdir())]
    n_nodes = (data_dir / "MUTAG" / "MUTAG_graph_indicator.txt").read_text().count("\n")
    mirror(zipped([*files, ("MUTAG/MUTAG_node_attributes.txt", "0.5\n" * n_nodes)]), "MUTAG")
    assert load_tu("MUTAG", data_dir=home)[0].attributes is None


@pytest.mark.parametrize("given", [[], members(A=None), members("OTHER"), [("SET_A.txt", "1, 2\n")]])
def test_archive_without_the_data_set_raises(home, mirror, given):
    mirror(zipped(given))
    with pytest.raises(DatasetError, match=r"holds no SET/SET_A.txt; it is not a TU data set"):
        load_tu("SET", data_dir=home)
    assert_nothing_is_left(home)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "of the archive of 'MUTAG' is damaged or has changed: expected SHA-256 [0-9a-f]{64}, got [0-9a-f]{64}"),
        ({"graph_indicator": None}, "The archive of 'MUTAG' lacks MUTAG_graph_indicator.txt"),
    ],
)
def test_known_set_with_another_checksum_raises(home, mirror, monkeypatch, changes, message):
    digest = hashlib.sha256(FILES["A"].encode()).hexdigest()
    sums = {"MUTAG_A.txt": digest, "MUTAG_graph_indicator.txt": "0" * 64}
    monkeypatch.setattr(_fetch, "_checksums", lambda name: sums)
    mirror(zipped(members("MUTAG", **changes)), "MUTAG")
    with pytest.raises(DatasetError, match=message):
        load_tu("MUTAG", data_dir=home)
    assert_nothing_is_left(home)


def test_unwritable_cache_folder_raises(home, mirror, tmp_path):
    mirror(zipped(members()))
    home.write_text("a file is in the way")
    with pytest.raises(
        DatasetError, match=r"The data set 'SET' cannot be stored in .* Choose another folder with data_dir"
    ):
        load_tu("SET", data_dir=home)
    assert home.read_text() == "a file is in the way"


def test_full_disk_raises(home, mirror, monkeypatch):
    def fail(*args):
        raise OSError(28, "No space left on device")

    mirror(zipped(members()))
    monkeypatch.setattr(_fetch, "_unpack", fail)
    with pytest.raises(DatasetError, match=r"'SET' cannot be stored in .* \(No space left on device\)"):
        load_tu("SET", data_dir=home)
    assert_nothing_is_left(home)


def test_interrupt_leaves_nothing(home, mirror, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    mirror(zipped(members()))
    monkeypatch.setattr(_fetch, "_unpack", interrupt)
    with pytest.raises(KeyboardInterrupt):
        load_tu("SET", data_dir=home)
    assert_nothing_is_left(home)


def test_file_with_the_name_of_the_folder_is_not_replaced(home, mirror):
    mirror(zipped(members()))
    home.mkdir()
    (home / "SET").write_text("mine")
    with pytest.raises(DatasetError, match="'SET' cannot be stored"):
        load_tu("SET", data_dir=home)
    assert (home / "SET").read_text() == "mine"
    assert [path.name for path in home.iterdir()] == ["SET"]
