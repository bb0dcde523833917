"""``treegram gram``: compute the Gram matrix of a data set and save it."""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from typing import Any

import treegram
from treegram._core.files import check_space
from treegram.cli._data import add_data_argument, load_data
from treegram.cli._kernels import (
    NAMES,
    add_kernel_options,
    add_kernel_parameters,
    kernel_class,
    kernel_in,
    read_values,
    set_parameters,
)
from treegram.cli._output import write_arrays
from treegram.cli._parser import Parser, add_jobs, add_output, check_output

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = (
    "treegram gram ENZYMES --kernel oddcl --depth 3 --lam 1.2 -o K.npz",
    "treegram gram ENZYMES --grid depth=0,1,2,3 --grid lam=0.5,1,1.2 -o grid.npz",
    "treegram gram ENZYMES --compare-with ./new -o rows.npz",
    "treegram gram ./large -o K.zarr",
    "treegram gram --kernel oddst --help",
)


def add_arguments(parser: Parser, arguments: list[str]) -> None:
    """Add the arguments of the command, with the options of the kernel that the arguments name."""
    add_data_argument(parser)
    add_output(
        parser,
        "a .npz file holds the matrix K, graph_ids, y and meta (JSON: kernel, parameters, versions); a folder .zarr holds a matrix "
        "larger than memory, and a stopped run resumes",
    )
    parser.add_argument(
        "--dtype",
        choices=("float64", "float32"),
        default="float64",
        help="precision of the saved matrix (default: float64)",
    )
    add_jobs(parser)
    add_kernel_options(parser, NAMES, ", ".join(NAMES))
    parser.add_argument(
        "--compare-with",
        metavar="NEW",
        help="fit the kernel on DATA, and compare the graphs of NEW (rows, graph_ids, y) with those of DATA (columns, fitted_ids, "
        "fitted_y)",
    )
    name = kernel_in(arguments, NAMES, parser.prog)
    parser.add_argument(
        "--grid",
        metavar="NAME=VALUE,...",
        action="append",
        default=[],
        type=partial(read_values, name or "oddcl"),
        help="compute the matrices for all these values of a parameter; may be repeated: K has one leading axis for each",
    )
    if name is not None:
        add_kernel_parameters(parser, name, kernel_class(name))


def run(args: argparse.Namespace) -> None:
    """Compute and save; check all that can be checked before the computation."""
    grid = _grid(args)
    kernel = kernel_class(args.kernel)(**set_parameters(args, kernel_class(args.kernel)))
    if args.output.suffix == ".zarr":
        _write_zarr(args, kernel, grid)
    elif args.output.suffix == ".npz":
        _write_npz(args, kernel, grid)
    else:
        raise ValueError(f"The output must end in .npz or .zarr; got {str(args.output)!r}.")


def _write_npz(args: argparse.Namespace, kernel: Any, grid: dict[str, list[Any]]) -> None:
    import numpy as np

    check_output(args.output, force=args.force)
    graphs, y = load_data(args.data, args)
    new, y_new = load_data(args.compare_with, args) if args.compare_with else (graphs, y)
    check_space(args.output, 8 * len(graphs) * len(new) * int(np.prod([len(values) for values in grid.values()])))
    start = time.perf_counter()
    if args.compare_with:
        K = kernel.fit(graphs).transform(new)
    elif grid:
        grams = np.stack([gram for _, gram in kernel.gram_grid(graphs, grid)])
        K = grams.reshape(*(len(values) for values in grid.values()), *grams.shape[1:])
    else:
        K = kernel.fit_transform(graphs)
    arrays = {"K": K.astype(args.dtype, copy=False), "graph_ids": np.arange(len(new)), "y": y_new}
    arrays |= {name: np.array(values) for name, values in grid.items()}
    if args.compare_with:
        arrays |= {"fitted_ids": np.arange(len(graphs)), "fitted_y": y}
    meta = {
        "parameters": {key: value for key, value in kernel.get_params().items() if key not in grid},
        "grid": grid or None,
        "contents": repr(graphs),
        **({"compared_with": args.compare_with} if args.compare_with else {}),
    }
    write_arrays(args, arrays, kernel, meta, _contents(args, K.shape), time.perf_counter() - start)


def _write_zarr(args: argparse.Namespace, kernel: Any, grid: dict[str, list[Any]]) -> None:
    """Write a Zarr store block by block; it resumes where it stopped, so that it needs no --force."""
    if grid or args.compare_with:
        raise ValueError("A .zarr store holds one matrix: omit --grid and --compare-with, or write a .npz file.")
    graphs, _ = load_data(args.data, args)
    start = time.perf_counter()
    try:
        K = treegram.gram_to_zarr(kernel, graphs, args.output, dtype=args.dtype, n_jobs=args.jobs)
    except KeyboardInterrupt:
        print(f"Interrupted; finished blocks are in {args.output}. Run the same command to resume.", file=sys.stderr)
        raise SystemExit(130) from None
    print(f"{args.output}: {_contents(args, K.shape)}, {args.kernel}, {time.perf_counter() - start:.2f} s")


def _contents(args: argparse.Namespace, shape: tuple[int, ...]) -> str:
    name = f"{args.compare_with} compared with {args.data}" if args.compare_with else args.data
    return f"{' x '.join(map(str, shape))} Gram matrix of {name}"


def _grid(args: argparse.Namespace) -> dict[str, list[Any]]:
    grid: dict[str, list[Any]] = {}
    for parameter, values in args.grid:
        if parameter in grid:
            raise ValueError(f"--grid {parameter}=... is given twice; give all its values at once.")
        if parameter in vars(args):
            flag = "--" + parameter.replace("_", "-")
            raise ValueError(f"{flag} and --grid {parameter}=... cannot be combined; give one of them.")
        grid[parameter] = values
    if grid and args.compare_with:
        raise ValueError("--grid and --compare-with cannot be combined; give one of them.")
    return grid
