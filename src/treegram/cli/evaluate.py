"""``treegram evaluate``: compare kernels on your data by nested cross-validation, as the paper does."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from treegram.cli._data import add_data_argument, data_words, has_real_targets, load_data, load_grouped
from treegram.cli._kernels import (
    AUTO,
    add_search_options,
    kernel_class,
    kernel_words,
    parameter_values,
    scales_of,
    users_of,
)
from treegram.cli._parser import Parser, at_least
from treegram.cli.reproduce import add_run_options, run_and_print
from treegram.study.protocol import CONTROLS, KernelSpec, Protocol, Study, StudyEntry

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = (
    "treegram evaluate ENZYMES --kernel oddcl --kernel wl --repeats 10",
    "treegram evaluate ./mine --kernel oddcl --repeats 1 --folds 5",
    "treegram evaluate ./energies --task regression --kernel wl",
    "treegram evaluate esol.csv --target logS --kernel auto --split scaffold",
    "treegram evaluate ./mine --kernel oddcl --scale raw,standard --gamma 0.01,scale",
)


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:
    """Add the arguments of the command."""
    add_data_argument(parser, several=True)
    models = "classification with support vector machines, or regression with kernel ridge regression"
    add_search_options(parser, arguments, "oddcl", models)
    parser.add_argument(
        "--min-class-size",
        metavar="N",
        type=at_least(1),
        default=1,
        help="leave out the graphs of classes with fewer than N (default: 1, none)",
    )
    controls = "; ".join(f"{name} ({meaning})" for name, meaning in CONTROLS.items())
    parser.add_argument(
        "--control", choices=CONTROLS, metavar="NAME", help=f"change the data, to see what scores depend on: {controls}"
    )
    split = parser.add_mutually_exclusive_group()
    split.add_argument(
        "--groups",
        metavar="COLUMN",
        help="keep graphs with the same value in this column together in the outer folds: all of them are trained or tested on",
    )
    split.add_argument(
        "--split",
        choices=["scaffold"],
        help="keep molecules with the same Bemis-Murcko scaffold together in the outer folds",
    )
    parser.add_argument(
        "--reseed",
        action="store_true",
        help="for kernels that draw random numbers: use the number of the repeat as random_state, so that means are over draws, too",
    )
    add_run_options(parser, repeats="10")


def run(args: argparse.Namespace) -> None:
    """Build a study and run it like any other."""
    kernels = list(dict.fromkeys(args.kernels or ["oddcl"]))
    scales = scales_of(args, kernels)
    reseeded = users_of("random_state") if args.reseed else []
    if args.reseed and not set(kernels) & set(reseeded):
        raise ValueError(f"--reseed has no effect on {', '.join(kernels)}; it is for --kernel {', '.join(reseeded)}.")
    # Stores and reports show the name of a data set, not its folder on this machine.
    sources = {_name(data): data for data in args.data}
    if len(sources) < len(args.data):
        raise ValueError(f"Data sets must have different names; got {', '.join(map(_name, args.data))}.")
    split = "groups" if args.groups else args.split or ""
    load = load_grouped if split else load_data
    data: dict[str, Any] = {name: load(source, args) for name, source in sources.items()}
    is_regression = args.task == "regression" if args.task else _is_regression(data)
    if is_regression and args.min_class_size > 1:
        raise ValueError("--min-class-size is for classification; the targets are numbers.")
    protocol = Protocol(
        repeats=args.repeats or 10,
        outer_folds=args.folds,
        inner_folds=args.folds,
        task="regression" if is_regression else "classification",
        min_class_size=args.min_class_size,
        control=args.control or "",
        split=split,
    )
    study = Study(
        name="-".join(filter(None, [*sources, args.control, split])),  # a control or split gets a store of its own
        title=f"Kernels on {', '.join(sources)}",
        datasets=tuple(sources),
        kernels=tuple(
            StudyEntry(name, tuple(_choices(name, scales[name], args)), reseed=name in reseeded) for name in kernels
        ),
        protocol=protocol,
    )
    run_and_print(study, study.scope(), data, args, _command(list(sources), kernels, protocol, args))


def _choices(name: str, scales: Sequence[str], args: argparse.Namespace) -> Iterator[KernelSpec]:
    """Yield what inner cross-validation chooses from: each scale with the values of the kernel's parameters."""
    if name == AUTO:
        yield KernelSpec(AUTO)
        return
    kernel = kernel_class(name)()
    grids: list[dict[str, Any]] = [{}]
    for key, values in parameter_values(args, kernel_class(name)).items():
        numbers = tuple(value for value in values if value is not None)
        if len(numbers) < len(values) and getattr(kernel, key) is not None:
            raise ValueError(f"A study has no word for {key}=None of {name}, which is not its default; leave it out.")
        # None, the default, is a choice of its own: a study has no word for it.
        options: list[dict[str, Any]] = ([{}] if len(numbers) < len(values) else []) + (
            [{key: numbers}] if numbers else []
        )
        grids = [grid | option for grid in grids for option in options]
    default = {key: tuple(values) for key, values in kernel.default_param_grid().items()}
    for scale in scales:
        for grid in grids:
            yield KernelSpec(name, {}, default | grid, () if scale == "raw" else (scale,))


def _is_regression(data: Mapping[str, Any]) -> bool:
    """Return True if the targets of all data sets that have any are numbers."""
    found = {name: has_real_targets(y) for name, (_, y, *_groups) in data.items() if y is not None}
    if len(set(found.values())) > 1:
        kinds = ", ".join(f"{name} has {'numbers' if real else 'classes'}" for name, real in found.items())
        raise ValueError(f"Classes and numbers cannot be compared in one table: {kinds}. Evaluate them one by one.")
    return any(found.values())


def _name(data: str) -> str:
    """Return the name of a data set, which is that of its folder."""
    path = Path(data)
    name = path.resolve().name if path.name in ("", "..") else path.name
    if not name.isprintable() or name != name.strip():
        raise ValueError(
            f"The name of the data set {name!r} cannot be shown in tables: it has characters that cannot be printed, or spaces at "
            "its ends. Rename the folder."
        )
    return name


def _command(names: Sequence[str], kernels: Sequence[str], protocol: Protocol, args: argparse.Namespace) -> str:
    """Return the command for the record of the run, without the folders of this machine."""
    words = ["treegram", "evaluate", *names]
    for kernel in kernels:
        words += ["--kernel", kernel]
    words += ["--folds", str(args.folds), "--repeats", str(protocol.repeats), *data_words(args)]
    words += ["--scale", ",".join(args.scale)] if args.scale else []
    words += kernel_words(args)
    words += ["--task", "regression"] if protocol.task == "regression" else []
    words += ["--min-class-size", str(args.min_class_size)] if args.min_class_size > 1 else []
    words += ["--control", args.control] if args.control else []
    words += ["--groups", args.groups] if args.groups else ["--split", args.split] if args.split else []
    words += ["--reseed"] if args.reseed else []
    return shlex.join(words)
