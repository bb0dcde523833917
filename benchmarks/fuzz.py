"""Feed treegram mutated input of every kind that may come from strangers. None may crash it, hang it, or be misread.

    make fuzz                                             # a minute of each kind
    nice python benchmarks/fuzz.py --seconds 600 --kind folders --kind stores --seed 100 --record

Every input is tried in a process of its own batch, so that a crash is seen; with an alarm, so that a hang is; and with little
memory. It must be refused by an error of treegram's own, or be accepted and then stand the test of its kind:

- folders: ``load_tu`` and ``iter_tu`` read the same graphs, or both refuse;
- zips: nothing is written outside the folder, and the folder is read as any other;
- studies: the parsed study parses to itself again; stores: a summary can be made, or the store is called damaged;
- models: see ``fuzz_models.py``, whose kinds of mutations these are;
- every other way in: see ``fuzz_doors.py``.

Prints a table of counts, and ends with code 1 after a bad outcome; its input is kept in the folder that is named. ``--record`` adds
the counts to ``FUZZING.md``. Findings have a test of their own where they were mended; ``fuzz_seeds.json`` has the seeds that made
them, which ``tests/test_fuzz.py`` tries again.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import multiprocessing
import os
import platform
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import fuzz_doors
import fuzz_models
from fuzz_doors import Kind, change_text, some_graphs, stand_test

PAGE = Path(__file__).with_name("FUZZING.md")
SECONDS = 10  # of processor time for one input: others may use it, too
PATIENCE = 300  # seconds after which an input that uses no time of the processor hangs
MEMORY = 1 << 30  # bytes beside what the process has when it starts
PAUSE, MOST = 300.0, 20_000  # seconds that one process works, and inputs that it tries, before the next takes over

# -------------------------------------------------------------------- kinds: a maker of originals, and a trial of one mutant


def make_folders(folder: Path) -> None:
    from treegram import save_tu

    kinds = [["s"] * n for n in (1, 0, 2, 0, 4)]
    save_tu(some_graphs(targets=[1, -1, 1, 1, -1]), folder / "named", name="S")
    save_tu(some_graphs(edge_labels=kinds, targets=[0.5, 1, 2, 3, 4]), folder / "edges", name="S")
    lengths = [np.arange(1.0, n + 1)[:, None] / 3 for n in (1, 0, 2, 0, 4)]
    save_tu(some_graphs(edge_attributes=lengths), folder / "lengths", name="S")


@cache
def contents(folder: Path) -> dict[str, bytes]:
    """The originals of a folder by name, which are read once, not for each mutant."""
    files = (path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith("mutant"))
    return {path.name: path.read_bytes() for path in files}


def change_table(data: bytes, rng: random.Random) -> bytes:
    """A change that leaves a table near to what it was: a digit, two lines exchanged; or any other."""
    if rng.random() < 0.5:
        return change_text(data, rng)
    digits = [place for place, byte in enumerate(data) if 48 <= byte < 58]
    if digits and rng.random() < 0.7:
        place = rng.choice(digits)
        return data[:place] + rng.choice([b"0", b"1", b"2", b"3", b"9", b"-1", b"1.5"]) + data[place + 1 :]
    lines = data.split(b"\n")
    first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]
    return b"\n".join(lines)


def mutate_folder(folder: Path, rng: random.Random) -> dict[str, bytes]:
    files = dict(contents(folder / rng.choice(["named", "edges", "lengths"])))
    for _ in range(rng.choice((1, 1, 2, 3))):
        name = rng.choice(sorted(files))
        files[name] = change_table(files[name], rng)
    if rng.random() < 0.05:
        del files[rng.choice(sorted(files))]
    return files


def empty(goal: Path) -> Path:
    """The folder of the mutant, without what the last one left."""
    shutil.rmtree(goal, ignore_errors=True)
    goal.mkdir()
    return goal


def read_both(folder: Path) -> str:
    from treegram import DatasetError, Graphs, iter_tu, load_tu

    def outcome(read: Callable[[], Any]) -> Any:
        try:
            return read()
        except DatasetError as error:
            return str(error)

    whole = outcome(lambda: load_tu(folder)[0])
    parts = outcome(lambda: Graphs.concatenate(graphs for graphs, _ in iter_tu(folder, chunk_size=2)))
    if isinstance(parts, str) and "graph by graph to be read in chunks" in parts:
        return "accepted" if not isinstance(whole, str) else "refused"
    if isinstance(whole, str) != isinstance(parts, str) or (not isinstance(whole, str) and whole != parts):
        return "BAD: the readers differ"
    return "refused" if isinstance(whole, str) else "accepted"


def try_folder(folder: Path, goal: Path, rng: random.Random) -> str:
    empty(goal)
    for name, content in mutate_folder(folder, rng).items():
        (goal / name).write_bytes(content)
    return read_both(goal)


def try_zip(folder: Path, goal: Path, rng: random.Random) -> str:
    from treegram.datasets.fetch import _unpack

    names = ["S/{}", "S/{}", "S/{}", "{}", "../{}", "/{}", "S/../../{}", "C:\\{}", "S/sub/{}"]
    is_damaged = rng.random() < 0.5  # the archive; if not so, its files
    files = contents(folder / "named") if is_damaged else mutate_folder(folder, rng)
    method = rng.choices([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA], [49, 49, 2])[0]
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as file:
        for name, text in files.items():
            file.writestr(rng.choice(names if rng.random() < 0.05 else names[:1]).format(name), text)
    content = fuzz_models.damage(data.getvalue(), rng) if is_damaged else data.getvalue()
    archive = empty(goal) / "archive.zip"
    archive.write_bytes(content)
    try:
        _unpack(archive, "S", goal / "S", {})
    finally:
        if {path.name for path in goal.iterdir()} - {"archive.zip", "S"}:
            raise AssertionError("a file outside the folder")
    return read_both(goal / "S")


SMALL_STUDY = """
title = "small"
about = "All keys, in few lines."
reference = "somebody 2020"
remarks = ["one", "two"]
datasets = ["A", "B"]
dataset_notes = { A = "first" }
[protocol]
repeats = 2
outer_folds = 3
inner_folds = 2
seed = 7
C = [1, 10.0]
fitted_on = "all"
repeats_on = { B = 1 }
[[kernels]]
name = "colors"
kernel = "wl"
grid = { n_iterations = [0, 1] }
timed = { n_iterations = 1 }
note = "plain"
[kernels.published]
accuracy = { A = 71.5, B = "out of memory" }
deviation = { A = 0.5 }
seconds = { A = 2 }
[[kernels]]
name = "trees"
sum = [{ kernel = "oddst" }, { kernel = "oddcl", parameters = { lam = 1.2 }, attributes = ["standard"] }]
grid = { depth = [0, 1] }
datasets = ["A"]
repeats = 1
[[kernels]]
name = "either"
[[kernels.choices]]
kernel = "sp"
[[kernels.choices]]
kernel = "graphhopper"
parameters = { node_kernel = "rbf" }
[[comparisons]]
name = "all"
kernels = ["colors", "trees", "either"]
datasets = ["A", "B"]
[[pairs]]
kernel = "colors"
baseline = ["trees", "either"]
datasets = ["A"]
"""


def make_studies(folder: Path) -> None:
    import treegram.study as home
    from treegram.study import read_study

    for path in (Path(home.__file__).parent / "papers").glob("*.toml"):
        shutil.copy(path, folder)
    (folder / "small.toml").write_text(SMALL_STUDY)
    for path in folder.glob("*.toml"):
        read_study(path)


def try_study(folder: Path, goal: Path, rng: random.Random) -> str:
    from treegram.study import read_study
    from treegram.study.study_file import parse_stored_study

    originals = contents(folder)
    text = originals["small.toml" if rng.random() < 0.9 else rng.choice(sorted(originals))]
    for _ in range(rng.choice((1, 1, 2, 4))):
        text = change_table(text, rng)
    path = goal.with_suffix(".toml")
    path.write_bytes(text)
    study = read_study(path)
    return "accepted" if parse_stored_study(study.name, text, "store") == study else "BAD: stored, it is another study"


STUDY = """
title = "small"
datasets = ["A"]
[protocol]
repeats = 2
outer_folds = 2
inner_folds = 2
seed = 7
C = [1, 10]
[[kernels]]
name = "colors"
kernel = "wl"
grid = { n_iterations = [0, 1] }
"""


def make_stores(folder: Path) -> None:
    from treegram import make_synthetic
    from treegram.study import Store, read_study, run_study

    path = folder / "small.toml"
    path.write_text(STUDY)
    graphs, y = make_synthetic(n_graphs=12, random_state=0)
    with Store.open(folder / "small.sqlite") as store:
        run_study(read_study(path), store, {"A": (graphs, y)})


def try_store(folder: Path, goal: Path, rng: random.Random) -> str:
    """Damaged bytes, or a sound file in which some values were replaced; of some that are accepted a page is made."""
    from treegram.study import Store, summarize, write_report

    path, page = goal.with_suffix(".sqlite"), goal.with_suffix(".html")
    for leftover in goal.parent.glob(f"{goal.name}.*"):
        leftover.unlink()
    original = contents(folder)["small.sqlite"]
    is_forged = rng.random() < 0.6
    path.write_bytes(original if is_forged else fuzz_models.damage(original, rng))
    if is_forged:
        _replace_values(path, rng)
    with Store.open(path, create=False) as store:
        summary = summarize(store)
    if rng.random() < 0.004:
        for written in (page, page.with_suffix(".md")):
            write_report(summary, written)
        if MARK in page.read_text(encoding="utf-8"):
            return "BAD: a page that runs what a store says"
    return "accepted"


MARK = "<script>alert(1)</script>"
VALUES: list[Any] = [
    *(None, -1, 0, 1, 2, 7, 10**6, 2**62, 0.5, 1.0, 1e308, -0.0, float("nan"), float("inf"), b"", b"\0", b"\1\0", b"\xff" * 16),
    *("", "A", "B", "colors", "classes", "numbers", "{}", "[]", "null", '{"A": 1e999}', '{"-1": 6, "1": 6}', '{"C": [1]}'),
    *("[" * 9000, "9" * 9000, MARK, f'{{"{MARK}": 12}}', f'{{"C": "{MARK}"}}', "\0", "\ud7ff\u202e", "é" * 300),
]  # fmt: skip


def _replace_values(path: Path, rng: random.Random) -> None:
    """Values of a sound store, one or several, as somebody who wants to deceive would: SQLite holds the checks of its own."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for _ in range(rng.choice((1, 1, 2, 4))):
            table = rng.choice(["run", "study", "dataset", "result", "gram_time"])
            columns = connection.execute(f"SELECT name FROM pragma_table_info('{table}') ORDER BY cid").fetchall()
            (column,), where = (
                rng.choice(columns),
                rng.choice(["", "WHERE run = 1", "WHERE repeat = 0", "WHERE fold = 1"]),
            )
            with contextlib.suppress(sqlite3.Error):  # a value must be unique, or there must be one; no such column
                if rng.random() < 0.1:
                    connection.execute(f"DELETE FROM {table} {where}")
                    continue
                old = connection.execute(f"SELECT {column} FROM {table}").fetchone()
                value = rng.choice(VALUES)
                if old and isinstance(old[0], str | bytes) and old[0] and rng.random() < 0.5:
                    text = old[0].encode() if isinstance(old[0], str) else old[0]
                    value = change_table(text, rng)
                    value = value.decode(errors="replace") if isinstance(old[0], str) else value
                connection.execute(f"UPDATE {table} SET {column} = ? {where}", (value,))


