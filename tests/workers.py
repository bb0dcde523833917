"""Dask clusters of processes for tests."""

import contextlib

from distributed import Client, LocalCluster


@contextlib.contextmanager
def new_client(n_workers=2, **options):
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0", **options
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client
