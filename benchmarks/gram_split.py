"""Split the time of one exact ODDCL Gram matrix: ``python benchmarks/gram_split.py``, process time, one thread, best of five."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from threadpoolctl import threadpool_limits

import treegram as tg
from common import PAPER_SETS, load, machine, table
from treegram.kernels import oddcl as _oddcl
from treegram.pairsum import nodes

STEPS: dict[str, list[tuple[Any, str]]] = {
    "pair sums": [(nodes, "sum_tile")],
    "tree features": [(_oddcl, "tree_features"), (_oddcl, "weigh")],
    "merging and layout": [
        *((nodes, name) for name in ("_condense", "_invert")),
        (nodes._NodeJob, "prepare"),
        (nodes._NodeJob, "columns"),
    ],
}


def timed(function: Callable[..., Any], step: str, spent: Counter[str]) -> Callable[..., Any]:
    def run(*args: Any, **options: Any) -> Any:
        start = time.process_time()
        result = function(*args, **options)
        spent[step] += time.process_time() - start
        return result

    return run


def split(name: str, spent: Counter[str]) -> list[str]:
    graphs, best = load(name), {"all": float("inf")}
    for _ in range(5):
        spent.clear()
        start = time.process_time()
        tg.ODDCL(depth=3, lam=1.2, n_jobs=1).fit_transform(graphs)
        best = min(best, {"all": time.process_time() - start, **spent}, key=lambda times: times["all"])
    total = best.pop("all")
    shares = [best.get(step, 0.0) / total for step in STEPS]
    return [name, f"{1e3 * total:.0f} ms", *(f"{share:.0%}" for share in (*shares, 1 - sum(shares)))]


def main() -> str:
    spent = Counter[str]()
    for step, functions in STEPS.items():
        for owner, name in functions:
            setattr(owner, name, timed(getattr(owner, name), step, spent))
    with threadpool_limits(1):
        rows = [split(name, spent) for name in PAPER_SETS]
    return table("Where the time of one Gram matrix goes", ["data set", "all", *STEPS, "the rest"], rows)


if __name__ == "__main__":
    print(main())
    print(machine())
