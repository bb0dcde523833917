"""Several collections of graphs as one: whether they can be joined, and the arrays of the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from treegram._core.errors import InvalidGraphError
from treegram._core.text import counted
from treegram._core.types import Floats
from treegram.graphs.check import concatenate_present, join_codes

if TYPE_CHECKING:
    from treegram.graphs import Graphs

__all__ = ["join_fields"]


def join_fields(parts: list[Graphs]) -> dict[str, Any]:
    """The fields of a Graphs with all graphs of the first part, then all of the second, and so on."""
    _check_joinable(parts)
    # Parts without a node or an edge have no vector that could tell a dimension.
    with_nodes = [p for p in parts if p.n_nodes] or parts[:1]
    with_arcs = [p for p in parts if len(p.indices)] or parts[:1]
    node_starts = np.cumsum([0] + [p.n_nodes for p in parts])
    arc_starts = np.cumsum([0] + [len(p.indices) for p in parts])
    labels, label_values = join_codes([p.labels for p in parts], [p.label_values for p in parts])
    edge_labels, edge_label_values = join_codes([p.edge_labels for p in parts], [p.edge_label_values for p in parts])
    return {
        "offsets": np.concatenate([[0], *(p.offsets[1:] + s for p, s in zip(parts, node_starts, strict=False))]),
        "indptr": np.concatenate([[0], *(p.indptr[1:] + s for p, s in zip(parts, arc_starts, strict=False))]),
        "indices": np.concatenate([p.indices + s for p, s in zip(parts, node_starts, strict=False)]),
        "labels": labels,
        "label_values": label_values,
        "attributes": concatenate_present([p.attributes for p in with_nodes]),
        "edge_labels": edge_labels,
        "edge_label_values": edge_label_values,
        "edge_attributes": concatenate_present([p.edge_attributes for p in with_arcs]),
        "directed": parts[0].directed,
        "targets": concatenate_present([p.targets for p in parts]),
    }


def _check_joinable(parts: list[Graphs]) -> None:
    first = next((i for i, part in enumerate(parts) if part.n_nodes), 0)
    first_arc = next((i for i, part in enumerate(parts) if len(part.indices)), 0)
    for i, part in enumerate(parts):
        checks = [(first, _contents(part), _contents(parts[first]))]
        if part.n_nodes:
            checks.append((first, _dimension(part.attributes, "node"), _dimension(parts[first].attributes, "node")))
        if len(part.indices):
            other = parts[first_arc].edge_attributes
            checks.append((first_arc, _dimension(part.edge_attributes, "edge"), _dimension(other, "edge")))
        for number, mine, theirs in checks:
            if mine != theirs:
                told = next((m, t) for m, t in zip(mine, theirs, strict=True) if m != t)
                raise InvalidGraphError(
                    f"Collections of different kinds cannot be joined: part {number} has {told[1]}, part {i} has {told[0]}."
                )


def _contents(graphs: Graphs) -> tuple[str, ...]:
    """What collections that are to be joined must have in common."""
    return (
        "no labels" if graphs.labels is None else "labels",
        "no edge labels" if graphs.edge_labels is None else "edge labels",
        f"{'directed' if graphs.directed else 'undirected'} edges",
    )


def _dimension(vectors: Floats | None, thing: str) -> tuple[str, ...]:
    return (f"{counted(0 if vectors is None else vectors.shape[1], 'attribute')} per {thing}",)
