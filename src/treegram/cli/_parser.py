"""argparse with manners: no abbreviations, errors of one line, and the closest word for a mistyped one."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Sequence
from typing import NoReturn

from treegram._core.text import suggest

__all__ = ["Parser"]


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line each; use :meth:`read` instead of ``parse_args``."""

    def __init__(
        self, prog: str, about: str, examples: Sequence[str], usage: str | None = None, *, add_help: bool = True
    ) -> None:
        lines = "\n".join(f"  {example}" for example in examples)
        super().__init__(
            prog=prog,
            usage=usage,
            description=about[:1].upper() + about[1:] + ("" if "\n" in about else "."),
            epilog=f"example{'s' if len(examples) > 1 else ''}:\n{lines}",
            formatter_class=functools.partial(argparse.RawDescriptionHelpFormatter, max_help_position=28),
            add_help=add_help,
            allow_abbrev=False,
        )
        self.elsewhere: dict[str, str] = {}  # options that are not here, and where they are

    def read(self, arguments: Sequence[str]) -> argparse.Namespace:
        """The arguments as a namespace; mistyped options are named before missing ones."""
        self._refuse_unknown_options(arguments)
        known, rest = self.parse_known_args(arguments)
        if rest:
            self.error(f"unexpected argument {rest[0]!r}")
        return known

    def error(self, message: str) -> NoReturn:
        """Leave with exit code 2 and one line on stderr."""
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")

    def _refuse_unknown_options(self, arguments: Sequence[str]) -> None:
        known = self._option_string_actions
        for argument in arguments:
            option = argument.partition("=")[0]
            if argument == "--":
                return
            if option.startswith("--") and option not in known:
                self.error(f"unknown option {option}{self.elsewhere.get(option) or suggest(option, known)}")
