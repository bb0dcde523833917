"""Run the command ``treegram``, which is also ``python -m treegram``."""

import sys

from treegram.cli import main as run

__all__ = ["run"]

if __name__ == "__main__":
    sys.exit(run())
