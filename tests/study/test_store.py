import contextlib
import json
import math
import os
import platform
import random
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treegram
from treegram._core import machine as _machine
from treegram._core.errors import StoreError, TreegramError
from treegram.study import claims as _claims
from treegram.study import sqlite as _sqlite
from treegram.study.records import DatasetFacts, GramTime, Row
from treegram.study.store import Store

ROW = Row(
    dataset="ENZYMES",
    kernel="ODDCL",
    repeat=0,
    fold=3,
    actual=(5, 1, 65535, 2),
    predicted=(5, 0, 65535, 2),
    chosen={"kernel": "oddcl", "lam": 1.2, "depth": 3, "C": 100.0},
    inner_score=0.1 + 0.2,
    n_fits=168,
    n_unconverged=1,
    seconds=12.345678901234567,
    run=1,
    decisions=(0.5, -1.25, 3.0, 0.0),
)
TIME = GramTime("ENZYMES", "ODDCL", {"lam": 1.2, "depth": 3}, 0.36, learns=True, run=1)
FACTS = DatasetFacts("ENZYMES", 600, {"1": 100, "10": 300, "2": 200}, 32.6, 62.1, 18, "5ca1ab1e")
NUMBERS = {"lowest": -1.5, "highest": 2.0, "mean": 0.1, "deviation": 0.7, "mean_error": 0.5}
NUMBER_FACTS = replace(FACTS, class_counts={}, numbers=NUMBERS)

# Begins like every program below, which run in processes of their own; ROW(i) is the i-th row of the key "k".
PROGRAM = """
import os, sys, time
from pathlib import Path
from treegram.study.records import Row
from treegram.study.store import Store
path = sys.argv[1]
def ROW(i, run=1):
    return Row("D", "K", i // 10, i % 10, (0,) + (1,) * i, (0,) * (i + 1), {"C": i}, 0.5, 1, 0, 0.1, run)
def say(*words):
    print(*words, flush=True)
"""


def start(program, *arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM + program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.db"


@pytest.fixture
def store(path):
    with Store.open(path) as store:
        yield store


def bits(value):
    return struct.pack("<d", value)


def older(path, *rows):
    """Make a store of version 3 at a path, as treegram wrote it before there were numbers and decisions."""
    schema = _sqlite._SCHEMAS[3]
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(schema)
        connection.execute(f"PRAGMA application_id = {_sqlite._APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 3")
        for row in rows:
            connection.execute(
                "INSERT INTO result VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    "k", row.dataset, row.kernel, row.repeat, row.fold, row.score,
                    struct.pack(f"<{len(row.actual)}H", *row.actual), struct.pack(f"<{len(row.actual)}H", *row.predicted),
                    json.dumps(row.chosen, sort_keys=True), row.inner_score, row.n_fits, row.n_unconverged, row.seconds, row.run,
                ),
            )  # fmt: skip
        connection.execute(
            "INSERT INTO dataset VALUES (?, ?, ?, ?, ?, ?, ?)",
            ("ENZYMES", 600, json.dumps(FACTS.class_counts), 32.6, 62.1, 18, "5ca1ab1e"),
        )
        connection.commit()


# -------------------------------------------------------------------- stores of version 3


def test_an_older_store_is_read_and_stays_as_it_is(path):
    rows = [replace(ROW, fold=fold, decisions=()) for fold in range(3)]
    older(path, *rows)
    before = path.read_bytes()
    for create in (False, True):
        with Store.open(path, create=create) as store:
            assert store.rows() == store.rows(["k"]) == rows
            assert store.datasets() == [FACTS]
    assert path.read_bytes() == before


def test_an_older_store_is_upgraded_by_who_adds_to_it(path, store):
    rows = [replace(ROW, fold=fold, decisions=()) for fold in range(3)]
    old = path.with_name("old.db")
    older(old, *rows)
    new = replace(ROW, fold=9)
    with Store.open(old) as first, Store.open(old) as second:
        first.add_row("k", new)
        assert first.rows() == second.rows() == [*rows, new]  # who opened it before sees the new tables too
        second.add_row("n", replace(ROW, actual=(0.5,) * 4, predicted=(0.25,) * 4))
    with Store.open(old, create=False) as store:
        assert len(store.rows()) == 5
        assert store.datasets() == [FACTS]


