"""Mutated model files: damaged ones, and forged ones whose digest fits. None may crash, hang, or load as something else.

A damaged file must be refused. A forged one must be refused, when it is loaded or when its model is first used, or give a model
that predicts, or that refuses the graphs by an ordinary error. Loading may take 4 times the file and 64 KiB of memory. ``fuzz.py``
tries them.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import random
import resource
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np

MAGIC = b"treegram-model\n"
HEAD = len(MAGIC) + 8
LOAD_SLACK = 1 << 16  # bytes: the constant beside 4 times the file, for loading
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
        "classifier": tg.GraphSVC(tg.WL(n_iterations=1), param_grid={}, C=1, cv=3, probability=True),
        "sum": tg.GraphSVC(tg.KernelSum([tg.ODDST(depth=1), scaled]), param_grid={}, C=1, cv=3),
        "process": tg.GraphGP(scaled, param_grid={}),
        "ridge": tg.GraphRidge(tg.GraphHopper(), param_grid={}, cv=3),
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
    from treegram import ModelFileError, load_model

    try:
        model = load_model(path)
    except ModelFileError as error:
        return "refused (memory)" if isinstance(error.__cause__, MemoryError) else "refused"
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


def weigh(path: Path) -> str:
    """Whether loading a file takes more memory than it may.

    The tracer stays on: CPython 3.11 crashes where it is switched off while another thread allocates.
    """
    from treegram import ModelFileError, load_model

    if not tracemalloc.is_tracing():
        tracemalloc.start()
    size = path.stat().st_size
    for _ in range(2):  # what is imported or remembered once does not count
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        with contextlib.suppress(ModelFileError):
            load_model(path)
        peak = tracemalloc.get_traced_memory()[1] - before
        if peak <= 4 * size + LOAD_SLACK:
            return "accepted"
    return f"BAD: {peak / 1e6:.1f} MB to load {size} bytes"


def limit_memory(more: int) -> None:
    """Allow the process so many bytes beside what it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more, resource.RLIM_INFINITY))
