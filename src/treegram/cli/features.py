"""``treegram features``: compute explicit features of a data set, one row per graph, and save them."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import treegram
from treegram.cli._data import add_data_argument, load_data
from treegram.cli._kernels import add_kernel_options, kernel_class, parameter_values
from treegram.cli._parser import Parser, add_jobs, add_output, check_output
from treegram.cli.gram import save_arrays

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = (
    "treegram features ENZYMES --depth 2 -o Z.npz",
    "treegram features PROTEINS --n-features none -o exact.npz",
    "treegram features MUTAG --kernel wl --n-iterations 3 -o colors.npz",
)


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:
    """Add the arguments of the command, with the options of the kernel that the arguments name."""
    add_data_argument(parser)
    add_output(
        parser,
        "a .npz file with a sparse matrix for scipy.sparse.load_npz, and graph_ids, y and meta (JSON: parameters, estimated error, "
        "versions) for numpy.load",
    )
    add_jobs(parser)
    text = "oddcl, whose features are those of ODDCLFeatures, or a kernel with explicit features, such as wl or oddst"
    add_kernel_options(parser, arguments, text, default="oddcl", estimator=_estimator)


def run(args: argparse.Namespace) -> None:
    """Compute and save; check all that can be checked before the computation."""
    import numpy as np
    import scipy.sparse as sp

    if args.output.suffix != ".npz":
        raise ValueError(f"The output must end in .npz; got {str(args.output)!r}.")
    check_output(args.output, force=args.force)
    values = parameter_values(args, _estimator(args.kernel))
    if several := [name for name, given in values.items() if len(given) > 1]:
        raise ValueError(f"treegram features takes one value of each parameter; got several for {', '.join(several)}.")
    estimator = _estimator(args.kernel)(**{name: given[0] for name, given in values.items()}, n_jobs=args.jobs)
    features = estimator if args.kernel == "oddcl" else treegram.FeatureMap(estimator)
    graphs, y = load_data(args.data, args)
    start = time.perf_counter()
    Z = sp.csr_matrix(features.fit_transform(graphs))
    arrays = {
        "format": np.array(b"csr"),  # the first five as scipy.sparse.save_npz writes them
        "shape": np.array(Z.shape),
        "data": Z.data,
        "indices": Z.indices,
        "indptr": Z.indptr,
        "graph_ids": np.arange(len(graphs)),
        "y": y,
    }
    meta = {"parameters": estimator.get_params(), "contents": repr(graphs)}
    contents = f"{Z.shape[0]} x {Z.shape[1]} features of {args.data}"
    save_arrays(args, arrays, features, meta, contents, time.perf_counter() - start)


def _estimator(name: str) -> type[Any]:
    return treegram.ODDCLFeatures if name == "oddcl" else kernel_class(name)