def test_an_upgrade_is_all_or_nothing(path):
    older(path, replace(ROW, decisions=()))
    before = path.read_bytes()
    program = """
from treegram.study import _sqlite
connection = _sqlite.connect(Path(path), create=True)
connection.set_trace_callback(lambda statement: os.kill(os.getpid(), 9) if statement.startswith("PRAGMA user_version =") else None)
_sqlite.upgrade(connection)
"""
    process = start(program, path)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    with Store.open(path, create=False) as store:
        assert store.rows() == [replace(ROW, decisions=())]
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)
    assert path.read_bytes() == before


# -------------------------------------------------------------------- what goes in comes out

names = st.text(max_size=20)  # any letter there is
shares = st.floats(0.0, 1.0)
reals = st.floats(min_value=0.0, allow_infinity=False)
numbers = st.integers(0, 2**31)
plain = st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats(-1e299, 1e299) | names
values = plain | st.lists(plain, max_size=3)
targets = [st.integers(0, 65535), st.floats(-1e300, 1e300)]
folds = st.one_of(st.lists(st.tuples(one, one), min_size=1, max_size=30) for one in targets)
singles = st.floats(width=32, allow_nan=False, allow_infinity=False)
rows = st.builds(
    lambda predictions, decision, n_unconverged, n_more, **fields: Row(
        actual=tuple(actual for actual, _ in predictions),
        predicted=tuple(predicted for _, predicted in predictions),
        decisions=decision * len(predictions),
        n_unconverged=n_unconverged,
        n_fits=n_unconverged + n_more,
        **fields,
    ),
    predictions=folds,
    decision=st.lists(singles, max_size=3).map(tuple),
    n_more=numbers,
    dataset=names,
    kernel=names,
    repeat=numbers,
    fold=numbers,
    chosen=st.dictionaries(names, values, max_size=4),
    inner_score=shares,
    n_unconverged=numbers,
    seconds=reals,
    run=numbers,
)


@settings(max_examples=30, deadline=None)
@given(row=rows, key=names)
def test_a_row_comes_back_bit_by_bit(row, key):
    with tempfile.TemporaryDirectory() as folder:
        with Store.open(Path(folder) / "s.db") as store:
            store.add_row(key, row)
        with Store.open(Path(folder) / "s.db", create=False) as store:
            (found,) = store.rows([key])
            assert store.done(key) == {(row.repeat, row.fold)}
    for field in ("score", "inner_score", "seconds"):
        assert bits(getattr(found, field)) == bits(getattr(row, field))
    assert found == row


def test_numbers_of_numpy_are_numbers(store):
    classes = {"actual": tuple(np.arange(3)), "predicted": tuple(np.arange(3)[::-1])}
    row = replace(ROW, inner_score=np.float32(0.5), fold=np.int64(3), **classes, n_fits=np.int32(168), decisions=())
    row = replace(row, decisions=())
    store.add_row("k", row)
    assert store.rows() == [replace(ROW, inner_score=0.5, actual=(0, 1, 2), predicted=(2, 1, 0), decisions=())]


def test_the_first_row_of_a_fold_stays(store):
    store.add_row("k", ROW)
    store.add_row("k", replace(ROW, inner_score=0.0, run=2))
    assert store.rows() == [ROW]


def test_a_row_that_is_not_whole_is_an_error_and_not_dropped_in_silence(store):
    with pytest.raises(StoreError, match="NOT NULL"):
        store.add_row("k", replace(ROW, dataset=None))
    with pytest.raises(struct.error):
        store.add_row("k", replace(ROW, actual=(0,), predicted=(65536,)))
    assert store.rows() == []


