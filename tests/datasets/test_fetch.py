import contextlib
import functools
import hashlib
import http.server
import io
import os
import stat
import threading
import time
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from treegram import DatasetError, Graphs, load_tu
from treegram.datasets import fetch as _fetch
from treegram.datasets import unzip as _unzip

# Most tests download a set that is not in the list of checksums, which one test is about.
pytestmark = pytest.mark.filterwarnings("ignore:There are no checksums")

FILES = {"A": "1, 2\n2, 1\n", "graph_indicator": "1\n1\n2\n", "graph_labels": "1\n2\n"}
EXPECTED = Graphs.from_edges([[(0, 1)], []], n_nodes=[2, 1], targets=[1, 2])


def zipped(members):
    """Bytes of a zip; members are pairs of a name or ZipInfo and a text."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
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
def mirror(tmp_path, monkeypatch):
    """A mirror made of files; gives a function that puts an archive there."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    monkeypatch.setenv("TREEGRAM_MIRROR", folder.as_uri())

    def put(data, name="SET"):
        (folder / f"{name}.zip").write_bytes(data)

    return put


# What a slow server sends at once, and what it sends byte by byte: the contents, headers, the length of a chunk.
SLOW = {
    "slow": (b"HTTP/1.0 200 OK\r\n\r\n", b"x" * 500),
    "slow-headers": (b"HTTP/1.0 200 OK\r\nX-Padding: ", b"x" * 500),
    "slow-chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0" * 500),
}


class Handler(http.server.SimpleHTTPRequestHandler):
    """A mirror with a few bad habits, each under its own path."""

    def do_GET(self):
        if self.path.startswith("/short/"):  # promises more than it sends
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"PK")
        elif self.path.startswith("/endless/"):  # never says how much will come
            self.send_response(200)
            self.end_headers()
            for _ in range(100):
                self.wfile.write(b"x" * 1000)
        elif self.path.startswith("/elsewhere/"):
            self.send_response(302)
            self.send_header("Location", "ftp://127.0.0.1/SET.zip")
            self.end_headers()
        elif self.path.startswith("/superscript/"):  # a digit, but no number
            self.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Length: \xb2\r\n\r\n")
        elif self.path.split("/")[1] in SLOW:
            self.drip(*SLOW[self.path.split("/")[1]])
        elif self.path.startswith("/red/"):
            self.wfile.write(b"HTTP/1.0 404 \x1b[31mred\x07\r\n\r\n")
        elif self.path.startswith("/garbage/"):
            self.wfile.write(b"garbage\r\n\r\n")
        else:
            super().do_GET()

    def drip(self, at_once, data):
        with contextlib.suppress(OSError):
            self.wfile.write(at_once)
            for place in range(len(data)):
                self.wfile.write(data[place : place + 1])
                time.sleep(0.02)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(tmp_path):
    """Address of an http server on this machine, which serves the mirror's files."""
    handler = functools.partial(Handler, directory=str(tmp_path / "mirror"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def assert_nothing_stays(home):
    assert not home.exists() or list(home.iterdir()) == []


# -------------------------------------------------------------------- what works


def test_a_set_is_downloaded_once(home, mirror, tmp_path):
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


def test_a_set_comes_over_http(home, mirror, server, monkeypatch):
    mirror(zipped(members()))
    monkeypatch.setenv("TREEGRAM_MIRROR", server + "/")
    assert load_tu("SET", data_dir=home)[0] == EXPECTED


@pytest.mark.skipif(os.name != "posix", reason="rights as on unix")
def test_others_may_read_what_was_downloaded(home, mirror):
    mirror(zipped(members()))
    load_tu("SET", data_dir=home)
    assert (home / "SET").stat().st_mode & 0o777 == 0o777 & ~_umask()


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_other_files_are_left_out(home, mirror):
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


def test_parallel_callers_all_succeed(home, mirror):
    mirror(zipped(members()))
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: load_tu("SET", data_dir=home)[0], range(16)))
    assert results == [EXPECTED] * 16
    assert [path.name for path in home.iterdir()] == ["SET"]


def test_the_slower_of_two_callers_takes_what_is_there(home, mirror, monkeypatch):
    mirror(zipped(members()))
    unpack = _fetch.unpack

    def overtaken(*args):
        unpack(*args)
        (home / "SET").mkdir()
        for name, text in members(graph_labels="8\n9\n"):
            (home / name).write_text(text)

    monkeypatch.setattr(_fetch, "unpack", overtaken)
    assert load_tu("SET", data_dir=home)[1].tolist() == [8, 9]
    assert [path.name for path in home.iterdir()] == ["SET"]


