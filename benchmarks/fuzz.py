"""Feed treegram mutated input of every kind. None may crash it, hang it, or be misread.

    make fuzz                                             # a minute of each kind
    nice python benchmarks/fuzz.py --seconds 600 --kind folders --kind stores --seed 100

Inputs are tried in batches, each in a process of its own with little memory, so that a crash is noticed, and with an alarm, so that
a hang is. Each must be refused with an error of treegram's own, or be accepted and pass the check of its kind:

- folders: ``load_tu`` and ``iter_tu`` read the same graphs, or both refuse;
- zips: nothing is written outside the folder, and the folder is read like any other;
- studies: a study that was read is the same when it is read from a store;
- stores: a summary can be computed, or the store is called damaged;
- models: see ``fuzz_models.py``;
- all others: see ``fuzz_inputs.py``.

Prints a table of counts, and ends with code 1 after a bad outcome; the last input of each kind is then in the folder that is printed.
Each finding has a test where it was fixed; ``fuzz_seeds.json`` has the seeds that led to it, which ``tests/test_fuzz.py`` tries
again. ``FUZZING.md`` has counts of earlier runs.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import fuzz_inputs
import fuzz_models
from fuzz_inputs import Kind, change_text, check_graphs, some_graphs

SECONDS = 10  # of processor time for one input
PATIENCE = 300  # seconds after which an input that uses no processor time counts as a hang
MEMORY = 1 << 30  # bytes beyond those that the process has at its start
PAUSE, MOST = 300.0, 20_000  # seconds that one process works, and inputs that it tries, before the next takes over

# -------------------------------------------------------------------- kinds: a maker of originals, and a trial of one mutant


def make_folders(folder: Path) -> None:
    from treegram import save_tu

    kinds, lengths = [], []
    for n in (1, 0, 2, 0, 4):
        kinds.append([5] * n)
        lengths.append(np.arange(1.0, n + 1)[:, None] / 3)
    for name, more in (
        ("targets", {"targets": [1, -1, 1, 1, -1]}),
        ("edges", {"edge_labels": kinds, "targets": [0.5, 1, 2, 3, 4]}),
        ("lengths", {"edge_attributes": lengths}),
    ):
        graphs = some_graphs(**more)
        save_tu(graphs.assign(labels=graphs.labels), folder / name, name="S")  # whole numbers, as the format has them


@cache
def contents(folder: Path) -> dict[str, bytes]:
    """Return the originals of a folder by name; they are read once, not for each mutant."""
    files = (path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith("mutant"))
    return {path.name: path.read_bytes() for path in files}


def change_table(data: bytes, rng: random.Random) -> bytes:
    """Change a table slightly (a digit, two lines swapped), or in any other way."""
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
    files = dict(contents(folder / rng.choice(["targets", "edges", "lengths"])))
    for _ in range(rng.choice((1, 1, 2, 3))):
        name = rng.choice(sorted(files))
        files[name] = change_table(files[name], rng)
    if rng.random() < 0.05:
        del files[rng.choice(sorted(files))]
    return files


def empty(goal: Path) -> Path:
    """Return the folder of the mutant, without the files of the last one."""
    shutil.rmtree(goal, ignore_errors=True)
    goal.mkdir()
    return goal


def read_both(folder: Path) -> str:
    from treegram import Graphs, iter_tu, load_tu
    from treegram.exceptions import DatasetError

    def outcome(read: Callable[[], Any]) -> Any:
        try:
            return read()
        except DatasetError as error:
            return str(error)

    whole = outcome(lambda: load_tu(folder)[0])
    chunks = outcome(lambda: Graphs.concatenate([graphs for graphs, _ in iter_tu(folder, chunk_size=2)]))
    if isinstance(chunks, str) and "graph by graph" in chunks:
        return "accepted" if not isinstance(whole, str) else "refused"
    if isinstance(whole, str) and isinstance(chunks, str):
        return "refused"
    return "accepted" if whole == chunks else "BAD: the readers differ"


def try_folder(folder: Path, goal: Path, rng: random.Random) -> str:
    empty(goal)
    for name, content in mutate_folder(folder, rng).items():
        (goal / name).write_bytes(content)
    return read_both(goal)


def try_zip(folder: Path, goal: Path, rng: random.Random) -> str:
    from treegram.datasets.fetch import _unpack

    names = ["S/{}", "S/{}", "S/{}", "{}", "../{}", "/{}", "S/../../{}", "C:\\{}", "S/sub/{}"]
    is_damaged = rng.random() < 0.5  # the archive; otherwise its files
    files = contents(folder / "targets") if is_damaged else mutate_folder(folder, rng)
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
    except OSError:  # which fetch turns into a DatasetError
        return "refused"
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
param_grid = { n_iterations = [0, 1] }
timed = { n_iterations = 1 }
note = "plain"
[kernels.published]
accuracy = { A = 71.5, B = "out of memory" }
deviation = { A = 0.5 }
seconds = { A = 2 }
[[kernels]]
name = "trees"
sum = [{ kernel = "oddst" }, { kernel = "oddcl", parameters = { lam = 1.2 }, attributes = ["standard"] }]
param_grid = { depth = [0, 1] }
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
    from treegram.study.study_file import parse_study

    originals = contents(folder)
    text = originals["small.toml" if rng.random() < 0.9 else rng.choice(sorted(originals))]
    for _ in range(rng.choice((1, 1, 2, 4))):
        text = change_table(text, rng)
    path = goal.with_suffix(".toml")
    path.write_bytes(text)
    study = read_study(path)
    return (
        "accepted"
        if parse_study(study.name, text, "store", is_stored=True) == study
        else "BAD: another study from the store"
    )


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
param_grid = { n_iterations = [0, 1] }
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
    from treegram.study import Store, summarize

    for leftover in goal.parent.glob(f"{goal.name}.*"):
        leftover.unlink()
    path = goal.with_suffix(".sqlite")
    path.write_bytes(fuzz_models.damage(contents(folder)["small.sqlite"], rng))
    with Store.open(path, create=False) as store:
        summarize(store)
    return "accepted"


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
    """Write a mutated file; return its path, or None if nothing changed, and whether it is forged."""
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
    **fuzz_inputs.KINDS,
}


# -------------------------------------------------------------------- trying


def run_batch(kind: str, folder: Path, seed: int, seconds: float, last_seed: Any, results: Any) -> None:
    """Try mutants of one kind for some seconds, each with its own seed; ``try_one`` repeats one."""
    warnings.simplefilter("ignore")
    _quieten_rdkit()
    signal.signal(signal.SIGALRM, _time_is_up)
    signal.signal(signal.SIGPROF, _time_is_up)
    counts: Counter[str] = Counter()
    check_graphs(some_graphs())  # compiles, before memory is limited
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
    """Keep RDKit from writing a line to stderr for each molecule that it cannot read."""
    with contextlib.suppress(ImportError):
        from rdkit import RDLogger

        RDLogger.DisableLog("rdApp.*")  # type: ignore[attr-defined, unused-ignore]


def try_one(kind: str, folder: Path, seed: int) -> str:
    """Return the outcome of one mutant, which stays in the folder until the next one."""
    from treegram.exceptions import TreegramError

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


# -------------------------------------------------------------------- the command


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="seconds for each kind (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first input of each kind (default: 0)")
    parser.add_argument("--kind", action="append", choices=KINDS, help="try only this kind; may be repeated")
    args = parser.parse_args()
    memory = Path("/dev/shm")  # in memory, where the system has it
    parent = Path(tempfile.mkdtemp(prefix="treegram-fuzz-", dir=memory if os.access(memory, os.W_OK) else None))
    n_bad = 0
    print("| kind | inputs | accepted | refused | bad | CPU seconds |\n| --- | --: | --: | --: | --: | --: |")
    for kind in args.kind or KINDS:
        folder = parent / kind
        folder.mkdir()
        start = sum(os.times()[:4])
        total = fuzz(kind, folder, args.seed, args.seconds)
        del total["unchanged"]
        bad = sum(count for found, count in total.items() if found.startswith("BAD"))
        n_bad += bad
        accepted, tried = total["accepted"], sum(total.values())
        counts = (tried, accepted, tried - accepted - bad, bad, round(sum(os.times()[:4]) - start))
        print(f"| {kind} | {' | '.join(f'{count:,}' for count in counts)} |", flush=True)
    if n_bad:
        sys.exit(f"{n_bad} bad outcomes; the last inputs are in {parent}")
    shutil.rmtree(parent)


if __name__ == "__main__":
    main()
