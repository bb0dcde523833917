"""How records become lines of a store's tables, and back: each column once, with the way in and the way out.

The way out insists on types, since SQLite does not, and records check themselves: nothing that cannot be right gets past it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from treegram.study.records import DatasetFacts, GramTime, Row, Run
from treegram.study.sqlite import VERSION

__all__ = ["DATASET", "GRAM_TIME", "RESULT", "RUN", "Table"]

T = TypeVar("T")
_LARGEST = 1e300  # of the numbers in JSON


@dataclass(frozen=True)
class _Kind:
    """What a column holds."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


@dataclass(frozen=True)
class Table(Generic[T]):
    """One table: what a line of it becomes, and the columns that this is made from."""

    name: str
    record: Callable[..., T]  # takes the columns by name
    columns: Mapping[str, _Kind]
    older: Mapping[str, str] = field(default_factory=dict)  # what stands for a column in a store of version 3

    def insertion(self, record: T, **more: Any) -> tuple[str, tuple[Any, ...]]:
        """The statement that adds a record, with values for columns that are not part of it, and its values."""
        values = {name: kind.encode(getattr(record, name)) for name, kind in self.columns.items()} | more
        marks = ", ".join("?" * len(values))
        return f"INSERT INTO {self.name} ({', '.join(values)}) VALUES ({marks})", tuple(values.values())

    def selection(self, version: int) -> str:
        """The query for all lines of a store of this version, without conditions."""
        older = {} if version == VERSION else self.older
        return f"SELECT {', '.join(older.get(name, name) for name in self.columns)} FROM {self.name}"

    def build(self, line: Sequence[Any]) -> T:
        """The record of a line; any error means that the line cannot be right."""
        pairs = zip(self.columns.items(), line, strict=True)
        return self.record(**{name: kind.decode(value) for (name, kind), value in pairs})


def _to_json(value: Mapping[str, Any], *, sort_keys: bool = False) -> str:
    return json.dumps(_check_values(dict(value)), sort_keys=sort_keys, ensure_ascii=False)


def _from_json(text: Any) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise TypeError(f"expected a JSON object, got {type(value).__name__}")
    return _check_values(value)


def _check_values(values: dict[str, Any]) -> dict[str, Any]:
    """The same; raise unless they are texts, numbers of a usual size, true, false, None, or lists of these."""
    for name, value in values.items():
        for one in value if isinstance(value, list | tuple) else [value]:
            if not isinstance(one, str | bool | None) and not (isinstance(one, int | float) and abs(one) < _LARGEST):
                raise ValueError(f"{str(name)[:40]!r} is neither a text, nor a number below 1e300, nor a list of these")
    return values


def _row(*, target: str, score: float, actual: bytes, predicted: bytes, **columns: Any) -> Row:
    form = _FORMS[target]
    row = Row(actual=_unpack(form, actual), predicted=_unpack(form, predicted), **columns)
    if row.score != score:
        raise ValueError(f"the score {score}, where the predictions give {row.score}")
    return row


_FORMS = {"classes": "H", "numbers": "d"}  # of targets, see struct


def _pack(form: str, values: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(values)}{form}", *values)


def _unpack(form: str, content: bytes) -> tuple[Any, ...]:
    return struct.unpack(f"<{len(content) // struct.calcsize(form)}{form}", content)


def _pack_targets(targets: Sequence[Any]) -> bytes:
    return _pack("d" if isinstance(targets[0], float) else "H", targets)


def _content(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(f"expected bytes, got {type(value).__name__}")
    return value


def _target(value: Any) -> str:
    """None, as in stores of version 3, means classes."""
    if value not in (None, *_FORMS):
        raise ValueError(f"targets are {' or '.join(_FORMS)}")
    return value or "classes"


_TEXT = _Kind(lambda text: text, str)
_INTEGER, _REAL = _Kind(int, int), _Kind(float, float)
_NUMBER = _Kind(lambda number: number or None, int)  # the file gives one to what has none
_FLAG = _Kind(int, bool)
_JSON = _Kind(_to_json, _from_json)
_SORTED_JSON = _Kind(lambda value: _to_json(value, sort_keys=True), _from_json)
_COUNTS = _Kind(_to_json, lambda text: {name: int(count) for name, count in _from_json(text).items()})
_TARGETS = _Kind(_pack_targets, _content)
_TARGET = _Kind(lambda target: target, _target)
_DECISIONS = _Kind(
    lambda decisions: _pack("f", decisions) or None, lambda content: _unpack("f", _content(content or b""))
)
_NUMBERS = _Kind(
    lambda numbers: _to_json(numbers) if numbers else None,
    lambda text: {name: float(value) for name, value in _from_json(text or "{}").items()},
)

RUN = Table("run", Run, {"id": _NUMBER, "started": _TEXT, "command": _TEXT, "versions": _JSON, "machine": _JSON})
DATASET = Table(
    "dataset",
    DatasetFacts,
    {
        "name": _TEXT, "n_graphs": _INTEGER, "class_counts": _COUNTS, "mean_nodes": _REAL, "mean_edges": _REAL,
        "n_attributes": _INTEGER, "digest": _TEXT, "numbers": _NUMBERS,
    },
    {"numbers": "NULL"},
)  # fmt: skip
RESULT = Table(
    "result",
    _row,
    {
        "dataset": _TEXT, "kernel": _TEXT, "repeat": _INTEGER, "fold": _INTEGER, "score": _REAL, "actual": _TARGETS,
        "predicted": _TARGETS, "chosen": _SORTED_JSON, "inner_score": _REAL, "n_fits": _INTEGER,
        "n_unconverged": _INTEGER, "seconds": _REAL, "run": _INTEGER, "target": _TARGET, "decisions": _DECISIONS,
    },
    {"score": "accuracy", "inner_score": "inner_accuracy", "target": "NULL", "decisions": "NULL"},
)  # fmt: skip
GRAM_TIME = Table(
    "gram_time",
    GramTime,
    {
        "dataset": _TEXT, "kernel": _TEXT, "parameters": _SORTED_JSON, "seconds": _REAL, "learns": _FLAG,
        "run": _INTEGER,
    },
)  # fmt: skip