def test_an_empty_folder_of_that_name_is_filled(home, mirror):
    mirror(zipped(members()))
    (home / "SET").mkdir(parents=True)
    assert load_tu("SET", data_dir=home)[0] == EXPECTED


def test_real_files_pass_their_checksums(data_dir, home, mirror):
    files = sorted((data_dir / "MUTAG").iterdir())
    mirror(zipped([(f"MUTAG/{file.name}", file.read_bytes()) for file in files]), "MUTAG")
    assert len(load_tu("MUTAG", data_dir=home)[0]) == 188


def test_checksums_are_those_of_the_real_files(data_dir):
    names = [path.name for path in data_dir.iterdir() if path.is_dir()]
    for name in names:
        known = _fetch._checksums(name)
        assert known.keys() == {path.name for path in (data_dir / name).glob(f"{name}_*.txt")}
        for file, digest in known.items():
            assert hashlib.sha256((data_dir / name / file).read_bytes()).hexdigest() == digest, file


# -------------------------------------------------------------------- what does not


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/none", "/none/SET.zip cannot be downloaded: the server says 404"),
        ("/short", "the download broke off after 2 of 1000 bytes. Try again"),
        ("/endless", "is larger than 5000 bytes, more than a data set of the collection has"),
        ("/elsewhere", "SET.zip (leads to ftp|cannot be downloaded)"),
        ("/garbage", "SET.zip cannot be downloaded"),
        ("/superscript", "The archive of 'SET' is damaged or not a zip file"),
        ("/slow", "the download took longer than 1 seconds"),
        ("/slow-headers", "the download took longer than 1 seconds"),
        ("/slow-chunks", "the download took longer than 1 seconds"),
        ("/red", r"the server says 404 \\x1b\[31mred\\x07\.$"),
    ],
)
def test_bad_servers(home, mirror, server, monkeypatch, path, message):
    monkeypatch.setattr(_fetch, "_MAX_DOWNLOAD", 5000)
    monkeypatch.setattr(_fetch, "_MAX_SECONDS", 1.0)
    monkeypatch.setenv("TREEGRAM_MIRROR", server + path)
    with pytest.raises(DatasetError, match=message):
        load_tu("SET", data_dir=home)
    assert_nothing_stays(home)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("https://a/SET.zip", "http://b/SET.zip"),
        ("https://a/SET.zip", "ftp://b/SET.zip"),
        ("http://a/SET.zip", "file:///etc/passwd"),
        ("http://a/SET.zip", "ftp://b/\x1b[31m"),
    ],
)
def test_no_hop_leads_to_anything_less_safe(before, after):
    request = urllib.request.Request(before)
    with pytest.raises(
        DatasetError, match=r"SET.zip leads to (http|ftp|file):.*; a redirect to less than https? is not"
    ) as e:
        _fetch._Redirects().redirect_request(request, io.BytesIO(), 302, "Found", {}, after)
    assert str(e.value).isprintable()


@pytest.mark.parametrize(
    ("before", "after"), [("https://a/x", "https://b/x"), ("http://a/x", "https://b/x"), ("http://a/x", "http://b/x")]
)
def test_other_redirects_are_followed(before, after):
    request = urllib.request.Request(before)
    assert _fetch._Redirects().redirect_request(request, io.BytesIO(), 302, "Found", {}, after).full_url == after


def test_an_announced_size_is_checked_before_the_download(home, mirror, server, monkeypatch):
    monkeypatch.setattr(_fetch, "_MAX_DOWNLOAD", 100)
    mirror(b"x" * 101)
    monkeypatch.setenv("TREEGRAM_MIRROR", server)
    with pytest.raises(DatasetError, match="is larger than 100 bytes"):
        load_tu("SET", data_dir=home)
    assert_nothing_stays(home)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (
            "http://127.0.0.1:9",
            r"SET.zip cannot be downloaded \(.*refused.*\). Without a network, put the unpacked files",
        ),
        ("file:///no/such/folder", "SET.zip cannot be downloaded"),
        ("ftp://127.0.0.1", "TREEGRAM_MIRROR must be an http, https or file address; got 'ftp://127.0.0.1'"),
        ("nonsense", "TREEGRAM_MIRROR must be an http, https or file address; got 'nonsense'"),
        ("http://[", "SET.zip cannot be downloaded"),
    ],
)
def test_bad_addresses(home, monkeypatch, address, message):
    monkeypatch.setenv("TREEGRAM_MIRROR", address)
    with pytest.raises(DatasetError, match=message):
        load_tu("SET", data_dir=home)
    assert_nothing_stays(home)


def link(name):
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


