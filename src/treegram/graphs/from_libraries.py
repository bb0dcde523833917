"""Ways into Graphs for what other libraries have, and one way back: thin doors. Each loads its converter when it is used."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from treegram.graphs import Graphs

__all__ = ["FromLibraries"]

Names = str | Sequence[str] | None


class FromLibraries:
    """The part of Graphs that makes collections from objects of other libraries."""

    @classmethod
    def from_networkx(
        cls,
        graphs: Any,
        label: str | None = "label",
        attributes: Names = "attributes",
        *,
        edge_label: str | None = None,
        edge_attributes: Names = None,
        targets: ArrayLike | str | None = None,
    ) -> Graphs:
        """Make a collection from networkx graphs.

        Parameters
        ----------
        graphs : networkx.Graph or networkx.DiGraph, or iterable of these
            Either all directed or all undirected. Nodes keep their order; their names are not kept. Of parallel edges of a
            multigraph one is kept, and their data must be equal.
        label : str or None, default="label"
            Name of the node datum that holds the discrete label; None: no labels. The default may be missing, any other
            name must exist.
        attributes : str, sequence of str, or None, default="attributes"
            Name of the node datum that holds the vector (or a number), or names of several numbers that make the
            vector; None: no attributes. The default may be missing, any other name must exist.
        edge_label : str or None, default=None
            Name of the edge datum that holds the discrete edge label.
        edge_attributes : str, sequence of str, or None, default=None
            Name or names of the edge data that make the real vector of an edge.
        targets : array-like of shape (n_graphs,), or str, optional
            One class or number per graph, or the name under which each graph has its own (``graph.graph[name]``).

        Returns
        -------
        Graphs
            The collection.

        Warns
        -----
        UserWarning
            Once, if nodes or edges have data that are not used.

        See Also
        --------
        to_networkx : The way back.

        Examples
        --------
        >>> import networkx as nx
        >>> from treegram import Graphs
        >>> water = nx.Graph([("H1", "O"), ("O", "H2")])
        >>> nx.set_node_attributes(water, {"H1": "H", "O": "O", "H2": "H"}, "element")
        >>> Graphs.from_networkx([water], label="element")
        Graphs(1 graph, 3 nodes, 2 edges, undirected, 2 labels)
        """
        from treegram.graphs.named import Choice
        from treegram.graphs.networkx import read_networkx

        usual = {"label": "label", "attributes": "attributes"}
        return read_networkx(graphs, Choice(label, attributes, edge_label, edge_attributes, targets, usual))

    def to_networkx(self) -> list[Any]:
        """Give one networkx graph per graph; :meth:`from_networkx` makes an equal collection of them.

        Returns
        -------
        list of networkx.Graph or networkx.DiGraph
            Nodes are numbered from 0. Nodes and edges have "label" and "attributes" (a list of numbers) where the collection
            has these, and ``graph.graph["target"]`` is the target.

        Examples
        --------
        >>> from treegram import Graphs
        >>> (chain,) = Graphs.from_edges([[(0, 1), (1, 2)]], labels=[["C", "C", "O"]]).to_networkx()
        >>> chain.nodes[2]
        {'label': 'O'}
        """
        from treegram.graphs.networkx import write_networkx

        return write_networkx(self)  # type: ignore[arg-type] # self is a Graphs

    @classmethod
    def from_smiles(
        cls, smiles: Iterable[str], *, on_error: str = "raise", targets: ArrayLike | None = None, **kwargs: Any
    ) -> Graphs:
        """Make a collection from molecules that are given as SMILES: atoms are nodes, bonds are edges. Needs RDKit.

        Parameters
        ----------
        smiles : iterable of str
            The molecules.
        on_error : {"raise", "skip"}, default="raise"
            What to do about a molecule that cannot be used: raise an error, or leave it out, with its target, and warn.
            :func:`invalid_molecules` tells which these are.
        targets : array-like of shape (n_molecules,), optional
            One class or number per molecule.
        **kwargs
            What the graphs say, as parameters of :class:`MoleculeGraphs`: ``labels``, ``attributes``, ``bond_labels``,
            ``hydrogens``, ``random_state``.

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

        return read_molecules(smiles, kwargs, on_error, targets, "Graphs.from_smiles")

    @classmethod
    def from_rdkit(
        cls, mols: Iterable[Any], *, on_error: str = "raise", targets: ArrayLike | None = None, **kwargs: Any
    ) -> Graphs:
        """Make a collection from molecules of RDKit, which are not changed.

        Parameters
        ----------
        mols : iterable of rdkit.Chem.Mol
            The molecules. 3D coordinates of theirs are used where ``attributes`` ask for coordinates.
        on_error : {"raise", "skip"}, default="raise"
            As in :meth:`from_smiles`; None among the molecules is an error as any other.
        targets : array-like of shape (n_molecules,), optional
            One class or number per molecule.
        **kwargs
            Parameters of :class:`MoleculeGraphs`, as in :meth:`from_smiles`.

        Returns
        -------
        Graphs
            The collection.
        """
        from treegram.graphs.molecules import read_molecules

        return read_molecules(mols, kwargs, on_error, targets, "Graphs.from_rdkit")

    @classmethod
    def from_igraph(
        cls,
        graphs: Any,
        label: str | None = "label",
        attributes: Names = "attributes",
        *,
        edge_label: str | None = None,
        edge_attributes: Names = None,
        targets: ArrayLike | str | None = None,
    ) -> Graphs:
        """Make a collection from graphs of igraph.

        Parameters
        ----------
        graphs : igraph.Graph, or iterable of these
            Either all directed or all undirected.
        label : str or None, default="label"
            Name of the vertex attribute that holds the discrete label; None: no labels. The default may be missing, any
            other name must exist.
        attributes : str, sequence of str, or None, default="attributes"
            Name of the vertex attribute that holds the vector (or a number), or names of several numbers that make the
            vector; None: no attributes. The default may be missing, any other name must exist.
        edge_label : str or None, default=None
            Name of the edge attribute that holds the discrete edge label.
        edge_attributes : str, sequence of str, or None, default=None
            Name or names of the edge attributes that make the real vector of an edge.
        targets : array-like of shape (n_graphs,), or str, optional
            One class or number per graph, or the name of the graph attribute that holds it.

        Returns
        -------
        Graphs
            The collection.

        Warns
        -----
        UserWarning
            Once, if vertices or edges have data that are not used.

        Examples
        --------
        >>> import igraph
        >>> from treegram import Graphs
        >>> ring = igraph.Graph.Ring(4)
        >>> ring.vs["charge"] = [0.5, -0.5, 0.5, -0.5]
        >>> Graphs.from_igraph([ring], attributes="charge")
        Graphs(1 graph, 4 nodes, 4 edges, undirected, no labels, 1 attribute)
        """
        from treegram.graphs.igraph import read_igraph
        from treegram.graphs.named import Choice

        usual = {"label": "label", "attributes": "attributes"}
        return read_igraph(graphs, Choice(label, attributes, edge_label, edge_attributes, targets, usual))

    @classmethod
    def from_pyg(
        cls,
        data: Any,
        label: str | None = None,
        attributes: Names = "x",
        *,
        one_hot: bool | slice | Sequence[int] = False,
        edge_label: str | None = None,
        edge_attributes: Names = "edge_attr",
        targets: ArrayLike | str | None = "y",
        directed: bool = False,
    ) -> Graphs:
        """Make a collection from Data objects of PyTorch Geometric.

        Parameters
        ----------
        data : Data or Batch, or a list, data set, loader or other iterable of these
            The graphs. Tensors are copied to the memory of the CPU.
        label : str or None, default=None
            Name of the tensor that holds the discrete label of each node, such as "z".
        attributes : str, sequence of str, or None, default="x"
            Name or names of the tensors that make the vector of each node, such as ``["x", "pos"]``. The default may be
            missing, any other name must exist.
        one_hot : bool, slice or sequence of int, default=False
            Columns of ``attributes`` that say the label by which of them is 1: True for all, or a slice or the numbers of
            some. The label is the number of the column among these, and the other columns stay attributes.
        edge_label : str or None, default=None
            Name of the tensor that holds the discrete label of each edge.
        edge_attributes : str, sequence of str, or None, default="edge_attr"
            Name or names of the tensors that make the vector of each edge. The default may be missing.
        targets : array-like of shape (n_graphs,), or str, default="y"
            One class or number per graph, or the name under which each graph has its own. The default may be missing.
        directed : bool, default=False
            Whether an entry of ``edge_index`` leads in its direction only. By default it stands for an edge without
            direction, as in most data sets, which list each edge twice.

        Returns
        -------
        Graphs
            The collection.

        Warns
        -----
        UserWarning
            Once, if nodes or edges have data that are not used.
        """
        from treegram.graphs.named import Choice
        from treegram.graphs.pyg import read_pyg

        usual = {"attributes": "x", "edge_attributes": "edge_attr", "targets": "y"}
        if edge_label == edge_attributes:
            edge_attributes = None
        choice = Choice(label, attributes, edge_label, edge_attributes, targets, usual)
        return read_pyg(data, choice, one_hot=one_hot, directed=directed)

    @classmethod
    def from_tables(
        cls,
        nodes: Any,
        edges: Any,
        *,
        graph: str = "graph",
        node: str = "node",
        source: str = "source",
        target: str = "target",
        label: str | None = None,
        attributes: Names = None,
        edge_label: str | None = None,
        edge_attributes: Names = None,
        targets: ArrayLike | Mapping[Any, Any] | str | None = None,
        directed: bool = False,
    ) -> Graphs:
        """Make a collection from a table of nodes and a table of edges.

        Parameters
        ----------
        nodes : pandas, polars or Arrow table, or mapping of names to columns
            One row per node. Graphs come in the order in which their names first appear here.
        edges : pandas, polars or Arrow table, or mapping of names to columns
            One row per edge.
        graph : str, default="graph"
            Column with the name of the graph, in the node table; also in the edge table unless names of nodes are unique.
        node : str, default="node"
            Column of the node table with the name of the node.
        source, target : str, default="source" and "target"
            Columns of the edge table with the names of the two nodes.
        label : str, optional
            Column of the node table with the discrete label.
        attributes : str or sequence of str, optional
            Column or columns of the node table that make the vector of a node.
        edge_label : str, optional
            Column of the edge table with the discrete label.
        edge_attributes : str or sequence of str, optional
            Column or columns of the edge table that make the vector of an edge.
        targets : str, mapping, or array-like of shape (n_graphs,), optional
            One class or number per graph: a column of the node table that has one value for all nodes of a graph, or a
            mapping from the name of each graph, or an array in the order of the graphs.
        directed : bool, default=False
            Whether an edge leads from its source to its target only.

        Returns
        -------
        Graphs
            The collection.

        Warns
        -----
        UserWarning
            Once, if the tables have columns that are not used.

        Examples
        --------
        >>> from treegram import Graphs
        >>> nodes = {"graph": ["a", "a", "b"], "node": [1, 2, 1], "element": ["C", "O", "N"], "charge": [0.1, -0.1, 0.0]}
        >>> edges = {"graph": ["a"], "source": [1], "target": [2]}
        >>> Graphs.from_tables(nodes, edges, label="element", attributes="charge")
        Graphs(2 graphs, 3 nodes, 1 edge, undirected, 3 labels, 1 attribute)
        """
        from treegram.graphs.tables import read_tables

        return read_tables(
            nodes,
            edges,
            graph=graph,
            node=node,
            source=source,
            target=target,
            label=label,
            attributes=attributes,
            edge_label=edge_label,
            edge_attributes=edge_attributes,
            targets=targets,
            directed=directed,
        )

    @classmethod
    def from_grakel(
        cls,
        graphs: Iterable[Any],
        *,
        node_data: str = "labels",
        edge_data: str = "labels",
        directed: bool = False,
        targets: ArrayLike | None = None,
    ) -> Graphs:
        """Make a collection from graphs as GraKeL takes them.

        Parameters
        ----------
        graphs : iterable of tuples or grakel.Graph
            Each is ``(edges, node labels, edge labels)``, of which the last two may be left out. Edges are a dictionary from
            pairs to weights, or from nodes to neighbors, a list or set of pairs, or an adjacency matrix; labels are
            dictionaries.
        node_data : {"labels", "attributes"}, default="labels"
            Whether the dictionaries of the nodes hold discrete labels or vectors: GraKeL calls both labels.
        edge_data : {"labels", "attributes"}, default="labels"
            The same for edges.
        directed : bool, default=False
            Whether a pair leads in its direction only.
        targets : array-like of shape (n_graphs,), optional
            One class or number per graph.

        Returns
        -------
        Graphs
            The collection. Nodes come in the order of their labels, then of the edges.

        Warns
        -----
        UserWarning
            Once, if edges have weights other than 1, which are not used.

        Examples
        --------
        >>> from treegram import Graphs
        >>> water = ({("O", "H1"): 1, ("O", "H2"): 1}, {"O": "O", "H1": "H", "H2": "H"})
        >>> Graphs.from_grakel([water])
        Graphs(1 graph, 3 nodes, 2 edges, undirected, 2 labels)
        """
        from treegram.graphs.grakel import read_grakel

        return read_grakel(graphs, node_data=node_data, edge_data=edge_data, directed=directed, targets=targets)

    @classmethod
    def from_adjacency(
        cls,
        matrices: Iterable[Any],
        *,
        labels: Sequence[Sequence[Hashable]] | None = None,
        attributes: Sequence[ArrayLike] | None = None,
        entries: str = "edges",
        directed: bool = False,
        targets: ArrayLike | None = None,
    ) -> Graphs:
        """Make a collection from one adjacency matrix per graph.

        Parameters
        ----------
        matrices : iterable of array-like or sparse array of shape (n_nodes, n_nodes)
            There is an edge where an entry is not 0. Entries on the diagonal, self loops, are dropped.
        labels : sequence of sequences, optional
            One discrete label per node and graph.
        attributes : sequence of array-like of shape (n_nodes, n_attributes), optional
            One real vector per node and graph.
        entries : {"edges", "edge_labels", "edge_attributes"}, default="edges"
            What the entries say: that there is an edge, or also its discrete label, or its vector of one number.
        directed : bool, default=False
            Whether the entry (a, b) is an edge from a to b only. By default matrices must be symmetric.
        targets : array-like of shape (n_graphs,), optional
            One class or number per graph.

        Returns
        -------
        Graphs
            The collection.

        Warns
        -----
        UserWarning
            Once, if there are entries other than 0 and 1 that are not used.

        Examples
        --------
        >>> from treegram import Graphs
        >>> Graphs.from_adjacency([[[0, 2], [2, 0]]], labels=[["C", "O"]], entries="edge_labels")
        Graphs(1 graph, 2 nodes, 1 edge, undirected, 2 labels, 1 edge label)
        """
        from treegram.graphs.adjacency import read_adjacency

        return read_adjacency(
            matrices, labels=labels, attributes=attributes, entries=entries, directed=directed, targets=targets
        )

    @classmethod
    def from_pdb(
        cls,
        structures: Any,
        *,
        attributes: str | None = "coordinates",
        contact: float = 8.0,
        sequence: bool = False,
        chains: Sequence[str] | None = None,
        model: int = 0,
        missing: str = "error",
        targets: ArrayLike | None = None,
    ) -> Graphs:
        """Make a graph of residues of each protein structure, read by gemmi.

        A node is an amino acid, its label the residue's name. Residues whose CA atoms are close are joined.

        Parameters
        ----------
        structures : path, gemmi.Structure, or iterable of these
            Files in PDB or mmCIF format, also gzipped. Each becomes one graph.
        attributes : {"coordinates", "invariant"} or None, default="coordinates"
            Vector of each residue. "coordinates": the place of its CA atom. "invariant": the distances of its CA atom to the
            centroid of the graph and to the residues before and after it in the sequence (0 if there is none), which do not change
            when the structure is turned or moved.
        contact : float, default=8.0
            Distance in ångströms up to which two CA atoms are joined by an edge.
        sequence : bool, default=False
            Whether residues that follow each other in the sequence are joined however far apart they are.
        chains : str or sequence of str, optional
            Names of the chains to take; by default all. A name must exist in every structure.
        model : int, default=0
            Which model of a structure to take, counted from 0.
        missing : {"error", "skip"}, default="error"
            What to do if a residue has no CA atom: an error, or leave it out and say so in a warning.
        targets : array-like of shape (n_graphs,), optional
            One class or number per structure.

        Returns
        -------
        Graphs
            The collection, undirected. Water and ligands are not in it.

        Warns
        -----
        UserWarning
            Once, if residues without a CA atom were left out.

        Notes
        -----
        Of an atom with alternate locations that with the highest occupancy counts, the first one if they are equal. Residues
        follow each other if their numbers do.
        """
        from treegram.graphs.proteins import read_pdb

        return read_pdb(
            structures,
            attributes=attributes,
            contact=contact,
            sequence=sequence,
            chains=chains,
            model=model,
            missing=missing,
            targets=targets,
        )
