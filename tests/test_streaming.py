"""Streams of graphs: folders read in chunks equal the whole, and models learn from them in bounded memory."""

import tracemalloc

import numpy as np
import pytest
from sklearn.linear_model import Ridge, SGDClassifier, SGDRegressor

from treegram import Graphs, ODDCLFeatures, load_tu, make_synthetic, save_tu
from treegram.datasets import TUChunks, _table
from treegram.errors import DatasetError
from treegram.streaming import embed_chunks, fit_chunks

STATELESS = {"depth": 1, "method": "orf", "n_components": 16, "n_features": 128, "random_state": 0}


def whole_set(seed=0, n_graphs=23, *, empty=True):
    """Graphs with all that a folder can hold: two columns of labels, vectors, edge labels, graphs without nodes or edges."""
    random = np.random.default_rng(seed)
    sizes = random.integers(0 if empty else 1, 6, n_graphs)
    sizes[-1] = max(sizes[-1], 1)
    edges = [[(a, a + 1) for a in range(n - 1) if random.random() < 0.7] for n in sizes]
    return Graphs.from_edges(
        edges,
        n_nodes=sizes,
        labels=[[(int(a), int(b)) for a, b in random.integers(3, size=(n, 2))] for n in sizes],
        attributes=[random.standard_normal((n, 3)) for n in sizes],
        edge_labels=[random.integers(2, size=len(e)).tolist() for e in edges],
        targets=random.integers(-1, 2, n_graphs),
    )


def sorted_classes(n_graphs=400, n_nodes=8, seed=0):
    """Easy classes, one after the other, as in many files."""
    random = np.random.default_rng(seed)
    y = np.sort(np.arange(n_graphs) % 2)
    nodes = np.arange(n_graphs * n_nodes)
    back = np.minimum(random.integers(1, 4, len(nodes)), nodes % n_nodes)
    return Graphs.from_arrays(
        np.arange(n_graphs + 1) * n_nodes,
        np.stack([nodes, nodes - back], axis=1),
        labels=random.integers(3, size=len(nodes)),
        attributes=random.standard_normal((len(nodes), 2)) + 1.5 * np.repeat(y, n_nodes)[:, None],
        targets=y,
    )


@pytest.fixture
def folder(tmp_path):
    save_tu(whole_set(), tmp_path / "SET")
    return tmp_path / "SET"


# -------------------------------------------------------------------- folders


@pytest.mark.parametrize("chunk_size", [1, 2, 7, 22, 23, 1000])
@pytest.mark.parametrize("block", [40, 1 << 20])
def test_chunks_together_are_the_whole(folder, chunk_size, block, monkeypatch):
    monkeypatch.setattr(_table, "BLOCK_BYTES", block)
    chunks = TUChunks(folder, chunk_size=chunk_size)
    parts = list(chunks)
    assert [len(part) for part in parts[:-1]] == [chunk_size] * (len(parts) - 1)
    assert len(parts) == len(chunks)
    assert Graphs.concatenate(parts) == load_tu(folder)[0]
    assert Graphs.concatenate(list(chunks)) == Graphs.concatenate(parts)
    assert chunks.n_graphs == 23
    np.testing.assert_array_equal(chunks.targets, load_tu(folder)[1])
    np.testing.assert_array_equal(chunks.classes, [-1, 0, 1])


@pytest.mark.filterwarnings("ignore:.*edge attributes")
@pytest.mark.parametrize("name", ["MUTAG", "PROTEINS", "Cuneiform"])
def test_real_folders_in_chunks_are_the_whole(name, data_dir):
    graphs, _ = load_tu(data_dir / name)
    assert Graphs.concatenate(TUChunks(data_dir / name, chunk_size=100)) == graphs


def test_directed_edges_stay_directed(folder):
    chunks = TUChunks(folder, chunk_size=5, directed=True)
    assert Graphs.concatenate(chunks) == load_tu(folder, directed=True)[0]


def test_a_folder_with_edges_alone(tmp_path):
    graphs = Graphs.from_edges([[(0, 1)], [], [(0, 1), (1, 2)]], n_nodes=[2, 1, 3])
    save_tu(graphs, tmp_path / "BARE")
    chunks = TUChunks(tmp_path / "BARE", chunk_size=2)
    assert chunks.targets is None
    assert chunks.classes is None
    assert chunks.n_graphs == 3
    assert Graphs.concatenate(chunks) == graphs


