"""What is odd about a collection of graphs: one sentence for each thing that a user should know or act on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from treegram._core.text import counted

__all__ = ["oddities"]

_SCALES = 10  # columns whose standard deviations differ by more
_FEW_VECTORS = 0.05  # distinct vectors per node below which they are few
_UNBALANCED = 1.5  # largest class by smallest class
_FOLDS = 10  # of the usual cross-validation
_LARGE = 10  # largest graph by mean graph


def oddities(found: dict[str, Any]) -> list[str]:
    """The sentences, the weightiest first; ``found`` is the rest of what ``describe`` gives."""
    return [
        *_about_size(found),
        *_about_targets(found),
        *_about_shape(found),
        *_about_labels(found),
        *_about_vectors(found),
        *_about_edges(found),
    ]


def _about_size(found: dict[str, Any]) -> Iterator[str]:
    nodes = found["nodes"]
    if not found["n_graphs"]:
        yield "There is no graph."
    if nodes["max"] > _LARGE * nodes["mean"]:
        yield f"The largest graph has {nodes['max']} nodes, {nodes['max'] / nodes['mean']:.0f} times the mean."


def _about_targets(found: dict[str, Any]) -> Iterator[str]:
    targets = found["targets"]
    if targets is None:
        yield "There are no targets: nothing can be learned or cross-validated."
    elif targets["kind"] == "classes":
        counts = [one["count"] for one in targets["classes"]]
        if len(counts) == 1:
            yield "There is only one class: nothing can be learned."
        elif counts and max(counts) >= _UNBALANCED * min(counts):
            yield (
                f"Classes are unbalanced ({max(counts)} to {min(counts)}): always guessing the largest is right in "
                f"{targets['majority']:.1%} of the cases."
            )
        if small := sum(count < _FOLDS for count in counts):
            yield f"{counted(small, 'class has', 'classes have')} fewer than {_FOLDS} graphs: too few for {_FOLDS} stratified folds."
    copies = found["copies"]
    if copies["graphs"]:
        other = f", {copies['other_target']} of them with another target" if copies["other_target"] else ""
        yield f"{counted(copies['graphs'], 'graph is an exact copy', 'graphs are exact copies')} of an earlier one{other}."


def _about_shape(found: dict[str, Any]) -> Iterator[str]:
    shape = found["shape"]
    if found["n_graphs"] > 1 and shape["distinct_structures"] == 1:
        yield "All graphs have the same structure, node by node: they can differ in labels and attributes alone."
    if shape["graphs_without_nodes"]:
        yield f"{counted(shape['graphs_without_nodes'], 'graph has', 'graphs have')} no nodes: kernel values are 0."
    if shape["graphs_without_edges"]:
        yield f"{counted(shape['graphs_without_edges'], 'graph has', 'graphs have')} nodes but no edges."
    if shape["disconnected_graphs"]:
        yield f"{counted(shape['disconnected_graphs'], 'graph is', 'graphs are')} not connected."
    if shape["isolated_nodes"]:
        where = counted(shape["graphs_with_isolated_nodes"], "graph", "graphs")
        yield f"{counted(shape['isolated_nodes'], 'node has', 'nodes have')} no neighbor, in {where}."


def _about_labels(found: dict[str, Any]) -> Iterator[str]:
    labels = found["node_labels"]
    if labels is None:
        yield 'There are no node labels: kernels use each node\'s degree (missing_labels="degree") or one label for all ("constant").'
    elif len(labels) == 1:
        yield "All nodes have the same label."


def _about_vectors(found: dict[str, Any]) -> Iterator[str]:
    attributes = found["attributes"]
    if attributes is None:
        yield "There are no attributes: ODDCL then equals ODDST."
        return
    constant = [str(i) for i, column in enumerate(attributes["columns"]) if column["min"] == column["max"]]
    if constant and found["nodes"]["total"]:
        words = ("column", "changes") if len(constant) == 1 else ("columns", "change")
        yield f"Attribute {words[0]} {', '.join(constant)} never {words[1]}."
    deviations = {i: column["sd"] for i, column in enumerate(attributes["columns"]) if column["sd"] > 0}
    if deviations and max(deviations.values()) > _SCALES * min(deviations.values()):
        wide, narrow = max(deviations, key=lambda i: deviations[i]), min(deviations, key=lambda i: deviations[i])
        yield (
            f"Attribute scales differ by {deviations[wide] / deviations[narrow]:.0f}x (standard deviation of column {wide}: "
            f"{deviations[wide]:.3g}, of column {narrow}: {deviations[narrow]:.3g}): the wide ones decide the node kernel."
        )
    n_nodes = found["nodes"]["total"]
    if attributes["n_distinct"] < _FEW_VECTORS * n_nodes:
        yield f"Only {attributes['n_distinct']} distinct vectors at {n_nodes} nodes."
    yield from _about_node_kernel(attributes["node_kernel"])


def _about_node_kernel(kernel: dict[str, Any] | None) -> Iterator[str]:
    if kernel is None:
        return
    where = f"At the default gamma = {kernel['gamma']:.3g} the node kernel"
    if kernel["far_apart"] > 0.5:
        yield (
            f"{where} is below 1e-6 for {kernel['far_apart']:.0%} of the node pairs with equal labels: only nearly equal "
            "vectors count. Try a smaller gamma or scaled attributes."
        )
    if kernel["alike"] > 0.5:
        yield (
            f"{where} is above 0.99 for {kernel['alike']:.0%} of the node pairs with equal labels: vectors hardly count. "
            "Try a larger gamma or scaled attributes."
        )


def _about_edges(found: dict[str, Any]) -> Iterator[str]:
    if found["edge_attributes"]:
        yield "Kernels do not use edge attributes as they are: BinEdgeAttributes makes edge labels of them."