@pytest.mark.parametrize(
    ("hostile", "message"),
    [
        ([("/etc/passwd", "x")], "refused: its member '/etc/passwd' leads out of the folder"),
        ([("SET/../../SET_x.txt", "x")], "refused: its member .* leads out of the folder"),
        ([("..", "x")], "refused: its member '..' leads out of the folder"),
        ([("C:/SET_x.txt", "x")], "refused: its member 'C:/SET_x.txt' leads out of the folder"),
        ([("SET\\..\\SET_x.txt", "x")], "refused: its member .* leads out of the folder"),
        ([(link("SET/SET_node_labels.txt"), "/etc/passwd")], "refused: its member .* is a link"),
        ([("set/x.txt", "x"), ("SET/SET_a.txt", "1, 2\n")], "refused: it holds a file twice"),
        ([(f"SET/SET_{i}.txt", "x") for i in range(100)], "refused: it lists more than 100 files"),
        ([(f"SET/{i}", "") for i in range(2000)], "refused: it lists more than 100 files"),
        ([("SET/SET_node_labels.txt", "0" * 20_001)], "refused: it unpacks to more than 20000 bytes"),
        ([("elsewhere.bin", "0" * 20_001)], "refused: it unpacks to more than 20000 bytes"),
    ],
)
def test_hostile_archives_are_refused(home, mirror, monkeypatch, tmp_path, hostile, message):
    monkeypatch.setattr(_unzip, "_MAX_UNPACKED", 20_000)
    before = sorted(tmp_path.rglob("*"))
    mirror(zipped([*members(), *hostile]))
    with pytest.raises(DatasetError, match=f"The archive of 'SET' is {message}"):
        load_tu("SET", data_dir=home)
    assert_nothing_stays(home)
    assert set(tmp_path.rglob("*")) - set(before) <= {home, tmp_path / "mirror" / "SET.zip"}


def test_an_archive_that_lies_about_its_size(home, mirror, monkeypatch):
    """The list of members promises a few bytes, the data unpack to many."""
    monkeypatch.setattr(_unzip, "_MAX_UNPACKED", 20_000)
    data = bytearray(zipped([("SET/SET_A.txt", "0" * 1_000_000)]))
    for mark, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = data.index(mark) + offset
        data[at : at + 4] = (10).to_bytes(4, "little")
    mirror(bytes(data))
    with pytest.raises(DatasetError, match=r"The archive of 'SET' is (damaged|refused)"):
        load_tu("SET", data_dir=home)
    assert_nothing_stays(home)


def test_what_comes_out_is_counted(home, mirror, monkeypatch):
    """Even if the sizes in the list could not be trusted."""
    monkeypatch.setattr(_unzip, "_MAX_UNPACKED", 20_000)
    monkeypatch.setattr(_unzip, "_wanted", lambda members, name: members)
    mirror(zipped(members(node_attributes="0" * 30_000)))
    with pytest.raises(DatasetError, match="refused: it unpacks to more than 20000 bytes"):
        load_tu("SET", data_dir=home)
    assert_nothing_stays(home)


def test_a_list_of_members_that_would_fill_the_memory_is_not_read(home, mirror, monkeypatch):
    monkeypatch.setattr(zipfile, "ZipFile", lambda *args: pytest.fail("the list was read"))
    end = b"PK\x05\x06" + bytes(8) + (1 << 30).to_bytes(4, "little") + bytes(6)
    mirror(bytes(1000) + end)
    with pytest.raises(DatasetError, match="refused: it lists more than 100 files"):
        load_tu("SET", data_dir=home)
    mirror(bytes(1000) + b"PK\x06\x07" + bytes(16) + b"PK\x05\x06" + bytes(18))
    with pytest.raises(DatasetError, match="refused: it is a zip64 file"):
        load_tu("SET", data_dir=home)


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
def test_damaged_archives(home, mirror, damage):
    mirror(damage(zipped(members(node_labels="1\n2\n3\n" * 100))))
    with pytest.raises(DatasetError, match="The archive of 'SET' is damaged or not a zip file"):
        load_tu("SET", data_dir=home)
    assert_nothing_stays(home)


def zipped_by(method):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, text in members(node_labels="1\n2\n3\n" * 1000):
            archive.writestr(name, text)
    return buffer.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
@pytest.mark.parametrize("at", [None, 60, 200])
def test_other_compressions_are_refused(home, mirror, method, at):
    data = bytearray(zipped_by(method))
    if at is not None:
        data[at] ^= 0xFF
    mirror(bytes(data))
    with pytest.raises(
        DatasetError, match=r"The archive of 'SET' is refused: .* compressed by a method other than deflate"
    ):
        load_tu("SET", data_dir=home)
    assert_nothing_stays(home)


