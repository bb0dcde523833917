"""Write the reference page: every public name of treegram, grouped by topic."""

from __future__ import annotations

from pathlib import Path

import treegram

__all__ = ["reference_page", "write_reference"]

# For each home of public names a title and a sentence or two; sections come in this order.
SECTIONS = {
    "graphs": ("Graphs", "The collection that every estimator takes."),
    "datasets": ("Data sets", "Data sets to load, generate, summarize and save."),
    "datasets.parquet": ("Parquet files", "Large collections in a columnar format; see :doc:`own_data`."),
    "graphs.molecules": ("Molecules", "SMILES, SDF and RDKit molecules as graphs; see :doc:`molecules`."),
    "graphs.transforms": (
        "Preprocessing",
        "Transformers from graphs to graphs with other node vectors or edge labels, to be put before a kernel.",
    ),
    "kernels": (
        "Kernels",
        "Transformers from graphs to a Gram matrix; ``FeatureMap``, ``Nystroem`` and ``ODDCLFeatures`` return explicit rows instead. "
        ":doc:`kernels` compares them.",
    ),
    "kernels.gram_store": ("Gram matrices on disk", "For matrices larger than memory; see :doc:`cluster`."),
    "models": ("Models", "Estimators that take graphs and choose their kernel themselves."),
    "models.saving": ("Model files", "Fitted models in files that contain no code; see :doc:`saving`."),
    "explanations.contributions": ("Explanations", "Which nodes, features and training graphs made a decision; see :doc:`explain`."),
    "explanations.plots": ("Plots", "Figures drawn with matplotlib; each function returns its axes."),
    "_core.errors": ("Errors", "The exceptions that treegram raises. Each is also a ``ValueError``."),
}
HEAD = """Reference
=========

.. currentmodule:: treegram

Everything here is imported from ``treegram`` itself: ``import treegram as tg``, then ``tg.ODDCL()``.
"""


def reference_page() -> str:
    """Return the page as reStructuredText."""
    parts = [HEAD]
    for home, (title, text) in SECTIONS.items():
        listed = "\n".join(f"   {name}" for name in sorted(treegram._HOMES[home], key=str.lower))
        parts.append(
            f"{title}\n{'-' * len(title)}\n\n{text}\n\n.. autosummary::\n   :toctree: api\n   :nosignatures:\n\n{listed}\n"
        )
    return "\n".join(parts)


def write_reference(folder: Path) -> None:
    """Write the page into the folder of the documentation."""
    (folder / "reference.rst").write_text(reference_page(), encoding="utf-8")