def test_numbers_as_targets(tmp_path):
    graphs = Graphs.from_edges([[(0, 1)], [(0, 1)]], targets=[0.5, -1.25])
    save_tu(graphs, tmp_path / "REAL")
    np.testing.assert_array_equal(TUChunks(tmp_path / "REAL").targets, [0.5, -1.25])


def test_files_as_people_write_them(tmp_path):
    """Blanks, tabs, exponents, a mark of the encoding, no newline at the end, or many."""
    (tmp_path / "P_graph_indicator.txt").write_bytes(b"\xef\xbb\xbf1\n1\n2\n2")
    (tmp_path / "P_A.txt").write_bytes(b"1 2\r\n2,1\r\n 3,\t4 \r\n\r\n\r\n")
    (tmp_path / "P_node_attributes.txt").write_bytes(b"1e-3, 2\n.5,-0.25\n1, 2\n3, 4\n\n")
    for chunk_size in (1, 2):
        assert Graphs.concatenate(TUChunks(tmp_path, chunk_size=chunk_size)) == load_tu(tmp_path)[0]


@pytest.mark.parametrize("chunk_size", [1, 3, 16, 40, 1000])
def test_shuffled_chunks_hold_each_graph_once(folder, chunk_size):
    graphs = load_tu(folder)[0]
    chunks = TUChunks(folder, chunk_size=chunk_size, shuffle=True, random_state=0)
    parts = list(chunks)
    assert len(parts) == len(chunks)
    assert sum(map(len, parts)) == 23
    assert max(map(len, parts)) <= chunk_size
    keys = sorted((len(g.indices), g.n_nodes, np.asarray(g.attributes).tobytes()) for part in parts for g in part)
    assert keys == sorted((len(g.indices), g.n_nodes, np.asarray(g.attributes).tobytes()) for g in graphs)


def test_the_order_follows_the_seed(folder):
    def order(seed):
        return Graphs.concatenate(TUChunks(folder, chunk_size=4, shuffle=True, random_state=seed))

    assert order(1) == order(1)
    assert order(1) != order(2)
    again = TUChunks(folder, chunk_size=4, shuffle=True, random_state=1)
    assert Graphs.concatenate(again) == Graphs.concatenate(again)


def test_shuffled_chunks_mix_sorted_classes(tmp_path):
    save_tu(sorted_classes(), tmp_path / "SORTED")
    shares = [
        part.targets.mean() for part in TUChunks(tmp_path / "SORTED", chunk_size=64, shuffle=True, random_state=0)
    ]
    assert min(shares) > 0.15
    assert max(shares) < 0.85


# -------------------------------------------------------------------- folders that cannot be read in chunks


def write(folder, **tables):
    for table, text in tables.items():
        (folder / f"P_{table}.txt").write_text(text)
    return folder


GOOD = {"graph_indicator": "1\n1\n2\n2\n", "A": "1, 2\n3, 4\n"}


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"graph_indicator": "1\n2\n1\n2\n"}, r"P_graph_indicator.txt:3: nodes must come graph by graph.*load_tu"),
        ({"graph_indicator": "0\n1\n2\n2\n"}, r"P_graph_indicator.txt:1: expected a graph id of 1 or more, got 0"),
        (
            {"graph_labels": "5\n"},
            r"P_graph_labels.txt:1: expected 2 lines, one per graph, got 1; .*indicator.txt:3 names graph 2",
        ),
        ({"A": "3, 4\n1, 2\n"}, r"P_A.txt:2: edges must come graph by graph.*load_tu"),
        ({"A": "1, 3\n"}, r"P_A.txt:1: the edge \(1, 3\) joins two graphs, 1 and 2"),
        ({"A": "1, 2\n4, 5\n"}, r"P_A.txt:2: the edge \(4, 5\) names a node that does not exist; .* from 1 to 4"),
        ({"A": "0, 2\n"}, r"P_A.txt:1: the edge \(0, 2\) names a node that does not exist"),
        ({"A": "1, 2\n3\n"}, r"P_A.txt:2: expected 2 numbers, got 1: '3'"),
        ({"A": "1, x\n"}, r"P_A.txt:1: expected a finite number, got 'x'"),
        ({"A": "1, 2.5\n"}, r"P_A.txt:1: expected a whole number .* got 2.5"),
        ({"node_attributes": "1\nnan\n2\n3\n"}, r"P_node_attributes.txt:2: expected a finite number, got 'nan'"),
        ({"node_labels": "1\n1\n1\n"}, r"P_node_labels.txt:3: expected 4 lines, one for each of the nodes, got 3"),
        ({"node_labels": "1\n\n1\n1\n"}, r"P_node_labels.txt:2: expected 1 number, got a blank line in the middle"),
        (
            {"node_labels": "1\n1\n1\n1\n1\n"},
            r"P_node_labels.txt:5: expected 4 lines, one for each of the nodes, got 5",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path, tables, message):
    write(tmp_path, **{**GOOD, **tables})
    with pytest.raises(DatasetError, match=message):
        list(TUChunks(tmp_path, chunk_size=1))


