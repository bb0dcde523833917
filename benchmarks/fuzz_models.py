"""Load mutated model files: damaged ones, and forged ones whose digest fits. None may crash, hang, or load as something else.

    nice python benchmarks/fuzz_models.py --seconds 600

Batches run in processes of their own, so that a crash is seen. Loading may take 4 times the file and 64 KiB of memory; first use,
which fits the kernel again, may take what the process has at its start, 4 times the file, and 256 MiB. A damaged file must be refused. A forged one must be refused, when it is loaded or when its
model is first used, or give a model that predicts, or that refuses the graphs by an ordinary error. Prints one line for each kind of mutation, and every bad outcome.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import multiprocessing
import random
import resource
import signal
import tempfile
import time
import tracemalloc
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

MAGIC = b"treegram-model\n"
HEAD = len(MAGIC) + 8
BATCH = 5000  # files for each process
SECONDS = 20  # of processor time for one file
LOAD_SLACK = 1 << 16  # bytes: the constant beside 4 times the file, for loading
SLACK = 256 << 20  # the same for loading and first use, which fits the kernel again
NUMBERS = (-1, 0, 1, 2, 3, 7, 64, 1000, 2**31, 2**63, 10**30, 0.5, -0.0, 1e308, 1e-308)
OTHERS = (None, True, False, "", "WL", "os.system", [], {}, {"array": 0}, {"array": 3}, {"tuple": []}, {"dict": []})


# -------------------------------------------------------------------- mutations


def damage(data: bytes, rng: random.Random) -> bytes:
    """Some bytes changed, cut out, repeated, or the end cut off."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        place, length = rng.randrange(len(changed) or 1), rng.choice((1, 1, 8, 64))
        kind = rng.randrange(5)
        if kind == 0:
            changed[place : place + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            del changed[place : place + length]
        elif kind == 2:
            changed[place:place] = changed[place : place + length]
        elif kind == 3:
            changed[place : place + length] = rng.choice((b"\0", b"\xff")) * length
        else:
            del changed[place:]
    return bytes(changed)


def sign(data: bytes) -> bytes:
    return data + hashlib.sha256(data).digest()


def forge_bytes(data: bytes, rng: random.Random) -> bytes:
    """Damaged behind the first line, with a digest that fits."""
    return sign(MAGIC + damage(data[len(MAGIC) : -32], rng))


def forge_text(data: bytes, rng: random.Random) -> bytes:
    """Some values of the text replaced, with a length and a digest that fit."""
    length = int.from_bytes(data[len(MAGIC) : HEAD], "little")
    content = json.loads(data[HEAD : HEAD + length])
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        _replace(content, rng)
    text = json.dumps(content).encode()
    return sign(MAGIC + len(text).to_bytes(8, "little") + text + data[HEAD + length : -32])


def forge_arrays(data: bytes, rng: random.Random) -> bytes:
    """Some numbers of the arrays replaced, with a digest that fits."""
    length = int.from_bytes(data[len(MAGIC) : HEAD], "little")
    start = HEAD + length
    numbers = bytearray(data[start:-32])
    for _ in range(rng.choice((1, 1, 2, 8))):
        place = 8 * rng.randrange(max(len(numbers) // 8, 1))
        value: Any = rng.choice(NUMBERS)
        packed = np.float64(value) if rng.random() < 0.5 else np.array(int(value) % 2**63, np.int64)
        numbers[place : place + 8] = packed.tobytes()
    return sign(data[:start] + bytes(numbers))


def _replace(content: Any, rng: random.Random) -> None:
    """Walk down to some value, and put another in its place, or take it away."""
    while True:
        keys = list(content) if isinstance(content, dict) else list(range(len(content)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(content[key], dict | list) and content[key] and rng.random() < 0.95:
            content = content[key]
            continue
        if rng.random() < 0.1:
            del content[key]
        else:
            content[key] = copy.deepcopy(rng.choice(NUMBERS if rng.random() < 0.6 else OTHERS))
        return


MUTATIONS = {"damaged": damage, "forged bytes": forge_bytes, "forged text": forge_text, "forged arrays": forge_arrays}


# -------------------------------------------------------------------- files to mutate


def make_models() -> dict[str, Any]:
    """Small models of every kind."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    import treegram as tg

    graphs, _ = tg.load_digits_graphs(n_levels=3)
    graphs = graphs[:30]
    y = np.arange(30) % 3
    scaled = make_pipeline(tg.ScaleAttributes(), tg.ODDCL(depth=1))
    linear = make_pipeline(
        tg.ODDCLFeatures(depth=1, method="nystroem", n_components=8, n_features=64), LogisticRegression()
    )
    models = {
        "classifier": tg.GraphSVC(tg.WL(n_iterations=1), grid={}, C=1, cv=3, probability=True),
        "sum": tg.GraphSVC(tg.KernelSum([tg.ODDST(depth=1), scaled]), grid={}, C=1, cv=3),
        "process": tg.GraphGP(scaled, grid={}),
        "ridge": tg.GraphRidge(tg.GraphHopper(), grid={}, cv=3),
        "linear": linear,
        "features": tg.FeatureMap(tg.P2K(n_iterations=1)),
        "columns": tg.ODDCLFeatures(depth=1, n_features=None),
        **{
            name: getattr(tg, name)() for name in ("CSM", "GIK", "NSPDK", "ODDCLApprox", "ShortestPath", "WLCL", "WLOA")
        },
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            name: model.fit(graphs[:12] if name[0].isupper() else graphs, y[: 12 if name[0].isupper() else 30])
            for name, model in models.items()
        }


# -------------------------------------------------------------------- trying them


def outcome(path: Path, is_forged: bool, graphs: Any) -> str:
    """What becomes of a file: refused, loaded, or what is wrong."""
    from treegram import ModelFileError

    found, peak = load_traced(path)
    size = path.stat().st_size
    if peak > 4 * size + LOAD_SLACK:
        found, peak = load_traced(path)  # what is imported once does not count
    if peak > 4 * size + LOAD_SLACK:
        return f"BAD: {peak / 1e6:.1f} MB to load {size} bytes"
    if isinstance(found, ModelFileError):
        return "refused (memory)" if isinstance(found.__cause__, MemoryError) else "refused"
    model = found
    if not is_forged:
        return "BAD: a damaged file was loaded"
    use = model.predict if hasattr(model, "predict") else model.transform
    try:
        use(graphs)
    except ModelFileError:
        return "refused when used"
    except (ValueError, MemoryError, AttributeError):  # it was not fitted, or does not fit these graphs
        return "loaded, refuses graphs"
    except RuntimeError as error:
        if "can't start new thread" not in str(error):
            raise
        return "loaded, no memory for its threads"  # as many as n_jobs says, within the limit on memory
    return "loaded"


def load_traced(path: Path) -> tuple[Any, int]:
    """The model of a file, or why it is refused, and the most bytes that Python's allocator had at once.

    Without the limit on memory: the tracer itself breaks where it meets one.
    """
    from treegram import ModelFileError, load_model

    limit, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    tracemalloc.start()
    try:
        found = load_model(path)
    except ModelFileError as error:
        found = error
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))
    return found, peak


def run_batch(folder: str, seed: int, n_files: int, results: Any) -> None:
    """Some mutants, from one seed; the last one stays in the folder if the process dies."""
    from treegram import load_digits_graphs

    graphs = load_digits_graphs(n_levels=3)[0][30:34]
    rng, counts = random.Random(seed), Counter()
    files = sorted(Path(folder).glob("*.tgm"))
    originals = [file.read_bytes() for file in files]
    path = Path(folder) / f"mutant-{seed}.bin"
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, _time_is_up)
    for _ in range(n_files):
        number = rng.randrange(len(files))
        kind = rng.choice(list(MUTATIONS))
        data = MUTATIONS[kind](originals[number], rng)
        if data == originals[number]:
            continue
        path.write_bytes(data)
        _limit_memory(4 * len(data) + SLACK)
        # Again each second: what compiled code has swallowed comes back. Time of the processor: others may use it, too.
        signal.setitimer(signal.ITIMER_PROF, SECONDS, 1)
        try:
            found = outcome(path, kind != "damaged", graphs)
        except TimeoutError:
            found = f"BAD: {SECONDS} s"
        except Exception as error:
            found = f"BAD: {type(error).__name__}"
        signal.setitimer(signal.ITIMER_PROF, 0)
        counts[kind, found] += 1
        if found.startswith("BAD"):
            kept = path.with_name(f"bad-{seed}-{sum(counts.values())}.bin")
            kept.write_bytes(data)
            print(kind, files[number].stem, found, kept, flush=True)
    results.put(dict(counts))


def _time_is_up(*_: object) -> None:
    raise TimeoutError


def _limit_memory(more: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more, resource.RLIM_INFINITY))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    from treegram import save_model

    folder, end, seed, total = tempfile.mkdtemp(), time.monotonic() + args.seconds, args.seed, Counter()
    for name, model in make_models().items():
        save_model(model, Path(folder) / f"{name}.tgm")
    context = multiprocessing.get_context("spawn")
    while time.monotonic() < end:
        results = context.SimpleQueue()
        process = context.Process(target=run_batch, args=(folder, seed, BATCH, results))
        process.start()
        process.join(timeout=BATCH * 20)
        if process.exitcode != 0:
            process.kill()
            print(
                f"BAD: the process of seed {seed} ended with {process.exitcode}; see {folder}/mutant-{seed}.bin",
                flush=True,
            )
        else:
            total.update(results.get())
        seed += 1
        print(f"{sum(total.values())} files, seeds {args.seed} to {seed - 1}", flush=True)
        if seed % 10 == 0 or time.monotonic() >= end:
            for (kind, found), count in sorted(total.items()):
                print(f"{kind:15}{found:25}{count:8}", flush=True)


if __name__ == "__main__":
    main()