def test_a_name_that_is_no_text(home, mirror):
    data = zipped([*members(), ("SET/\u00e9\u00e9.txt", "x")]).replace("\u00e9\u00e9".encode(), b"\xff\xfe\xff\xfe")
    mirror(data)
    with pytest.raises(DatasetError, match="The archive of 'SET' is damaged or not a zip file"):
        load_tu("SET", data_dir=home)
    assert_nothing_stays(home)


def test_tables_that_cannot_be_read_do_not_stay(home, mirror):
    mirror(zipped(members(node_labels="1\n2\nx\n")))
    with pytest.raises(DatasetError, match=r"SET_node_labels.txt:3: expected a finite number, got 'x'"):
        load_tu("SET", data_dir=home)
    assert_nothing_stays(home)


@pytest.mark.filterwarnings("default:There are no checksums")
def test_what_cannot_be_verified_is_told(home, mirror):
    mirror(zipped(members()))
    with pytest.warns(UserWarning, match="There are no checksums for the data set 'SET': its files are taken as they"):
        load_tu("SET", data_dir=home)
    load_tu("SET", data_dir=home)  # once, when it is downloaded


def test_a_known_set_with_one_more_table_is_refused(data_dir, home, mirror):
    files = [(f"MUTAG/{file.name}", file.read_bytes()) for file in sorted((data_dir / "MUTAG").iterdir())]
    n_nodes = (data_dir / "MUTAG" / "MUTAG_graph_indicator.txt").read_text().count("\n")
    mirror(zipped([*files, ("MUTAG/MUTAG_node_attributes.txt", "0.5\n" * n_nodes)]), "MUTAG")
    with pytest.raises(
        DatasetError, match=r"The archive of 'MUTAG' holds MUTAG_node_attributes.txt, which is not part of"
    ):
        load_tu("MUTAG", data_dir=home)
    assert_nothing_stays(home)
    mirror(zipped([*files, ("MUTAG/MUTAG_other.txt", "no table")]), "MUTAG")
    assert load_tu("MUTAG", data_dir=home)[0].attributes is None
    assert not (home / "MUTAG" / "MUTAG_other.txt").exists()


@pytest.mark.parametrize("given", [[], members(A=None), members("OTHER"), [("SET_A.txt", "1, 2\n")]])
def test_an_archive_without_the_set(home, mirror, given):
    mirror(zipped(given))
    with pytest.raises(DatasetError, match=r"holds no SET/SET_A.txt; it is not a TU data set"):
        load_tu("SET", data_dir=home)
    assert_nothing_stays(home)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "of the archive of 'MUTAG' is damaged or has changed: expected SHA-256 [0-9a-f]{64}, got [0-9a-f]{64}"),
        ({"graph_indicator": None}, "The archive of 'MUTAG' lacks MUTAG_graph_indicator.txt"),
    ],
)
def test_a_known_set_that_is_not_what_we_know(home, mirror, monkeypatch, changes, message):
    digest = hashlib.sha256(FILES["A"].encode()).hexdigest()
    sums = {"MUTAG_A.txt": digest, "MUTAG_graph_indicator.txt": "0" * 64}
    monkeypatch.setattr(_fetch, "_checksums", lambda name: sums)
    mirror(zipped(members("MUTAG", **changes)), "MUTAG")
    with pytest.raises(DatasetError, match=message):
        load_tu("MUTAG", data_dir=home)
    assert_nothing_stays(home)


def test_a_home_that_cannot_be_written(home, mirror, tmp_path):
    mirror(zipped(members()))
    home.write_text("a file is in the way")
    with pytest.raises(
        DatasetError, match=r"The data set 'SET' cannot be stored in .* Name another folder by data_dir"
    ):
        load_tu("SET", data_dir=home)
    assert home.read_text() == "a file is in the way"


def test_a_disk_that_is_full(home, mirror, monkeypatch):
    def fail(*args):
        raise OSError(28, "No space left on device")

    mirror(zipped(members()))
    monkeypatch.setattr(_fetch, "unpack", fail)
    with pytest.raises(DatasetError, match=r"'SET' cannot be stored in .* \(No space left on device\)"):
        load_tu("SET", data_dir=home)
    assert_nothing_stays(home)


def test_a_break_leaves_nothing_behind(home, mirror, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    mirror(zipped(members()))
    monkeypatch.setattr(_fetch, "unpack", interrupt)
    with pytest.raises(KeyboardInterrupt):
        load_tu("SET", data_dir=home)
    assert_nothing_stays(home)


def test_a_plain_file_under_that_name_is_not_replaced(home, mirror):
    mirror(zipped(members()))
    home.mkdir()
    (home / "SET").write_text("mine")
    with pytest.raises(DatasetError, match="'SET' cannot be stored"):
        load_tu("SET", data_dir=home)
    assert (home / "SET").read_text() == "mine"
    assert [path.name for path in home.iterdir()] == ["SET"]