def test_rows_are_sorted_and_chosen_by_key(store):
    places = [
        ("B", "k", 0, 0),
        ("A", "l", 0, 1),
        ("A", "k", 1, 0),
        ("A", "k", 0, 10),
        ("A", "k", 0, 9),
        ("Ä", "k", 0, 0),
    ]
    for dataset, kernel, repeat, fold in places:
        row = replace(ROW, dataset=dataset, kernel=kernel, repeat=repeat, fold=fold)
        store.add_row(dataset + kernel, row)

    def found(*keys):
        return [(row.dataset, row.kernel, row.repeat, row.fold) for row in store.rows(*keys)]

    assert found() == sorted(places)
    assert found(["Bk", "Al", "none"]) == [("A", "l", 0, 1), ("B", "k", 0, 0)]
    assert found([]) == []
    assert store.done("Ak") == {(1, 0), (0, 10), (0, 9)}
    assert store.done("none") == set()


def test_more_keys_than_sqlite_takes_variables(store):
    store.add_row("5", ROW)
    assert store.rows({str(i) for i in range(2000)}) == [ROW]


def test_gram_times(store):
    other = replace(TIME, kernel="A", seconds=1e-300)
    store.add_gram_time("k", TIME)
    store.add_gram_time("k", replace(TIME, seconds=9.0))
    store.add_gram_time("l", other)
    assert store.gram_times() == [other, TIME]
    assert store.gram_times(["k"]) == [TIME]


def test_facts_of_a_dataset_keep_the_order_of_its_classes(store):
    facts = replace(FACTS, n_graphs=6, class_counts={"9": 1, "10": 2, "ß": 3})
    store.put_dataset(FACTS)
    store.put_dataset(facts)
    store.put_dataset(replace(FACTS, name="BZR"))
    assert store.datasets() == [replace(FACTS, name="BZR"), facts]
    assert list(store.datasets()[1].class_counts) == ["9", "10", "ß"]


def test_the_study_is_kept_and_may_grow(store):
    assert store.study_text() is None
    store.put_study("paper", "repeats = 1\n")
    store.put_study("paper", "repeats = 10  # größer\n")
    assert store.study_text() == "repeats = 10  # größer\n"


def test_another_study_needs_another_store(store, path):
    store.put_study("paper", "x = 1")
    with pytest.raises(
        StoreError, match=r"results\.db holds the study 'paper'; give another file for the study 'mine'"
    ):
        store.put_study("mine", "x = 2")
    assert store.study_text() == "x = 1"


@pytest.mark.parametrize("name", ["a b?mode=memory#c%20d&.db", "ö/ü.sqlite", "no ending"])
def test_any_name_will_do(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    with Store.open(str(path)) as store:
        store.add_row("k", ROW)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == [path]


def test_what_is_stored_is_readable_without_treegram(store, path):
    store.add_row("k", ROW)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        ((chosen, predicted),) = connection.execute("SELECT chosen, predicted FROM result")
    assert chosen == '{"C": 100.0, "depth": 3, "kernel": "oddcl", "lam": 1.2}'
    assert predicted == np.array(ROW.predicted, dtype="<u2").tobytes()


def test_a_closed_store_says_so(path):
    store = Store.open(path)
    store.close()
    store.close()
    for use in (store.rows, lambda: store.add_row("k", ROW)):
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            use()


# -------------------------------------------------------------------- provenance


def test_runs_say_with_what_and_on_what(store):
    first, second = store.begin_run("reproduce paper"), store.begin_run("reproduce paper --jobs 2")
    assert store.runs() == [first, second]
    assert first.id != second.id
    assert first.command == "reproduce paper"
    assert first.started.endswith("+00:00")
    assert set(first.versions) == {"python", "treegram", "numpy", "scipy", "scikit-learn", "numba"}
    assert first.versions["treegram"] == treegram.__version__
    assert set(first.machine) == {"processor", "cores", "memory_gib", "system"}
    assert first.machine["cores"] == os.cpu_count()


def test_a_run_names_nobody(store, monkeypatch):
    for name in ("node", "release", "version"):  # where a host's or a builder's name may stand
        monkeypatch.setattr(_machine.platform, name, lambda: pytest.fail("not to be asked"))
    monkeypatch.setattr(socket, "gethostname", lambda: pytest.fail("not to be asked"))
    assert store.begin_run("c").machine["system"] == f"{platform.system()} {platform.machine()}"


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [
        ("processor\t: 0\nmodel\t\t: 17\nmodel name\t: Some CPU @ 2GHz\nmodel name\t: B\n", "Some CPU @ 2GHz"),
        ("processor: 0\nBogoMIPS: 50\n", "from platform"),
        (None, "from platform"),
    ],
)
def test_processor(tmp_path, monkeypatch, cpuinfo, expected):
    monkeypatch.setattr(_machine.platform, "processor", lambda: "from platform")
    if cpuinfo is not None:
        (tmp_path / "cpuinfo").write_text(cpuinfo)
    assert _machine._processor(tmp_path / "cpuinfo") == expected