def test_folders_that_hold_no_set_or_several_are_refused(tmp_path):
    with pytest.raises(DatasetError, match=r"holds no NAME_A.txt; expected a folder"):
        TUChunks(tmp_path)
    with pytest.raises(DatasetError, match="nowhere does not exist"):
        TUChunks(tmp_path / "nowhere")
    write(tmp_path, **GOOD)
    assert len(list(TUChunks(tmp_path))) == 1
    (tmp_path / "Q_graph_indicator.txt").write_text("1\n")
    with pytest.raises(DatasetError, match=r"holds several data sets \(P, Q\)"):
        TUChunks(tmp_path)


def test_two_labels_of_an_edge_are_named_with_their_lines(tmp_path):
    write(tmp_path, **{**GOOD, "A": "1, 2\n3, 4\n4, 3\n", "edge_labels": "1\n1\n2\n"})
    with pytest.raises(DatasetError, match=r"P_edge_labels.txt:3: the edge \(4, 3\) .* 2, than in line 2, 1"):
        list(TUChunks(tmp_path, chunk_size=1))


def test_names_of_labels_and_classes_come_in_every_chunk(tmp_path):
    graphs = Graphs.from_edges(
        [[(0, 1)], [(0, 1)]], labels=[["C", "O"], ["N", "C"]], edge_labels=[["="], ["-"]], targets=["no", "yes"]
    )
    save_tu(graphs, tmp_path / "NAMED")
    chunks = TUChunks(tmp_path / "NAMED", chunk_size=1)
    assert Graphs.concatenate(list(chunks)) == graphs
    assert chunks.classes.tolist() == ["no", "yes"]


def test_what_is_left_out_is_told(tmp_path):
    write(tmp_path, **{**GOOD, "A": "1, 2\n1, 2\n2, 1\n3, 3\n", "edge_attributes": "1\n1\n2\n1\n"})
    with pytest.warns(UserWarning, match=r"edge attributes in P_edge_attributes.txt .* 1 self loop is dropped"):
        chunks = TUChunks(tmp_path)
    with pytest.warns(UserWarning, match=r"1 line repeats an earlier one \(of P_A.txt\)"):
        assert all(chunk.edge_attributes is None for chunk in chunks)


@pytest.mark.filterwarnings("ignore:.*repeats an earlier one")
def test_edge_attributes_come_in_every_chunk(tmp_path):
    graphs = Graphs.from_edges([[(0, 1), (1, 2)], [(1, 0)]], edge_attributes=[[[1.5, 2], [0.1, 3]], [[4, 1e-9]]])
    save_tu(graphs, tmp_path / "VECTORS")
    assert Graphs.concatenate(list(TUChunks(tmp_path / "VECTORS", chunk_size=1))) == graphs
    write(tmp_path, **{**GOOD, "A": "1, 2\n1, 2\n", "edge_attributes": "1\n2\n"})
    with pytest.raises(DatasetError, match=r"P_edge_attributes.txt:2: .* other attributes here, 2.0, than in line 1"):
        list(TUChunks(tmp_path))


@pytest.mark.parametrize("size", [0, 1.5, "a", None])
def test_a_chunk_has_a_whole_number_of_graphs(folder, size):
    with pytest.raises(ValueError, match=f"chunk_size must be a whole number of at least 1; got {size!r}"):
        TUChunks(folder, chunk_size=size)


