"""Run the 22 tasks of the ADMET group of Therapeutics Data Commons (TDC), offline, from folders of tables ``Drug,Y``.

    python benchmarks/tdc.py TRAIN_FOLDER -o OUT.jsonl                        # a rehearsal on training tables alone
    python benchmarks/tdc.py TRAIN_FOLDER --test TEST_FOLDER -o OUT.jsonl     # the registered run
    python benchmarks/tdc.py TRAIN_FOLDER --register                          # digests into tdc_registration.md
    python benchmarks/tdc.py --report OUT.jsonl --board BOARD.csv
    python benchmarks/tdc.py TRAIN_FOLDER --overlap --test TEST_FOLDER --design FOLDER ...

Each model of a task has its own process and one thread, and is fitted once on the training table. A line of OUT.jsonl has the
official metric, its values on 1,000 resamples of the test rows (the same rows for every model), processor time and memory. Lines
that exist are kept: an interrupted run resumes. Molecules that RDKit cannot read are left out of the training table, and
predicted as its mean or its share of the second class.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import resource
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import rdkit
from joblib import Memory
from numpy.typing import NDArray
from rdkit.rdBase import DisableLog
from threadpoolctl import threadpool_limits

import treegram as tg
from bench_molecules import processor_seconds
from common import machine
from tdc_models import METRICS, MODELS, MOLHIV_MODELS, TDC_MODELS, Problem, columns
from tdc_report import (
    METRIC_OF,
    MOLHIV,
    TASKS,
    Numbers,
    overlap,
    read_board,
    read_lines,
    read_molhiv,
    read_table,
    report,
)

HERE = Path(__file__).parent
RESAMPLES = 1000


# -------------------------------------------------------------------- data


def scaffold_split(groups: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows for training and test: scaffolds from the largest on, until training has four fifths of the rows."""
    _, first, inverse, counts = np.unique(groups, return_index=True, return_inverse=True, return_counts=True)
    order = np.lexsort((first, -counts))  # scaffolds of equal size in the order of the table
    n_before = np.empty(len(order), dtype=int)
    n_before[order] = np.cumsum(counts[order]) - counts[order]
    is_train = (n_before < 0.8 * len(groups))[inverse]
    return np.flatnonzero(is_train), np.flatnonzero(~is_train)


@dataclass(frozen=True)
class Parts:
    """The readable molecules of a task, training part first, their scaffolds, and what could not be read."""

    smiles: list[str]
    groups: NDArray[Any]
    y: Numbers  # of the training part
    test_y: Numbers  # of every row of the test part
    is_readable: NDArray[np.bool_]  # the same
    n_left_out: int  # rows of the training part that cannot be read
    n_valid: int = 0  # first rows of the test part whose metric is reported apart


def training_table(task: str, args: argparse.Namespace) -> tuple[list[str], Numbers]:
    return read_molhiv(args.molhiv, "train") if task == MOLHIV else read_table(args.folder / f"{task}.csv")


def test_table(task: str, args: argparse.Namespace) -> tuple[list[str], Numbers, int] | None:
    """Return the rows to predict and how many of them, at the beginning, are for validation; a rehearsal of TDC has none."""
    if task == MOLHIV:
        smiles, y = read_molhiv(args.molhiv, "valid")
        if not args.test:
            return smiles, y, 0
        test_smiles, test_y = read_molhiv(args.molhiv, "test")
        return [*smiles, *test_smiles], np.append(y, test_y), len(y)
    return (*read_table(args.test / f"{task}.csv"), 0) if args.test else None


def load_parts(task: str, args: argparse.Namespace) -> Parts:
    """Return the training and test part of a task; without a folder of test tables, both come from the training table."""
    smiles, y = training_table(task, args)
    most = args.most
    if most is not None and len(smiles) > most:
        rows = np.sort(np.random.default_rng(0).permutation(len(smiles))[:most])
        smiles, y = [smiles[i] for i in rows], y[rows]
    invalid = tg.invalid_molecules(smiles)
    readable = [i for i in range(len(smiles)) if i not in invalid]
    smiles, y = [smiles[i] for i in readable], y[readable]
    groups = tg.scaffold_groups(smiles)
    table = test_table(task, args)
    if table is None:
        train, test = scaffold_split(groups)
        if len(set(y[test])) < 2:
            raise ValueError(f"The test part of {task} needs two values of Y; a scaffold split needs more molecules.")
        order = np.concatenate((train, test))
        reordered = [smiles[i] for i in order]
        return Parts(reordered, groups[order], y[train], y[test], np.ones(len(test), dtype=bool), len(invalid))
    test_smiles, test_y, n_valid = table
    unread = tg.invalid_molecules(test_smiles)
    is_readable = np.array([i not in unread for i in range(len(test_smiles))])
    smiles += [text for text, readable in zip(test_smiles, is_readable, strict=True) if readable]
    return Parts(smiles, groups, y, test_y, is_readable, len(invalid), n_valid)


