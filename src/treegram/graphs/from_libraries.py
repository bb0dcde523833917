"""Constructors of Graphs from objects of other libraries, and the conversion back to networkx.

They are in a separate base class because their documentation is long. Each imports its reader when called.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from treegram.graphs import Graphs

ColumnNames = str | Sequence[str] | None


class FromLibraries:
    """The constructors of Graphs from objects of other libraries."""

    @classmethod
    def from_networkx(
        cls,
        graphs: Any,
        label: str | None = "label",
        attributes: ColumnNames = "attributes",
        *,
        edge_label: str | None = None,
        edge_attributes: ColumnNames = None,
        targets: ArrayLike | str | None = None,
        graph_names: Sequence[str] | None = None,
    ) -> Graphs:
        """Build a collection from networkx graphs.

        Parameters
        ----------
        graphs : networkx.Graph or networkx.DiGraph, or iterable of these
            Either all directed or all undirected. Nodes keep their order. Node keys that are strings become ``node_names``,
            and ``graph.name`` the name of a graph. Parallel edges of a multigraph become one, and their data must be
            equal.
        label : str or None, default="label"
            Node data key of the discrete label; None for no labels. The default may be missing; any other name must
            exist.
        attributes : str, sequence of str, or None, default="attributes"
            Node data key of the vector (or a number), or keys of several numbers that form the vector; None for no
            attributes. The default may be missing; any other name must exist.
        edge_label : str or None, default=None
            Edge data key of the discrete edge label.
        edge_attributes : str, sequence of str, or None, default=None
            Key or keys of the edge data that form the vector of an edge.
        targets : array-like of shape (n_graphs,), or str, optional
            One class or regression target per graph, or the key of the target in ``graph.graph``.
        graph_names : sequence of str, optional
            Names of the graphs; by default their own, if all have one.

        Returns
        -------
        Graphs
            The collection.

        Warns
        -----
        UserWarning
            Once, if some data of nodes or edges are not used.

        See Also
        --------
        to_networkx : Convert back.

        Examples
        --------
        >>> import networkx as nx
        >>> from treegram import Graphs
        >>> water = nx.Graph([("H1", "O"), ("O", "H2")])
        >>> nx.set_node_attributes(water, {"H1": "H", "O": "O", "H2": "H"}, "element")
        >>> Graphs.from_networkx([water], label="element")
        Graphs(1 graph, 3 nodes, 2 edges, undirected, 2 labels)
        """
        from treegram.graphs.libraries import read_networkx

        return read_networkx(graphs, (label, attributes, edge_label, edge_attributes), targets, graph_names)

    def to_networkx(self) -> list[Any]:
        """Return one networkx graph per graph; :meth:`from_networkx` converts back.

        Returns
        -------
        list of networkx.Graph or networkx.DiGraph
            Node keys are the names of the nodes if these are distinct, else numbers from 0. Nodes and edges have "label" and "attributes" (a list of numbers) if the collection
            has them, and ``graph.graph["target"]`` is the target.

        Examples
        --------
        >>> from treegram import Graphs
        >>> (chain,) = Graphs.from_edges([[(0, 1), (1, 2)]], labels=[["C", "C", "O"]]).to_networkx()
        >>> chain.nodes[2]
        {'label': 'O'}
        """
        from treegram.graphs.libraries import write_networkx

        return write_networkx(self)  # type: ignore[arg-type] # self is a Graphs

    @classmethod
    def from_smiles(
        cls,
        smiles: Iterable[str],
        *,
        on_error: str = "raise",
        targets: ArrayLike | None = None,
        graph_names: Sequence[str] | None = None,
        graph_attributes: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Graphs:
        """Build a collection from SMILES: atoms are nodes, bonds are edges. Requires RDKit.

        Parameters
        ----------
        smiles : iterable of str
            The molecules.
        on_error : {"raise", "skip"}, default="raise"
            Whether an invalid molecule raises an error, or is skipped along with its target, with a warning.
            :func:`invalid_molecules` finds them.
        targets : array-like of shape (n_molecules,), optional
            One class or regression target per molecule.
        graph_names : sequence of str, optional
            Names of the molecules; by default their SMILES.
        graph_attributes : dict of str to array-like of shape (n_molecules, n_columns), optional
            Your own fingerprints or descriptors, by name. The automatic models compare molecules by each of them.
        **kwargs
            Parameters of :class:`MoleculeGraphs`: ``labels``, ``attributes``, ``hydrogens``, ``descriptors``, ``n_jobs``.

        Returns
        -------
        Graphs
            The collection.

        Examples
        --------
        >>> from treegram import Graphs
        >>> Graphs.from_smiles(["CCO", "c1ccccc1"], attributes=["partial_charge", "mass"])
        Graphs(2 graphs, 9 nodes, 8 edges, undirected, 2 labels, 2 attributes, 2 edge labels)
        """
        from treegram.graphs.molecules import read_molecules

        return read_molecules(
            smiles,
            "Graphs.from_smiles",
            on_error=on_error,
            targets=targets,
            graph_names=graph_names,
            graph_attributes=graph_attributes,
            **kwargs,
        )

    @classmethod
    def from_rdkit(cls, mols: Iterable[Any], **kwargs: Any) -> Graphs:
        """Build a collection from RDKit molecules, which are not changed.

        Parameters
        ----------
        mols : iterable of rdkit.Chem.Mol
            The molecules. Their 3D coordinates, if any, are used for attributes that need coordinates. None is an invalid
            molecule.
        **kwargs
            As in :meth:`from_smiles`: ``on_error``, ``targets``, ``graph_attributes``, ``graph_names`` (by default the property ``_Name``, else the
            SMILES), and the parameters of :class:`MoleculeGraphs`.

        Returns
        -------
        Graphs
            The collection.
        """
        from treegram.graphs.molecules import read_molecules

        return read_molecules(mols, "Graphs.from_rdkit", **kwargs)

    @classmethod
    def from_igraph(
        cls,
        graphs: Any,
        label: str | None = "label",
        attributes: ColumnNames = "attributes",
        *,
        edge_label: str | None = None,
        edge_attributes: ColumnNames = None,
        targets: ArrayLike | str | None = None,
        graph_names: Sequence[str] | None = None,
    ) -> Graphs:
        """Build a collection from igraph graphs.

        Parameters
        ----------
        graphs : igraph.Graph, or iterable of these
            Either all directed or all undirected. The vertex attribute "name" becomes ``node_names``, and the graph attribute
            "name" the name of a graph.
        label : str or None, default="label"
            Vertex attribute with the discrete label; None for no labels. The default may be missing; any other name
            must exist.
        attributes : str, sequence of str, or None, default="attributes"
            Vertex attribute with the vector (or a number), or several attributes with numbers that form the vector; None for
            no attributes. The default may be missing; any other name must exist.
        edge_label : str or None, default=None
            Edge attribute with the discrete edge label.
        edge_attributes : str, sequence of str, or None, default=None
            Edge attribute or attributes that form the vector of an edge.
        targets : array-like of shape (n_graphs,), or str, optional
            One class or regression target per graph, or the graph attribute with the target.
        graph_names : sequence of str, optional
            Names of the graphs; by default their own, if all have one.

        Returns
        -------
        Graphs
            The collection.

        Warns
        -----
        UserWarning
            Once, if some data of vertices or edges are not used.

        Examples
        --------
        >>> import igraph
        >>> from treegram import Graphs
        >>> ring = igraph.Graph.Ring(4)
        >>> ring.vs["charge"] = [0.5, -0.5, 0.5, -0.5]
        >>> Graphs.from_igraph([ring], attributes="charge")
        Graphs(1 graph, 4 nodes, 4 edges, undirected, no labels, 1 attribute)
        """
        from treegram.graphs.libraries import read_igraph

        return read_igraph(graphs, (label, attributes, edge_label, edge_attributes), targets, graph_names)

    @classmethod
    def from_pyg(
        cls,
        data: Any,
        label: str | None = None,
        attributes: ColumnNames = "x",
        *,
        edge_label: str | None = None,
        edge_attributes: ColumnNames = "edge_attr",
        targets: ArrayLike | str | None = "y",
        directed: bool = False,
        graph_names: Sequence[str] | None = None,
    ) -> Graphs:
        """Build a collection from Data objects of PyTorch Geometric.

        Parameters
        ----------
        data : Data or Batch, or a list, data set, loader or other iterable of these
            The graphs. Tensors are copied to CPU memory.
        label : str or None, default=None
            Name of the tensor with the discrete label of each node, such as "z".
        attributes : str, sequence of str, or None, default="x"
            Name or names of the tensors that form the vector of each node, such as ``["x", "pos"]``. The default may be
            missing; any other name must exist. Many data sets have a one-hot label in ``x``: ``graphs.assign(labels=...)``
            can turn these columns into labels.
        edge_label : str or None, default=None
            Name of the tensor with the discrete label of each edge.
        edge_attributes : str, sequence of str, or None, default="edge_attr"
            Name or names of the tensors that form the vector of each edge. The default may be missing.
        targets : array-like of shape (n_graphs,), or str, default="y"
            One class or regression target per graph, or the name of the tensor with the target. The default may be
            missing.
        directed : bool, default=False
            Whether ``edge_index`` lists directed edges. By default edges are undirected, as in most data sets, which list
            each edge in both directions.
        graph_names : sequence of str, optional
            Names of the graphs; by default none.

        Returns
        -------
        Graphs
            The collection.

        Warns
        -----
        UserWarning
            Once, if some data of nodes or edges are not used.
        """
        from treegram.graphs.libraries import read_pyg

        columns = (label, attributes, edge_label, None if edge_attributes == edge_label else edge_attributes)
        return read_pyg(data, columns, targets, graph_names, directed=directed)

    @classmethod
    def from_tables(
        cls,
        nodes: Any,
        edges: Any,
        graphs: Any = None,
        *,
        targets: ArrayLike | str | None = None,
        graph_names: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> Graphs:
        """Build a collection from a table of nodes, a table of edges and, optionally, a table of graphs.

        Parameters
        ----------
        nodes : pandas, polars or Arrow table, or mapping of names to columns
            One row per node. Graphs are in the order in which their names first appear here, or in that of ``graphs``.
        edges : pandas, polars or Arrow table, or mapping of names to columns
            One row per edge.
        graphs : pandas, polars or Arrow table, or mapping of names to columns, optional
            One row per graph, in the order of the collection.
        targets : str, or array-like of shape (n_graphs,), optional
            One class or regression target per graph: a column of the graph table, or of the node table where it is
            constant within each graph, or an array in the order of the graphs.
        graph_names : sequence of str, optional
            Names of the graphs; by default those in the column ``graph``.
        **kwargs
            Columns, by name:

            - ``label``, by default "label" if there is such a column: the discrete label of a node;
            - ``attributes``: the columns that form the vector of a node, by default (True) all others that hold numbers; None for no
              vectors. Name a column of targets, so that it is no attribute;
            - ``edge_label`` and ``edge_attributes``: the same for edges;
            - ``graph_attributes``: columns of the graph table that form the vector of a graph, by default none;
            - ``graph``: the name of the graph, in the tables of nodes and graphs, and in the edge table unless node names are
              unique;
            - ``node``: the name of the node, in the node table;
            - ``source`` and ``target``: the names of the two nodes, in the edge table.

            And ``directed``, by default False: whether edges lead from source to target only.

        Returns
        -------
        Graphs
            The collection, with the names of graphs, nodes and columns.

        Warns
        -----
        UserWarning
            Once, if some columns of nodes or edges are not used, such as further columns of text.

        Examples
        --------
        >>> from treegram import Graphs
        >>> nodes = {"graph": ["a", "a", "b"], "node": [1, 2, 1], "element": ["C", "O", "N"], "charge": [0.1, -0.1, 0.0]}
        >>> edges = {"graph": ["a"], "source": [1], "target": [2]}
        >>> Graphs.from_tables(nodes, edges, label="element")
        Graphs(2 graphs, 3 nodes, 1 edge, undirected, 3 labels, 1 attribute)
        """
        from treegram.graphs.tables import TableGraphs, read_tables
        from treegram.graphs.transforms import make_source

        options = make_source(TableGraphs, kwargs, "Graphs.from_tables")
        return read_tables(nodes, edges, graphs, targets, graph_names, options)

    @classmethod
    def from_grakel(
        cls,
        graphs: Iterable[Any],
        *,
        node_data: str = "labels",
        directed: bool = False,
        targets: ArrayLike | None = None,
        graph_names: Sequence[str] | None = None,
    ) -> Graphs:
        """Build a collection from GraKeL's input format.

        Parameters
        ----------
        graphs : iterable of tuples or grakel.Graph
            Each is ``(edges, node labels, edge labels)``; the last two are optional. Edges are a dictionary from pairs to
            weights or from nodes to neighbors, a list or set of pairs, or an adjacency matrix; labels are dictionaries.
        node_data : {"labels", "attributes"}, default="labels"
            Whether the node dictionaries hold discrete labels or vectors; GraKeL calls both labels.
        directed : bool, default=False
            Whether edges are directed.
        targets : array-like of shape (n_graphs,), optional
            One class or regression target per graph.
        graph_names : sequence of str, optional
            Names of the graphs; by default none.

        Returns
        -------
        Graphs
            The collection. Nodes are in the order of their labels, then of the edges.

        Warns
        -----
        UserWarning
            Once, if some edge weights are not 1, since weights are not used.

        Examples
        --------
        >>> from treegram import Graphs
        >>> water = ({("O", "H1"): 1, ("O", "H2"): 1}, {"O": "O", "H1": "H", "H2": "H"})
        >>> Graphs.from_grakel([water])
        Graphs(1 graph, 3 nodes, 2 edges, undirected, 2 labels)
        """
        from treegram.graphs.libraries import read_grakel

        return read_grakel(graphs, targets, graph_names, node_data=node_data, directed=directed)

    @classmethod
    def from_pdb(
        cls,
        structures: Any,
        *,
        targets: ArrayLike | None = None,
        graph_names: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> Graphs:
        """Build a graph of residues from each protein structure. Requires gemmi.

        Parameters
        ----------
        structures : path, gemmi.Structure, or iterable of these
            Files in PDB or mmCIF format, optionally gzipped. Each becomes one graph.
        targets : array-like of shape (n_graphs,), optional
            One class or regression target per structure.
        graph_names : sequence of str, optional
            Names of the graphs; by default those of the files without extensions, "1abc".
        **kwargs
            Parameters of :class:`ProteinGraphs`: ``attributes``, ``contact``, ``chains``, ``missing``.

        Returns
        -------
        Graphs
            The collection, undirected, without water or ligands. A node is named after its chain, number and residue
            ("A/141 CYS"), and ``positions`` holds the coordinates of its CA atom, for drawings.

        Warns
        -----
        UserWarning
            Once, if residues without a CA atom were skipped.
        """
        from treegram.graphs.proteins import ProteinGraphs, read_pdb
        from treegram.graphs.transforms import make_source

        return read_pdb(structures, make_source(ProteinGraphs, kwargs, "Graphs.from_pdb"), targets, graph_names)


for _method in vars(FromLibraries).values():
    if isinstance(_method, classmethod):  # so that the error about an unknown parameter speaks of Graphs
        _method.__func__.__qualname__ = f"Graphs.{_method.__func__.__name__}"