def test_a_system_that_does_not_tell_its_memory(monkeypatch):
    monkeypatch.delattr(os, "sysconf")
    assert _machine.describe_machine()["memory_gib"] is None


# -------------------------------------------------------------------- files that are no store


def state(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def refused(path, match, **options):
    """Assert that opening is refused, and that no file has changed or come to be."""
    before = state(path.parent)
    with pytest.raises(StoreError, match=match) as caught:
        Store.open(path, **options)
    assert path.name in str(caught.value)
    assert state(path.parent) == before


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.db"
    with Store.open(path) as store:
        for fold in range(60):
            store.add_row("k", replace(ROW, fold=fold, actual=(0,) * 500, predicted=tuple(range(500)), decisions=()))
    return path


@pytest.fixture
def full(path, model):
    """The path of a closed store with many rows."""
    return Path(shutil.copy(model, path))


def test_the_error_is_of_the_family():
    assert issubclass(StoreError, TreegramError)
    assert issubclass(StoreError, ValueError)


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("content", [b"x", b"accuracy,0.7\n" * 1000, random.Random(0).randbytes(9000), bytes(8192)])
def test_something_else_is_refused(path, content, create):
    path.write_bytes(content)
    refused(path, "is not a store of results, or it is damaged", create=create)


@pytest.mark.parametrize("length", [1, 50, 100, 1000, 4096, 8192, 20000, -300, -1])
def test_a_truncated_store_is_refused(full, length):
    full.write_bytes(full.read_bytes()[:length])
    refused(full, "damaged")


@pytest.mark.parametrize("seed", range(5))
def test_random_bytes_in_any_page_but_the_first_are_noticed(full, seed):
    rng = random.Random(seed)
    content = bytearray(full.read_bytes())
    page = rng.randrange(1, len(content) // 4096)
    content[page * 4096 : page * 4096 + 200] = rng.randbytes(200)
    full.write_bytes(content)
    refused(full, "damaged")


@pytest.mark.parametrize(
    "pragmas", ["", "PRAGMA application_id = 7", "PRAGMA user_version = 3", "PRAGMA journal_mode = WAL"]
)
def test_a_file_of_another_program_is_refused(path, pragmas):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(pragmas)
        connection.execute("CREATE TABLE result (secret)")
        connection.commit()
    refused(path, "is an SQLite file of another program")


@pytest.mark.parametrize("version", [0, 1, 2, 99])
def test_another_version_is_refused(full, version):
    with contextlib.closing(sqlite3.connect(full)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    refused(full, f"is a store of version {version}, but this treegram reads versions 3 and 4; use the treegram that")


@pytest.mark.parametrize(
    "statements",
    [
        "CREATE TRIGGER t AFTER INSERT ON result BEGIN DELETE FROM result; END",
        "CREATE VIEW v AS SELECT load_extension('evil')",
        "DROP TABLE gram_time; CREATE VIEW gram_time AS SELECT 1 AS key, 1 AS dataset",
        "CREATE TABLE more (x)",
        "CREATE INDEX i ON result (score)",
        "DROP TABLE gram_time",
        "ALTER TABLE result ADD COLUMN evil AS (abs(fold))",
        "CREATE VIRTUAL TABLE f USING fts5(x)",
        "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = sql || ' ' WHERE name = 'run'",
        "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = 'nonsense' WHERE name = 'run'",
    ],
)
def test_a_schema_that_is_not_ours_to_the_letter_is_refused(full, statements):
    with contextlib.closing(sqlite3.connect(full)) as connection:
        connection.executescript(statements)
    refused(full, "it is damaged or not to be trusted|is damaged")


@pytest.mark.parametrize(
    "change",
    [
        "chosen = '{'",
        "chosen = '[1]'",
        "chosen = replace(hex(zeroblob(100000)), '0', '[')",
        "chosen = CAST(x'ff' AS TEXT)",
        "predicted = x'010203'",
        "predicted = 5",
        "score = 'high'",
        "score = 50",
        "score = -1",
        "score = 0.5",
        "target = 'numbers'",
        "target = 'both'",
        "decisions = x'0102'",
        "decisions = 'none'",
        "decisions = x'0000c07f'",
        "inner_score = 1.5",
        "actual = x''",
        "actual = predicted",
        "actual = x'', predicted = x''",
        "n_unconverged = 1000",
        "seconds = -1",
        "seconds = 9e999",
        "repeat = -1",
        "chosen = '{\"C\": NaN}'",
        "chosen = '{\"C\": [[1]]}'",
        "chosen = '{\"C\": {}}'",
        "chosen = '{\"C\": 1' || replace(hex(zeroblob(200)), '0', '0') || '}'",
        "fold = 'first'",
        "run = 9e999",
    ],
)
def test_a_record_that_cannot_be_read_is_an_error_of_the_store(full, change):
    with contextlib.closing(sqlite3.connect(full)) as connection:
        connection.execute(f"UPDATE result SET {change} WHERE fold = 7")
        connection.commit()
    with pytest.raises(StoreError, match=r"results\.db is damaged"), Store.open(full) as store:
        store.rows()


@pytest.mark.parametrize(
    "change",
    [
        "n_graphs = 0",
        "n_graphs = 599",
        "class_counts = '{}'",
        "numbers = '{}', class_counts = '{}'",
        "numbers = '{\"mean\": 1}', class_counts = '{}'",
        'class_counts = \'{"1": 0, "2": 600}\'',
        'class_counts = \'{"1": -1, "2": 601}\'',
        "mean_nodes = 9e999",
        "mean_edges = -1",
        "n_attributes = 'many'",
    ],
)
def test_facts_that_cannot_be_right_are_an_error_of_the_store(path, change):
    with Store.open(path) as store:
        store.put_dataset(FACTS)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"UPDATE dataset SET {change}")
        connection.commit()
    with pytest.raises(StoreError, match=r"results\.db is damaged"), Store.open(path) as store:
        store.datasets()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"predicted": (1,)}, "as many predictions as test graphs"),
        ({"actual": (), "predicted": ()}, "as many predictions as test graphs"),
        ({"actual": (0.5,) * 4, "inner_score": 1.5}, "at most 1, not 1.5"),
        ({"actual": (0.5,) * 4, "inner_score": -math.inf}, "at most 1, not -inf"),
        ({"actual": (0.5,) * 4}, "all classes or all numbers"),
        ({"actual": (0.5, math.nan, 0.5, 0.5), "predicted": (0.5,) * 4}, "targets must be finite"),
        ({"decisions": (1.0, 2.0)}, "as many decisions for each test graph"),
        ({"decisions": (1.0, 2.0, math.inf, 0.0)}, "decisions must be finite"),
        ({"inner_score": 50.0}, "between 0 and 1, not 50"),
        ({"inner_score": math.nan}, "between 0 and 1, not nan"),
        ({"fold": -1}, "numbered from 0"),
        ({"n_unconverged": 169}, "no more fits can fail"),
        ({"seconds": math.inf}, "seconds must be a finite number"),
    ],
)
def test_a_row_that_cannot_be_right_is_not_made(change, message):
    with pytest.raises(ValueError, match=message):
        replace(ROW, **change)


