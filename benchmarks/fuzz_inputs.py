"""Mutated input of graphs: ``Graphs.from_*``, tables of numbers, Parquet files, and Gram matrices on disk.

Each ``try_*`` function takes the folder of the originals, a path for the mutant and a random generator, and returns the outcome, as
in ``fuzz.py``. Accepted graphs must have the labels, vectors and targets of the input.
"""

from __future__ import annotations

import contextlib
import random
import re
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import fuzz_models

TOKENS = [
    *(b"0", b"-1", b"1e19", b"9007199254740993", b"1_0", b"1.5", b"1e3", b"+2", b".5", b"5.", b"nan", b"-inf", b"1e999"),
    *(b"1e-999", b"0x10", "٣".encode(), "²".encode(), b"C", b"", b"10000000000", b"1e10", b"-0", b"--1", b"1,2", b"1 2"),
    *(b"3", b'"C"', b"null", b"[1, 2]", b"true", b"1e-9999999999999999999", b"0.1234567890123456789", b"\xff", b"\0"),
    *(b"9007199254740992", b"123456789012345678901234567890", b"4.9e-324", b"1.7976931348623159e308", b"1e+", b"e5", b"+-1"),
]  # fmt: skip
SCALARS = (-1, 0, 1, 2, 3, 2**31, 2**53 + 1, 2**63, 10**30, 0.5, -0.0, 1e308, float("nan"), float("inf"), None, "C")
NUMBERS = (*SCALARS, (1, "x"), b"")


def change_text(data: bytes, rng: random.Random) -> bytes:
    """Change a token, a line or some bytes."""
    if rng.random() < 0.3:
        return fuzz_models.damage(data, rng)
    lines = data.split(b"\n")
    line = rng.randrange(len(lines))
    kind = rng.randrange(4)
    if kind < 2:
        tokens = lines[line].split(b" ")
        tokens[rng.randrange(len(tokens))] = rng.choice(TOKENS)
        lines[line] = b" ".join(tokens)
    elif kind == 2:
        lines.insert(line, rng.choice([*lines, b"", b" ", b"1, 1"]))
    else:
        del lines[line]
    return b"\n".join(lines)


