"""Tests of the store: rows round-trip, a killed writer loses nothing, and files that are not stores raise."""

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
from collections import deque
from contextlib import closing
from dataclasses import replace
from itertools import repeat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treegram
from treegram._core import machine as _machine
from treegram._core.machine import describe_checkout
from treegram.exceptions import StoreError, TreegramError
from treegram.study.store import DatasetFacts, GramTime, Row, Store

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
    roc_auc=0.875,
)
TIME = GramTime("ENZYMES", "ODDCL", {"lam": 1.2, "depth": 3}, 0.36, learns=True, run=1)
FACTS = DatasetFacts("ENZYMES", 600, {"1": 100, "10": 300, "2": 200}, 32.6, 62.1, 18, "5ca1ab1e")
TARGETS = {"lowest": -1.5, "highest": 2.0, "mean": 0.1, "deviation": 0.7, "mean_error": 0.5}

# The beginning of every program below, each run in its own process; ROW(i) is the i-th row of the key "k".
PROGRAM = """
import sys
from treegram.study.store import Row, Store
path = sys.argv[1]
def ROW(i, run=1):
    return Row("D", "K", i // 10, i % 10, (0,) + (1,) * i, (0,) * (i + 1), {"C": i}, 0.5, 1, 0, 0.1, run)
def say(*words):
    print(*words, flush=True)
"""