def test_nested_or_endless_values_are_not_stored(store):
    for value in ({"a": 1}, [[1]], math.nan, math.inf, 10**400):
        with pytest.raises(ValueError, match="'C' is neither a text, nor a number"):
            store.add_row("k", replace(ROW, chosen={"C": value}))


def test_nothing_there(path):
    refused(path, "There is no store", create=False)


def test_a_missing_folder(tmp_path):
    with pytest.raises(StoreError, match=r"The folder .*none of the store .* does not exist; create it first"):
        Store.open(tmp_path / "none" / "s.db")


def test_a_folder(tmp_path):
    (tmp_path / "s.db").mkdir()
    refused(tmp_path / "s.db", "is a folder; a store is a file")


def test_a_file_in_place_of_the_folder(path):
    path.write_text("x")
    with pytest.raises(StoreError, match="cannot be reached"):
        Store.open(path / "s.db")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe(path):
    os.mkfifo(path)
    refused(path, "is not an ordinary file")


def test_an_empty_file_becomes_a_store_only_where_one_may_be_created(path):
    path.touch()
    refused(path, "is empty, not a store", create=False)
    with Store.open(path) as store:
        store.add_row("k", ROW)
        assert store.rows() == [ROW]


@pytest.fixture
def open_folder():
    """A folder that other users can reach, unlike pytest's."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextlib.contextmanager
def mortal():
    """Root may read and write all; inside, this process is nobody."""
    if not hasattr(os, "geteuid"):
        pytest.skip("needs Unix permissions")
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_file_that_may_not_be_read(open_folder, full):
    path = Path(shutil.copy(full, open_folder))
    path.chmod(0o000)
    with mortal(), pytest.raises(StoreError, match="cannot be opened; the file must be readable"):
        Store.open(path)


def test_a_read_only_store_can_be_read_from_a_read_only_folder_but_not_written(open_folder, full):
    path = Path(shutil.copy(full, open_folder))
    path.chmod(0o444)
    open_folder.chmod(0o555)
    before = state(open_folder)
    with mortal(), Store.open(path) as store:
        assert len(store.rows()) == 60
        with pytest.raises(StoreError, match=r"read-only\. All that was finished before is safe"):
            store.add_row("l", ROW)
        with pytest.raises(StoreError, match="cannot be opened for writing"):
            store.claim("task")
    open_folder.chmod(0o755)
    assert state(open_folder) == before


def test_reading_changes_no_byte(full):
    before = state(full.parent)
    with Store.open(full) as store:
        assert len(store.rows()) == 60
        assert store.study_text() is None
        assert store.runs() == store.gram_times() == store.datasets() == []
        assert set(state(full.parent)) == {"results.db"}
    assert state(full.parent) == before


# -------------------------------------------------------------------- a full disk


def test_a_full_disk_loses_nothing_and_the_store_goes_on_when_there_is_room(path):
    with Store.open(path) as store:
        (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count = {pages + 5}")
        kept = []

        def fill():
            for fold in range(1000):
                store.add_row("k", replace(ROW, fold=fold))
                kept.append(fold)

        with pytest.raises(
            StoreError, match=r"the disk is full\. All that was finished before is safe in it; make room"
        ):
            fill()
        assert kept
        assert [row.fold for row in store.rows()] == kept
        store._connection.execute("PRAGMA max_page_count = 1000000")
        store.add_row("k", replace(ROW, fold=1000))
    with Store.open(path) as store:
        assert [row.fold for row in store.rows()] == [*kept, 1000]


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on the size of files")
@pytest.mark.parametrize("limit", [2000, 70_000])
def test_a_limit_on_the_file_loses_nothing(path, limit):
    program = """
