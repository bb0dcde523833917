"""``treegram gram``: a data set and a kernel in, a file with the Gram matrix out."""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from typing import Any

import numpy as np

from treegram import Graphs, gram_to_zarr
from treegram._core.files import check_space
from treegram.cli._cluster import add_cluster_arguments, on_cluster
from treegram.cli._data import add_data_arguments, load_by_name, load_data
from treegram.cli._gram_file import check_target, write_gram
from treegram.cli._kernels import (
    KERNELS,
    add_kernel_options,
    given_parameters,
    kernel_name,
    read_list,
)
from treegram.cli._output import add_output_arguments, approximation, approximation_text, provenance, shape_text
from treegram.cli._parser import Parser

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = (
    "treegram gram ENZYMES --kernel oddcl --depth 3 --lam 1.2 --n-jobs 2 -o K.npz",
    "treegram gram ENZYMES --grid depth=0,1,2,3 --grid lam=0.5,1,1.2 -o grid.npz",
    "treegram gram ENZYMES --against ./new -o rows.npz",
    "treegram gram ./large -o K.zarr --workers 4",
    "treegram gram --kernel oddst --help",
)


def add_arguments(parser: Parser, arguments: list[str]) -> None:
    """The arguments of the command, with the options of the kernel that the arguments name."""
    add_data_arguments(parser)
    add_output_arguments(
        parser,
        ".npz holds the matrix K, graph_ids, y and meta (JSON: kernel, parameters, versions); "
        ".npy holds K, with a .json beside it; a folder .zarr holds matrices larger than memory, and continues where a stopped run was",
    )
    add_cluster_arguments(parser)
    # Which options there are depends on the kernel, so a first look at the arguments is for --kernel alone.
    chooser = Parser(parser.prog, "", (), add_help=False)
    for each in (chooser, parser):
        each.add_argument(
            "--kernel",
            metavar="NAME",
            type=kernel_name,
            default="oddcl",
            help=f"one of {', '.join(KERNELS)} (default: oddcl); each has its own options: treegram gram --kernel NAME --help",
        )
    parser.add_argument(
        "--against",
        metavar="NEW",
        help="another data set: fit the kernel on DATA, and compare each graph of NEW with each of DATA. Rows are those of NEW, as "
        "graph_ids and y; fitted_ids and fitted_y are of DATA",
    )
    name = chooser.parse_known_args(arguments)[0].kernel
    add_kernel_options(parser, name)
    at_once = KERNELS[name].one_pass
    parser.add_argument(
        "--grid",
        metavar="NAME=VALUE,VALUE,...",
        action="append",
        default=[],
        type=partial(read_list, name),
        help="all matrices for these values of a parameter; may be given several times, and K then has one leading axis for each"
        + (f" (one pass computes all values of {' and '.join(at_once)})" if at_once else ""),
    )


def run(args: argparse.Namespace) -> None:
    """Compute and save; all that can be checked is checked before the computation."""
    grid = _grid(args)
    kernel = KERNELS[args.kernel](**given_parameters(args, KERNELS[args.kernel]))
    if args.output.suffix == ".zarr":
        _write_store(args, kernel, grid)
    else:
        check_target(args.output, overwrite=args.force)
        _write_file(args, kernel, grid)


def _write_file(args: argparse.Namespace, kernel: Any, grid: dict[str, list[Any]]) -> None:
    graphs, y = load_data(args)
    new, y_new = (graphs, y) if args.against is None else load_by_name(args.against, args)
    check_space(args.output, 8 * len(graphs) * len(new) * int(np.prod([len(values) for values in grid.values()])))
    start = time.perf_counter()
    with on_cluster(args):
        if args.against is not None:
            K = kernel.fit(graphs).transform(new)
        else:
            K = kernel.gram_grid(graphs, **grid) if grid else kernel.fit_transform(graphs)
    seconds = time.perf_counter() - start
    arrays = {"K": K, "graph_ids": np.arange(len(new)), **{key: np.array(values) for key, values in grid.items()}}
    if y_new is not None:
        arrays["y"] = y_new
    if args.against is not None:
        arrays |= {"fitted_ids": np.arange(len(graphs)), **({} if y is None else {"fitted_y": y})}
    write_gram(args.output, arrays, _meta(args, kernel, grid, graphs, seconds))
    _print(args, K.shape, approximation_text(approximation(kernel)), seconds)


def _write_store(args: argparse.Namespace, kernel: Any, grid: dict[str, list[Any]]) -> None:
    """A Zarr store is written block by block, and goes on where it was stopped: it needs no --force."""
    if grid or args.against is not None:
        raise ValueError("A .zarr store holds one matrix: leave out --grid and --against, or choose a name with .npz.")
    graphs, _ = load_data(args)
    start = time.perf_counter()
    try:
        with on_cluster(args):
            K = gram_to_zarr(kernel, graphs, args.output, n_jobs=kernel.n_jobs)
    except KeyboardInterrupt:
        print(f"Stopped. Finished blocks are in {args.output}; the same command goes on from there.", file=sys.stderr)
        raise SystemExit(130) from None
    _print(args, K.shape, "", time.perf_counter() - start)


def _print(args: argparse.Namespace, shape: tuple[int, ...], made: str, seconds: float) -> None:
    of = args.data if args.against is None else f"{args.against} against {args.data}"
    print(f"{args.output}: {shape_text(shape)} Gram matrix of {of}, {args.kernel}{made}, {seconds:.2f} s")


def _grid(args: argparse.Namespace) -> dict[str, list[Any]]:
    """The lists of the grid; empty if none was asked for."""
    grid: dict[str, list[Any]] = {}
    for parameter, values in args.grid:
        if parameter in grid:
            raise ValueError(f"--grid {parameter}=... is given twice; give all its values at once.")
        if parameter in vars(args):
            flag = "--" + parameter.replace("_", "-")
            raise ValueError(f"{flag} and --grid {parameter}=... cannot be combined; give one of them.")
        grid[parameter] = values
    if grid and args.against is not None:
        raise ValueError("--grid and --against cannot be combined; give one of them.")
    return grid


def _meta(
    args: argparse.Namespace, kernel: Any, grid: dict[str, list[Any]], graphs: Graphs, seconds: float
) -> dict[str, Any]:
    """How the matrix was made."""
    return {
        "kernel": args.kernel,
        "parameters": {key: value for key, value in kernel.get_params().items() if key not in grid},
        "grid": grid or None,
        **approximation(kernel),
        "contents": repr(graphs),
        **({} if args.against is None else {"against": args.against}),
        **provenance(args.data, seconds),
    }
