"""Graphs without a download: perturbed graphs, planted motifs, molecules with a computed target, and scikit-learn's digits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from treegram._core.optional import optional_module
from treegram._core.parallel import track
from treegram._core.params import LIST, SEED, Allowed, Number, Whole, check_value
from treegram._core.types import Floats, Ints
from treegram.exceptions import ParameterError
from treegram.graphs import Graphs

_RULES: dict[str, Allowed] = {
    "n_graphs": (Whole(0),),
    "n_nodes": (Whole(0),),
    "n_edges": (Whole(0),),
    "n_attributes": (Whole(0),),
    "n_molecules": (Whole(0),),
    "rewired": (LIST,),
    "permuted": (LIST,),
    "motifs": (LIST,),
    "noise": (Number(0),),
    "shift": (Number(),),
    "random_state": SEED,
}


def _check_parameters(function: str, parameters: dict[str, Any]) -> None:
    for name, value in parameters.items():
        check_value(name, function, value, _RULES[name])


# -------------------------------------------------------------------- perturbed copies of one graph

_MAX_TRIES = 1000  # per swap; in a sparse graph nearly every try succeeds


def make_synthetic(
    n_graphs: int = 300,
    *,
    n_nodes: int = 100,
    n_edges: int = 196,
    rewired: Sequence[int] = (5, 10),
    permuted: Sequence[int] = (10, 5),
    noise: float = 0.45,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Graphs, Ints]:
    """Generate graphs whose classes differ in the number of perturbed edges and attributes.

    One random graph with one standard normal attribute per node is drawn. Each graph is a copy of it in which some
    edges are rewired, the attributes of some nodes are shuffled, and normal noise is added to every attribute; the
    numbers of edges and attributes depend on the class. The defaults are those of the data set SYNTHETIC.

    Parameters
    ----------
    n_graphs : int, default=300
        Number of graphs, divided evenly among the classes; the first classes get the remainder.
    n_nodes : int, default=100
        Nodes of each graph.
    n_edges : int, default=196
        Edges of each graph.
    rewired : sequence of int, default=(5, 10)
        Swaps per graph, one number for each class: edges (a, b) and (c, d) become (a, d) and (c, b), which keeps all degrees, as in
        the files of SYNTHETICnew.
    permuted : sequence of int, default=(10, 5)
        Nodes whose attributes are shuffled among each other, one number for each class.
    noise : float, default=0.45
        Standard deviation of the noise.
    random_state : int, RandomState instance or None, default=None
        Seed; the same number gives the same graphs, bit for bit.

    Returns
    -------
    graphs : Graphs
        The graphs, class after class, without labels: kernels then use degrees.
    y : ndarray of shape (n_graphs,)
        The classes, 0, 1, ...; class ``c`` was made with ``rewired[c]`` and ``permuted[c]``. Also kept as
        ``graphs.targets``.

    Examples
    --------
    >>> from treegram import make_synthetic
    >>> graphs, y = make_synthetic(10, random_state=0)
    >>> graphs
    Graphs(10 graphs, 1,000 nodes, 1,960 edges, undirected, no labels, 1 attribute, targets)
    >>> y
    array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
    """
    _check_parameters("make_synthetic", locals())
    if n_edges > _n_pairs(n_nodes):
        raise ParameterError(
            f"n_edges of make_synthetic must be at most {_n_pairs(n_nodes)} with n_nodes={n_nodes}; got {n_edges}."
        )
    if len(rewired) != len(permuted) or not len(rewired):
        raise ParameterError(
            f"rewired and permuted of make_synthetic must have one number for each class; got {rewired!r} and {permuted!r}."
        )
    for name, numbers, most in (("rewired", rewired, n_edges), ("permuted", permuted, n_nodes)):
        if not all(Whole(0, most).accepts(number) for number in numbers):
            raise ParameterError(f"{name} of make_synthetic must hold whole numbers from 0 to {most}; got {numbers!r}.")
    random = check_random_state(random_state)
    edges = _pairs(sample_without_replacement(_n_pairs(n_nodes), n_edges, random_state=random), n_nodes)
    attributes = random.standard_normal(n_nodes)
    y = np.sort(np.arange(n_graphs) % len(rewired))
    all_edges = [_swap(edges, rewired[c], random) for c in y]
    all_attributes = [_shuffle_some(attributes, permuted[c], random) for c in y]
    values = np.reshape(all_attributes, (-1, 1))
    graphs = Graphs.from_arrays(
        np.arange(n_graphs + 1) * n_nodes,
        np.concatenate([np.empty((0, 2), np.int64), *(e + i * n_nodes for i, e in enumerate(all_edges))]),
        attributes=values + noise * random.standard_normal(values.shape),
        targets=y,
    )
    return graphs, y


def _n_pairs(n_nodes: int) -> int:
    return n_nodes * (n_nodes - 1) // 2


def _pairs(numbers: Ints, n_nodes: int) -> Ints:
    """Return the pairs (a, b) with a < b that have these numbers in the order (0, 1), (0, 2), ..., (1, 2), ..."""
    n_larger = n_nodes - 1 - np.arange(n_nodes)
    first = np.cumsum(n_larger) - n_larger  # number of the first pair of each a
    a = np.searchsorted(first, numbers, side="right") - 1
    return np.stack([a, numbers - first[a] + a + 1], axis=1).astype(np.int64)


def _swap(edges: Ints, n_times: int, random: np.random.RandomState) -> Ints:
    """Swap the ends of random pairs of edges ``n_times`` times."""
    pairs = [(a, b) for a, b in edges.tolist()]
    present = set(pairs)
    for _ in range(n_times):
        for _ in range(_MAX_TRIES):
            i, j = random.randint(len(pairs), size=2)
            (a, b), (c, d) = pairs[i], pairs[j][:: random.choice((-1, 1))]  # edges have no direction
            new = [(min(a, d), max(a, d)), (min(b, c), max(b, c))]
            if a != d and b != c and present.isdisjoint(new):
                break
        else:
            raise ParameterError(
                f"rewired of make_synthetic: no two of the {len(pairs)} edges could be swapped; the graph is too small or too dense."
            )
        present.difference_update((pairs[i], pairs[j]))
        present.update(new)
        pairs[i], pairs[j] = new
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _shuffle_some(values: Floats, n_moved: int, random: np.random.RandomState) -> Floats:
    nodes = sample_without_replacement(len(values), n_moved, random_state=random)
    shuffled = values.copy()
    shuffled[nodes] = values[random.permutation(nodes)]
    return shuffled


# -------------------------------------------------------------------- planted motifs

MOTIFS: dict[str, list[tuple[int, int]]] = {
    "house": [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4)],
    "cycle": [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)],
    "clique": [(a, b) for b in range(5) for a in range(b)],
    "wheel": [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4), (2, 4), (3, 4)],
    "star": [(0, 1), (0, 2), (0, 3), (0, 4)],
}
MOTIF_NODES = 5  # of each motif, so that the size of a graph does not depend on its class


def make_motifs(
    n_graphs: int = 200,
    *,
    motifs: Sequence[str] = ("house", "cycle"),
    n_nodes: int = 20,
    n_attributes: int = 0,
    shift: float = 0.0,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Graphs, Ints, NDArray[np.bool_]]:
    """Generate random trees with a motif of five nodes planted in each: the motif is the class.

    A tree grows node by node, each joined to an earlier one with a probability proportional to its degree; an edge
    between a random node of each joins the motif to the tree. Nodes are numbered at random. The nodes that determine
    the class are thus known. The defaults are close to the data set BA-2Motifs.

    Parameters
    ----------
    n_graphs : int, default=200
        Number of graphs, divided evenly among the classes; the first classes get the remainder.
    motifs : sequence of {"house", "cycle", "clique", "wheel", "star"}, default=("house", "cycle")
        The motif of each class. Classes with the same motif differ only in their attributes.
    n_nodes : int, default=20
        Nodes of each tree, to which the motif's five are added.
    n_attributes : int, default=0
        Dimension of the vectors of the nodes: standard normal numbers.
    shift : float, default=0.0
        Added to attribute ``c % n_attributes`` of the motif's nodes in class ``c``.
    random_state : int, RandomState instance or None, default=None
        Seed; the same number gives the same graphs, bit for bit.

    Returns
    -------
    graphs : Graphs
        The graphs, class after class, without labels: kernels then use degrees.
    y : ndarray of shape (n_graphs,)
        The classes, 0, 1, ...; also kept as ``graphs.targets``.
    is_motif : ndarray of bool, shape (n_nodes of all graphs,)
        Which nodes belong to a motif, in the order of the nodes of ``graphs``.

    References
    ----------
    D. Luo, W. Cheng, D. Xu, W. Yu, B. Zong, H. Chen, X. Zhang: Parameterized explainer for graph neural network. Advances in
    Neural Information Processing Systems, 2020 (BA-2Motifs).

    Examples
    --------
    >>> from treegram import make_motifs
    >>> graphs, y, is_motif = make_motifs(4, random_state=0)
    >>> graphs
    Graphs(4 graphs, 100 nodes, 102 edges, undirected, no labels, targets)
    >>> y
    array([0, 0, 1, 1])
    >>> int(is_motif.sum())
    20
    """
    check_value("n_nodes", "make_motifs", n_nodes, (Whole(1),))  # a tree has a node
    _check_parameters("make_motifs", locals())
    if not len(motifs) or any(motif not in MOTIFS for motif in motifs):
        raise ParameterError(
            f"motifs of make_motifs must hold names, one for each class, out of {', '.join(MOTIFS)}; got {list(motifs)!r}."
        )
    random = check_random_state(random_state)
    y = np.sort(np.arange(n_graphs) % len(motifs))
    size = n_nodes + MOTIF_NODES
    edges, is_motif = [np.empty((0, 2), np.int64)], np.zeros((n_graphs, size), bool)
    for graph, c in enumerate(y):
        numbers = random.permutation(size)
        edges.append(graph * size + numbers[_plant(motifs[c], n_nodes, random)])
        is_motif[graph, numbers[n_nodes:]] = True
    vectors = random.standard_normal((n_graphs, size, n_attributes)) if n_attributes else None
    if vectors is not None:
        for c in range(len(motifs)):
            vectors[y == c, :, c % n_attributes] += shift * is_motif[y == c]
        vectors = vectors.reshape(-1, n_attributes)
    offsets = np.arange(n_graphs + 1) * size
    graphs = Graphs.from_arrays(offsets, np.concatenate(edges), attributes=vectors, targets=y)
    return graphs, y, is_motif.ravel()


def _plant(motif: str, n_nodes: int, random: np.random.RandomState) -> Ints:
    """Return the edges of a tree of nodes 0 to n_nodes - 1, of the motif after it, and of one edge between them."""
    ends = [0]  # each node once per edge, and the first once more
    edges = []
    for node in range(1, n_nodes):
        other = ends[random.randint(len(ends))]
        edges.append((other, node))
        ends += [other, node]
    edges += [(n_nodes + a, n_nodes + b) for a, b in MOTIFS[motif]]
    edges.append((random.randint(n_nodes), n_nodes + random.randint(MOTIF_NODES)))
    return np.array(edges, dtype=np.int64)


# -------------------------------------------------------------------- molecules

_rdkit_chem = partial(optional_module, "rdkit.Chem", "The molecules of make_molecules")
_CORES = "c1ccccc1 c1ccncc1 c1ccsc1 c1ccc2ccccc2c1 C1CCCCC1 C1CCOC1 C1CCNCC1 CCCC CC(C)C C=CC CC(=O)C CCOCC"
_GROUPS = "C CC O N Cl F Br C#N C(=O)O C(N)=O OC S C(F)(F)F c1ccccc1 CC(C)C CO"
_MOST_GROUPS = 4
_MOST_TRIES = 1000  # to find a new molecule


def make_molecules(
    n_molecules: int = 400, *, noise: float = 0.5, random_state: int | np.random.RandomState | None = None
) -> tuple[list[str], Floats]:
    """Generate molecules with a computed solubility. Needs RDKit.

    Up to four common groups are joined to a common core at random. The target is Delaney's ESOL equation on RDKit's descriptors,
    with normal noise; results on it say nothing about measured data.

    Parameters
    ----------
    n_molecules : int, default=400
        Number of molecules, all different.
    noise : float, default=0.5
        Standard deviation of the noise; repeated measurements differ by 0.5 to 0.7.
    random_state : int, RandomState instance or None, default=None
        Seed; the same number gives the same molecules, with the same version of RDKit.

    Returns
    -------
    smiles : list of str
        The molecules.
    y : ndarray of shape (n_molecules,)
        The logarithm of the computed solubility in mol/l.

    References
    ----------
    J. S. Delaney: ESOL: estimating aqueous solubility directly from molecular structure. Journal of Chemical Information and
    Computer Sciences 44(3), 2004.

    Examples
    --------
    >>> from treegram import make_molecules
    >>> smiles, y = make_molecules(100, random_state=0)
    >>> len(set(smiles)), y.shape
    (100, (100,))
    """
    _check_parameters("make_molecules", locals())
    random = check_random_state(random_state)
    targets: dict[str, float] = {}
    for _ in track(range(n_molecules), n_molecules, "molecules"):
        mol, smiles = _new_molecule(targets, random)
        targets[smiles] = _solubility(mol)
    return list(targets), np.array(list(targets.values())) + noise * random.standard_normal(n_molecules)


def _new_molecule(targets: dict[str, float], random: np.random.RandomState) -> tuple[Any, str]:
    chem = _rdkit_chem()
    for _ in range(_MOST_TRIES):
        mol = _assemble(random)
        smiles = chem.MolToSmiles(mol)
        if smiles not in targets:
            return mol, smiles
    raise ValueError(f"n_molecules is too large: no new molecule was found after {len(targets)}.")


def _assemble(random: np.random.RandomState) -> Any:
    chem, cores, groups = _rdkit_chem(), _CORES.split(), _GROUPS.split()
    mol = chem.MolFromSmiles(cores[random.randint(len(cores))])
    for _ in range(random.randint(_MOST_GROUPS + 1)):
        group = chem.MolFromSmiles(groups[random.randint(len(groups))])
        ends = _free_atom(mol, random), mol.GetNumAtoms() + _free_atom(group, random)
        joined = chem.RWMol(chem.CombineMols(mol, group))
        joined.AddBond(*ends, chem.BondType.SINGLE)
        mol = joined.GetMol()
        chem.SanitizeMol(mol)
    return mol


def _free_atom(mol: Any, random: np.random.RandomState) -> int:
    """Return a random atom with a hydrogen that a bond can replace; every fragment has one, and keeps one."""
    free = [atom.GetIdx() for atom in mol.GetAtoms() if atom.GetNumImplicitHs()]
    return free[random.randint(len(free))]


def _solubility(mol: Any) -> float:
    """Compute Delaney's equation."""
    from rdkit.Chem import rdMolDescriptors

    log_p = rdMolDescriptors.CalcCrippenDescriptors(mol)[0]
    weight = rdMolDescriptors._CalcMolWt(mol)
    rotatable = rdMolDescriptors.CalcNumRotatableBonds(mol)
    aromatic = sum(atom.GetIsAromatic() for atom in mol.GetAtoms()) / mol.GetNumHeavyAtoms()
    return float(0.16 - 0.63 * log_p - 0.0062 * weight + 0.066 * rotatable - 0.74 * aromatic)


