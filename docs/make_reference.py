"""Write the page of the reference: every public name of treegram, under the part of the package that it lives in."""

from __future__ import annotations

from pathlib import Path

import treegram

__all__ = ["reference_page", "write_reference"]

# For each part of the package a title, and a sentence or two; sections come in this order.
SECTIONS = {
    "graphs": ("Graphs", "The collection that everything here takes."),
    "datasets": ("Data sets", "Data sets to read, generate, describe and write."),
    "convert.molecules": ("Molecules", "SMILES, SDF and molecules of RDKit as graphs; see :doc:`molecules`."),
    "convert.parquet": (
        "Parquet files",
        "For large collections, and for graph data sets of Hugging Face; see :doc:`own_data`.",
    ),
    "kernels": (
        "Kernels",
        "Transformers from graphs to a Gram matrix; ``FeatureMap`` and ``ODDCLFeatures`` give explicit rows instead. "
        ":doc:`kernels` compares them.",
    ),
    "preprocessing": (
        "Preprocessing",
        "Transformers from graphs to graphs with other vectors at their nodes, to be put before a kernel.",
    ),
    "edges": ("Edges", "A transformer from graphs to graphs with other edge labels; see :doc:`own_data`."),
    "selection": ("Models", "Estimators that take graphs and choose their kernel themselves."),
    "explanations": ("Explanations", "Which nodes, features and fitted graphs made a decision; see :doc:`explain`."),
    "explanation_page": ("Pages of explanations", "The same as one HTML page for a browser."),
    "streaming": ("Streaming", "For more graphs than fit into memory; see :doc:`big_data`."),
    "scale": ("More than one machine", "Matrices and features in files, computed by many workers; see :doc:`cluster`."),
    "persistence": ("Model files", "Fitted models in files that hold no code; see :doc:`saving`."),
    "plotting": ("Plotting", "Pictures by matplotlib; each function returns its axes."),
    "errors": ("Errors", "What treegram raises. Each is also a ``ValueError``, except ``ClusterError``, a ``RuntimeError``."),
}
HEAD = """Reference
=========

.. currentmodule:: treegram

Everything here is imported from ``treegram`` itself: ``import treegram as tg``, then ``tg.ODDCL()``.
"""


def reference_page() -> str:
    """The page as reStructuredText."""
    parts = [HEAD]
    for home, (title, text) in SECTIONS.items():
        listed = "\n".join(f"   {name}" for name in treegram._HOMES[home])
        parts.append(
            f"{title}\n{'-' * len(title)}\n\n{text}\n\n.. autosummary::\n   :toctree: api\n   :nosignatures:\n\n{listed}\n"
        )
    return "\n".join(parts)


def write_reference(folder: Path) -> None:
    """Write the page into the folder of the documentation."""
    (folder / "reference.rst").write_text(reference_page(), encoding="utf-8")
