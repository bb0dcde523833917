"""Commands on a cluster: one that runs already, or one of this machine that lives as long as the command."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import joblib

from treegram._params import Whole
from treegram.cli._kernels import read_word
from treegram.cli._parser import Parser
from treegram.errors import ClusterError

__all__ = ["add_cluster_arguments", "on_cluster"]

PATIENCE = 30  # seconds for a scheduler to answer


def add_cluster_arguments(parser: Parser) -> None:
    """Where to compute, if not in this process."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--workers",
        metavar="N",
        type=partial(read_word, (Whole(1),)),
        help="start a Dask cluster of N worker processes on this machine, and close it at the end",
    )
    where.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="compute on the Dask cluster whose scheduler has this address, such as tcp://10.0.0.1:8786",
    )


@contextlib.contextmanager
def on_cluster(args: argparse.Namespace) -> Iterator[None]:
    """Let joblib, and so all of treegram, use the workers that the arguments ask for; without any, this process."""
    if args.workers is None and args.scheduler is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError:
        raise ImportError("A cluster needs Dask: pip install 'treegram[cluster]'.") from None
    with contextlib.ExitStack() as stack:
        address = args.scheduler if args.workers is None else stack.enter_context(_local_cluster(args.workers))
        try:
            client = stack.enter_context(Client(address, timeout=PATIENCE))
        except (OSError, ValueError) as error:
            raise ClusterError(f"No Dask scheduler answers at {args.scheduler} ({error}). Is it running?") from error
        needs = "" if importlib.util.find_spec("bokeh") else " (its pages need: pip install bokeh)"
        print(f"{len(client.nthreads())} workers, dashboard: {client.dashboard_link}{needs}", file=sys.stderr)
        stack.enter_context(joblib.parallel_config(backend="dask", client=client))
        yield


def _local_cluster(n_workers: int) -> Any:
    from distributed import LocalCluster

    # A port that is free: another cluster may have the usual one.
    return LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0")
