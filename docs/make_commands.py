"""Write the page of the commands from their parsers, so that the page and ``treegram COMMAND --help`` say the same."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from treegram.cli import COMMANDS
from treegram.cli._parser import Parser

__all__ = ["commands_page", "write_commands"]

HEAD = """Commands
========

``treegram COMMAND --help`` prints what is here. Every command also takes ``--verbose``: where there is no terminal, it writes a line
about its progress now and then. Results go to stdout, everything else to stderr. The exit code is 0 if all is fine, 2 after wrong usage or bad input (with one line that says what is wrong), 130 after Ctrl-C (in the first hundredths of a second, while Python itself starts, Python ends it by the signal), and 1 after a bug.
"""


def commands_page() -> str:
    """The page as reStructuredText."""
    return "\n".join([HEAD, *(line for name in COMMANDS for line in _command(name))])


def write_commands(folder: Path) -> None:
    """Write the page into the folder of the documentation."""
    (folder / "commands.rst").write_text(commands_page(), encoding="utf-8")


def _command(name: str) -> Iterator[str]:
    """One section: what the command does, its arguments, and examples."""
    module = import_module(f"treegram.cli.{name}")
    parser = Parser(f"treegram {name}", COMMANDS[name], module.EXAMPLES)
    module.add_arguments(parser, [])
    title = f"treegram {name}"
    yield f"{title}\n{'-' * len(title)}\n\n{parser.description}\n\n.. code-block:: text\n"
    yield from (f"   {example}" for example in module.EXAMPLES)
    yield ""
    for group in parser._action_groups:
        actions = [action for action in group._group_actions if "--help" not in action.option_strings]
        if actions:
            yield f".. rubric:: {(group.title or '').capitalize()}\n"
            yield from (_argument(action) for action in actions)


def _argument(action: argparse.Action) -> str:
    """An argument and its help, as an entry of a definition list."""
    value = _value(action)
    names = [f"{option} {value}".strip() for option in action.option_strings] or [value]
    text = " ".join((action.help or "").replace("%%", "%").split())
    return f"{', '.join(f'``{name}``' for name in names)}\n   {_escaped(text)}\n"


def _value(action: argparse.Action) -> str:
    """What stands for the argument's value in its usage."""
    if action.nargs == 0:
        return ""
    if action.choices is not None and action.metavar is None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    name = str(action.metavar or action.dest)
    return f"{name} [{name} ...]" if action.nargs == "+" else name


def _escaped(text: str) -> str:
    """The text with what reStructuredText would take for markup, or for a link, as it is."""
    return re.sub(r"([*`|_\\]|(?<=\w):(?=//))", r"\\\1", text)
