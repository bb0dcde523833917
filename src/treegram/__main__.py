"""Run the command ``treegram``, which is also ``python -m treegram``."""

import sys

__all__ = ["run"]


def run() -> int:
    """Run the command and return its exit code, which is 130 after Ctrl-C."""
    try:
        from treegram.cli import main

        return main()
    except KeyboardInterrupt:  # during imports
        print("Interrupted; no partial files were left.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(run())