# -------------------------------------------------------------------- the run


def resampled(metric: str, y: Numbers, predicted: Numbers) -> Numbers:
    """Return the metric on resamples of the rows; those with a single value of y, which AUCs refuse, are drawn again."""
    rng = np.random.default_rng(0)
    values: list[float] = []
    while len(values) < RESAMPLES:
        rows = rng.integers(len(y), size=len(y))
        if np.ptp(y[rows]):
            values.append(METRICS[metric](y[rows], predicted[rows]))
    return np.array(values)


def measure(task: str, name: str, args: argparse.Namespace) -> dict[str, Any]:
    """Fit a model on a task's training part, predict its test part, and return what OUT.jsonl says about it."""
    metric, model = METRIC_OF[task], MODELS[name]
    parts = load_parts(task, args)
    read_molecules = Memory(args.cache, verbose=0).cache(columns) if model.read is columns else model.read
    n_train = len(parts.y)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        start = processor_seconds()
        X = read_molecules(parts.smiles)
        read = processor_seconds()
        predicted = np.full(len(parts.test_y), parts.y.mean())
        problem = Problem(X[:n_train], parts.y, parts.groups[:n_train], X[n_train:], metric)
        predicted[parts.is_readable] = model.fit_and_predict(problem)
        fitted = processor_seconds()
    valid, test = np.split(np.arange(len(predicted)), [parts.n_valid])
    values = resampled(metric, parts.test_y[test], predicted[test])
    usages = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "task": task,
        "model": name,
        "metric": metric,
        "value": float(METRICS[metric](parts.test_y[test], predicted[test])),
        "standard_error": float(values.std(ddof=1)),
        "n_train": n_train,
        "n_train_unreadable": parts.n_left_out,
        **({"valid": float(METRICS[metric](parts.test_y[valid], predicted[valid]))} if len(valid) else {}),
        "n_test": len(test),
        "n_test_unreadable": int((~parts.is_readable[test]).sum()),
        "reading_seconds": round(read - start, 2),
        "fit_and_predict_seconds": round(fitted - read, 2),
        "peak_mb": round(max(usages) / (2**20 if sys.platform == "darwin" else 2**10)),
        "resampled": [float(f"{value:.5g}") for value in values],
    }


