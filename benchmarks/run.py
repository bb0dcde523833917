"""Run all benchmarks, or those named, such as ``gram memory``; print the tables, and keep those of all in RESULTS.md."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from common import machine

NAMES = ("gram", "memory", "start", "kernels", "peers", "approx", "selection")


def main() -> None:
    chosen = sys.argv[1:] or NAMES
    unknown = set(chosen) - set(NAMES)
    if unknown:
        sys.exit(f"Unknown benchmark: {', '.join(sorted(unknown))}. There are: {', '.join(NAMES)}.")
    header = f"# Measured speed and memory\n\nBy `make bench`. {machine()}.\n"
    print(header, flush=True)
    parts = [header]
    for name in chosen:
        parts.append(importlib.import_module(f"bench_{name}").main())
        print(parts[-1], flush=True)
    if tuple(chosen) == NAMES:
        Path(__file__).with_name("RESULTS.md").write_text("\n".join(parts))


if __name__ == "__main__":
    main()
