"""Work that cannot fit in memory raises before it starts, and names the graph and the number of bytes."""

import numpy as np
import pytest

from treegram import (
    CSM,
    GIK,
    WL,
    FeatureMap,
    GraphHopper,
    Graphs,
    Nystroem,
    ODDCLApprox,
    ShortestPath,
)
from treegram._core import machine

SMALL = [(0, 1), (1, 2)]
PATH = [(i, i + 1) for i in range(299)]
STAR = [(0, i) for i in range(1, 600)]


def collection(edges, n):
    """Return a collection in which graph 1 is large."""
    attributes = [np.arange(3.0)[:, None], np.arange(float(n))[:, None]]
    return Graphs.from_edges([SMALL, edges], attributes=attributes)


@pytest.fixture(autouse=True)
def little_memory(monkeypatch):
    monkeypatch.setattr(machine, "SMALL", 1 << 10)
    monkeypatch.setattr(machine, "available_bytes", lambda: float(1 << 20))


@pytest.mark.parametrize(
    ("kernel", "edges", "n", "what"),
    [
        (GraphHopper(), PATH, 300, "positions"),
        (ShortestPath(), STAR, 600, "distances"),
        (GIK(radius=2), STAR, 600, "balls"),
        (CSM(5), STAR, 600, "matchings"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_graph_that_does_not_fit_is_named(kernel, edges, n, what):
    with pytest.raises(MemoryError, match=rf"Graph 1: .*{what}.* would take [0-9.]+ [MG]iB of memory"):
        kernel.fit(collection(edges, n))


def test_failed_allocation_says_what_it_was_for(monkeypatch):
    monkeypatch.setattr(machine, "available_bytes", lambda: float("inf"))
    with pytest.raises(
        MemoryError, match=r"Graph 7: its trees would take 4.29e\+09 GiB of memory, more than can be had"
    ):
        machine.allocate((1 << 59,), np.float64, "Graph 7: its trees")


@pytest.mark.parametrize(
    "transformer",
    [
        FeatureMap(ODDCLApprox(1, method="rff", n_components=64), n_features=1 << 18),
        FeatureMap(ODDCLApprox(1, method="rff", n_components=1 << 12), n_features=None),
        FeatureMap(WL(n_iterations=3), sparse_output=False),
        Nystroem(WL(), 300),
    ],
    ids=["hashed", "spread", "dense", "landmarks"],
)
def test_rows_that_do_not_fit_raise_with_alternatives(transformer):
    rng = np.random.default_rng(0)
    graphs = Graphs.from_edges(
        [PATH[:9]] * 300, labels=rng.integers(0, 20, (300, 10)).tolist(), attributes=list(rng.normal(size=(300, 10, 1)))
    )
    with pytest.raises(
        MemoryError, match=r"Rows of features for .* would take [0-9.]+ [MG]iB .* are free. Compute them chunk by chunk"
    ):
        transformer.fit_transform(graphs)


def test_error_suggests_other_kernels():
    with pytest.raises(MemoryError, match=r"1 MiB are free. Leave such graphs out, .* such as WL or ODDCL"):
        GraphHopper().fit(collection(PATH, 300))
