"""Mutate valid model files: damaged ones, and forged ones whose digests match. None may crash, hang, or be misread.

A damaged file must be refused. A forged one must be refused when it is loaded, or give a model that predicts and explains the
same twice, or that refuses the graphs with an ordinary error. ``fuzz.py`` runs these trials:

    nice python benchmarks/fuzz.py --seconds 600 --kind models
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import math
import random
import resource
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

MAGIC = b"treegram-model\n"
HEAD = len(MAGIC) + 8
NUMBERS = (-1, 0, 1, 2, 3, 7, 64, 1000, 2**31, 2**63, 10**30, 0.5, -0.0, 1e308, 1e-308, math.inf, math.nan)
OTHERS = (
    None,
    True,
    False,
    "",
    "WL",
    "scale",
    "os.system",
    [],
    {},
    {"array": 0},
    {"array": 3},
    {"tuple": []},
    {"dict": []},
)
DTYPES = ("<f8", "<i8", "<u8", "|b1")

Content = dict[str, Any]
Arrays = list[Any]


# -------------------------------------------------------------------- files


def damage(data: bytes, rng: random.Random) -> bytes:
    """Change, cut out or repeat some bytes, or cut off the end."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        start, length = rng.randrange(len(changed) or 1), rng.choice((1, 1, 8, 64))
        kind = rng.randrange(5)
        if kind == 0:
            changed[start : start + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            del changed[start : start + length]
        elif kind == 2:
            changed[start:start] = changed[start : start + length]
        elif kind == 3:
            changed[start : start + length] = rng.choice((b"\0", b"\xff")) * length
        else:
            del changed[start:]
    return bytes(changed)


def read(data: bytes) -> tuple[Content, Arrays]:
    """Return the text of a file and its arrays."""
    start = HEAD + int.from_bytes(data[len(MAGIC) : HEAD], "little")
    content, arrays = json.loads(data[HEAD:start]), []
    for dtype, shape in content["arrays"]:
        end = start + np.dtype(dtype).itemsize * math.prod(shape)
        arrays.append(np.frombuffer(data[start:end], dtype).reshape(shape).copy())
        start = end
    return content, arrays


def write(content: Content, arrays: Arrays) -> bytes:
    """Return a file with a digest that matches."""
    content["arrays"] = [[array.dtype.str, list(array.shape)] for array in arrays]
    text = json.dumps(content).encode()
    data = MAGIC + len(text).to_bytes(8, "little") + text + b"".join(array.tobytes() for array in arrays)
    return data + hashlib.sha256(data).digest()


def estimators(value: Any) -> Iterator[list[Any]]:
    """Yield every [name, parameters, learned] in a text, inner ones first."""
    for entry in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from estimators(entry)
    if isinstance(value, dict) and isinstance(value.get("estimator"), list) and len(value["estimator"]) == 3:
        yield value["estimator"]


# -------------------------------------------------------------------- mutations


def resize(content: Content, arrays: Arrays, rng: random.Random) -> None:  # noqa: ARG001
    """Make an array longer, shorter or empty along an axis, or add one."""
    i = rng.randrange(len(arrays))
    array = arrays[i]
    if not array.ndim or rng.random() < 0.1:
        arrays[i] = array[None] if array.ndim < 2 else array.ravel()
        return
    axis = rng.randrange(array.ndim)
    n = array.shape[axis]
    size = rng.choice((0, 1, n - 1, n + 1, 2 * n))
    arrays[i] = np.take(array, np.arange(max(size, 0)) % n, axis) if n else array


def retype(content: Content, arrays: Arrays, rng: random.Random) -> None:  # noqa: ARG001
    i = rng.randrange(len(arrays))
    if arrays[i].dtype.kind in "fiub":
        with np.errstate(all="ignore"):
            arrays[i] = arrays[i].astype(rng.choice(DTYPES))


def swap(content: Content, arrays: Arrays, rng: random.Random) -> None:  # noqa: ARG001
    i, j = rng.randrange(len(arrays)), rng.randrange(len(arrays))
    arrays[i], arrays[j] = arrays[j], arrays[i]


def set_values(content: Content, arrays: Arrays, rng: random.Random) -> None:  # noqa: ARG001
    array = rng.choice(arrays)
    for _ in range(rng.choice((1, 1, 2, 8))):
        with contextlib.suppress(OverflowError, ValueError, IndexError):
            array.flat[rng.randrange(max(array.size, 1))] = rng.choice(NUMBERS)


def set_parameter(content: Content, arrays: Arrays, rng: random.Random) -> None:  # noqa: ARG001
    """Change a parameter of an estimator, or take it from another one."""
    found = list(estimators(content["model"]))
    mine, other = rng.choice(found)[1], rng.choice(found)[1]
    pool = [*NUMBERS[:-2], *OTHERS, *other.values()]
    if mine:
        mine[rng.choice(sorted(mine))] = copy.deepcopy(rng.choice(pool))


def resize_weights(content: Content, arrays: Arrays, rng: random.Random) -> None:
    """Give a linear model another number of features, consistently; elsewhere, resize any array."""
    found = [one[2] for one in estimators(content["model"]) if one[2] and "coef_" in one[2]]
    if not found:
        resize(content, arrays, rng)
        return
    learned = rng.choice(found)
    i = learned["coef_"]["array"]
    width = arrays[i].shape[-1]
    learned["n_features_in_"] = n = rng.choice((0, 1, 7, abs(width - 1), width + 1, 4096))
    arrays[i] = np.ones((*arrays[i].shape[:-1], n))


def set_text(content: Content, arrays: Arrays, rng: random.Random) -> None:  # noqa: ARG001
    """Walk down to some value of the text, and replace or remove it."""
    value: Any = content["model"]
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(value[key], dict | list) and value[key] and rng.random() < 0.95:
            value = value[key]
        elif rng.random() < 0.1:
            del value[key]
            return
        else:
            value[key] = copy.deepcopy(rng.choice(NUMBERS if rng.random() < 0.6 else OTHERS))
            return


def agree(content: Content, arrays: Arrays) -> None:
    """Let digests and kernel values agree with changed graphs and parameters, as a careful forger would."""
    from treegram.graphs.digest import digest_graphs
    from treegram.graphs.fields import fields_to_graphs
    from treegram.models.saving import _from_json
    from treegram.models.saving.states import _self_kernels

    for name, parameters, learned in estimators(content["model"]):
        with contextlib.suppress(Exception):
            graphs = fields_to_graphs(_from_json(learned["graphs"], arrays))
            learned["digest"] = digest_graphs(graphs)
            kernel = _from_json({"estimator": [name, parameters, None]}, arrays).fit(graphs)
            arrays[learned["self_kernels"]["array"]] = _self_kernels(kernel)


def forging(*changes: Callable[[Content, Arrays, random.Random], None]) -> Callable[[bytes, random.Random], bytes]:
    """Return a mutation that makes one or two of some changes, mostly with digests and kernel values that agree."""

    def forge(data: bytes, rng: random.Random) -> bytes:
        content, arrays = read(data)
        for _ in range(rng.choice((1, 1, 2))):
            rng.choice(changes)(content, arrays, rng)
        if rng.random() < 0.7:
            agree(content, arrays)
        return write(content, arrays)

    return forge


MUTATIONS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "damaged": damage,
    "forged arrays": forging(resize, retype, swap, set_values),
    "forged parameters": forging(set_parameter),
    "forged text": forging(set_text),
    "forged weights": forging(resize_weights),
}


