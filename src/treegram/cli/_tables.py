"""Graphs from tables of nodes and edges (CSV, TSV or Parquet) and from folders of protein structures."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treegram.exceptions import DatasetError, InvalidGraphError

if TYPE_CHECKING:
    from treegram import Graphs
    from treegram.graphs.cells import CellTable
    from treegram.graphs.graph_table import GraphTable
    from treegram.graphs.tables import TableGraphs


def read_graph_tables(transformer: TableGraphs, nodes: Path, edges: Path | None, graphs: CellTable | None) -> Graphs:
    """Read tables into graphs; names and labels are text. A new transformer learns which columns it takes."""
    from treegram.graphs.cells import read_cells
    from treegram.graphs.tables import choose_columns

    if edges is None:
        raise ValueError(f"{nodes.parent} has a table of nodes, but no edges.csv, edges.tsv or edges.parquet.")
    files = {"nodes": read_cells(nodes), "edges": read_cells(edges)}
    if transformer.graph_attributes:
        if graphs is None:
            raise ValueError("A table of graphs is needed, because it has their vectors: name it with --graphs FILE.")
        files["graphs"] = graphs
    is_new = True in (transformer.label, transformer.attributes, transformer.edge_label, transformer.edge_attributes)
    transformer.set_params(**choose_columns(transformer, files["nodes"], files["edges"]))
    columns: dict[str, tuple[list[Any], Any]] = {
        "nodes": ([transformer.graph, transformer.node, transformer.label], transformer.attributes),
        "edges": (
            [transformer.graph, transformer.source, transformer.target, transformer.edge_label],
            transformer.edge_attributes,
        ),
        "graphs": ([transformer.graph], transformer.graph_attributes),
    }
    if transformer.graph not in files["edges"]:  # they need not name their graph
        columns["edges"][0].remove(transformer.graph)
    tables = {}
    for name, file in files.items():
        texts, vectors = columns[name]
        cells = {column: file.texts(column) for column in texts if column}
        numbers = {column: file.cells(column) for column in ([vectors] if isinstance(vectors, str) else vectors or [])}
        tables[name] = replace(file, columns=cells | numbers)
        if is_new and name != "graphs":
            _warn_of_texts(name, file)
    try:
        return transformer.transform(tables)
    except InvalidGraphError as error:
        raise DatasetError(str(error)) from error


def _warn_of_texts(name: str, file: CellTable) -> None:
    """Warn of columns of text that are not used."""
    from treegram.graphs.cells import holds_numbers

    texts = [column for column, cells in file.columns.items() if column not in file.used and not holds_numbers(cells)]
    if texts:
        option = "--label" if name == "nodes" else "--edge-label"
        warnings.warn(
            f"The table of {name} has text columns that are not used: {', '.join(texts)}. To use one as the label, name it with "
            f"{option}.",
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
