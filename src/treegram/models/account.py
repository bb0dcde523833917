"""The account of a search, as people read it: what was tried, why, how good it was, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["account_table"]

_COLUMNS = ("score", "seconds", "candidate", "why it was tried, or left out")


def account_table(records: Sequence[Mapping[str, Any]]) -> str:
    """The records as a table of plain text: the best first, then what has no score, in the order of the search."""
    scored = [record for record in records if record["score"] is not None]
    others = [record for record in records if record["score"] is None]
    ordered = [*sorted(scored, key=lambda record: (-record["graphs"], -record["score"])), *others]
    rows = [_COLUMNS, *(_row(record) for record in ordered)]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = (f"{row[0]:>{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:<{widths[2]}}  {row[3]}".rstrip() for row in rows)
    return "\n".join(lines)


def _row(record: Mapping[str, Any]) -> tuple[str, str, str, str]:
    if record["score"] is None:
        return "", "", record["candidate"], record["note"]
    text = ": ".join(filter(None, [record["note"], record["reason"]]))
    return f"{record['score']:.4f}", f"{record['seconds']:.1f}", record["candidate"], text