# -------------------------------------------------------------------- originals


def make_models() -> dict[str, Any]:
    """Return small fitted models of every kind."""
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline

    import treegram as tg

    graphs, _ = tg.load_digits_graphs(n_levels=3)
    graphs, y = graphs[:30], np.arange(30) % 3
    scaled = make_pipeline(tg.ScaleAttributes(), tg.ODDCL(depth=1))
    hashed = tg.FeatureMap(tg.ODDCL(1), n_components=8, n_features=64)
    columns = tg.FeatureMap(tg.ODDCLApprox(1, method="rff", n_components=8), n_features=None)
    models = {
        "classifier": tg.GraphSVC(tg.WL(n_iterations=1), param_grid={}, C=1, cv=3),
        "sum": tg.GraphSVC(tg.KernelSum([tg.ODDST(depth=1), scaled]), param_grid={}, C=1, cv=3),
        "process": tg.GraphGP(scaled, param_grid={}),
        "ridge": tg.GraphRidge(tg.GraphHopper(), param_grid={}, cv=3),
        "hashed": make_pipeline(hashed, LogisticRegression()),
        "columns": make_pipeline(tg.ScaleAttributes(), columns, Ridge()),
        "counts": make_pipeline(tg.FeatureMap(tg.P2K(n_iterations=1)), LogisticRegression()),
        "nystroem": make_pipeline(tg.Nystroem(tg.ODDCL(depth=1), 5), LogisticRegression()),
        "stack": tg.GraphClassifier([tg.WL(1, normalize="tanimoto"), "statistics", scaled]),
        "targets": tg.GraphRidge(scaled, param_grid={}, cv=3),
        "weighted": tg.GraphRegressor([tg.WLOA(1), "statistics", scaled]),
    }
    kernels = {
        name: getattr(tg, name)()
        for name in (
            *("AttributedWalk", "CSM", "GIK", "Graphlets", "NSPDK", "ODDCLApprox", "RandomWalk"),
            *("ShortestPath", "StatisticsKernel", "WLCL", "WLOA", "WWL"),
        )
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        several = np.column_stack([y, np.where(y, y, np.nan)])
        fitted = {name: model.fit(graphs, several if name == "targets" else y) for name, model in models.items()}
        for name in ("stack", "weighted"):
            fitted[name].calibrate(graphs[:12], y[:12])
        return {
            **fitted,
            **{name: kernel.fit(graphs[:12]) for name, kernel in kernels.items()},
        }


# -------------------------------------------------------------------- trials


def outcome(path: Path, is_forged: bool, graphs: Any) -> str:
    """Return what becomes of a file: refused, loaded, or what is wrong."""
    from treegram import load_model
    from treegram.exceptions import ModelFileError

    try:
        first, second = load_model(path), load_model(path)
    except ModelFileError as error:
        return "refused (memory)" if isinstance(error.__cause__, MemoryError) else "refused"
    if not is_forged:
        return "BAD: a damaged file was loaded"
    results, again = use(first, graphs), use(second, graphs)
    if any(not np.array_equal(one, other) for one, other in zip(results, again, strict=True)):
        return "BAD: two results of one file differ"
    return "loaded" if results[0].dtype.kind != "S" else "loaded, refuses graphs"


def use(model: Any, graphs: Any) -> list[Any]:
    """Return the bytes of predictions, or rows, and of explanations, or the messages of errors."""
    import treegram as tg

    def explained() -> Any:
        return np.concatenate(tg.explain(model, graphs).node_contributions)

    def predicted() -> Any:
        rows = model.predict(graphs) if hasattr(model, "predict") else model.transform(graphs)
        return rows.toarray() if hasattr(rows, "toarray") else rows

    results = []
    for call in (explained, predicted):  # explain first: it must not rely on the checks of predict
        try:
            results.append(np.frombuffer(np.ascontiguousarray(call()).tobytes(), np.uint8))
        except (ValueError, MemoryError) as error:  # not fitted, or other graphs
            results.append(np.array(str(error).encode()))
        except RuntimeError as error:
            if "can't start new thread" not in str(error):
                raise
            results.append(np.array(b"no memory for threads"))  # n_jobs of them, within the limit on memory
    return results[::-1]


def limit_memory(more: int) -> None:
    """Allow the process this number of bytes more than it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more, resource.RLIM_INFINITY))
