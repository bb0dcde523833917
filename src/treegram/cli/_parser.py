"""An argument parser with one-line errors, and the options that several commands share."""

from __future__ import annotations

import argparse
import contextlib
import csv
import functools
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn

from treegram._core.files import check_writable, replacing
from treegram._core.text import suggest, visible

# What Python's messages advise, and the option that does it.
_ADVICE = {
    "on_error='skip'": "--skip-invalid",
    "missing='skip'": "--skip-invalid",
    "descriptors='rdkit2d'": "--descriptors",
    "GraphRegressor, GraphRidge or GraphGP": "--task regression",
    "GraphClassifier or GraphSVC": "--task classification",
    "ScaleAttributes": "--scale standard",
    "use WLCL, ODDCL or another": "use --kernel wlcl, --kernel oddcl or another",
    "use WL or ODDST": "use --kernel wl or --kernel oddst",
    "use WL, WLCL or ODDCL with": "use --kernel wl, wlcl or oddcl with",
}
_FORMULA = re.compile(r"[=+@-](?![\d.]*$)")  # how a cell begins that a spreadsheet would compute; not "-1" and "+"
SPELLED = {"True": "yes", "False": "no", "None": "none"}  # values on the command line
_OPTION_NAMES = {"cv": "folds", "n_jobs": "jobs", "source": "edge-from"}  # of parameters with another name
_SETTING = re.compile(r"""(?<![\w'"./-])([a-z]+(?:_[a-z]+)*)(?:=('[^']*'|[\w.+-]*\w))?(?![\w'"/=(]|\.\w| = )""")


class Parser(argparse.ArgumentParser):
    """A parser of some arguments, without abbreviations, that suggests the closest option; :meth:`read` replaces ``parse_args``.

    Which options there are may depend on the arguments.
    """

    def __init__(
        self, prog: str, about: str, examples: Sequence[str], arguments: Sequence[str] = (), **kwargs: Any
    ) -> None:
        lines = "\n".join(f"  {example}" for example in examples)
        super().__init__(
            prog=prog,
            description=about[:1].upper() + about[1:] + ("" if "\n" in about else "."),
            epilog=f"example{'s' if len(examples) > 1 else ''}:\n{lines}",
            formatter_class=functools.partial(argparse.RawDescriptionHelpFormatter, max_help_position=28),
            allow_abbrev=False,
            **kwargs,
        )
        self.arguments = arguments
        self.explain_unknown: Callable[[str], str] = lambda _: ""  # why this command lacks an option

    def format_help(self) -> str:
        """Return the help; its first line names only what must be given."""
        required = [action for action in self._actions if action.required and action.option_strings]
        words = [str(action.metavar or action.dest) for action in self._get_positional_actions()]
        words += [f"{action.option_strings[0]} {action.metavar}" for action in required]
        self.usage = self.usage or " ".join([self.prog, *words, "[options]"])
        return super().format_help()

    def read(self) -> argparse.Namespace:
        """Parse the arguments; report unknown options before missing ones."""
        for argument in takewhile(lambda word: word != "--", self.arguments):
            option = argument.partition("=")[0]
            if option.startswith("--") and option not in self._option_string_actions:
                hint = self.explain_unknown(option) or suggest(option, self._option_string_actions)
                self.error(f"unknown option {option}{hint}")
        args, unexpected = self.parse_known_args(self.arguments)
        if unexpected:
            self.error(f"unexpected argument {unexpected[0]!r}")
        return args

    def error(self, message: str) -> NoReturn:
        """Exit with code 2 and one line on stderr."""
        self.exit(2, f"{self.prog}: error: {one_line(message)} (see {self.prog} --help)\n")


# -------------------------------------------------------------------- messages


def one_line(text: str) -> str:
    """Return the text on one line, without characters that a terminal would obey."""
    return visible(" ".join(text.split()))


def show(text: str) -> None:
    """Print lines without characters that a terminal would obey: names in data and files are not to be trusted."""
    print("\n".join(map(visible, text.split("\n"))))


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as CSV; texts are quoted that a terminal would obey, or a spreadsheet would compute."""
    with io.StringIO() as file:
        csv.writer(file, lineterminator="\n").writerows(map(_harmless, row) for row in rows)
        return file.getvalue()


def _harmless(value: Any) -> Any:
    is_harmful = isinstance(value, str) and (not value.isprintable() or _FORMULA.match(value))
    return ascii(value) if is_harmful else value


def as_options(text: str, options: Mapping[str, argparse.Action]) -> str:
    """Return a message of the library on one line, with the options of a command in place of parameters.

    ``max_size=3`` becomes ``--max-size 3``; a name without a value is a parameter only if it has an underscore, or begins the
    message, as in "depth must be".
    """
    name, must, _ = text.partition(" must ")
    if must and f"--{name}" in options:
        text = f"--{text}"
    for advice, option in _ADVICE.items():
        if options.keys() & set(option.split()):
            text = text.replace(advice, option)

    def write(match: re.Match[str]) -> str:
        name, value = match.groups()
        option = "--" + _OPTION_NAMES.get(name, name.replace("_", "-"))
        opposite = option.replace("--", "--no-", 1)
        if value == "False" and opposite in options:
            return opposite
        if option not in options or (value is None and "_" not in name):
            return match[0]
        if value is None or (value == "True" and options[option].nargs == 0):
            return option
        return f"{option} {SPELLED.get(value, value.strip(chr(39)))}"

    return one_line(_SETTING.sub(write, text))


# -------------------------------------------------------------------- options of several commands


def at_least(least: int) -> Callable[[str], int]:
    """Return an argparse type for whole numbers of at least this size."""

    def read(text: str) -> int:
        with contextlib.suppress(ValueError):
            if (value := int(text)) >= least:
                return value
        raise argparse.ArgumentTypeError(f"expected a whole number of at least {least}, got {text!r}")

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


def check_output(path: Path | None, *, force: bool) -> None:
    """Raise an error if the file cannot be written, or exists and must not be replaced; None is stdout."""
    if path is None:
        return
    check_writable(path)
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists already; use --force to replace it, or another name.")


def write_output(text: str, path: Path | None, contents: str) -> None:
    """Write text into a file and say what it contains, or print it if there is no file."""
    if path is None:
        print(text, end="")
        return
    with replacing(path) as file:
        file.write(text.encode())
    show(f"{path}: {contents}")
