"""Whether Gram matrices fit into memory, said before the work begins."""

from __future__ import annotations

from treegram._core.memory import available_bytes, spell_bytes

__all__ = ["HELD_AT_ONCE", "check_memory"]

HELD_AT_ONCE = 2**30  # bytes of Gram matrices that a search holds at once; one matrix where a single one is larger
_COPIES = 3  # a matrix, one more while it is made, and its parts in the folds


def check_memory(n_graphs: int) -> None:
    """Raise if a search over so many graphs would not fit, however few Gram matrices it holds at once."""
    needed = _COPIES * 8 * n_graphs**2
    available = available_bytes()
    if needed > available:
        raise MemoryError(
            f"A search over {n_graphs:,} graphs needs {spell_bytes(needed)} for Gram matrices, {_COPIES} of {n_graphs:,} x "
            f"{n_graphs:,} numbers; {spell_bytes(available)} is available. Fit on fewer graphs, or use what needs no Gram matrix: "
            "GraphSVC(solver='landmarks'), or ODDCLFeatures with a linear model."
        )
