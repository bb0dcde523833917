"""Compare TU text with Parquet files of the same graphs: bytes on disk, and time to read them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import treegram as tg
from common import DATA_DIR, best_of, load, table

REAL_SETS = ("ENZYMES", "DHFR", "PROTEINS", "SYNTHETICnew")
HEADER = ["graphs", "text", "Parquet", "reading text", "reading Parquet", "faster"]


def measure(name: str, graphs: tg.Graphs, folder: Path) -> list[str]:
    text, file = folder / name, folder / f"{name}.parquet"
    tg.save_tu(graphs, text)
    tg.save_parquet(graphs, file)
    assert tg.load_tu(text)[0] == tg.load_parquet(file)[0] == graphs
    sizes = [sum(path.stat().st_size for path in text.iterdir()), file.stat().st_size]
    times = best_of(lambda: tg.load_tu(text), lambda: tg.load_parquet(file), rounds=7)
    return [
        name,
        *(f"{size / 1e6:.2f} MB" for size in sizes),
        *(f"{seconds * 1000:.1f} ms" for seconds in times),
        f"**{times[0] / times[1]:.1f} x**",
    ]


def measured_vectors(graphs: tg.Graphs) -> tg.Graphs:
    """Return the graphs with three attributes of full precision, as measured or computed ones have."""
    return graphs.assign(attributes=np.random.default_rng(0).normal(size=(graphs.n_nodes, 3)))


def main() -> str:
    sets = {name: load(name) for name in REAL_SETS} if DATA_DIR is not None else {}
    sets["generated-3000"] = tg.make_synthetic(3000, random_state=0)[0]
    sets["generated-3000-vectors"] = measured_vectors(sets["generated-3000"])
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(name, graphs, Path(folder)) for name, graphs in sets.items()]
    return table("Text and Parquet (process time)", HEADER, rows)


if __name__ == "__main__":
    print(main())
