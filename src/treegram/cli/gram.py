"""``treegram gram``: compute the Gram matrix of a data set and save it."""

from __future__ import annotations

import argparse
import json
import time
from datetime import UTC, datetime
from typing import Any

from treegram._core.files import check_space, replacing
from treegram.cli._data import add_data_argument, load, select_target
from treegram.cli._kernels import NAMES, add_kernel_options, kernel_class, parameter_values
from treegram.cli._parser import Parser, add_jobs, add_output, check_output, show

EXAMPLES = (
    "treegram gram ENZYMES --kernel oddcl --depth 3 --lam 1.2 -o K.npz",
    "treegram gram ENZYMES --depth 0,1,2,3 --lam 0.5,1,1.2 -o grid.npz",
    "treegram gram ENZYMES --compare-with ./new -o rows.npz",
    "treegram gram --kernel oddst --help",
)


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the command, with the options of the kernel that the arguments name."""
    add_data_argument(parser)
    add_output(
        parser,
        "a .npz file holds the matrix K (with a leading axis for each option that has several values), graph_ids, y and meta (JSON: "
        "kernel, parameters, versions)",
    )
    add_jobs(parser)
    parser.add_argument(
        "--compare-with",
        metavar="NEW",
        help="fit the kernel on DATA, and compare the graphs of NEW (rows, graph_ids, y) with those of DATA (columns, fitted_ids, "
        "fitted_y)",
    )
    add_kernel_options(parser, ", ".join(NAMES), default="oddcl")


def run(args: argparse.Namespace) -> None:
    """Compute and save; check everything possible before the computation."""
    import numpy as np

    from treegram._core.machine import package_versions

    if args.output.suffix != ".npz":
        raise ValueError(f"The output must end in .npz; got {str(args.output)!r}.")
    check_output(args.output, force=args.force)
    values = parameter_values(args, args.kernel)
    grid = {name: several for name, several in values.items() if len(several) > 1}
    fixed = {name: value for name, [value, *_] in values.items() if name not in grid}
    kernel = kernel_class(args.kernel)(**fixed, n_jobs=args.jobs)
    if grid and args.compare_with:
        raise ValueError(f"--compare-with takes one value of each parameter; got several for {', '.join(grid)}.")
    start = time.perf_counter()
    graphs, y, rows = _read(args.data, args)
    new, y_new, new_rows = _read(args.compare_with, args) if args.compare_with else (graphs, y, rows)
    shape = [len(several) for several in grid.values()]
    check_space(args.output, 8 * len(graphs) * len(new) * int(np.prod(shape)))
    arrays: dict[str, Any] = {"graph_ids": new_rows, "y": y_new}
    if args.compare_with:
        K = kernel.fit(graphs).transform(new)
        arrays |= {"fitted_ids": rows, "fitted_y": y}
    elif grid:
        K = np.stack([gram for _, gram in kernel.gram_grid(graphs, grid)]).reshape(*shape, len(graphs), len(graphs))
        arrays |= {name: np.array(several) for name, several in grid.items()}
    else:
        K = kernel.fit_transform(graphs)
    meta = {
        "kernel": args.kernel,
        "parameters": {key: value for key, value in kernel.get_params().items() if key not in grid},
        "grid": grid or None,
        "data": args.data,
        "compared_with": args.compare_with,
        "contents": repr(graphs),
        "versions": package_versions(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    present = {name: array for name, array in arrays.items() if array is not None}
    with replacing(args.output) as file:
        np.savez(file, K=K, **present, meta=np.array(json.dumps(meta)))
    data = f"{args.compare_with} compared with {args.data}" if args.compare_with else args.data
    matrix = f"{' x '.join(map(str, K.shape))} Gram matrix of {data}"
    show(f"{args.output}: {matrix}, {args.kernel}, {time.perf_counter() - start:.2f} s")


def _read(name: str, args: argparse.Namespace) -> tuple[Any, Any, Any]:
    """Return the graphs of DATA that have a target, if there is one, the targets, and the rows of DATA that they are."""
    table = load(name, args)
    graphs, y, ids = select_target(table)
    return graphs, y, table.kept[ids]