def mutate_arguments(given: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Replace or remove some values of nested lists; omit some arguments, or turn them into arrays of another type."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        name = rng.choice(sorted(given))
        place = given[name] = [list(one) if isinstance(one, list) else one for one in given[name]]
        while place and isinstance(inner := place[rng.randrange(len(place))], list) and rng.random() < 0.8:
            place = inner
        kind = rng.randrange(4)
        if kind < 2 and place:
            place[rng.randrange(len(place))] = rng.choice(NUMBERS)
        elif kind == 2 and place:
            del place[rng.randrange(len(place))]
        else:
            place.append(rng.choice([*NUMBERS, [], [0, 1]]))
    if rng.random() < 0.3:
        name = rng.choice(sorted(given))
        if name not in ("edges", "offsets"):
            del given[name]
    if given and rng.random() < 0.3:
        name = rng.choice(sorted(given))
        with contextlib.suppress(ValueError, TypeError, OverflowError):  # no array can hold it
            given[name] = np.array(given[name], dtype=rng.choice([object, np.float64, np.int64, np.uint8, np.float32]))
    return given


def check_graphs(graphs: Any, labels: Any = None, vectors: Any = None, targets: Any = None) -> str:
    """Check that graphs can be split and joined, and have a finite kernel and the labels, vectors and targets of the input."""
    from treegram import WL, Graphs

    is_itself = graphs == graphs[np.arange(len(graphs))]  # not so if a target is nan
    if is_itself and len(graphs) and Graphs.concatenate([graphs[i : i + 1] for i in range(len(graphs))]) != graphs:
        return "BAD: parts are not the whole"
    if len(graphs) and not np.isfinite(WL(n_iterations=1).fit_transform(graphs)).all():
        return "BAD: a kernel that is not finite"
    if labels is not None and not _are_labels(graphs, labels):
        return "BAD: wrong labels"
    if vectors is not None and not np.array_equal(graphs.attributes, np.asarray(vectors, dtype=float)):
        return "BAD: wrong vectors"
    if isinstance(targets, list) and any(
        a != b and not (a != a and b != b) for a, b in zip(graphs.targets.tolist(), targets, strict=True)
    ):
        return "BAD: wrong targets"
    return "accepted"


def _are_labels(graphs: Any, given: Any) -> bool:
    got = [graphs.label_values[code] for code in graphs.labels]
    return len(got) == len(given) and all(a == _plain(b) for a, b in zip(got, given, strict=True))


def _plain(label: Any) -> Any:
    return (
        tuple(map(_plain, label))
        if isinstance(label, tuple | list | np.ndarray)
        else getattr(label, "item", lambda: label)()
    )


def no_originals(folder: Path) -> None:
    """Do nothing: the originals are built for each input."""


def _flat(parts: Any) -> Any:
    """Return the entries of nested lists, or None where they are not lists of lists."""
    try:
        return [one for part in parts for one in part]
    except TypeError:
        return None


# -------------------------------------------------------------------- graphs from objects


def try_arrays(folder: Path, goal: Path, rng: random.Random) -> str:  # noqa: ARG001
    from treegram import Graphs

    given: dict[str, Any] = {"labels": [1, 2, 1, 3, 1, 2], "attributes": [[0.5, 1.0]] * 6, "targets": [0, 1, 0]}
    given |= {"offsets": [0, 2, 2, 6], "edges": [[0, 1], [2, 3], [3, 4], [4, 5]]}
    if rng.random() < 0.5:
        given["edge_labels"] = [1, 2, 1, 2]
    given = mutate_arguments(given, rng)
    made = Graphs.from_arrays(**given)
    return check_graphs(made, given.get("labels"), given.get("attributes"), given.get("targets"))


def try_edges(folder: Path, goal: Path, rng: random.Random) -> str:  # noqa: ARG001
    from treegram import Graphs

    given: dict[str, Any] = {
        "edges": [[[0, 1]], [], [[0, 1], [1, 2]]],
        "n_nodes": [2, 1, 3],
        "targets": ["a", "b", "a"],
    }
    given |= {"labels": [["C", "O"], ["C"], ["C", "N", "N"]], "attributes": [[[0.5], [1.0]], [[1.0]], [[2.0]] * 3]}
    if rng.random() < 0.5:
        given["edge_labels"] = [[1], [], [1, 2]]
    given = mutate_arguments(given, rng)
    return check_graphs(Graphs.from_edges(**given), _flat(given.get("labels")), targets=given.get("targets"))


def try_networkx(folder: Path, goal: Path, rng: random.Random) -> str:  # noqa: ARG001
    import networkx as nx

    from treegram import Graphs

    graphs = []
    for size in (1, 2, 4):
        graph = nx.path_graph(size, create_using=rng.choice([nx.Graph, nx.Graph, nx.DiGraph, nx.MultiGraph]))
        for node in graph:
            graph.nodes[node].update(label="CON"[node % 3], x=0.5 * node, y=1.0)
        graphs.append(graph)
    for _ in range(rng.choice((1, 2, 4))):
        graph = rng.choice(graphs)
        node = rng.choice(sorted(graph.nodes, key=str))
        graph.nodes[node][rng.choice(["label", "x", "y"])] = rng.choice(NUMBERS)
        if rng.random() < 0.2:
            graph.add_edge(node, rng.choice([0, 1, "new", 2**70]))
    made = Graphs.from_networkx(graphs, label="label", attributes=rng.choice([["x", "y"], "x", None]))
    return check_graphs(made, [label for graph in graphs for _, label in graph.nodes(data="label")])


def try_igraph(folder: Path, goal: Path, rng: random.Random) -> str:  # noqa: ARG001
    import igraph

    from treegram import Graphs

    graphs = []
    for size in (1, 2, 4):
        graph = igraph.Graph.Ring(size, circular=False, directed=rng.random() < 0.1)
        graph.vs["label"] = ["CON"[v % 3] for v in range(size)]
        graph.vs["x"], graph.es["kind"], graph["y"] = [0.5] * size, ["-"] * graph.ecount(), size
        graphs.append(graph)
    for _ in range(rng.choice((1, 2, 4))):
        graph = rng.choice(graphs)
        graph.vs[rng.randrange(graph.vcount())][rng.choice(["label", "x"])] = rng.choice(NUMBERS)
        if rng.random() < 0.3:
            graph.add_edge(rng.randrange(graph.vcount()), rng.randrange(graph.vcount()), kind=rng.choice(NUMBERS))
        if rng.random() < 0.1:
            graph["y"] = rng.choice(NUMBERS)
    edge_label = rng.choice(["kind", None])
    made = Graphs.from_igraph(graphs, attributes=rng.choice(["x", None]), edge_label=edge_label, targets="y")
    return check_graphs(made, [label for graph in graphs for label in graph.vs["label"]])


class _Data(dict[str, Any]):
    """The part of PyTorch Geometric's Data that the converter reads."""

    num_nodes: Any = 0


def try_pyg(folder: Path, goal: Path, rng: random.Random) -> str:  # noqa: ARG001
    from treegram import Graphs

    items, labels = [], []
    for size in (1, 2, 4):
        pairs = [list(range(size - 1)), [v + 1 for v in range(size - 1)]]
        given: dict[str, Any] = {"edge_index": pairs, "x": [[0.5, 1.0]] * size, "z": [v % 3 for v in range(size)]}
        given |= {"edge_attr": [[1.0]] * (size - 1), "y": [size % 2]}
        if rng.random() < 0.4:
            given = {"edge_index": given["edge_index"], **mutate_arguments(given, rng)}
        item = _Data({name: value if rng.random() < 0.1 else _array(value) for name, value in given.items()})
        item.num_nodes = rng.choice(NUMBERS) if rng.random() < 0.1 else size
        items.append(item)
        labels += list(item.get("z", []))
    made = Graphs.from_pyg(items, "z", directed=rng.random() < 0.2)
    return check_graphs(made, labels)


def _array(value: Any) -> Any:
    try:
        return np.array(value)
    except (ValueError, TypeError, OverflowError):  # no array can hold it
        return value


def try_tables(folder: Path, goal: Path, rng: random.Random) -> str:  # noqa: ARG001
    from treegram import Graphs

    nodes: dict[str, Any] = {"graph": ["a", "a", "b", "c", "c"], "node": [1, 2, 1, "x", "y"], "kind": list("CONCO")}
    nodes |= {"x": [0.5, 1.0, 2.0, 3.0, 4.0], "y": [1, 1, 0, 1, 1]}
    edges: dict[str, Any] = {"graph": ["a", "c"], "source": [1, "x"], "target": [2, "y"], "bond": ["-", "="]}
    nodes, edges = (
        {**table, **mutate_arguments(table, rng)} if rng.random() < 0.7 else table for table in (nodes, edges)
    )
    tables = [_frame(table, rng) for table in (nodes, edges)]
    made = Graphs.from_tables(*tables, label="kind", attributes=rng.choice(["x", None]), edge_label="bond", targets="y")
    is_plain = tables[0] is nodes and list(nodes["graph"]) == [
        "a",
        "a",
        "b",
        "c",
        "c",
    ]  # no table of pandas, rows in their order
    return check_graphs(made, nodes["kind"] if is_plain else None)


def _frame(table: dict[str, Any], rng: random.Random) -> Any:
    if rng.random() < 0.7:
        return table
    import pandas as pd

    try:
        return pd.DataFrame(table)
    except (ValueError, TypeError, OverflowError):  # pandas rejects it
        return table


def try_grakel(folder: Path, goal: Path, rng: random.Random) -> str:  # noqa: ARG001
    from treegram import Graphs

    items: list[Any] = []
    for size in (1, 2, 4):
        edges: Any = {(v, v + 1): 1 for v in range(size - 1)}
        labels: dict[Any, Any] = {v: "CON"[v % 3] for v in range(size)}
        if rng.random() < 0.5:
            rng.choice([edges, labels])[rng.choice([*NUMBERS, (0, rng.choice(NUMBERS))])] = rng.choice(NUMBERS)
        if rng.random() < 0.5:
            near = {v: [v + 1] for v in range(size - 1)}
            edges = rng.choice(
                [list(edges), [*edges, rng.choice([*NUMBERS, (0, 0), (0,), (0, 1, 2, 3)])], set(edges), near]
            )
        items.append(
            rng.choice([(edges, labels), [edges, labels], (edges, labels, {}), (edges, list(labels.values()))])
        )
    return check_graphs(Graphs.from_grakel(items, node_data=rng.choice(["labels", "labels", "attributes"])))


def try_smiles(folder: Path, goal: Path, rng: random.Random) -> str:  # noqa: ARG001
    from treegram import Graphs

    smiles: list[Any] = [
        "CCO",
        "c1ccccc1O",
        "[NH4+].[Cl-]",
        "C[C@H](N)C(=O)O",
        "[13CH4]",
        "F/C=C/F",
        "C1CC1",
        "O=S(=O)(O)O",
    ]
    for _ in range(rng.choice((1, 2, 3))):
        place = rng.randrange(len(smiles))
        if not isinstance(smiles[place], str):
            continue
        text = list(smiles[place])
        for _ in range(rng.choice((1, 2, 4))):
            at = rng.randrange(len(text) + 1)
            text[at : at + rng.randrange(2)] = rng.choice(
                [*"CNOcn()[]=#+-1234%.@/\\*$:~ ", "[999C]", "\0", "é", "C" * 200, ""]
            )
        smiles[place] = rng.choice(NUMBERS) if rng.random() < 0.05 else "".join(text)
    attributes = rng.choice([None, ["mass"], ["partial_charge", "mass"]])
    chosen = rng.sample(smiles, 4)
    made = Graphs.from_smiles(chosen, on_error=rng.choice(["raise", "skip", "skip"]), attributes=attributes)
    return check_graphs(made)


# -------------------------------------------------------------------- files

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TABLE = b"1, 2\n2, 1\n3.5,4\n5e0,\t6\n-7 , 0.000000000000000001234\n"
_WHOLE = b"1 2\n2 1\n3 4\n5\t6\n-7  1e3\n"


def try_numbers(folder: Path, goal: Path, rng: random.Random) -> str:  # noqa: ARG001
    """Compare with a naive reader: both return the same numbers, or both raise."""
    from treegram.datasets.tu import TextTable
    from treegram.exceptions import DatasetError

    is_whole = rng.random() < 0.5
    data = _WHOLE if is_whole else _TABLE
    for _ in range(rng.choice((1, 1, 2, 3))):
        data = change_text(data, rng)
    goal.write_bytes(data)
    expected = read_literally(data, is_whole)
    try:
        rows = TextTable(goal, whole=is_whole).read()
    except DatasetError:
        return "refused" if expected is None else "BAD: refused, though it is a table"
    if expected is None:
        return "BAD: accepted, though it is no table"
    return "accepted" if rows.tolist() == expected else "BAD: wrong numbers"


def read_literally(data: bytes, is_whole: bool) -> list[list[float]] | None:
    """Return the numbers of a table line by line, as ``Table`` documents it; None if it is not a table."""
    lines = data.removeprefix(b"\xef\xbb\xbf").decode("latin-1").rstrip().split("\n")
    separator = "," if "," in lines[0] else None
    rows: list[list[float]] = []
    for line in lines:
        numbers = [_number(token.strip(), is_whole) for token in line.split(separator)]
        if not numbers or None in numbers or (rows and len(numbers) != len(rows[0])):
            return None
        rows.append([number for number in numbers if number is not None])
    return rows or None


def _number(token: str, is_whole: bool) -> float | None:
    if not _NUMBER.fullmatch(token) or not np.isfinite(number := float(token)):
        return None
    if not is_whole:
        return number
    return int(number) if abs(number) < 2**53 and number.is_integer() else None


def make_proteins(folder: Path) -> None:
    import gemmi

    made, model, chain = gemmi.Structure(), gemmi.Model(1), gemmi.Chain("A")
    for i, name in enumerate(["ALA", "GLY", "LEU", "LYS"]):
        residue, atom = gemmi.Residue(), gemmi.Atom()
        residue.name, residue.seqid = name, gemmi.SeqId(i + 1, " ")
        atom.name, atom.element, atom.pos = "CA", gemmi.Element("C"), gemmi.Position(3.8 * i, i % 2, 0)
        residue.add_atom(atom)
        chain.add_residue(residue)
    model.add_chain(chain)
    made.add_model(model)
    made.setup_entities()
    made.write_pdb(str(folder / "p.pdb"))
    made.make_mmcif_document().write_file(str(folder / "p.cif"))


def try_protein(folder: Path, goal: Path, rng: random.Random) -> str:
    from treegram import Graphs

    original = folder / rng.choice(["p.pdb", "p.cif"])
    path = goal.with_suffix(original.suffix)
    data = original.read_bytes()
    for _ in range(rng.choice((1, 2, 4))):
        data = change_text(data, rng)
    path.write_bytes(data)
    return check_graphs(Graphs.from_pdb(path, attributes=rng.choice(["coordinates", "invariant"]), missing="skip"))


def some_graphs(**more: Any) -> Any:
    from treegram import Graphs

    edges = [[(0, 1)], [], [(0, 1), (1, 2)], [], [(0, 1), (1, 2), (2, 3), (3, 0)]]
    sizes, labels = [2, 0, 3, 1, 4], [["C", "O"], [], ["C", "C", "N"], ["O"], ["C"] * 4]
    vectors = [np.arange(2.0 * n).reshape(n, 2) / 7 for n in sizes]
    return Graphs.from_edges(edges, n_nodes=sizes, labels=labels, attributes=vectors, **more)


def make_parquet(folder: Path) -> None:
    from treegram import save_parquet

    save_parquet(some_graphs(targets=[1, -1, 1, 1, -1]), folder / "datasets.parquet")


def try_parquet(folder: Path, goal: Path, rng: random.Random) -> str:
    """Damage bytes, or put other things into the columns of a whole file."""
    from treegram import load_parquet

    path = goal.with_suffix(".parquet")
    if rng.random() < 0.4:
        path.write_bytes(fuzz_models.damage((folder / "datasets.parquet").read_bytes(), rng))
    else:
        _write_other_columns(folder / "datasets.parquet", path, rng)
    return check_graphs(load_parquet(path)[0])


def _write_other_columns(original: Path, path: Path, rng: random.Random) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(original)
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(table.column_names)
        place, values = table.column_names.index(name), table.column(name).to_pylist()
        changed = mutate_arguments({"column": values}, rng).get("column", values)
        with contextlib.suppress(pa.ArrowException, ValueError, TypeError, OverflowError):  # no column can hold it
            kind = table.column(name).type if rng.random() < 0.5 else None
            table = table.set_column(place, name, pa.array(list(changed)[: len(values)], kind))
    if rng.random() < 0.3:
        note = fuzz_models.damage((table.schema.metadata or {}).get(b"treegram", b"{}"), rng)
        table = table.replace_schema_metadata({b"treegram": note})
    try:
        pq.write_table(table, path)
    except pa.ArrowException:  # Arrow rejects it
        shutil.copy(original, path)


def make_gram(folder: Path) -> None:
    from treegram import WL, gram_to_zarr

    gram_to_zarr(WL(n_iterations=1), some_graphs(targets=[1, -1, 1, 1, -1]), folder / "gram", chunk=3)


def _damage_folder(original: Path, goal: Path, rng: random.Random) -> None:
    shutil.rmtree(goal, ignore_errors=True)
    shutil.copytree(original, goal)
    for _ in range(rng.choice((1, 1, 2))):
        path = rng.choice(sorted(path for path in goal.rglob("*") if path.is_file()))
        change = change_text if path.suffix == ".json" else fuzz_models.damage
        path.write_bytes(change(path.read_bytes(), rng))
    if rng.random() < 0.1:
        rng.choice(sorted(path for path in goal.rglob("*") if path.is_file())).unlink()


@cache
def _right_gram(folder: Path) -> Any:
    import zarr

    return zarr.open_array(folder / "gram" / "gram", mode="r")[:]


def try_gram(folder: Path, goal: Path, rng: random.Random) -> str:
    """Damage a store and complete it by another call: the right matrix, or an error."""
    from treegram import WL, gram_to_zarr

    _damage_folder(folder / "gram", goal, rng)
    K = gram_to_zarr(WL(n_iterations=1), some_graphs(targets=[1, -1, 1, 1, -1]), goal, chunk=3)[:]
    return "accepted" if np.array_equal(K, _right_gram(folder)) else "BAD: wrong matrix"


Kind = tuple[Callable[[Path], None], Callable[[Path, Path, random.Random], str]]

KINDS: dict[str, Kind] = {
    "numbers": (no_originals, try_numbers),
    "arrays": (no_originals, try_arrays),
    "edges": (no_originals, try_edges),
    "networkx": (no_originals, try_networkx),
    "igraph": (no_originals, try_igraph),
    "pyg": (no_originals, try_pyg),
    "tables": (no_originals, try_tables),
    "grakel": (no_originals, try_grakel),
    "smiles": (no_originals, try_smiles),
    "proteins": (make_proteins, try_protein),
    "parquet": (make_parquet, try_parquet),
    "gram stores": (make_gram, try_gram),
}