def make_models(folder: Path) -> None:
    from treegram import save_model

    for name, model in fuzz_models.make_models().items():
        save_model(model, folder / f"{name}.tgm")


@cache
def some_digits() -> Any:
    from treegram import load_digits_graphs

    return load_digits_graphs(n_levels=3)[0][30:34]


def try_model(folder: Path, goal: Path, rng: random.Random) -> str:
    path, is_forged = write_model(folder, goal, rng)
    if path is None:
        return "unchanged"
    found = fuzz_models.outcome(path, is_forged, some_digits())
    return found if found.startswith("BAD") else "refused" if found.startswith("refused") else "accepted"


def write_model(folder: Path, goal: Path, rng: random.Random) -> tuple[Path | None, bool]:
    """A mutated file, and whether it is forged; None where the mutation changed nothing."""
    originals = contents(folder)
    original = originals[rng.choice(sorted(name for name in originals if name.endswith(".tgm")))]
    kind = rng.choice(sorted(fuzz_models.MUTATIONS))
    data = fuzz_models.MUTATIONS[kind](original, rng)
    path = goal.with_suffix(".tgm")
    path.write_bytes(data)
    return (None if data == original else path), kind != "damaged"


KINDS: dict[str, Kind] = {
    "folders": (make_folders, try_folder),
    "zips": (make_folders, try_zip),
    "studies": (make_studies, try_study),
    "stores": (make_stores, try_store),
    "models": (make_models, try_model),
    **fuzz_doors.KINDS,
}


