"""Work that cannot fit says so before it starts: which graph, how many bytes."""

import numpy as np
import pytest

from treegram import CSM, GIK, GraphHopper, Graphs, ShortestPath, _memory

SMALL = [(0, 1), (1, 2)]
PATH = [(i, i + 1) for i in range(299)]
STAR = [(0, i) for i in range(1, 600)]


def collection(edges, n):
    """The large graph is number 1."""
    attributes = [np.arange(3.0)[:, None], np.arange(float(n))[:, None]]
    return Graphs.from_edges([SMALL, edges], attributes=attributes)


@pytest.fixture(autouse=True)
def little_memory(monkeypatch):
    monkeypatch.setattr(_memory, "SMALL", 1 << 10)
    monkeypatch.setattr(_memory, "available_bytes", lambda: float(1 << 20))


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
def test_a_graph_that_does_not_fit_is_named(kernel, edges, n, what):
    with pytest.raises(MemoryError, match=rf"Graph 1: .*{what}.* would take [0-9.]+ [MG]iB of memory"):
        kernel.fit(collection(edges, n))


def test_an_allocation_that_fails_says_what_it_was_for(monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: float("inf"))
    with pytest.raises(
        MemoryError, match=r"Graph 7: its trees would take 4.29e\+09 GiB of memory, more than can be had"
    ):
        _memory.allocate((1 << 59,), np.float64, "Graph 7: its trees")
