import numpy as np
import pytest

from treegram import make_synthetic
from treegram.exceptions import ParameterError


def adjacency(graphs, i):
    matrix = np.zeros((graphs.sizes[i],) * 2, dtype=bool)
    a, b = (graphs[i].edges()).T
    matrix[a, b] = matrix[b, a] = True
    return matrix


def test_defaults_match_the_paper():
    graphs, y = make_synthetic(random_state=0)
    assert repr(graphs) == "Graphs(300 graphs, 30,000 nodes, 58,800 edges, undirected, no labels, 1 attribute, targets)"
    assert set(graphs.sizes) == {100}
    assert {graph.n_edges for graph in graphs} == {196}
    assert np.bincount(y).tolist() == [150, 150]
    assert graphs.targets.tolist() == y.tolist()


def test_same_seed_gives_the_same_graphs_and_another_seed_others():
    first, again, other = (make_synthetic(6, random_state=seed)[0] for seed in (3, 3, 4))
    assert first == again
    assert first.attributes.tobytes() == again.attributes.tobytes()
    assert first != other


def test_random_state_instance_is_used_and_advanced():
    random = np.random.RandomState(3)
    assert make_synthetic(6, random_state=random)[0] == make_synthetic(6, random_state=3)[0]
    assert make_synthetic(6, random_state=random)[0] != make_synthetic(6, random_state=3)[0]


def test_without_noise_all_graphs_equal_the_base_graph():
    graphs, _ = make_synthetic(4, rewired=(0, 0), permuted=(0, 0), noise=0.0, random_state=1)
    assert all(np.array_equal(graph.edges(), graphs[0].edges()) for graph in graphs)
    assert all(np.array_equal(graph.attributes, graphs[0].attributes) for graph in graphs)


def test_each_swap_changes_four_node_pairs():
    graphs, y = make_synthetic(40, rewired=(0, 5), permuted=(0, 0), random_state=2)
    base = adjacency(graphs, 0)
    changed = [np.count_nonzero(np.triu(adjacency(graphs, i) != base)) for i in np.flatnonzero(y)]
    assert max(changed) == 5 * 4
    assert np.mean(changed) > 0.9 * 5 * 4  # a later swap may partly undo an earlier one


def test_swaps_keep_all_degrees():
    graphs, _ = make_synthetic(2, rewired=(0, 10), random_state=5)
    assert np.array_equal(graphs[0].degrees, graphs[1].degrees)


def test_number_of_permuted_attributes_matches_the_parameter():
    graphs, _ = make_synthetic(60, rewired=(0, 0, 0), permuted=(0, 5, 10), noise=0.0, random_state=6)
    values = graphs.attributes.reshape(60, 100)
    assert all(np.array_equal(np.sort(row), np.sort(values[0])) for row in values)
    moved = (values != values[0]).sum(axis=1).reshape(3, 20)
    assert moved.max(axis=1).tolist() == [0, 5, 10]
    assert moved.mean(axis=1) == pytest.approx(
        [0, 4, 9], abs=0.8
    )  # on average one of the chosen attributes stays in place


def test_noise_has_the_given_standard_deviation():
    graphs, _ = make_synthetic(200, rewired=(0,), permuted=(0,), noise=0.45, random_state=7)
    values = graphs.attributes.reshape(200, 100)
    assert (values - values.mean(axis=0)).std() == pytest.approx(0.45, rel=0.02)
    assert values.mean(axis=0).std() == pytest.approx(1.0, abs=0.25)


def test_remaining_graphs_go_to_the_first_classes():
    _, y = make_synthetic(8, rewired=(1, 2, 3), permuted=(0, 0, 0), random_state=0)
    assert y.tolist() == [0, 0, 0, 1, 1, 1, 2, 2]


def test_every_node_pair_can_become_an_edge():
    graphs, _ = make_synthetic(1, n_nodes=6, n_edges=15, rewired=(0,), permuted=(6,), random_state=0)
    assert np.array_equal(adjacency(graphs, 0), ~np.eye(6, dtype=bool))


@pytest.mark.parametrize(("n_graphs", "n_nodes"), [(0, 5), (3, 0), (3, 1)])
def test_collections_without_graphs_nodes_or_edges_are_valid(n_graphs, n_nodes):
    graphs, y = make_synthetic(n_graphs, n_nodes=n_nodes, n_edges=0, rewired=(0,), permuted=(0,), random_state=0)
    assert (len(graphs), graphs.n_nodes, len(y)) == (n_graphs, n_graphs * n_nodes, n_graphs)


def test_noisy_graphs_resemble_the_real_data_set(data_dir):
    from treegram import load_tu

    real, _ = load_tu("SYNTHETICnew", data_dir=data_dir, download=False)
    made, _ = make_synthetic(random_state=0)
    for graphs in (real, made):
        values = graphs.attributes.reshape(300, 100)
        assert (values - np.median(values, axis=0)).std() == pytest.approx(0.55, abs=0.08)
        degrees = graphs.degrees.reshape(300, 100)
        assert (degrees == np.median(degrees, axis=0)).mean() > 0.9


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_graphs": -1}, "n_graphs of make_synthetic must be a whole number of at least 0; got -1"),
        ({"n_nodes": 2.5}, "n_nodes of make_synthetic must be a whole number of at least 0; got 2.5"),
        ({"n_edges": "many"}, "n_edges of make_synthetic must be a whole number of at least 0; got 'many'"),
        ({"n_nodes": 5, "n_edges": 11}, "n_edges of make_synthetic must be at most 10 with n_nodes=5; got 11"),
        ({"rewired": 5}, "rewired of make_synthetic must be a list of numbers; got 5"),
        ({"rewired": (5,)}, r"rewired and permuted .* one number for each class; got \(5,\) and \(10, 5\)"),
        ({"rewired": (), "permuted": ()}, r"rewired and permuted .* one number for each class; got \(\) and \(\)"),
        ({"rewired": (5, -1)}, r"rewired of make_synthetic must hold whole numbers from 0 to 196; got \(5, -1\)"),
        ({"rewired": (5, 1.5)}, "rewired of make_synthetic must hold whole numbers from 0 to 196"),
        ({"permuted": (5, 101)}, r"permuted of make_synthetic must hold whole numbers from 0 to 100; got \(5, 101\)"),
        ({"noise": -0.1}, "noise of make_synthetic must be a number of at least 0; got -0.1"),
        ({"noise": float("nan")}, "noise of make_synthetic must be a number of at least 0; got nan"),
        ({"random_state": "x"}, "random_state of make_synthetic must be .*; got 'x'"),
        (
            {"n_nodes": 4, "n_edges": 6, "rewired": (0, 1), "permuted": (0, 0)},
            "no two of the 6 edges could be swapped; the graph is too small or",
        ),
    ],
)
def test_invalid_parameters_raise(parameters, message):
    with pytest.raises(ParameterError, match=message):
        make_synthetic(**parameters)
