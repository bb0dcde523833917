"""Write the page of the reference: every public name of treegram, under the part of the package that it lives in."""

from __future__ import annotations

from pathlib import Path

import treegram

__all__ = ["reference_page", "write_reference"]

# For each part of the package a title, and a sentence or two.
SECTIONS = {
    "graphs": ("Graphs", "The collection that everything here takes."),
    "datasets": ("Data sets", ""),
    "kernels": (
        "Kernels",
        "Transformers from graphs to a Gram matrix; ``FeatureMap`` and ``ODDCLFeatures`` give explicit rows instead. "
        ":doc:`kernels` compares them.",
    ),
    "preprocessing": (
        "Preprocessing",
        "Transformers from graphs to graphs with other vectors at their nodes, to be put before a kernel.",
    ),
    "selection": ("Models", "Estimators that take graphs and choose their kernel themselves."),
    "explanations": ("Explanations", "Which nodes, features and fitted graphs made a decision; see :doc:`explain`."),
    "streaming": ("Streaming", "For more graphs than fit into memory."),
    "persistence": ("Model files", "Fitted models in files that hold no code; see :doc:`saving`."),
    "plotting": ("Plotting", ""),
    "errors": ("Errors", ""),
}
HEAD = """Reference
=========

.. currentmodule:: treegram

Everything here is imported from ``treegram`` itself: ``import treegram as tg``, then ``tg.ODDCL()``.
"""


def reference_page() -> str:
    """The page as reStructuredText."""
    parts = [HEAD]
    for home, names in treegram._HOMES.items():
        title, text = SECTIONS[home]
        listed = "\n".join(f"   {name}" for name in names)
        parts.append(
            f"{title}\n{'-' * len(title)}\n\n{text}\n\n.. autosummary::\n   :toctree: api\n   :nosignatures:\n\n{listed}\n"
        )
    return "\n".join(parts)


def write_reference(folder: Path) -> None:
    """Write the page into the folder of the documentation."""
    (folder / "reference.rst").write_text(reference_page(), encoding="utf-8")
