"""Compare the time of Gram matrices in this checkout with another commit: processor time, one thread.

    python benchmarks/against_commit.py 6d1ecda "ShortestPath()" ENZYMES BZR

The other commit's ``src`` is laid out in a temporary folder. Both are run in processes of their own, by turns; the best time counts.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from common import DATA_DIR, machine, table

ROOT = Path(__file__).resolve().parents[1]
TIMED = """
import sys, time
import treegram as tg
_, folder, name, kernel, rounds = sys.argv
graphs, times = tg.load_tu(name, data_dir=folder)[0], []
kernel = eval("tg." + kernel).set_params(n_jobs=1)
for _ in range(1 + int(rounds)):  # the first round may compile
    start = time.process_time()
    kernel.fit_transform(graphs)
    times.append(time.process_time() - start)
print(min(times[1:]))
"""


def best_time(source: Path, name: str, kernel: str, rounds: int) -> float:
    """Return the best time of some rounds in a process that imports treegram from this folder."""
    command = [sys.executable, "-c", TIMED, str(DATA_DIR), name, kernel, str(rounds)]
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    environment = {**os.environ, **single, "PYTHONPATH": str(source)}
    return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit")
    parser.add_argument("kernel", help="as Python writes it, such as 'NSPDK(2, 3)'")
    parser.add_argument("data_sets", nargs="+")
    parser.add_argument("--turns", type=int, default=4, help="processes for each of the two (default: 4)")
    parser.add_argument("--rounds", type=int, default=2, help="Gram matrices that each process times (default: 2)")
    asked = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(
            ["git", "archive", asked.commit, "src"], cwd=ROOT, stdout=subprocess.PIPE, check=True
        ).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        sources = [Path(folder) / "src", ROOT / "src"]
        for name in asked.data_sets:
            turns = [
                [best_time(source, name, asked.kernel, asked.rounds) for source in sources] for _ in range(asked.turns)
            ]
            then, now = (min(times) for times in zip(*turns, strict=True))
            rows.append([name, f"{1e3 * then:.1f} ms", f"{1e3 * now:.1f} ms", f"**{now / then:.2f}**"])
    title = f"{asked.kernel}: Gram matrix, best of {asked.turns * asked.rounds} (process time, one thread)"
    print(table(title, ["data set", asked.commit, "now", "now / then"], rows))
    print(machine())


if __name__ == "__main__":
    main()
