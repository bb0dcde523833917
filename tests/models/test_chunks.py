"""Tests of automatic models that are fitted on chunks of graphs, read one after another or held by a Dask cluster."""

import contextlib
import os
import re
import signal
import tempfile
from functools import partial

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from treegram import (
    ODDCL,
    WL,
    WLCL,
    GraphClassifier,
    GraphRegressor,
    Graphs,
    ScaleAttributes,
    StatisticsKernel,
    load_digits_graphs,
    make_motifs,
)
from treegram.models import blocks, linear
from treegram.models import parts as parts_module


@pytest.fixture(scope="module")
def digits():
    graphs, y = load_digits_graphs()
    chosen = np.flatnonzero(y < 3)[:120]
    return graphs[chosen], y[chosen]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Use linear models from 30 graphs on, with small parts whose files are in this folder."""
    monkeypatch.setattr(linear, "SWITCH", 30)
    monkeypatch.setattr(parts_module, "PART", 40)
    monkeypatch.setattr(blocks, "_AT_ONCE", 17)
    monkeypatch.setattr(blocks, "_N_MAPPED", 64)
    monkeypatch.setattr(blocks, "_N_COMPONENTS", 16)
    monkeypatch.setattr(blocks, "_N_DRAWS", 8)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def chunked(graphs, y, size):
    """Yield chunks with the labels that their graphs have, some of them empty; they can be read once."""
    for start in range(0, len(y), size):
        yield graphs[start:start], y[:0].tolist()
        chunk = graphs[start : start + size]
        yield Graphs.concatenate([chunk[[i]] for i in range(len(chunk))]), y[start : start + size]


def assert_same_model(model, other, graphs, atol=0.0):
    np.testing.assert_allclose(
        model.loo_decisions_ if isinstance(model, GraphClassifier) else model.calibration_,
        other.loo_decisions_ if isinstance(other, GraphClassifier) else other.calibration_,
        rtol=0,
        atol=atol,
    )
    predict = "decision_function" if isinstance(model, GraphClassifier) else "predict"
    np.testing.assert_allclose(getattr(model, predict)(graphs), getattr(other, predict)(graphs), rtol=0, atol=atol)
    assert [block.name for block in model.blocks_] == [block.name for block in other.blocks_]
    np.testing.assert_allclose(model.weights_, other.weights_, atol=atol)


# -------------------------------------------------------------------- the same model


@pytest.mark.parametrize("size", [1, 17, 40, 100])
def test_classifier_on_chunks_is_the_one_on_all_graphs(size, digits, folder):
    graphs, y = digits
    kernels = [WL(2), make_pipeline(ScaleAttributes("robust"), ODDCL(1)), StatisticsKernel()]
    kernels = kernels if size == 17 else kernels[:1]
    whole = GraphClassifier(kernels).fit(graphs, y > 0)
    assert_same_model(GraphClassifier(kernels).fit(chunked(graphs, y > 0, size)), whole, graphs)
    assert not list(folder.iterdir())


@pytest.mark.parametrize("transform", ["auto", None])
def test_regressor_on_chunks_is_the_one_on_all_graphs(transform, digits, folder):
    graphs, _ = digits
    y = np.exp(np.array([graph.attributes[:, 2].mean() for graph in graphs]))
    whole = GraphRegressor(["wl"], target_transform=transform).fit(graphs, y)
    assert_same_model(GraphRegressor(["wl"], target_transform=transform).fit(chunked(graphs, y, 17)), whole, graphs)
    assert not list(folder.iterdir())


def test_few_chunks_give_the_model_of_few_graphs(digits, folder, monkeypatch):
    monkeypatch.setattr(linear, "SWITCH", 8000)
    graphs, y = digits
    whole, model = GraphClassifier(["wl"]).fit(graphs, y), GraphClassifier(["wl"]).fit(chunked(graphs, y, 17))
    np.testing.assert_array_equal(model.decision_function(graphs), whole.decision_function(graphs))
    assert hasattr(model, "kernels_")


def test_parts_are_cut_and_joined(digits, folder):
    graphs, _ = digits
    for sizes in ([120], [1] * 120, [39, 1, 41, 39], [80, 40], [100, 20], [40, 40, 40]):
        starts = np.cumsum([0, *sizes])
        pieces = [graphs[start : start + size] for start, size in zip(starts, sizes, strict=False)]
        parts = parts_module._keep_parts(parts_module.Local(), pieces)
        assert parts.sizes.tolist() == [40, 40, 40]
        assert Graphs.concatenate(parts.parts) == graphs
        ids = np.array([0, 39, 40, 119])
        assert parts.gather(ids) == graphs[ids]
        assert parts[ids].sizes.tolist() == [2, 1, 1]
        assert Graphs.concatenate(parts[ids].parts) == graphs[ids]


def test_sample_weights_are_in_the_order_of_the_chunks(digits, folder):
    graphs, y = digits
    rng = np.random.default_rng(0)
    # Graphs of weight 0 are taken out of parts, whose sizes then differ: sums are rounded differently.
    for choices, atol in (([0.5, 2.0], 0.0), ([0.0, 0.5, 2.0], 0.01)):
        weights = rng.choice(choices, size=len(y))
        for make, targets in ((GraphClassifier, y > 0), (partial(GraphRegressor, target_transform=None), 5.0 * y)):
            whole = make(["wl"]).fit(graphs, targets, sample_weight=weights)
            model = make(["wl"]).fit(chunked(graphs, targets, 17), sample_weight=weights)
            assert_same_model(model, whole, graphs, atol=atol)
            plain = make(["wl"]).fit(graphs, targets)
            assert np.abs(model.intercept_ - plain.intercept_).max() > atol
    with pytest.raises(ValueError, match="sample_weight must have one number for each of 120 graphs"):
        GraphClassifier(["wl"]).fit(chunked(graphs, y, 17), sample_weight=weights[1:])


def test_class_that_occurs_in_one_chunk_only(folder):
    graphs, y, _ = make_motifs(90, motifs=("house", "cycle", "clique"), random_state=0)
    order = np.argsort(y, kind="stable")
    graphs, y = graphs[order], np.array(["a", "bb", "ccc"])[y[order]]
    model = GraphClassifier(["wl"]).fit(chunked(graphs, y, 30))
    assert model.classes_.tolist() == ["a", "bb", "ccc"]
    assert_same_model(model, GraphClassifier(["wl"]).fit(graphs, y), graphs)


def test_labels_may_differ_between_chunks(folder):
    graphs, y, _ = make_motifs(80, random_state=0)
    first, second = graphs[:40], graphs[40:]
    first = first.assign(labels=(first.degrees % 3).tolist())
    second = second.assign(labels=[["c", "b", 2, 1, 0][degree % 5] for degree in second.degrees])
    together = Graphs.concatenate([first, second])
    model = GraphClassifier(["wl"]).fit([(first, y[:40]), (second, y[40:])])
    assert_same_model(model, GraphClassifier(["wl"]).fit(together, y), together)


# -------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda chunk, y: (chunk.assign(attributes=None), y), "part 0 has 2 attributes per node, part 1 has 0"),
        (lambda chunk, y: (chunk.assign(attributes=chunk.attributes[:, :1]), y), "part 1 has 1 attribute per node"),
        (lambda chunk, y: (chunk.assign(labels=None), y), "part 1 has no labels"),
        (lambda chunk, y: (Graphs.from_edges([[(0, 1)]] * 30, labels=["CC"] * 30), y), "part 1 has no edge labels"),
        (
            lambda chunk, y: (chunk.assign(attribute_names=("b", "a")), y),
            "part 1 has (the attributes b, a|2 attributes)",
        ),
        (lambda chunk, y: (chunk, y[1:]), "30 graphs, got 29 targets"),
        (lambda chunk, y: (chunk, [None, *y[1:]]), r"y\[0\] is None"),
        (lambda chunk, y: (chunk, np.stack([y, y], axis=1)), "one target for each graph"),
        (lambda chunk, y: ([object()], [1]), "X must be a Graphs collection"),
        (lambda chunk, y: chunk, "its item 3 is of type Graphs"),
        (lambda chunk, y: (chunk, y, y), "its item 3 is of type tuple"),
        (lambda chunk, y: (chunk, y.astype(str)), "numbers in chunk 0, and in chunk 3, counted from 0, '[01]'"),
    ],
)
def test_chunk_of_another_kind_is_named(change, message, folder):
    rng, y = np.random.default_rng(0), np.arange(90) % 2
    graphs = Graphs.from_edges(
        [[(0, 1), (1, 2)]] * 90,
        labels=[["C", "N", "C"]] * 90,
        attributes=rng.normal(size=(90, 3, 2)).tolist(),
        edge_labels=[["-", "="]] * 90,
        attribute_names=["a", "b"],
    )
    # A chunk without graphs is left out, but counts.
    chunks = [(graphs[:30], y[:30]), ([], []), (graphs[30:60], y[30:60]), change(graphs[60:], y[60:])]
    model = GraphClassifier(["wl"])
    with pytest.raises(ValueError, match=message) as caught:
        model.fit(iter(chunks))
    said = " ".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert re.search(r"\b(chunk|item) 3\b", said), said
    assert vars(model) == model.get_params(deep=False)
    assert not list(folder.iterdir())


@pytest.mark.parametrize("chunks", [[], iter([]), [([], [])] * 3, None, 5, "chunks"])
def test_nothing_to_fit(chunks, folder):
    with pytest.raises(ValueError, match=r"X has no graphs: it must give chunks|y is missing: give one target"):
        GraphRegressor(["wl"]).fit(chunks)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_failure_leaves_the_model_and_no_files(error, digits, folder, monkeypatch):
    """Raise while chunks are read, while rows are computed, and in the solver."""
    graphs, y = digits
    model = GraphClassifier(["wl"]).fit(graphs, y)
    before, n_files = dict(vars(model)), []

    def failing():
        yield graphs[:60], y[:60]
        n_files.append(len(list(folder.rglob("*"))))
        raise error

    def fail(*_, **__):
        n_files.append(len(list(folder.rglob("*"))))
        raise error

    with pytest.raises(error):
        model.fit(failing())
    for module, name in ((linear, "fit_block"), (linear, "_newton_step")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, fail)
            with pytest.raises(error):
                model.fit(chunked(graphs, y, 17))
    assert min(n_files) > 0
    assert vars(model) == before
    assert not list(folder.iterdir())


def test_rows_in_files_give_the_same_model_and_go_with_it(digits, folder, monkeypatch):
    graphs, y = digits
    whole = GraphClassifier(["wl"]).fit(graphs, y)
    monkeypatch.setattr(parts_module, "IN_MEMORY", 50)
    step, n_files = linear._newton_step, []

    def count_files(*args, **options):
        n_files.append(len(list(folder.rglob("*"))))
        return step(*args, **options)

    monkeypatch.setattr(linear, "_newton_step", count_files)
    assert_same_model(GraphClassifier(["wl"]).fit(graphs, y), whole, graphs)
    assert min(n_files) > 0
    assert not list(folder.iterdir())

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(linear, "_newton_step", stop)
    with pytest.raises(KeyboardInterrupt):
        GraphClassifier(["wl"]).fit(graphs, y)
    assert not list(folder.iterdir())


def test_progress_is_shown(digits, folder, capsys):
    graphs, y = digits
    GraphClassifier(["wl"], verbose=1).fit(chunked(graphs, y, 17))
    assert "WL: 120 rows, " in capsys.readouterr().out


# -------------------------------------------------------------------- a cluster


def delayed(graphs, y, size):
    dask = pytest.importorskip("dask")
    starts = range(0, len(y), size)
    chunks = [(graphs[start : start + size], y[start : start + size]) for start in starts]
    return [dask.delayed(chunk, traverse=False) for chunk in [*chunks, (graphs[:0], [])]]


def test_delayed_chunks_without_a_cluster(digits, folder):
    graphs, y = digits
    model = GraphClassifier(["wl"]).fit(delayed(graphs, y, 17))
    assert_same_model(model, GraphClassifier(["wl"]).fit(graphs, y), graphs)


@contextlib.contextmanager
def killing(client, n_calls, monkeypatch):
    """Kill a worker before one of the steps of the solver."""
    step, calls = linear._newton_step, []

    def step_or_kill(*args, **options):
        calls.append(0)
        if len(calls) == n_calls:
            os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)
        return step(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(linear, "_newton_step", step_or_kill)
        yield
    assert len(calls) > n_calls


@contextlib.contextmanager
def time_limit(seconds):
    def stop(*_):
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
def test_cluster_gives_the_same_model_also_if_a_worker_is_killed(digits, folder, monkeypatch):
    pytest.importorskip("distributed")
    from workers import new_client

    monkeypatch.setattr(blocks, "_AT_ONCE", 8192)  # as on the workers
    graphs, y = digits[0], digits[1] > 0
    kernels = [WL(2), make_pipeline(ScaleAttributes("robust"), WLCL(0))]
    whole = GraphClassifier(kernels).fit(graphs, y)
    numbers = np.exp(np.array([graph.attributes[:, 2].mean() for graph in graphs]))
    with time_limit(400), new_client() as client:
        assert_same_model(GraphClassifier(kernels).fit(delayed(graphs, y, 40)), whole, graphs, atol=1e-9)
        other = GraphClassifier(kernels).fit(client.compute(delayed(graphs, y, 17)))
        assert_same_model(other, whole, graphs, atol=1e-9)
        with killing(client, 3, monkeypatch):
            model = GraphClassifier(kernels).fit(delayed(graphs, y, 40))
        assert_same_model(model, whole, graphs, atol=1e-9)
        regressor = GraphRegressor(["wl"]).fit(delayed(graphs, numbers, 40))
        assert_same_model(regressor, GraphRegressor(["wl"]).fit(graphs, numbers), graphs, atol=1e-9)
        with pytest.raises(ValueError, match="one target for each graph") as caught:
            GraphClassifier(kernels).fit([*delayed(graphs, y, 60)[:2], *delayed(graphs, y[1:], 120)])
        assert "chunk 2" in caught.value.__notes__[0]
