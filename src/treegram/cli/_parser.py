"""An argument parser with errors of one line, and the options that several commands share."""

from __future__ import annotations

import argparse
import contextlib
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from treegram._core.files import check_writable
from treegram._core.text import suggest

__all__ = ["Parser", "add_jobs", "add_output", "at_least", "check_output"]


class Parser(argparse.ArgumentParser):
    """A parser without abbreviations that suggests the closest option; use :meth:`read` instead of ``parse_args``."""

    def __init__(self, prog: str, about: str, examples: Sequence[str], usage: str | None = None, **kwargs: Any) -> None:
        lines = "\n".join(f"  {example}" for example in examples)
        super().__init__(
            prog=prog,
            usage=usage,
            description=about[:1].upper() + about[1:] + ("" if "\n" in about else "."),
            epilog=f"example{'s' if len(examples) > 1 else ''}:\n{lines}",
            formatter_class=functools.partial(argparse.RawDescriptionHelpFormatter, max_help_position=28),
            allow_abbrev=False,
            **kwargs,
        )
        self.explain_unknown: Callable[[str], str] = lambda _: (
            ""
        )  # why this command does not have an option, if there is a reason
        self.checks: list[Callable[[Parser, argparse.Namespace], None]] = []  # what else must hold of the arguments

    def read(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse the arguments; report unknown options before missing ones."""
        self._check_options(arguments)
        known, rest = self.parse_known_args(arguments)
        if rest:
            self.error(f"unexpected argument {rest[0]!r}")
        for check in self.checks:
            check(self, known)
        return known

    def error(self, message: str) -> NoReturn:
        """Exit with code 2 and one line on stderr."""
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")

    def _check_options(self, arguments: Sequence[str]) -> None:
        """Refuse unknown options, and options with one value that occur twice."""
        known = self._option_string_actions
        used = set()
        for argument in arguments:
            option = argument.partition("=")[0]
            if argument == "--":
                return
            if option in known:
                action = known[option]
                if action in used and action.nargs != 0 and not isinstance(action, argparse._AppendAction):
                    self.error(f"{option} takes one value, but is given more than once")
                used.add(action)
            elif option.startswith("--"):
                self.error(f"unknown option {option}{self.explain_unknown(option) or suggest(option, known)}")


def at_least(least: float, kind: type[int] | type[float] = int) -> Callable[[str], Any]:
    """Return an argparse type for numbers of at least this size."""

    def read(text: str) -> float:
        with contextlib.suppress(ValueError):
            if (value := kind(text)) >= least:
                return value
        name = "whole number" if kind is int else "number"
        raise argparse.ArgumentTypeError(f"expected a {name} of at least {least}, got {text!r}")

    return read


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add ``--jobs``, which never changes results."""
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=lambda text: -1 if text == "-1" else at_least(1)(text),
        default=-1,
        help="number of threads (default: -1, all)",
    )


def add_output(parser: argparse.ArgumentParser, contents: str, *, required: bool = True) -> None:
    """Add ``-o`` and ``--force``; the help of ``-o`` describes the contents of the file."""
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, required=required, help=contents)
    parser.add_argument("--force", action="store_true", help="replace an existing file")


def check_output(path: Path, *, force: bool) -> None:
    """Raise an error if the file cannot be written, or exists and is not to be replaced."""
    check_writable(path)
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists already; use --force to replace it, or another name.")