def in_process(function: Callable[..., Any], *args: Any) -> Any:
    """Return what a function returns in a process of its own, which starts with the modules that are already imported."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def call() -> None:
        try:
            sender.send((function(*args), None))
        except Exception:
            sender.send((None, traceback.format_exc()))

    process = context.Process(target=call)
    process.start()
    sender.close()
    try:
        result, problem = receiver.recv()
    except EOFError:
        result, problem = None, "The process ended without a result; was there enough memory?"
    process.join()
    if problem:
        raise RuntimeError(problem)
    return result


def chosen_tasks(args: argparse.Namespace) -> list[str]:
    return args.task or [*TASKS, *([MOLHIV] if args.molhiv else [])]


def run_tasks(args: argparse.Namespace) -> int:
    """Run what OUT.jsonl does not have yet; return how many models failed."""
    run = {"test": "official" if args.test else "rehearsal", "most": args.most, **digests(args.folder)}
    lines = read_lines(args.output)
    if any(line["run"] != run for line in lines):
        raise ValueError(f"{args.output} has lines of another script, source, table or option; name another file.")
    args.output.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    names = []
    for name in args.model or MODELS:
        if MODELS[name].is_installed():
            names.append(name)
        else:
            print(f"{name} is left out: it needs {MODELS[name].needs}.", flush=True)
    if not args.test:
        print("A rehearsal: the test part is the last fifth of a scaffold split of each training table.", flush=True)
    measured = f"{machine()}, rdkit {rdkit.__version__}"
    if "boosting" in names:
        measured += f", lightgbm {version('lightgbm')}"
    n_failed, complete = 0, {(line["task"], line["model"]) for line in lines}
    n_rows = {task: len(training_table(task, args)[0]) for task in chosen_tasks(args)}
    for task, name in product(sorted(n_rows, key=lambda task: (task == MOLHIV, n_rows[task])), names):
        is_registered = name in (MOLHIV_MODELS if task == MOLHIV else TDC_MODELS)
        if (task, name) in complete or not is_registered or n_rows[task] > MODELS[name].most_rows:
            continue
        try:
            line = in_process(measure, task, name, args)
        except RuntimeError as error:
            n_failed += 1
            print(f"{task}, {name} failed:\n{error}", flush=True)
            continue
        with args.output.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line | {"run": run, "measured": measured}) + "\n")
        print(
            f"{task}, {name}: {line['metric']} {line['value']:.4f} ± {line['standard_error']:.4f}, "
            f"{line['fit_and_predict_seconds']:.0f} CPU s, {line['peak_mb']} MB",
            flush=True,
        )
    return n_failed


# -------------------------------------------------------------------- the registration

REGISTRATION = HERE / "tdc_registration.md"
MARKS = ("<!-- digests -->\n", "<!-- end of digests -->")


def digest(paths: Iterable[Path], folder: Path) -> str:
    """Return the SHA-256 of files, each with its path in a folder."""
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()


def digests(train_folder: Path) -> dict[str, str]:
    source = Path(tg.__file__).parent
    return {
        "script": digest([*HERE.glob("tdc*.py"), HERE / "bench_molecules.py", HERE / "common.py"], HERE),
        "source": digest(source.rglob("*.py"), source),
        "training tables": digest(
            [path for task in TASKS if (path := train_folder / f"{task}.csv").exists()], train_folder
        ),
    }


def digest_block(train_folder: Path) -> str:
    rows = [f"| {name} | `{value}` |" for name, value in digests(train_folder).items()]
    return "\n".join(["| of | SHA-256 |", "|---|---|", *rows]) + "\n"


def register(path: Path, train_folder: Path) -> None:
    before, mark, rest = path.read_text(encoding="utf-8").partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    path.write_text(before + mark + digest_block(train_folder) + end + after, encoding="utf-8")


def check_registration(path: Path, train_folder: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if text.startswith("# Draft"):
        raise ValueError(
            f"{path} is a draft; complete it, run --register, and commit it before any test table is read."
        )
    if digest_block(train_folder) not in text:
        raise ValueError(
            f"{path} does not have the digests of this script, source and training tables; run --register."
        )


def read_arguments() -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", metavar="TRAIN_FOLDER", help="folder with the training tables")
    parser.add_argument("--test", type=Path, metavar="TEST_FOLDER", help="folder with the official test tables")
    parser.add_argument("--molhiv", type=Path, metavar="CSV", help="table of molhiv: smiles, HIV_active, split")
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="keep the columns that boosting and forest share")
    parser.add_argument("--task", nargs="+", choices=METRIC_OF, metavar="NAME", help="tasks to run (default: all)")
    parser.add_argument("--model", nargs="+", choices=MODELS, metavar="NAME", help="models to run (default: all)")
    parser.add_argument("--most", type=int, metavar="N", help="use at most N molecules of each training table")
    parser.add_argument("-o", "--output", type=Path, metavar="OUT.jsonl", help="file for the results")
    parser.add_argument("--register", action="store_true", help="write digests into the registration")
    parser.add_argument(
        "--registration", type=Path, default=REGISTRATION, help="the registration (default: %(default)s)"
    )
    parser.add_argument("--report", type=Path, metavar="OUT.jsonl", help="print the table of a run")
    parser.add_argument("--board", type=Path, metavar="BOARD.csv", help="published values: task, entry, value, source")
    parser.add_argument("--overlap", action="store_true", help="count test molecules that are also in other tables")
    parser.add_argument("--design", type=Path, nargs="+", default=(), metavar="FOLDER", help="tables used for design")
    args = parser.parse_args()
    needs = [
        (args.report and not args.board, "--report needs --board BOARD.csv."),
        (not args.report and not args.folder, "TRAIN_FOLDER is needed."),
        (args.task and MOLHIV in args.task and not args.molhiv, "--task molhiv needs --molhiv CSV."),
        (args.overlap and not args.test, "--overlap needs --test TEST_FOLDER."),
        (not (args.report or args.register or args.overlap or args.output), "-o OUT.jsonl is needed."),
    ]
    for is_missing, message in needs:
        if is_missing:
            parser.error(message)
    return parser, args


def main() -> None:
    parser, args = read_arguments()
    DisableLog("rdApp.*")
    if args.report:
        print(report(read_lines(args.report), read_board(args.board)), end="")
        return
    if args.register:
        register(args.registration, args.folder)
        return
    for folder, task in product(filter(None, (args.folder, args.test)), chosen_tasks(args)):
        if task != MOLHIV and not (folder / f"{task}.csv").exists():
            parser.error(f"{folder} has no table {task}.csv.")
    if args.overlap:
        print(overlap(args.task or list(TASKS), args.folder, args.test, args.design))
        return
    if args.test:
        check_registration(args.registration, args.folder)
    sys.exit(run_tasks(args) > 0)


if __name__ == "__main__":
    main()