def start(program, *arguments):
    command = [sys.executable, "-c", PROGRAM + program, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.db"


@pytest.fixture
def store(path):
    with Store.open(path) as store:
        yield store


# -------------------------------------------------------------------- round trips

names = st.text(max_size=20)
plain = st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats(-1e299, 1e299) | names
targets = [st.integers(0, 65535), st.floats(-1e300, 1e300)]
folds = st.one_of(st.lists(st.tuples(one, one), min_size=1, max_size=30) for one in targets)
rows = st.builds(
    lambda predictions, **fields: Row(
        actual=tuple(actual for actual, _ in predictions),
        predicted=tuple(predicted for _, predicted in predictions),
        **fields,
    ),
    predictions=folds,
    dataset=names,
    kernel=names,
    repeat=st.integers(0, 2**31),
    fold=st.integers(0, 2**31),
    chosen=st.dictionaries(names, plain | st.lists(plain, max_size=3), max_size=4),
    inner_score=st.floats(0.0, 1.0),
    n_fits=st.integers(0, 2**31),
    n_unconverged=st.integers(0, 2**31),
    seconds=st.floats(min_value=0.0, allow_infinity=False),
    run=st.integers(0, 2**31),
    roc_auc=st.none() | st.floats(0.0, 1.0),
)


@settings(max_examples=30, deadline=None)
@given(row=rows, key=names)
def test_row_round_trips_bit_by_bit(row, key):
    with tempfile.TemporaryDirectory() as folder:
        with Store.open(Path(folder) / "s.db") as store:
            store.add_row(key, row)
        with Store.open(Path(folder) / "s.db", create=False) as store:
            (found,) = store.rows([key])
            assert store.done(key) == {(row.repeat, row.fold)}
    for field in ("score", "inner_score", "seconds"):
        assert struct.pack("<d", getattr(found, field)) == struct.pack("<d", getattr(row, field))
    assert found == row
    assert found.task == row.task


def test_first_row_of_a_fold_is_kept(store):
    store.add_row("k", ROW)
    store.add_row("k", replace(ROW, inner_score=0.0, run=2))
    assert store.rows() == [ROW]


def test_rows_are_sorted_and_selected_by_key(store):
    places = [("B", "k", 0, 0), ("A", "l", 0, 1), ("A", "k", 1, 0), ("A", "k", 0, 10), ("A", "k", 0, 2)]
    made = [replace(ROW, dataset=a, kernel=b, repeat=c, fold=d) for a, b, c, d in places]
    for row in made:
        store.add_row(f"{row.dataset}{row.kernel}", row)
    assert store.rows() == made[::-1]
    assert store.rows(["Ak", "Ak", "none"]) == [made[4], made[3], made[2]]
    assert store.rows([]) == []
    assert store.done("Ak") == {(1, 0), (0, 10), (0, 2)}


def test_gram_times_are_stored_once_and_selected_by_key(store):
    store.add_gram_time("k", TIME)
    store.add_gram_time("k", replace(TIME, seconds=9.0))
    store.add_gram_time("l", replace(TIME, dataset="A", learns=False))
    assert store.gram_times(["k"]) == [TIME]
    assert [time.dataset for time in store.gram_times()] == ["A", "ENZYMES"]
    assert [time.learns for time in store.gram_times()] == [False, True]


def test_dataset_facts_are_replaced_and_keep_the_order_of_classes(store):
    for facts in (FACTS, replace(FACTS, name="A", class_counts={}, targets=TARGETS)):
        store.put_dataset(replace(facts, n_graphs=1))
        store.put_dataset(facts)
    assert [facts.name for facts in store.datasets()] == ["A", "ENZYMES"]
    assert store.datasets()[1] == FACTS
    assert list(store.datasets()[1].class_counts) == ["1", "10", "2"]
    assert store.datasets()[0].targets == TARGETS


def test_study_can_be_updated_but_another_study_raises(store, path):
    assert store.study() is None
    store.put_study("paper", "one")
    store.put_study("paper", "two")
    with pytest.raises(StoreError, match="holds the study 'paper'; use another file for the study 'mine'"):
        store.put_study("mine", "three")
    with Store.open(path) as second:
        assert second.study() == ("paper", "two")


def test_any_file_name_is_allowed(tmp_path):
    for name in ("a b.db", "ä?%#.db", "%41.sqlite", "no ending"):
        with Store.open(tmp_path / name) as store:
            store.add_row("k", ROW)
        assert (tmp_path / name).stat().st_size > 0


def test_closed_store_raises(path):
    with Store.open(path) as store:
        pass
    store.close()
    for use in (store.rows, lambda: store.add_row("k", ROW)):
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            use()


def test_invalid_rows_raise():
    for change in ({"actual": ()}, {"predicted": (1,)}, {"seconds": float("nan")}, {"inner_score": float("inf")}):
        with pytest.raises(ValueError, match="must"):
            replace(ROW, **change)


# -------------------------------------------------------------------- provenance


def test_runs_record_versions_and_machine(store):
    first, second = store.begin_run("reproduce paper"), store.begin_run("reproduce paper --jobs 2", {"auto": "1"})
    assert store.runs() == [first, second]
    assert [first.id, second.id] == [1, 2]
    assert first.started.endswith("+00:00")
    packages = {"python", "treegram", "numpy", "scipy", "scikit-learn", "numba"}
    assert set(first.versions) == packages | set(describe_checkout())
    assert first.versions["treegram"] == treegram.__version__
    assert second.versions["auto"] == "1"
    assert set(first.machine) == {"processor", "cores", "memory_gib", "system"}


def test_run_records_no_host_name(store, monkeypatch):
    for name in ("node", "release", "version"):  # may contain the name of a host or of a user
        monkeypatch.setattr(_machine.platform, name, lambda: pytest.fail("must not be called"))
    monkeypatch.setattr(socket, "gethostname", lambda: pytest.fail("must not be called"))
    assert store.begin_run("c").machine["system"] == f"{platform.system()} {platform.machine()}"


# -------------------------------------------------------------------- invalid files


def assert_raises(path, match, **options):
    """Assert that opening raises, and that no file was changed or created."""
    before = {file.name: file.read_bytes() for file in path.parent.iterdir() if file.is_file()}
    with pytest.raises(StoreError, match=match) as caught:
        Store.open(path, **options)
    assert path.name in str(caught.value)
    assert {file.name: file.read_bytes() for file in path.parent.iterdir() if file.is_file()} == before


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.db"
    with Store.open(path) as store:
        for fold in range(60):
            store.add_row("k", replace(ROW, fold=fold, actual=(0,) * 500, predicted=tuple(range(500))))
    return path


@pytest.fixture
def full(path, model):
    """Return the path of a closed store with many rows."""
    return Path(shutil.copy(model, path))


def test_foreign_content_raises(path):
    assert issubclass(StoreError, TreegramError)
    for content in (b"title = 'a study'\n" * 100, bytes(5000), os.urandom(5000)):
        path.write_bytes(content)
        assert_raises(path, "is not a store of results|is damaged")
        assert_raises(path, "is not a store of results|is damaged", create=False)


def test_truncated_store_raises(full):
    content = full.read_bytes()
    for length in (200, len(content) // 2, len(content) - 4096):
        full.write_bytes(content[:length])
        assert_raises(full, "damaged")


def test_files_of_other_programs_and_versions_raise(path, full):
    with closing(sqlite3.connect(path.with_name("other.db"))) as connection:
        connection.execute("CREATE TABLE things (name)")
    assert_raises(path.with_name("other.db"), "is an SQLite file of another program")
    for version in (3, 4, 6):
        with closing(sqlite3.connect(full)) as connection:
            connection.execute(f"PRAGMA user_version = {version}")
        assert_raises(full, f"of version {version}, but this treegram reads version 5")


def test_unreadable_record_raises_store_error(full):
    for change in ("chosen = '[1'", "actual = x''", "predicted = x'4201'", "actual = 'text'", "seconds = 'long'"):
        copy = Path(shutil.copy(full, full.with_name("copy.db")))
        with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            connection.execute(f"UPDATE result SET {change} WHERE fold = 1")
        with Store.open(copy) as store, pytest.raises(StoreError, match="damaged: it holds an impossible record"):
            store.rows()


def test_values_of_the_wrong_type_raise(full):
    with Store.open(full) as store:
        store.begin_run("treegram evaluate")
    with closing(sqlite3.connect(full, isolation_level=None)) as connection:
        connection.execute("UPDATE result SET n_fits = 'many'")
        connection.execute("UPDATE run SET versions = '[]'")
        connection.execute(
            "INSERT INTO dataset VALUES ('A', 1, '{}', 1.0, 1.0, 0, 'd', '{\"mean\": 1}')"  # fields of the targets are missing
        )
        connection.execute("INSERT INTO gram_time VALUES ('k', 'A', 'wl', '{}', 'long', 0, 1)")
    with Store.open(full) as store:
        for read in (store.rows, store.runs, store.datasets, store.gram_times):
            with pytest.raises(StoreError, match="damaged: it holds an impossible record"):
                read()


def test_text_that_is_not_utf8_raises(full):
    with Store.open(full) as store:
        store.put_study("s", "text")
        store._connection.execute("UPDATE study SET text = CAST(x'43e93d' AS TEXT)")
        with pytest.raises(StoreError, match=r"or it is damaged; .*Could not decode to UTF-8"):
            store.study()


def test_missing_or_empty_files_raise_unless_created(tmp_path, path):
    assert_raises(path, "There is no store", create=False)
    with pytest.raises(StoreError, match="does not exist; create it first"):
        Store.open(tmp_path / "none" / "s.db")
    with pytest.raises(StoreError, match="unable to open database file"):
        Store.open(tmp_path)
    path.touch()
    assert_raises(path, "is empty, not a store", create=False)
    with Store.open(path) as store:
        assert store.rows() == []


def test_error_about_a_folder_promises_nothing(tmp_path):
    with pytest.raises(StoreError, match=r"could not be read or written: unable to open database file\.$"):
        Store.open(tmp_path)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_store_can_be_read_but_not_written(full):
    full.chmod(0o400)
    with Store.open(full, create=False) as store:
        assert len(store.rows()) == 60
        with pytest.raises(StoreError, match="readonly"):
            store.add_row("new", ROW)


def test_reading_changes_no_byte(full):
    before = full.read_bytes()
    with Store.open(full) as store:
        assert len(store.rows()) == 60
        store.datasets(), store.runs(), store.gram_times(), store.done("k"), store.study()
    assert full.read_bytes() == before
    assert [file.name for file in full.parent.iterdir()] == [full.name]


def test_full_disk_loses_nothing_and_writing_can_continue_later(full):
    with Store.open(full) as store:
        (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        rows = (replace(ROW, fold=fold) for fold in range(100))
        with pytest.raises(StoreError, match=r"disk is full\. Everything that was finished before is safe"):
            deque(map(store.add_row, repeat("new"), rows))
        n_done = len(store.done("new"))
        store._connection.execute("PRAGMA max_page_count = 100000")
        store.add_row("new", replace(ROW, fold=n_done))
        assert len(store.rows(["k"])) == 60
        assert store.done("new") == {(0, fold) for fold in range(n_done + 1)}


# -------------------------------------------------------------------- killed and concurrent processes

WRITER = """
with Store.open(path) as store:
    n_done = len(store.done("k"))
    say("start", n_done)
    for i in range(n_done, 100_000):
        store.add_row("k", ROW(i))
        say("added", i + 1)
"""


def test_killed_writer_leaves_all_finished_rows(path):
    rng = random.Random(5)
    n_before = 0
    for _ in range(4):
        process = start(WRITER, path)
        lines = [process.stdout.readline() for _ in range(rng.randrange(1, 40))]
        time.sleep(rng.random() * 0.005)  # so that the kill interrupts a write
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()  # communicate() would lose what was read ahead
        process.communicate()
        printed = [int(line.split()[1]) for line in lines if line.endswith("\n")]
        assert printed[0] == n_before
        with Store.open(path) as store:
            assert store._connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            found = store.rows()
        assert [10 * row.repeat + row.fold for row in found] == list(range(len(found)))
        assert [row.score for row in found] == [1 / (i + 1) for i in range(len(found))]
        assert printed[-1] <= len(found) <= printed[-1] + 1  # the last one may be stored but not printed
        n_before = len(found)


SHARER = """
store = Store.open(path)
run = store.begin_run("share").id
say("ready")
sys.stdin.readline()
for i in range(40):
    store.add_row("k", ROW(i, run))
"""


def test_two_processes_can_write_to_one_store(path):
    workers = [start(SHARER, path) for _ in range(2)]  # both create the store at the same time
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        worker.communicate()
        assert worker.returncode == 0
    with Store.open(path) as store:
        assert [10 * row.repeat + row.fold for row in store.rows()] == list(range(40))
        assert [run.id for run in store.runs()] == [1, 2]
    assert [file.name for file in path.parent.iterdir()] == [path.name]