# -------------------------------------------------------------------- trying


def run_batch(kind: str, folder: Path, seed: int, seconds: float, last_seed: Any, results: Any) -> None:
    """Mutants of one kind for some seconds, each from a seed of its own: ``try_one`` repeats one."""
    warnings.simplefilter("ignore")
    _quieten_rdkit()
    signal.signal(signal.SIGALRM, _time_is_up)
    signal.signal(signal.SIGPROF, _time_is_up)
    counts: Counter[str] = Counter()
    stand_test(some_graphs())  # compiles, before memory is limited
    try_one(kind, folder, seed)
    fuzz_models.limit_memory(MEMORY)
    end = time.monotonic() + seconds
    n_tried = 0
    while time.monotonic() < end and n_tried < MOST:
        last_seed.value = seed + n_tried
        found = try_one(kind, folder, seed + n_tried)
        counts[found.partition("\n")[0]] += 1
        if found.startswith("BAD"):
            print(f"{kind}, seed {seed + n_tried}: {found}", flush=True)
        n_tried += 1
    results.put((n_tried, dict(counts)))


def _quieten_rdkit() -> None:
    """RDKit writes a line to stderr for each molecule that it cannot read."""
    with contextlib.suppress(ImportError):
        from rdkit import RDLogger

        RDLogger.DisableLog("rdApp.*")  # type: ignore[attr-defined, unused-ignore]


