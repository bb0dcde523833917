"""Run all benchmarks, or those named, such as ``gram memory``; print the tables, and keep them in RESULTS.md.

Each part of RESULTS.md says when and where it was measured; parts that are not run stay as they are.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

from common import machine

NAMES = (
    "gram",
    "memory",
    "start",
    "formats",
    "kernels",
    "peers",
    "validation",
    "approx",
    "selection",
    "explain",
    "gp",
    "search",
    "linear",
    "model_files",
)
RESULTS = Path(__file__).with_name("RESULTS.md")
HEADER = """# Measured speed and memory

By `make bench`, or part by part by `python benchmarks/run.py NAME ...`. Each part says when and where it was measured.
How many mutated inputs were tried, and what became of them, is in [FUZZING.md](FUZZING.md).
"""
PART = re.compile(r"<!-- (\w+) -->\n(.*?)(?=\n<!-- \w+ -->|\Z)", re.DOTALL)


def keep(name: str, text: str) -> None:
    """Replace a part of RESULTS.md, or add it."""
    parts = dict(PART.findall(RESULTS.read_text())) if RESULTS.exists() else {}
    parts[name] = text
    RESULTS.write_text(
        "\n".join([HEADER, *(f"<!-- {one} -->\n{parts[one].strip()}\n" for one in NAMES if one in parts)])
    )


def main() -> None:
    chosen = sys.argv[1:] or NAMES
    unknown = set(chosen) - set(NAMES)
    if unknown:
        sys.exit(f"Unknown benchmark: {', '.join(sorted(unknown))}. There are: {', '.join(NAMES)}.")
    for name in chosen:
        text = f"*`python benchmarks/run.py {name}`, {machine()}.*\n\n{importlib.import_module(f'bench_{name}').main()}"
        print(text, flush=True)
        keep(name, text)


if __name__ == "__main__":
    main()
