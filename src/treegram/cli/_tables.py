"""Graphs from tables of nodes and edges (CSV, TSV or Parquet) and from folders of protein structures."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treegram.exceptions import DatasetError, InvalidGraphError

if TYPE_CHECKING:
    from treegram import Graphs, TableGraphs
    from treegram.graphs.cells import CellTable
    from treegram.graphs.graph_table import GraphTable


_ENDINGS = (".csv", ".tsv", ".parquet")


def find_table(folder: str, table: str) -> Path | None:
    """Return the table of nodes, edges or graphs in a folder, or None if there is none."""
    paths = (Path(folder, table + ending) for ending in _ENDINGS)
    return next(filter(Path.is_file, paths), None)


def read_graph_tables(
    transformer: TableGraphs, folder: str, graphs: CellTable | None, given: Collection[str] | None
) -> Graphs:
    """Read the tables of a folder into graphs; names and labels are text, vectors are numbers.

    ``given`` are the parameters that the user has set, and the transformer learns the others from the tables; None leaves it as it is.
    """
    from treegram.graphs.cells import read_cells

    nodes, edges = find_table(folder, "nodes"), find_table(folder, "edges")
    if nodes is None or edges is None:
        raise ValueError(f"{folder} has a table of nodes, but no edges.csv, edges.tsv or edges.parquet.")
    files = {"nodes": read_cells(nodes), "edges": read_cells(edges)}
    if transformer.graph_attributes:
        if graphs is None:
            raise ValueError("A table of graphs is needed, because it has their vectors: name it with --graphs FILE.")
        files["graphs"] = graphs
    if given is not None:
        _choose_columns(transformer, files, given)
    ends: list[str | None] = [transformer.source, transformer.target, transformer.edge_label]
    if transformer.graph.lower() in map(str.lower, files["edges"].columns):  # edges may name their graph
        ends = [transformer.graph, *ends]
    columns: dict[str, tuple[list[str | None], str | Sequence[str] | None]] = {
        "nodes": ([transformer.graph, transformer.node, transformer.label], transformer.attributes),
        "edges": (ends, transformer.edge_attributes),
        "graphs": ([transformer.graph], transformer.graph_attributes),
    }
    tables: dict[str, dict[str, Any]] = {}
    for name, file in files.items():
        texts, vectors = columns[name]
        numbers = [vectors] if isinstance(vectors, str) else vectors or []
        tables[name] = {column: file.texts(column) for column in texts if column}
        tables[name] |= {column: file.numbers(column) for column in numbers}
    try:
        return transformer.transform(tables)
    except InvalidGraphError as error:  # it numbers rows from 0
        text = re.sub(
            r"\b(nodes|edges|graphs): row (\d+)", lambda match: files[match[1]].where(int(match[2])), str(error)
        )
        raise DatasetError(text) from error


def _choose_columns(transformer: TableGraphs, files: dict[str, CellTable], given: Collection[str]) -> None:
    """Set the parameters that are not given: the column "label", and as attributes all others that hold numbers."""
    from treegram.graphs.cells import holds_numbers

    ids = {
        "nodes": {transformer.graph, transformer.node},
        "edges": {transformer.graph, transformer.source, transformer.target},
    }
    for name, label, attributes in (("nodes", "label", "attributes"), ("edges", "edge_label", "edge_attributes")):
        columns = files[name].columns
        if label not in given and "label" in map(str.lower, columns):
            transformer.set_params(**{label: "label"})
        if attributes in given:
            continue
        used = {column.lower() for column in (*ids[name], getattr(transformer, label)) if column}
        others = [column for column in columns if column.lower() not in used]
        numbers = [column for column in others if holds_numbers(columns[column])]
        transformer.set_params(**{attributes: numbers or None})
        if len(numbers) < len(others):
            unused = ", ".join(column for column in others if column not in numbers)
            warnings.warn(
                f"The table of {name} has text columns that are not used: {unused}. To use one as the label, name it with "
                f"--{label.replace('_', '-')}.",
                stacklevel=2,
            )


def read_structures(source: str, paths: Sequence[Path], transformer: Any, *, is_collected: bool) -> GraphTable:
    """Read protein structures; if problems are collected, a structure that cannot be read is a row without a graph."""
    import numpy as np

    from treegram.graphs.graph_table import GraphTable, make_table

    places = list(map(str, paths))
    if not is_collected:
        return replace(make_table(source, transformer.transform(paths)), where=places)
    collections, kept, problems = [], [], []
    for row, path in enumerate(paths):
        try:
            collections.append(transformer.transform([path]))
            kept.append(row)
            problems.append("")
        except (DatasetError, InvalidGraphError) as error:
            problems.append(str(error))
    graphs = collections[0].concatenate(collections) if collections else transformer.transform([])
    names: list[str | None] = [path.name.removesuffix(".gz").rpartition(".")[0] for path in paths]
    return GraphTable(source, places, names, problems, graphs, np.array(kept, dtype=np.int64))