def try_one(kind: str, folder: Path, seed: int) -> str:
    """The outcome of one mutant, which stays in the folder until the next one comes."""
    from treegram._core.errors import TreegramError

    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(PATIENCE)
    try:
        return KINDS[kind][1](folder, folder / "mutant", random.Random(f"{kind} {seed}"))
    except TreegramError:
        return "refused"
    except MemoryError:
        return "refused (memory)"
    except TimeoutError:
        return f"BAD: longer than {SECONDS} s"
    except OSError as error:
        if error.errno != errno.ENOMEM:
            return f"BAD: {type(error).__name__}\n{traceback.format_exc()}"
        return "refused (memory)"  # by the system, where threads are started
    except Exception as error:
        return f"BAD: {type(error).__name__}\n{traceback.format_exc()}"
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)


def _time_is_up(*_: object) -> None:
    raise TimeoutError


def fuzz(kind: str, folder: Path, seed: int, seconds: float) -> Counter[str]:
    """Try mutants of one kind, in one process after the other; a process that dies is a bad outcome."""
    context = multiprocessing.get_context("spawn")
    KINDS[kind][0](folder)
    total: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        results, last_seed = context.SimpleQueue(), context.Value("q", seed)
        batch = (kind, folder, seed, min(left, PAUSE), last_seed, results)
        process = context.Process(target=run_batch, args=batch)
        process.start()
        process.join(timeout=PAUSE + 2 * PATIENCE)
        if process.exitcode == 0:
            n_tried, counts = results.get()
            total.update(counts)
        else:
            process.kill()
            total[f"BAD: the process ended with {process.exitcode}"] += 1
            print(f"{kind}, seed {last_seed.value}: the process ended with {process.exitcode}", flush=True)
            n_tried = last_seed.value - seed + 1
        seed += n_tried
    return total


# -------------------------------------------------------------------- the page

