"""The command ``treegram``: which subcommands there are, and how each of them ends.

A subcommand is a module of this package with ``EXAMPLES`` (lines for its help), ``add_arguments(parser, arguments)`` and
``run(args)``. Its name and one line about it stand in ``COMMANDS``; only the module that is asked for is imported.
Results go to stdout, everything else to stderr. Exit codes: 0 fine, 2 wrong usage or bad input (one line that says
what), 130 stopped by Ctrl-C, 141 reader of a pipe gone, 1 a bug (with traceback). Python's development mode
(``PYTHONDEVMODE=1``) shows the traceback of bad input too.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from importlib import import_module

from treegram._core.errors import TreegramError
from treegram._core.progress import verbosely
from treegram._core.text import suggest
from treegram.cli._parser import Parser

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "gram": "compute the Gram matrix of a data set and save it",
    "features": "compute one row of explicit features per graph and save them",
    "fit": "choose and fit a model on a data set, and save it",
    "predict": "predict new graphs by a saved model",
    "explain": "make a page that shows which nodes made the predictions of a saved model",
    "evaluate": "compare kernels on your data by nested cross-validation",
    "reproduce": "run a study, by default the paper's whole experiment; resumes where it was stopped",
    "report": "make a page with tables, statistics and plots from the results of a study",
    "info": "tell what a data set holds, and what is odd about it",
    "warm": "compile all that later runs will need",
    "demo": "load, compute, cross-validate, draw: the main job on bundled data",
}
EXAMPLES = ("treegram info ENZYMES", "treegram gram ENZYMES --kernel oddcl --depth 3 -o K.npz")


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
    try:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = partial(_tell_warning, _program(arguments), set())
                _dispatch(arguments)
        finally:
            sys.stdout.flush()
    except SystemExit as end:  # how argparse ends after --help or an error
        return end.code if isinstance(end.code, int) else 0
    except BrokenPipeError:
        _silence_stdout()
        return 141
    except KeyboardInterrupt:
        return _stop()
    except (TreegramError, ValueError, OSError, MemoryError, ImportError) as error:
        if _comes_of_interrupt(error):
            return _stop()
        if sys.flags.dev_mode:
            raise
        print(f"{_program(arguments)}: error: {_one_line(error)}", file=sys.stderr)
        return 2
    return 0


def _stop() -> int:
    print("Stopped; nothing is left half-written.", file=sys.stderr)
    return 130


def _comes_of_interrupt(error: BaseException | None) -> bool:
    """Whether it stands for a Ctrl-C: one that comes while a compiled module is imported becomes an ImportError."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _dispatch(arguments: list[str]) -> None:
    top = _top_parser()
    name = top.read(arguments[:1]).command
    if name is None:
        top.print_help()
        return
    if name not in COMMANDS:
        top.error(f"unknown command {name!r} (there are {', '.join(COMMANDS)}){suggest(name, COMMANDS)}")
    module = import_module(f"treegram.cli.{name}")
    parser = Parser(f"treegram {name}", COMMANDS[name], module.EXAMPLES)
    module.add_arguments(parser, arguments[1:])
    parser.add_argument(
        "--verbose", action="store_true", help="without a terminal, write a line about progress to stderr now and then"
    )
    args = parser.read(arguments[1:])
    with verbosely(args.verbose):
        module.run(args)


def _top_parser() -> Parser:
    from treegram import __version__

    commands = "\n".join(f"  {name:11}{summary}" for name, summary in COMMANDS.items())
    about = (
        "exact, fast kernels for graphs whose nodes carry labels and real vectors.\n\n"
        f"commands (each has its own --help):\n{commands}"
    )
    parser = Parser("treegram", about, EXAMPLES, usage="treegram COMMAND ... | --help | --version")
    parser.add_argument("command", nargs="?", metavar="COMMAND", help="one of the above")
    parser.add_argument("--version", action="version", version=f"treegram {__version__}", help="show the version")
    return parser


def _program(arguments: list[str]) -> str:
    return " ".join(["treegram", *arguments[:1]])


def _tell_warning(program: str, told: set[str], message: Warning | str, *_where: object) -> None:
    """Say it in one line, without the place in the code, and once."""
    line = f"{program}: warning: {' '.join(str(message).split())}"
    if line not in told:
        told.add(line)
        print(line, file=sys.stderr)


def _one_line(error: Exception) -> str:
    """What went wrong, without line breaks and without error numbers."""
    if isinstance(error, MemoryError):
        return " ".join(["not enough memory.", *str(error).split()])
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(str(error).split()) or type(error).__name__


def _silence_stdout() -> None:
    """Let what is still to be flushed go nowhere, so that Python does not complain at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
