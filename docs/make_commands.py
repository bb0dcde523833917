"""Write the page of commands from their parsers, so that it agrees with ``treegram COMMAND --help``."""

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

``treegram COMMAND --help`` prints what is on this page. Every command that takes time also has ``--verbose``, which logs progress to stderr when it is not a
terminal. Commands that take DATA have all the options of DATA; those for one kind of input are listed under ``treegram info``. Results go to stdout, everything else to stderr. The exit code is 0 after success, 2 after wrong usage or bad input (with one line
that says what is wrong), 130 after Ctrl-C, and 1 after a bug.
"""


def commands_page() -> str:
    """Return the page as reStructuredText."""
    return "\n".join([HEAD, *(line for name in COMMANDS for line in _command(name))])


def write_commands(folder: Path) -> None:
    """Write the page into the folder of the documentation."""
    (folder / "commands.rst").write_text(commands_page(), encoding="utf-8")


def _command(name: str) -> Iterator[str]:
    """Yield the section of a command: a description, examples, and arguments."""
    module = import_module(f"treegram.cli.{name}")
    parser = Parser(f"treegram {name}", COMMANDS[name], module.EXAMPLES)
    module.add_arguments(parser)  # with the options of the default kernel
    title = f"treegram {name}"
    yield f"{title}\n{'-' * len(title)}\n\n{parser.description}\n\n.. code-block:: text\n"
    yield from (f"   {example}" for example in module.EXAMPLES)
    yield ""
    for group in parser._action_groups:
        actions = [
            action
            for action in group._group_actions
            if "--help" not in action.option_strings
        ]
        if actions:
            title = group.title or ""
            yield f".. rubric:: {title[:1].upper()}{title[1:]}\n"
            if group.description:
                yield f"{' '.join(group.description.split())}\n"
            yield from (_argument(action) for action in actions)


def _argument(action: argparse.Action) -> str:
    """Return an argument and its help as an entry of a definition list."""
    value = _value(action)
    names = [f"{option} {value}".strip() for option in action.option_strings] or [value]
    text = " ".join((action.help or "").replace("%%", "%").split())
    return f"{', '.join(f'``{name}``' for name in names)}\n   {_escaped(text)}\n"


def _value(action: argparse.Action) -> str:
    """Return the placeholder of an argument's value."""
    if action.nargs == 0:
        return ""
    if action.choices is not None and action.metavar is None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    name = str(action.metavar or action.dest)
    return f"{name} [{name} ...]" if action.nargs == "+" else name


def _escaped(text: str) -> str:
    """Escape the markup and links of reStructuredText."""
    return re.sub(r"([*`|_\\]|(?<=\w):(?=//))", r"\\\1", text)