# -------------------------------------------------------------------- digits

_BLACK = 16  # the darkest gray level of the images; 0 is white
_LEAST_INK = 4  # gray level; gives 27 nodes per graph on average

# With these units the node kernel exp(-|x - y|^2 / 3) distinguishes a pixel from the next one (0.47) and from the one after it
# (0.05), and full ink from a pale edge. Chosen by cross-validation on a third of the images; factors of 1.5 either way change little.
_STEP, _INK = 1.5, 3.0


def load_digits_graphs(*, n_levels: int = 1) -> tuple[Graphs, Ints]:
    """Load 1797 handwritten digits as graphs of their inked pixels.

    Each 8 x 8 image of scikit-learn's ``load_digits`` becomes a graph: its nodes are the pixels with a gray level of at least
    4 of 16, its edges join direct neighbors, and position and ink are the attributes.

    Parameters
    ----------
    n_levels : int, default=1
        Number of gray levels that become the discrete label of a pixel, 0 for the palest; with 1, all pixels have the
        same label, and only the attributes distinguish gray levels.

    Returns
    -------
    graphs : Graphs
        The graphs. Attributes are the row, the column and the ink, in units that suit the kernels' default ``gamma``.
    y : ndarray of shape (1797,)
        The digits, from 0 to 9; also kept as ``graphs.targets``.

    Examples
    --------
    >>> from treegram import load_digits_graphs
    >>> graphs, y = load_digits_graphs()
    >>> graphs
    Graphs(1,797 graphs, 48,401 nodes, 65,792 edges, undirected, 1 label, 3 attributes, targets)
    """
    from sklearn.datasets import load_digits  # imports all of scikit-learn's data sets

    check_value("n_levels", "load_digits_graphs", n_levels, (Whole(1, _BLACK),))
    pixels, y = load_digits(return_X_y=True)
    images = pixels.reshape(-1, 8, 8).astype(np.int64)
    is_ink = images >= _LEAST_INK
    image, row, column = np.nonzero(is_ink)
    ink = images[image, row, column]
    graphs = Graphs.from_arrays(
        np.concatenate([[0], np.cumsum(is_ink.sum(axis=(1, 2)))]),
        _join_neighbors(is_ink),
        labels=(ink - _LEAST_INK) * n_levels // (_BLACK - _LEAST_INK + 1),
        attributes=np.stack([_STEP * row, _STEP * column, _INK / _BLACK * ink], axis=1),
        targets=y,
    )
    return graphs, y.astype(np.int64)


def _join_neighbors(is_ink: NDArray[np.bool_]) -> Ints:
    """Return the pairs of inked pixels that are next to each other in a row or column, numbered across all images."""
    numbers = np.full(is_ink.shape, -1)
    numbers[is_ink] = np.arange(np.count_nonzero(is_ink))
    neighbors = [(numbers[:, :, :-1], numbers[:, :, 1:]), (numbers[:, :-1], numbers[:, 1:])]
    pairs = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in neighbors])
    return pairs[(pairs >= 0).all(axis=1)]