_HEAD = """# Fuzzing

`make fuzz FUZZ=--record` adds to this page, and `benchmarks/fuzz.py` says what the kinds are. An input is accepted (and then stands the test
of its kind), refused by an error of treegram's own, or a bad outcome: a crash, a hang, another error, or a misreading. What a bad outcome
showed was mended, and has a test. The two of "models" are taken for the fuzzer's own. One process
died while a memory tracer was switched off for each file beside other threads, which crashes CPython 3.11 without treegram, too. One was aborted by LLVM
under its limit on memory after 98,000 files, the last of which (five) the system had refused memory; its counts are lost.
"""
_COLUMNS = ["date", "treegram", "Python", "numpy", "kind", "inputs", "accepted", "refused", "bad", "CPU seconds"]
N_NAMES = 5  # of the columns that say what was tried; the others are counts


def record(page: Path, row: list[str]) -> None:
    """Add the counts of a run to the page: to the row of the same day, versions and kind if there is one."""
    text = page.read_text(encoding="utf-8").partition("## Runs")[2] if page.exists() else ""
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines() if "20" in line[:6]]
    rows = {tuple(known[:N_NAMES]): _counts(known) for known in cells}
    key = tuple(row[:N_NAMES])
    rows[key] = [a + b for a, b in zip(rows.get(key, [0] * 5), _counts(row), strict=True)]
    kinds: dict[str, list[int]] = {}
    for known, counts in rows.items():
        for kind in (known[4], "**all**"):
            kinds[kind] = [a + b for a, b in zip(kinds.get(kind, [0] * 5), counts, strict=True)]
    kinds["**all**"] = kinds.pop("**all**")
    totals = _table(["kind", *_COLUMNS[N_NAMES:]], [[kind, *counts] for kind, counts in kinds.items()])
    runs = _table(_COLUMNS, [[*known, *counts] for known, counts in rows.items()])
    page.write_text(f"{_HEAD}\n## In all\n\n{totals}\n\n## Runs\n\n{runs}\n", encoding="utf-8")


def _counts(cells: list[str]) -> list[int]:
    return [int(cell.replace(",", "")) for cell in cells[N_NAMES:]]


def _commit() -> str:
    """Which state of the sources is tried, if they are those of a repository."""
    command = ["git", "describe", "--always", "--exclude=*", "--dirty"]
    done = subprocess.run(command, cwd=PAGE.parent, capture_output=True, text=True, check=False)
    return f" ({done.stdout.strip()})" if done.returncode == 0 else ""


def _table(header: list[str], rows: list[list[Any]]) -> str:
    lines = [header, ["---" if i < len(header) - 5 else "--:" for i in range(len(header))], *rows]
    shown = [[f"{cell:,}" if isinstance(cell, int) else cell for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="for each kind (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="of the first input of each kind (default: 0)")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this kind; may be given again")
    parser.add_argument("--record", nargs="?", const=PAGE, type=Path, help="add the counts to this page (FUZZING.md)")
    args = parser.parse_args()
    memory = Path("/dev/shm")  # files that no disk slows down, where there are such
    parent = Path(tempfile.mkdtemp(prefix="treegram-fuzz-", dir=memory if os.access(memory, os.W_OK) else None))
    import treegram

    made_with = [f"{treegram.__version__}{_commit()}", platform.python_version(), np.__version__]
    rows, n_bad = [], 0
    for kind in args.kind or KINDS:
        folder = parent / kind
        folder.mkdir()
        start = sum(os.times()[:4])
        total = fuzz(kind, folder, args.seed, args.seconds)
        bad = sum(count for found, count in total.items() if found.startswith("BAD"))
        n_bad += bad
        del total["unchanged"]
        accepted, tried = total["accepted"], sum(total.values())
        counts = [tried, accepted, tried - accepted - bad, bad, round(sum(os.times()[:4]) - start)]
        rows.append([f"{datetime.now(UTC):%Y-%m-%d}", *made_with, kind, *map(str, counts)])
        if args.record:
            record(args.record, rows[-1])
    print(_table(_COLUMNS, rows), flush=True)
    if n_bad:
        sys.exit(f"{n_bad} bad outcomes; what the last inputs left is in {parent}")
    shutil.rmtree(parent)


if __name__ == "__main__":
    main()
