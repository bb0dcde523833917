"""``treegram features``: a data set in, a file with one row of explicit features per graph out.

The file is what ``scipy.sparse.load_npz`` reads, with ``y``, ``graph_ids`` and ``meta`` beside the matrix. Rows go to
disk as they are computed, so that a data set read in chunks needs the memory of a chunk.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from treegram import DatasetError, Graphs, ODDCLFeatures, ParquetChunks, TUChunks, embed_chunks, features_to_shards
from treegram._core.files import check_space, replacing
from treegram._core.params import Whole
from treegram._core.progress import track
from treegram.cli._cluster import add_cluster_arguments, on_cluster
from treegram.cli._data import BUILT_IN, add_data_arguments, load_data
from treegram.cli._gram_file import check_target
from treegram.cli._kernels import add_options, given_parameters, read_word
from treegram.cli._molecules import is_molecule_file
from treegram.cli._output import add_output_arguments, approximation, approximation_text, provenance, shape_text
from treegram.cli._parser import Parser
from treegram.datasets.tu import find_folder

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = (
    "treegram features ENZYMES --depth 2 --random-state 0 -o Z.npz",
    "treegram features PROTEINS --n-features none -o exact.npz",
    "treegram features ./large --chunk 10000 --random-state 0 -o Z.shards --workers 4",
    "treegram features ./large --chunk 1000 --method orf --n-components 64 --random-state 0 -o Z.npz",
)

Chunks = TUChunks | ParquetChunks | Sequence[Graphs]
SHARD = 1000  # graphs in a file, where the user does not say


def add_arguments(parser: Parser, arguments: list[str]) -> None:  # noqa: ARG001 (what every command is given)
    """The arguments of the command, with the parameters of ODDCLFeatures as options."""
    add_data_arguments(parser)
    add_output_arguments(
        parser,
        ".npz holds the sparse matrix of the rows for scipy.sparse.load_npz, and graph_ids, y and meta "
        "(JSON: parameters, estimated error, versions) for numpy.load; a folder .shards holds one file for each chunk, for treegram.Shards",
    )
    add_cluster_arguments(parser)
    parser.add_argument(
        "--chunk",
        metavar="N",
        type=partial(read_word, (Whole(1),)),
        help="read N graphs at a time, so that memory is that of N graphs; methods that look at the data, and the estimate "
        "of the error, see some N from all over the files (default: all at once, or 1000 for shards)",
    )
    parser.elsewhere["--kernel"] = ": features are those of the kernel oddcl; treegram gram has other kernels"
    add_options(parser, ODDCLFeatures, "options of the features")


def run(args: argparse.Namespace) -> None:
    """Compute and save; all that can be checked is checked before the computation."""
    features = ODDCLFeatures(**given_parameters(args, ODDCLFeatures))
    if (args.chunk or args.output.suffix == ".shards") and features.n_features is None:
        raise ValueError(
            "--n-features none needs all graphs at once: without hashing there is one column for each tree of all graphs, which no "
            "chunk knows. Give a number of columns, or leave out --chunk and write a .npz file."
        )
    if args.output.suffix == ".shards":
        _write_shards(args, features)
    elif args.output.suffix != ".npz":
        raise ValueError(f"The output file must end in .npz or .shards; got {str(args.output)!r}.")
    elif args.workers is not None or args.scheduler is not None:
        raise ValueError("--workers and --scheduler write a folder of shards: choose a name that ends in .shards.")
    else:
        check_target(args.output, overwrite=args.force)
        _write_file(args, features)


def _write_file(args: argparse.Namespace, features: ODDCLFeatures) -> None:
    samples, chunks = _open(args)
    folder = args.output.parent
    with tempfile.TemporaryFile(dir=folder) as values, tempfile.TemporaryFile(dir=folder) as columns:
        start = time.perf_counter()
        made = _fit(features, samples)
        arrays = _compute(args, features, chunks, values, columns)
        seconds = time.perf_counter() - start
        meta = {**_meta(args, features), **made, **provenance(args.data, seconds)}
        with replacing(args.output) as file:
            np.savez(file, **arrays, meta=np.array(json.dumps(meta)))
    _print(args, arrays["shape"], made, seconds)


def _write_shards(args: argparse.Namespace, features: ODDCLFeatures) -> None:
    """A folder with a file for each chunk, written by any workers; it goes on where it was stopped, and needs no --force."""
    args.chunk = args.chunk or SHARD
    samples, chunks = _open(args)
    start = time.perf_counter()
    made = _fit(features, samples)
    try:
        with on_cluster(args):
            features_to_shards(features, chunks, args.output, n_jobs=features.n_jobs)
    except KeyboardInterrupt:
        print(f"Stopped. Finished shards are in {args.output}; the same command goes on from there.", file=sys.stderr)
        raise SystemExit(130) from None
    _print(args, (_n_graphs(chunks), int(features.n_features_out_ or 0)), made, time.perf_counter() - start)


def _print(args: argparse.Namespace, shape: tuple[int, ...], made: dict[str, Any], seconds: float) -> None:
    print(f"{args.output}: {shape_text(shape)} features of {args.data}{approximation_text(made)}, {seconds:.2f} s")


# -------------------------------------------------------------------- graphs


def _open(args: argparse.Namespace) -> tuple[Iterator[Graphs], Chunks]:
    """Samples of the graphs, each a chunk's worth, and all graphs: one chunk without ``--chunk``.

    Files are often sorted, so that the first chunk is unlike the others: samples are from all over them.
    """
    chunks: Chunks
    samples: Iterator[Graphs]
    # What needs no file, and files of molecules, are in memory anyway, and cut into pieces there.
    if args.chunk is None or args.data in BUILT_IN or is_molecule_file(args.data):
        graphs = load_data(args)[0]
        size = args.chunk or max(len(graphs), 1)
        chunks = [graphs[first : first + size] for first in range(0, len(graphs), size)]
        samples = (graphs[first :: len(chunks)] for first in range(len(chunks)))
    else:
        is_file = args.data.endswith(".parquet")
        place = args.data if is_file else find_folder(args.data, args.data_dir, download=not args.no_download)
        stream = ParquetChunks if is_file else TUChunks
        chunks = stream(place, chunk_size=args.chunk)
        mixed = stream(place, chunk_size=args.chunk, shuffle=True, random_state=0)
        samples = iter(mixed if len(chunks) > 1 else chunks)
    if not len(chunks):
        raise DatasetError(f"{args.data} has no graph; there is nothing to compute.")
    return samples, chunks


def _fit(features: ODDCLFeatures, samples: Iterator[Graphs]) -> dict[str, Any]:
    """Fit on the first sample; what was made, with its error on the second one, which is new to it, if there is one."""
    sample = next(samples)
    made = {"n_fitted": len(sample), **approximation(features.fit(sample))}
    for new in islice(samples, 1):
        made["estimated_error"] = features.estimate_error(new)
    return made


def _n_graphs(chunks: Chunks) -> int:
    return sum(map(len, chunks)) if isinstance(chunks, Sequence) else chunks.n_graphs


# -------------------------------------------------------------------- rows


def _compute(
    args: argparse.Namespace, features: Any, chunks: Chunks, values: IO[bytes], columns: IO[bytes]
) -> dict[str, Any]:
    """The arrays of the output file; the two large ones lie in the two given files, and are mapped into memory."""
    n_graphs = _n_graphs(chunks)
    n_columns = features.n_features_out_
    index_type = np.dtype(np.int32 if n_columns <= np.iinfo(np.int32).max else np.int64)
    lengths: list[NDArray[Any]] = []
    targets: list[Any] = []
    n_done = 0
    for rows, y in track(embed_chunks(features, chunks), total=len(chunks), label="chunks"):
        sparse = sp.csr_matrix(rows)
        values.write(sparse.data)
        columns.write(sparse.indices.astype(index_type, copy=False))
        lengths.append(np.diff(sparse.indptr))
        targets.append(y)
        n_done += len(lengths[-1])
        _check_room(args, values.tell() + columns.tell(), n_done, n_graphs)
    return {
        "format": np.array(b"csr"),  # the first five as scipy.sparse.save_npz writes them
        "shape": (n_graphs, n_columns),
        "data": _mapped(values, np.dtype(np.float64)),
        "indices": _mapped(columns, index_type),
        "indptr": np.concatenate([[0], np.cumsum(np.concatenate(lengths), dtype=np.int64)]),
        "graph_ids": np.arange(n_graphs),
        **({} if targets[0] is None else {"y": np.concatenate(targets)}),
    }


def _check_room(args: argparse.Namespace, n_bytes: int, n_done: int, n_graphs: int) -> None:
    """Raise if the rest of the rows, as long as those so far, and then the file itself have no room on the disk."""
    whole = n_bytes * n_graphs // n_done
    check_space(args.output, 2 * whole - n_bytes)


def _mapped(file: IO[bytes], dtype: np.dtype[Any]) -> NDArray[Any]:
    """What was written to a file, as an array that is not read before it is used."""
    file.flush()
    length = file.tell() // dtype.itemsize
    return np.memmap(file, dtype, "r", shape=length) if length else np.empty(0, dtype)  # nothing cannot be mapped


# -------------------------------------------------------------------- what to tell


def _meta(args: argparse.Namespace, features: ODDCLFeatures) -> dict[str, Any]:
    """How the rows were made."""
    return {
        "features": type(features).__name__,
        "parameters": features.get_params(),
        "chunk": args.chunk,
    }
