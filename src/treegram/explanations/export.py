"""Explanations as data: tables, B-factors of protein structures, and properties of atoms in SDF files."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from treegram._core.files import replacing
from treegram._core.optional import optional_module
from treegram._core.text import label_text
from treegram._core.types import Floats
from treegram.exceptions import ParameterError
from treegram.explanations.drawing import check_molecules
from treegram.explanations.words import column_words, feature_words, label_words
from treegram.graphs import Graphs
from treegram.graphs.drawing import residues_of
from treegram.graphs.proteins import open_structure

if TYPE_CHECKING:
    from treegram.explanations.contributions import Explanation

_LARGEST_B_FACTOR = 99.99  # of both signs, in the six characters of a PDB file
_STRUCTURES = {".pdb": "pdb", ".ent": "pdb", ".cif": "mmcif", ".mmcif": "mmcif"}


# -------------------------------------------------------------------- tables


def make_frame(explanation: Explanation, by: str) -> Any:
    """Return contributions as a data frame; see :meth:`treegram.Explanation.to_frame`."""
    makers = {
        "nodes": _node_columns,
        "columns": _column_columns,
        "features": _feature_columns,
        "graphs": _graph_columns,
    }
    if by not in makers:
        raise ParameterError(f"by of to_frame must be {', '.join(map(repr, makers))}; got {by!r}.")
    ids, columns, values = makers[by](explanation)
    names, n_outputs = explanation.graphs.graph_names, len(explanation.outputs)
    table: dict[str, Any] = {"graph": ids}
    table |= {} if names is None else {"graph_name": np.asarray(names, dtype=object)[ids]}
    table = {name: np.repeat(column, n_outputs) for name, column in (table | columns).items()}
    if n_outputs > 1:
        outputs = [label_text(output) for output in explanation.outputs]
        table["output"] = np.tile(np.array(outputs, dtype=object), len(ids))
    return optional_module("pandas", "Data frames").DataFrame(table | {"contribution": values.ravel()})


def _node_columns(explanation: Explanation) -> tuple[Any, dict[str, Any], Floats]:
    graphs = explanation.graphs
    ids = graphs.graph_ids
    columns: dict[str, Any] = {"node": np.arange(graphs.n_nodes) - graphs.offsets[ids]}
    if graphs.node_names is not None:
        columns["name"] = np.asarray(graphs.node_names, dtype=object)
    residues = residues_of(graphs)
    if residues:
        columns["chain"] = np.array([chain for chain, _, _ in residues], dtype=object)
        columns["residue"] = np.array([number for _, number, _ in residues], dtype=object)
    if graphs.labels is not None:
        texts = np.array([label_text(value) for value in graphs.label_values], dtype=object)
        columns["label"] = texts[graphs.labels]
    return ids, columns, explanation._node_values


def _column_columns(explanation: Explanation) -> tuple[Any, dict[str, Any], Floats]:
    n_graphs, names = len(explanation.graphs), np.array(explanation.column_names, dtype=object)
    words = np.array([column_words(name) for name in names], dtype=object)
    columns = {"name": np.tile(names, n_graphs), "words": np.tile(words, n_graphs)}
    return np.repeat(np.arange(n_graphs), len(names)), columns, explanation._column_values


def _feature_columns(explanation: Explanation) -> tuple[Any, dict[str, Any], Floats]:
    """Return the features that contribute to any output of a graph."""
    table = explanation._table
    if table is None or not sum(values.nnz for values in table.values):
        nothing = np.zeros(0, dtype=object)
        return np.zeros(0, np.int64), {"name": nothing, "words": nothing}, np.zeros((0, len(explanation.outputs)))
    is_used = sum((abs(values) for values in table.values), sp.csr_matrix(table.values[0].shape))
    ids, features = is_used.nonzero()
    columns, positions = np.unique(features, return_inverse=True)
    names = np.array([table.name_of(column) for column in columns.tolist()], dtype=object)
    values = np.stack([np.asarray(values[ids, features]).ravel() for values in table.values], axis=1)
    words = np.array([feature_words(name) for name in names], dtype=object)
    return ids, {"name": names[positions], "words": words[positions]}, values


def _graph_columns(explanation: Explanation) -> tuple[Any, dict[str, Any], Floats]:
    """Return the training graphs, with their similarities to the explained ones."""
    if not explanation._compares_graphs:
        raise ParameterError(
            "by='graphs' of to_frame needs a model that compares graphs; this one is linear on a FeatureMap. Use by='features'."
        )
    part, values = explanation._parts[0], explanation.graph_contributions
    assert values is not None
    n_graphs, n_training = values.shape[:2]
    names, numbers = part.kernel.graphs_.graph_names, part.numbers
    columns: dict[str, Any] = {
        "training_graph": np.tile(np.arange(n_training) if numbers is None else numbers, n_graphs)
    }
    columns |= {} if names is None else {"name": np.tile(np.asarray(names, dtype=object), n_graphs)}
    columns["similarity"] = explanation._similarities.ravel()
    return np.repeat(np.arange(n_graphs), n_training), columns, values.reshape(n_graphs * n_training, -1)


def summarize(explanation: Explanation, n: int, output: int | None) -> list[dict[str, Any]]:
    """Return what matters across all explained graphs; see :meth:`treegram.Explanation.summary`."""
    n_graphs = len(explanation.graphs)
    combine = np.array([explanation._contrast(i, output).combine for i in range(n_graphs)])
    records = []
    for kind, values, item_of, words_of in _views(explanation, combine.reshape(n_graphs, len(explanation.outputs))):
        sizes = np.asarray(abs(values).sum(axis=0)).ravel() / max(n_graphs, 1)
        for column in np.argsort(-sizes, kind="stable")[:n].tolist():
            of_graphs = values[:, [column]].toarray().ravel()
            if of_graphs.any():
                item = item_of(column)
                record: dict[str, Any] = {"kind": kind, "name": label_text(item), "words": words_of(item)}
                record |= {"mean_absolute": float(sizes[column]), "mean": float(of_graphs.mean())}
                records.append(record | {"n_graphs": int(np.count_nonzero(of_graphs))})
    return sorted(records, key=lambda record: -record["mean_absolute"])


def _views(
    explanation: Explanation, combine: Floats
) -> Iterator[tuple[str, sp.csc_matrix, Callable[[int], Any], Callable[[Any], str]]]:
    """Yield for each kind of items their contributions to one decision of each graph, the item of a column, and its words."""
    table, names, graphs = explanation._table, explanation.column_names, explanation.graphs
    if table is not None:
        values = sum(sp.diags(of_graphs) @ values for of_graphs, values in zip(combine.T, table.values, strict=True))
        yield "feature", sp.csc_matrix(values), table.name_of, feature_words
    if names:
        values = np.einsum("gco,go->gc", explanation._column_values, combine)[:, :-1]
        yield "column", sp.csc_matrix(values), names.__getitem__, column_words
    if graphs.labels is not None and len(graphs.label_values) > 1:
        values = np.einsum("vo,vo->v", explanation._node_values, combine[graphs.graph_ids])
        shape = (len(graphs), len(graphs.label_values))
        values = sp.csc_matrix((values, (graphs.graph_ids, graphs.labels)), shape)
        yield "label", values, graphs.label_values.__getitem__, label_words


# -------------------------------------------------------------------- structures of proteins


def write_b_factors(path: Path, structure: Any, graph: Graphs, values: Floats) -> float:
    """Write a copy of a structure with values as B-factors; see :meth:`treegram.Explanation.to_structure`."""
    gemmi = optional_module("gemmi", "Protein structures")
    file_format = _STRUCTURES.get(path.suffix.lower())
    if file_format is None:
        raise ParameterError(f"path must end in {', '.join(_STRUCTURES)}; got {path.name!r}.")
    if graph.node_names is None:
        raise ParameterError(
            "The graph has no names of residues, so it is not one of Graphs.from_pdb or ProteinGraphs."
        )
    residues = [str(name).partition(" ")[0] for name in graph.node_names]  # "A/141B" of "A/141B CYS"
    value_of = dict(zip(residues, values.tolist(), strict=True))
    if len(value_of) < len(residues):
        raise ParameterError("The graph has two residues of one number in one chain, so their B-factors cannot differ.")
    copy = open_structure(gemmi, structure, 0)[0].clone()
    largest, factor = float(np.abs(values).max(initial=0.0)), 1.0
    if file_format == "pdb" and largest > 0:
        factor = 10.0 ** math.floor(math.log10(_LARGEST_B_FACTOR / largest))
    missing = set(value_of) - {key for model in copy for key in _set_b_factors(gemmi, model, value_of, factor)}
    if missing:
        raise ParameterError(
            f"structure must be the one that the graph was made of; it has no amino acid {min(missing)}."
        )
    if file_format == "pdb":
        copy.raw_remarks = [*copy.raw_remarks, f"REMARK 999 B-FACTORS ARE CONTRIBUTIONS TIMES {factor:g}"]
        text = copy.make_pdb_string()
    else:
        text = copy.make_mmcif_document().as_string()
    with replacing(path) as file:
        file.write(text.encode())
    return factor


def _set_b_factors(gemmi: Any, model: Any, value_of: dict[str, float], factor: float) -> Iterator[str]:
    """Give the atoms of each amino acid its value, and all others 0; yield the amino acids."""
    for chain in model:
        for residue in chain:
            is_amino_acid = gemmi.find_tabulated_residue(residue.name).is_amino_acid()
            key = f"{chain.name}/{residue.seqid}" if is_amino_acid else ""
            yield key
            for atom in residue:
                atom.b_iso = factor * value_of.get(key, 0.0)
                atom.aniso = gemmi.SMat33f(0, 0, 0, 0, 0, 0)


# -------------------------------------------------------------------- molecules


def write_atoms(path: Path, explanation: Explanation, molecules: Any) -> None:
    """Write molecules with a property for each output; see :meth:`treegram.Explanation.to_sdf`."""
    chem, graphs = optional_module("rdkit.Chem", "Molecules"), explanation.graphs
    if molecules is None:  # names may be SMILES
        molecules = graphs.graph_names if isinstance(explanation._X, Graphs) else explanation._X
    checked = check_molecules([] if molecules is None else list(molecules), graphs)
    outputs = [f" to {label_text(output)}" for output in explanation.outputs] if len(explanation.outputs) > 1 else [""]
    parts = np.split(explanation._node_values, graphs.offsets[1:-1])
    text = io.StringIO()
    writer = chem.SDWriter(text)
    for i, (molecule, values) in enumerate(zip(checked, parts, strict=True)):
        copy = chem.Mol(molecule)
        if not copy.GetNumConformers():
            optional_module("rdkit.Chem.rdDepictor", "Molecules").Compute2DCoords(copy)
        if graphs.graph_names is not None:
            copy.SetProp("_Name", str(graphs.graph_names[i]))
        for output, column in zip(outputs, values.T.tolist(), strict=True):
            for atom, value in zip(copy.GetAtoms(), column, strict=True):
                atom.SetDoubleProp(f"contribution{output}", value)
            chem.CreateAtomDoublePropertyList(copy, f"contribution{output}")
        writer.write(copy)
    writer.close()
    with replacing(path) as file:
        file.write(text.getvalue().encode())
