"""Write the reference page: every public name of treegram, grouped by topic."""

from __future__ import annotations

from pathlib import Path

import treegram
from treegram import exceptions

__all__ = ["reference_page", "write_reference"]

# A title, a sentence or two, and names, or homes of public names in treegram._HOMES; what a section lists, a later one does not.
SECTIONS = (
    (
        "Automatic models",
        "Begin here: they choose and combine kernels that suit the graphs. See :doc:`models`.",
        "GraphClassifier GraphRegressor",
    ),
    (
        "Models on kernels of your choice",
        "They search the parameters of one kernel, or choose one of several.",
        "models",
    ),
    ("Graphs", "The collection that every estimator takes.", "graphs"),
    (
        "Graphs from files",
        "Molecules and protein structures become graphs; see :doc:`own_data` and :doc:`molecules`.",
        "graphs.molecules graphs.proteins",
    ),
    (
        "Data sets",
        "Data sets to load, generate, summarize and save, also in chunks.",
        "datasets datasets.parquet",
    ),
    (
        "Preprocessing",
        "Transformers from graphs to graphs, to be put before a kernel, and a table of numbers of each graph.",
        "graphs.transforms graphs.statistics",
    ),
    (
        "Kernels on labels and shape",
        "They compare discrete structure: colors, trees, subgraphs, pairs of nodes. :doc:`kernels` compares all kernels.",
        "Graphlets NSPDK ODDST WL WLOA RandomWalk",
    ),
    (
        "Kernels on labels and vectors",
        "They compare structure and the vectors of nodes.",
        "AttributedWalk CSM GIK GraphHopper ODDCL OrderedTrees P2K ShortestPath WLCL WWL",
    ),
    (
        "Sums, features and approximations",
        "``KernelSum`` adds kernels; the others give explicit rows or approximate a kernel with a known error.",
        "kernels",
    ),
    (
        "Explanations",
        "Which nodes, features and training graphs made a decision; see :doc:`explain`.",
        "explanations.contributions",
    ),
    (
        "Without targets",
        "Distances, similar graphs and maps; see :doc:`explore`.",
        "kernels.distances explanations.maps",
    ),
    (
        "Plots",
        "Figures drawn with matplotlib; each function returns its axes.",
        "explanations.plots",
    ),
    (
        "Files and disks",
        "Fitted models in files that contain no code (:doc:`saving`), and matrices larger than memory (:doc:`big_data`).",
        "models.saving kernels.gram_store",
    ),
    (
        "Errors",
        "The exceptions that treegram raises, in ``treegram.exceptions``. All but the first are also a ``ValueError``.",
        " ".join(f"exceptions.{name}" for name in exceptions.__all__),
    ),
)
HEAD = """Reference
=========

.. currentmodule:: treegram

Everything here but the errors is imported from ``treegram`` itself: ``import treegram as tg``, then ``tg.ODDCL()``.
"""


def reference_page() -> str:
    """Return the page as reStructuredText."""
    parts, done = [HEAD], set()
    for title, text, members in SECTIONS:
        names = {
            name
            for member in members.split()
            for name in treegram._HOMES.get(member, [member])
        }
        listed = sorted(names - done, key=str.lower)
        done.update(listed)
        entries = "\n".join(f"   {name}" for name in listed)
        parts.append(
            f"{title}\n{'-' * len(title)}\n\n{text}\n\n.. autosummary::\n   :toctree: api\n   :nosignatures:\n\n{entries}\n"
        )
    return "\n".join(parts)


def write_reference(folder: Path) -> None:
    """Write the page into the folder of the documentation."""
    (folder / "reference.rst").write_text(reference_page(), encoding="utf-8")