import resource
from treegram._core.errors import StoreError
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
try:
    with Store.open(path) as store:
        for i in range(3000):
            store.add_row("k", ROW(i))
            say(i)
except StoreError as error:
    say(error)
"""
    *kept, error = start(program, path, limit).communicate()[0].splitlines()
    assert "the disk fails, or its quota is used up. All that was finished before is safe in it" in error
    with Store.open(path) as store:
        assert [row.repeat * 10 + row.fold for row in store.rows()] == [int(i) for i in kept]


# -------------------------------------------------------------------- killed processes, and several

WRITER = """
with Store.open(path) as store:
    n_done = len(store.done("k"))
    say("start", n_done)
    for i in range(n_done, 100_000):
        store.add_row("k", ROW(i))
        say("added", i + 1)
"""


def test_a_writer_killed_at_any_moment_leaves_all_rows_that_it_finished(path):
    rng = random.Random(5)
    n_before = 0
    for _ in range(6):
        process = start(WRITER, path)
        n_lines = rng.randrange(1, 40)
        lines = [process.stdout.readline() for _ in range(n_lines)]
        time.sleep(rng.random() * 0.005)  # into the middle of something
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()  # communicate() would lose what was read ahead
        process.communicate()
        told = [int(line.split()[1]) for line in lines if line.endswith("\n")]
        assert told[0] == n_before
        with Store.open(path) as store:
            assert store._connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            found = store.rows()
        assert [10 * row.repeat + row.fold for row in found] == list(range(len(found)))
        assert [row.score for row in found] == [1 / (i + 1) for i in range(len(found))]
        assert told[-1] <= len(found) <= told[-1] + 1  # the last one may be stored but not told
        n_before = len(found)


def test_a_killed_writer_is_read_before_anybody_tidies_up(path):
    process = start(WRITER, path)
    lines = [process.stdout.readline() for _ in range(30)]
    with Store.open(path, create=False) as reader:  # while it writes
        assert len(reader.rows()) >= len(lines) - 1
        kill(process)
        assert len(reader.rows()) >= len(lines) - 1


SHARER = """
store = Store.open(path)
run = store.begin_run("share").id
say("ready")
sys.stdin.readline()
n_worked = 0
for i in range(40):
    if not store.claim(f"task {i}"):
        continue
    if (i // 10, i % 10) not in store.done("k"):
        mark = Path(path).with_name(f"{i}.live")
        mark.touch(exist_ok=False)  # fails if another one is at it
        time.sleep(0.001)
        store.add_row("k", ROW(i, run))
        n_worked += 1
        mark.unlink()
    store.release(f"task {i}")
store.close()
say(n_worked)
"""


def test_two_processes_share_the_work(path):
    workers = [start(SHARER, path) for _ in range(2)]  # both create the store at the same time
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    n_worked = [int(worker.communicate()[0]) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0]
    assert sum(n_worked) == 40
    with Store.open(path) as store:
        found = store.rows()
        assert [10 * row.repeat + row.fold for row in found] == list(range(40))
        assert [run.id for run in store.runs()] == [1, 2]
    assert sorted(sum(row.run == run for row in found) for run in (1, 2)) == sorted(n_worked)
    assert {file.name for file in path.parent.iterdir()} == {"results.db", "results.db.lock"}


def test_a_store_is_created_once(path, model):
    with contextlib.closing(sqlite3.connect(model)) as connection:
        tables = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master")]
        (application,) = connection.execute("PRAGMA application_id").fetchone()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as first:
        first.execute("BEGIN IMMEDIATE")
        second = start('say("found", len(Store.open(path).rows()))', path)
        time.sleep(0.5)  # the second sees an empty file, and waits for its turn to fill it
        for statement in [*tables, f"PRAGMA application_id = {application}", "PRAGMA user_version = 4", "COMMIT"]:
            first.execute(statement)
    assert second.communicate()[0] == "found 0\n"


CLAIMER = """
store = Store.open(path)
for line in sys.stdin:
    word, _, task = line.strip().partition(" ")
    say(getattr(store, word)(task))
"""


class Other:
    """A store in another process, by remote control."""

    def __init__(self, path):
        self.process = start(CLAIMER, path)

    def ask(self, *words):
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def claim(self, task):
        return {"True": True, "False": False}[self.ask("claim", task)]


@pytest.fixture
def other(path):
    other = Other(path)
    yield other
    kill(other.process)


def test_a_claim_keeps_all_others_away_until_it_is_released(store, other):
    assert store.claim("a")
    assert not other.claim("a")
    assert not store.claim("a")
    assert other.claim("b")
    assert not store.claim("b")
    store.release("a")
    store.release("b")  # not ours
    assert other.claim("a")
    assert not store.claim("b")
    other.ask("release", "b")
    assert store.claim("b")


def test_claims_of_a_killed_process_are_free(store, other):
    assert other.claim("a")
    assert not store.claim("a")
    kill(other.process)
    assert store.claim("a")


def test_a_second_store_of_the_process_leaves_the_claims_of_the_first(path, store, other):
    assert store.claim("a")
    with Store.open(path) as second:
        assert not second.claim("a")
        assert second.claim("b")
        second.release("a")  # not its own
    assert not other.claim("a")
    assert other.claim("b")
    store.close()
    assert other.claim("a")


def test_no_descriptor_of_the_lock_file_stays_open(store):
    assert store.claim("a")
    assert len(_claims._open_files) == 1
    store.release("a")
    assert not _claims._open_files
    assert store.claim("a")
    store.close()
    assert not _claims._open_files


def test_a_file_system_without_locks_says_so(store, monkeypatch):
    def fail(*arguments):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(_claims.fcntl, "lockf", fail)
    with pytest.raises(StoreError, match=r"cannot be locked \(No locks available\)"):
        store.claim("a")


def test_a_system_without_such_locks_grants_every_claim(path, store, monkeypatch):
    monkeypatch.setattr(_claims, "fcntl", None)
    assert store.claim("a")
    assert store.claim("a")
    store.release("a")
    assert not path.with_name("results.db.lock").exists()


# -------------------------------------------------------------------- one file


def test_compacting_leaves_one_small_file_with_all_in_it(path):
    with Store.open(path) as store:
        for text in ("a long text" * 5000, "a short text"):  # leaves a gap
            store.put_study("paper", text)
        for fold in range(20):
            store.add_row("k", replace(ROW, fold=fold))
        before = store.rows()
        assert {file.suffix for file in path.parent.iterdir()} > {".db-wal"}
        store.compact()
        assert list(path.parent.iterdir()) == [path]
        assert path.stat().st_size < 40_000
        with Store.open(shutil.copy(path, path.with_name("copy.db"))) as copy:
            assert copy.rows() == before
        store.add_row("k", replace(ROW, fold=20))  # life goes on
        assert len(store.rows()) == 21


def test_a_copy_of_the_file_alone_is_a_backup_while_there_are_writers(path, store, other):
    for fold in range(5):
        store.add_row("k", replace(ROW, fold=fold))
        assert other.ask("done", "k")  # a reader does not keep the log from the file
        with Store.open(shutil.copy(path, path.with_name(f"{fold}.db")), create=False) as copy:
            assert copy.rows() == store.rows()
    assert path.with_name(path.name + "-wal").exists()


def test_a_copy_of_the_file_alone_has_what_a_killed_writer_finished(path):
    process = start(WRITER, path)
    n_told = [int(process.stdout.readline().split()[1]) for _ in range(30)][-1]
    kill(process)
    with Store.open(shutil.copy(path, path.with_name("copy.db")), create=False) as copy:
        assert len(copy.rows()) >= n_told - 1  # it may have been killed between the log and the file


def test_compacting_under_another_process_is_refused(store, other):
    store.add_row("k", ROW)
    assert other.ask("done", "k") == "{(0, 3)}"
    with pytest.raises(StoreError, match=r"is kept busy by another process\. All that was finished before is safe"):
        store.compact()
    store.add_row("k", replace(ROW, fold=4))
    assert other.ask("done", "k") in ("{(0, 3), (0, 4)}", "{(0, 4), (0, 3)}")
    kill(other.process)
    store.compact()
    assert len(store.rows()) == 2


@pytest.mark.parametrize("piece", [b"CREATE TABLE ", b"CREATE ", b"key", b" TEXT", b"PRIMARY KEY"])
def test_a_schema_that_is_no_text_is_called_damaged(tmp_path, piece):
    # Found by benchmarks/fuzz.py: SQLite quotes the schema in its message, which Python then cannot decode.
    path = tmp_path / "results.sqlite"
    Store.open(path).close()
    content = path.read_bytes()
    assert piece in content
    path.write_bytes(content.replace(piece, b"\xff" * len(piece)))
    with pytest.raises(StoreError, match="damaged"):
        Store.open(path, create=False)
