"""Commands on a cluster: one that runs already, or one of this machine that lives as long as the command."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import logging
import signal
import sys
from collections.abc import Iterator
from functools import partial
from multiprocessing import resource_tracker
from typing import Any

import joblib

from treegram._core.errors import ClusterError
from treegram._core.params import Whole
from treegram.cli._kernels import read_word
from treegram.cli._parser import Parser

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


@contextlib.contextmanager
def _local_cluster(n_workers: int) -> Iterator[Any]:
    """A cluster whose workers are about to start. A terminal sends Ctrl-C to them too, but it is for this process alone."""
    from distributed import LocalCluster

    with _ctrl_c_held_back():  # also from the threads that begin here, and from the workers that these start
        # A port that is free: another cluster may have the usual one.
        cluster = LocalCluster(
            n_workers=0, threads_per_worker=1, processes=True, memory_limit=1 / n_workers, dashboard_address=":0"
        )
    try:
        with cluster:
            try:
                cluster.scale(n_workers)
                cluster.wait_for_workers(n_workers)
                yield cluster
            except KeyboardInterrupt:
                logging.disable()  # Dask takes workers that end before they have started for errors
                raise
    finally:
        logging.disable(logging.NOTSET)


@contextlib.contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # as it starts, it lets signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