def test_lists_of_graphs_are_chunks_too(folder):
    graphs, _ = load_tu(folder)
    features = ODDCLFeatures(**STATELESS)
    ((rows, targets),) = embed_chunks(features, [[graphs[0], graphs[1]]])
    np.testing.assert_array_equal(rows, features.transform(graphs[:2]))
    np.testing.assert_array_equal(targets, graphs[:2].targets)


# -------------------------------------------------------------------- rows and models


def test_rows_of_chunks_are_the_rows_of_the_whole(folder):
    features = ODDCLFeatures(**STATELESS)
    rows, targets = zip(*embed_chunks(features, TUChunks(folder, chunk_size=5)), strict=True)
    graphs, y = load_tu(folder)
    np.testing.assert_allclose(np.concatenate(rows), features.transform(graphs), atol=1e-13)
    np.testing.assert_array_equal(np.concatenate(targets), y)


def test_features_that_must_be_fitted_are_fitted_on_the_first_chunk():
    graphs, _ = make_synthetic(12, n_nodes=10, n_edges=14, random_state=0)
    features = ODDCLFeatures(n_features=64, random_state=0)
    rows = [rows for rows, _ in embed_chunks(features, (graphs[a : a + 4] for a in (0, 4, 8)))]
    expected = ODDCLFeatures(n_features=64, random_state=0).fit(graphs[:4])
    np.testing.assert_allclose(np.concatenate(rows), expected.transform(graphs), atol=1e-13)


def test_a_model_learns_from_a_folder_that_is_sorted_by_class(tmp_path):
    save_tu(sorted_classes(), tmp_path / "SORTED")
    features, test = ODDCLFeatures(**STATELESS), sorted_classes(seed=1)
    chunks = TUChunks(tmp_path / "SORTED", chunk_size=40, shuffle=True, random_state=0)
    model = fit_chunks(SGDClassifier(random_state=0), features, chunks, n_epochs=3)
    assert model.score(features.transform(test), test.targets) > 0.9


def test_a_regressor_needs_no_classes():
    graphs = sorted_classes()[np.random.default_rng(0).permutation(400)]
    features = ODDCLFeatures(**STATELESS)
    chunks = [graphs[a : a + 50] for a in range(0, 400, 50)]
    model = fit_chunks(SGDRegressor(random_state=0, alpha=1e-6), features, chunks, n_epochs=20)
    assert model.score(features.transform(graphs), graphs.targets) > 0.3


def test_what_a_stream_must_have_is_told():
    graphs = sorted_classes(20)
    features = ODDCLFeatures(**STATELESS)
    with pytest.raises(ValueError, match="classes"):
        fit_chunks(SGDClassifier(), features, [graphs])
    with pytest.raises(ValueError, match=r"n_epochs=2 needs chunks that can be iterated again; got a generator"):
        fit_chunks(SGDClassifier(), features, (g for g in [graphs]), classes=[0, 1], n_epochs=2)
    bare, _ = make_synthetic(4, n_nodes=10, n_edges=14, random_state=0)
    without = Graphs.from_arrays(bare.offsets, bare.edges(), attributes=bare.attributes)
    with pytest.raises(ValueError, match="targets"):
        fit_chunks(SGDClassifier(), features, [without], classes=[0, 1])
    with pytest.raises(TypeError, match=r"model must have partial_fit, .* got Ridge\(\)"):
        fit_chunks(Ridge(), features, [graphs])
    with pytest.raises(ValueError, match="n_epochs must be at least 1; got 0"):
        fit_chunks(SGDClassifier(), features, [graphs], classes=[0, 1], n_epochs=0)


def test_memory_is_that_of_a_chunk():
    """Rows of eight times the graphs take no more memory than those of a few chunks."""
    features = ODDCLFeatures(**{**STATELESS, "n_features": 1024})

    def peak(n_chunks):
        chunks = (sorted_classes(100, seed=i) for i in range(n_chunks))
        tracemalloc.start()
        fit_chunks(SGDClassifier(random_state=0), features, chunks, classes=[0, 1])
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    peak(1)
    assert peak(24) < 1.3 * peak(3)
