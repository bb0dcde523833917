"""Errors in later chunks name the graph by its number in the whole data set, as `load_tu` does."""

import pytest

from treegram import Graphs, iter_tu, load_tu, save_tu
from treegram.exceptions import DatasetError


@pytest.mark.parametrize("graph", range(6))
@pytest.mark.parametrize("chunk_size", [1, 2, 4, 10])
def test_errors_of_every_chunk_name_the_graph_that_is_wrong(tmp_path, graph, chunk_size):
    """The two directions of one edge get different labels."""
    graphs = Graphs.from_edges([[(0, 1)]] * 6, edge_labels=[[0]] * 6, targets=[0, 1] * 3)
    save_tu(graphs, tmp_path / "D")
    path = tmp_path / "D" / "D_edge_labels.txt"
    lines = path.read_text().splitlines()
    assert len(lines) == 12
    lines[2 * graph] = "1"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(DatasetError) as whole:
        load_tu(tmp_path / "D")
    with pytest.raises(DatasetError) as chunked:
        list(iter_tu(tmp_path / "D", chunk_size=chunk_size))
    assert f"Graph {graph}: " in str(chunked.value)
    assert str(whole.value) == str(chunked.value)
