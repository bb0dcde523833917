"""Transformers from files and tables to graphs, as the first step of a pipeline: model files remember how graphs were made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, Self, TypeVar

from sklearn.base import BaseEstimator, TransformerMixin

from treegram._core.errors import InvalidGraphError
from treegram._core.params import FLAG, NOTHING, Allowed, Checked, Instance, Number, Whole, Words, parameters
from treegram._core.text import suggest
from treegram.graphs import Graphs

__all__ = ["ProteinGraphs", "Source", "TableGraphs", "make_source"]

_NAME = Instance((str,), "a name")
_NAMES = Instance((str, list, tuple), "a name or a list of names")


class Source(Checked, TransformerMixin, BaseEstimator, ABC):
    """Base class: anything in, graphs out, and nothing is learned."""

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002 (scikit-learn's signature)
        """Check the parameters; nothing is learned.

        Parameters
        ----------
        X : ignored
            What ``transform`` turns into graphs.
        y : ignored
            Present for compatibility with scikit-learn pipelines.

        Returns
        -------
        self
            The transformer.
        """
        self._check_parameters()
        return self

    @abstractmethod
    def transform(self, X: Any) -> Graphs:
        """Return the graphs."""

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


AnySource = TypeVar("AnySource", bound=Source)


def make_source(kind: type[AnySource], options: dict[str, Any], owner: str) -> AnySource:
    """Return a transformer with checked parameters; ``owner`` is the function that an error names."""
    known = list(kind._allowed)
    for name in options:
        if name not in known:
            hint = suggest(name, known) or f"; it takes {', '.join(known)}."
            raise TypeError(f"{owner} got an unexpected keyword argument {name!r}{hint}")
    source = kind(**options)
    source._check_parameters()
    return source


@parameters
class ProteinGraphs(Source):
    """Turn protein structures into graphs of residues, as the first step of a pipeline. Requires gemmi.

    A node is an amino acid, and its label is the residue's name. Residues whose CA atoms are close are joined by edges.

    Parameters
    ----------
    attributes : {"coordinates", "invariant"} or None, default="coordinates"
        Vector of each residue. "coordinates": the position of its CA atom. "invariant": the distances of its CA atom to the
        centroid of the graph and to the residues before and after it in the sequence (0 if there is none), which do not change
        when the structure is rotated or moved.
    contact : float, default=8.0
        Distance in ångströms up to which two CA atoms are joined by an edge.
    sequence : bool, default=False
        Whether consecutive residues of the sequence are joined regardless of their distance.
    chains : str, list of str or None, default=None
        Names of the chains to use; None: all. Each name must exist in every structure.
    model : int, default=0
        Model of the structure to use, counted from 0.
    missing : {"error", "skip"}, default="error"
        Whether a residue without a CA atom raises an error, or is skipped with a warning.

    See Also
    --------
    Graphs.from_pdb : Convert structures once.

    Notes
    -----
    Of alternate locations of an atom, the first with the highest occupancy is used. Residues are consecutive if their
    numbers are.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from treegram import GraphSVC, ProteinGraphs
    >>> model = make_pipeline(ProteinGraphs(contact=6), GraphSVC())  # model.fit(paths, y); model.predict(new_paths)
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "attributes": (Words("coordinates", "invariant"), NOTHING),
        "contact": (Number(0, above=True),),
        "sequence": (FLAG,),
        "chains": (_NAMES, NOTHING),
        "model": (Whole(0),),
        "missing": (Words("error", "skip"),),
    }

    attributes: str | None = field(default="coordinates", kw_only=False)
    contact: float = 8.0
    sequence: bool = False
    chains: str | Sequence[str] | None = None
    model: int = 0
    missing: str = "error"

    def transform(self, X: Any) -> Graphs:
        """Turn structures into graphs.

        Parameters
        ----------
        X : list of paths or of gemmi.Structure
            Files in PDB or mmCIF format, also gzipped.

        Returns
        -------
        Graphs
            One graph per structure, in the same order.
        """
        self._check_parameters()
        return Graphs.from_pdb(X, **self.get_params())


@parameters
class TableGraphs(Source):
    """Turn tables of nodes, edges and graphs into graphs, as the first step of a pipeline.

    Parameters
    ----------
    label : str or None, default=None
        Column of the node table with the discrete label.
    attributes : str, list of str or None, default=None
        Columns of the node table that form the vector of a node.
    edge_label : str or None, default=None
        Column of the edge table with the discrete label.
    edge_attributes : str, list of str or None, default=None
        Columns of the edge table that form the vector of an edge.
    graph_attributes : str, list of str or None, default=None
        Columns of the graph table that form the vector of a graph.
    graph : str, default="graph"
        Column with the name of the graph, in the tables of nodes and graphs, and in the edge table unless node names are
        unique.
    node : str, default="node"
        Column of the node table with the name of the node.
    source : str, default="source"
        Column of the edge table with the name of the first node.
    target : str, default="target"
        Column of the edge table with the name of the second node.
    directed : bool, default=False
        Whether edges are directed, from source to target.

    See Also
    --------
    Graphs.from_tables : Convert tables once.

    Examples
    --------
    >>> from treegram import TableGraphs
    >>> nodes = {"graph": ["a", "a", "b"], "node": [1, 2, 1], "element": ["C", "O", "N"]}
    >>> edges = {"graph": ["a"], "source": [1], "target": [2]}
    >>> TableGraphs("element").fit_transform({"nodes": nodes, "edges": edges})
    Graphs(2 graphs, 3 nodes, 1 edge, undirected, 3 labels)
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "label": (_NAME, NOTHING),
        "attributes": (_NAMES, NOTHING),
        "edge_label": (_NAME, NOTHING),
        "edge_attributes": (_NAMES, NOTHING),
        "graph_attributes": (_NAMES, NOTHING),
        "graph": (_NAME,),
        "node": (_NAME,),
        "source": (_NAME,),
        "target": (_NAME,),
        "directed": (FLAG,),
    }

    label: str | None = field(default=None, kw_only=False)
    attributes: str | Sequence[str] | None = None
    edge_label: str | None = None
    edge_attributes: str | Sequence[str] | None = None
    graph_attributes: str | Sequence[str] | None = None
    graph: str = "graph"
    node: str = "node"
    source: str = "source"
    target: str = "target"
    directed: bool = False

    def transform(self, X: Any) -> Graphs:
        """Turn tables into graphs.

        Parameters
        ----------
        X : dict with the keys "nodes", "edges" and, optionally, "graphs"
            The tables: pandas, polars, Arrow, or dictionaries of columns.

        Returns
        -------
        Graphs
            The graphs, in the order of the table of graphs, or else in which their names first appear in the table of nodes.
        """
        self._check_parameters()
        if not isinstance(X, Mapping) or not {"nodes", "edges"} <= set(X) <= {"nodes", "edges", "graphs"}:
            raise InvalidGraphError(
                "X must be a dict of tables, {'nodes': ..., 'edges': ...}, and 'graphs' if there is one."
            )
        return Graphs.from_tables(**X, **self.get_params())
