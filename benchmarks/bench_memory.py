"""Measure the peak memory of a full Gram matrix and of the paper's grid, above that before the call (Linux only)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import treegram as tg
from common import PAPER_SETS, load, table

DEPTHS, LAMS = [0, 1, 2, 3], [0.1, 0.3, 0.5, 0.7, 1.0, 1.2]


def resident(field: str) -> float:
    """Return a line of the memory status of the process in MiB: VmRSS is now, VmHWM the peak since the last reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) / 1024


def child(name: str, what: str) -> None:
    graphs = load(name)
    run = {
        "gram": lambda g: tg.ODDCL(depth=3, lam=1.2).fit_transform(g),
        "grid": lambda g: tg.ODDCL().gram_grid(g, {"depth": DEPTHS, "lam": LAMS}),
    }[what]
    run(graphs[:10])
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    before = resident("VmRSS")
    run(graphs)
    print(resident("VmHWM") - before)


def peak(name: str, what: str) -> float:
    done = subprocess.run([sys.executable, __file__, name, what], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> str:
    if not Path("/proc/self/clear_refs").exists():
        return "## Peak memory\n\nNot measured: this needs Linux.\n"
    rows = []
    for name in PAPER_SETS:
        graphs = load(name)
        one = len(graphs) ** 2 * 8 / 2**20
        gram, grid = peak(name, "gram"), peak(name, "grid")
        rows.append([name, f"{one:.0f} MiB", f"**{gram:.0f} MiB**", f"{24 * one:.0f} MiB", f"**{grid:.0f} MiB**"])
    header = ["data set", "one matrix", "peak of one Gram", "24 matrices", "peak of the grid"]
    return table("Peak memory above the inputs", header, rows)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        child(sys.argv[1], sys.argv[2])
    else:
        print(main())
