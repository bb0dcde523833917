"""``treegram completion``: print a script that completes commands and options in a shell."""

from __future__ import annotations

import argparse
from importlib import import_module

from treegram._core.optional import optional_module
from treegram.cli._parser import Parser

EXAMPLES = ("treegram completion bash > ~/.local/share/bash-completion/completions/treegram",)


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="the shell; needs shtab")


def run(args: argparse.Namespace) -> None:
    """Build one parser for all commands, and print the script that shtab makes from it."""
    from treegram.cli import COMMANDS

    shtab = optional_module("shtab", "Completion scripts")
    top = Parser("treegram", "", ())
    commands = top.add_subparsers()
    for name, about in COMMANDS.items():  # with --help, which adds the options of no kernel
        command = commands.add_parser(name, about=about, examples=(), arguments=["--help"], help=about)
        import_module(f"treegram.cli.{name}").add_arguments(command)
    print(shtab.complete(top, args.shell))
