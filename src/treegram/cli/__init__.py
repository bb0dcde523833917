"""The command ``treegram``: its subcommands, and how they exit.

A subcommand is a module of this package with ``EXAMPLES`` (lines for its help), ``add_arguments(parser)`` and
``run(args)``; ``COMMANDS`` has its name and a line of help. Only the requested module is imported, and modules import kernels,
models and their dependencies in ``run``, so that ``--help`` is fast. Results go to stdout, everything else to stderr.
Exit codes: 0 success, 2 wrong usage or bad input (one line that says what is wrong), 130 interrupted by Ctrl-C, 141 the reader
of a pipe is gone, 1 a bug (with traceback). Python's development mode (``PYTHONDEVMODE=1``) also shows the traceback of
bad input.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from treegram._core.text import suggest
from treegram.cli._parser import Parser, as_options, one_line
from treegram.exceptions import TreegramError

if TYPE_CHECKING:
    import argparse

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "info": "summarize a data set and flag problems",
    "fit": "choose a model, fit it to a data set, and save it",
    "predict": "predict new graphs with a saved model",
    "explain": "write a page that shows which nodes drive the predictions of a saved model",
    "map": "write a page that shows similar graphs close to each other",
    "similar": "list the graphs that are most similar to given ones",
    "evaluate": "compare kernels on your data by nested cross-validation",
    "reproduce": "run a study, by default the paper's experiments; resumes where it stopped",
    "report": "write a page of tables, statistics and plots from the results of a study",
    "gram": "compute the Gram matrix of a data set and save it",
    "precompile": "compile everything that later runs need",
    "completion": "print a completion script for bash, zsh or tcsh",
}
EXAMPLES = ("treegram info ENZYMES", "treegram fit molecules.csv --target solubility -o solubility.tgm")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the command's name; by default those of the process.

    Returns
    -------
    int
        The exit code.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    program = one_line(" ".join(["treegram", *arguments[:1]]))
    options: dict[str, argparse.Action] = {}  # of the command, once they are known
    try:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = partial(_show_warning, program, options, set())
                _dispatch(arguments, options)
        finally:
            sys.stdout.flush()
    except SystemExit as end:  # argparse raises it after --help or an error
        return end.code if isinstance(end.code, int) else 0
    except BrokenPipeError:
        with contextlib.suppress(OSError, ValueError):  # discard the rest, or Python complains at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        print("Interrupted; no partial files were left.", file=sys.stderr)
        return 130
    except (TreegramError, ValueError, OSError, MemoryError, ImportError) as error:
        if sys.flags.dev_mode:
            raise
        print(f"{program}: error: {as_options(_text(error), options)}", file=sys.stderr)
        return 2
    return 0


def _dispatch(arguments: list[str], options: dict[str, argparse.Action]) -> None:
    top = _top_parser(arguments[:1])
    name = top.read().command
    if name is None:
        top.print_help()
        return
    if name not in COMMANDS:
        top.error(f"unknown command {name!r} (choose from {', '.join(COMMANDS)}){suggest(name, COMMANDS)}")
    module = import_module(f"treegram.cli.{name}")
    parser = Parser(f"treegram {name}", COMMANDS[name], module.EXAMPLES, arguments[1:])
    module.add_arguments(parser)
    if name not in ("report", "completion"):  # they are done at once
        parser.add_argument("--verbose", action="store_true", help="log progress to stderr when it is not a terminal")
    options |= parser._option_string_actions
    args = parser.read()
    args.options = options
    # Stores record the command without the folders of this machine.
    words = [Path(word).resolve().name if os.sep in word else word for word in arguments]
    args.command_line = shlex.join(["treegram", *words])
    from treegram._core.parallel import verbosely  # imports joblib, which --help does not need

    with verbosely(getattr(args, "verbose", False)):
        module.run(args)


def _top_parser(arguments: Sequence[str]) -> Parser:
    from treegram import __version__

    commands = "\n".join(f"  {name:11}{summary}" for name, summary in COMMANDS.items())
    about = (
        f"learn from graphs: molecules, proteins, scenes, networks.\n\ncommands (each has its own --help):\n{commands}"
    )
    parser = Parser("treegram", about, EXAMPLES, arguments, usage="treegram COMMAND ... | --help | --version")
    parser.add_argument("command", nargs="?", metavar="COMMAND", help="one of the above")
    parser.add_argument("--version", action="version", version=f"treegram {__version__}", help="show the version")
    return parser


def _show_warning(
    program: str, options: dict[str, argparse.Action], shown: set[str], message: Warning | str, *_where: object
) -> None:
    """Print a warning once, on one line, without its location in the code."""
    line = f"{program}: warning: {as_options(str(message), options)}"
    if line not in shown:
        shown.add(line)
        print(line, file=sys.stderr)


def _text(error: Exception) -> str:
    """Return the message without error numbers."""
    if isinstance(error, MemoryError):
        return f"not enough memory. {error}"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__
