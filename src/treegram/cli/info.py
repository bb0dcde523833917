"""``treegram info``: summarize a data set and flag problems, as text or JSON."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from typing import Any

import treegram
from treegram._core.text import counted
from treegram.cli._data import add_data_argument, load_data
from treegram.cli._parser import Parser, as_options, show

EXAMPLES = (
    "treegram info ENZYMES",
    "treegram info ./my_folder --json",
    "treegram info molecules.csv --smiles-column smiles --target y",
    "treegram info ./tables --target y",
)

_MOST_VALUES = 10  # classes or labels on a line
_MOST_COLUMNS = 20  # rows of the table of attributes


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the command."""
    add_data_argument(parser, in_full=True)
    parser.add_argument("--json", action="store_true", help="print one line of JSON")


def run(args: argparse.Namespace) -> None:
    """Summarize the data; warnings of the reader, such as ignored files, are part of the summary."""
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        graphs, y = load_data(args.data, args)
    summary = {"data": args.data, **treegram.summarize_graphs(graphs, y)}
    summary["warnings"] = [*(as_options(str(caught.message), args.options) for caught in records), *summary["warnings"]]
    show(json.dumps(summary) if args.json else "\n".join(_render(summary)))


def _render(summary: dict[str, Any]) -> Iterator[str]:
    yield f"{summary['data']}: {summary['n_graphs']} graphs, {'directed' if summary['directed'] else 'undirected'}"
    for name in ("nodes", "edges"):
        yield _line(name, f"{summary[name]['total']} in all; per graph {_spread(summary[name])}")
    yield _line("degrees", _spread(summary["degrees"]))
    targets = summary["targets"] or {"columns": []}
    if "classes" in targets:
        classes = _values(targets["classes"], "{} ({})")
        yield _line("classes", f"{classes}; largest {targets['majority']:.1%}")
    else:
        yield from (_line("targets", f"numbers, {_spread(column)}") for column in targets["columns"])
    for name in ("node_labels", "edge_labels"):
        if summary[name]:
            yield _line(name.replace("_", " "), _values(summary[name], "{0} ({2:.1%})"))
    for name in ("attributes", "edge_attributes", "graph_attributes"):
        if summary[name]:
            yield from _attributes(name.replace("_attributes", " vectors"), summary[name])
    if summary["warnings"]:
        yield "warnings"
        yield from (f"  - {sentence}" for sentence in summary["warnings"])


def _line(name: str, text: str) -> str:
    return f"  {name:14}{text}"


def _spread(numbers: dict[str, Any]) -> str:
    return f"mean {numbers['mean']:.2f}, min {numbers['min']:g}, max {numbers['max']:g}"


def _values(entries: list[dict[str, Any]], form: str) -> str:
    """List the distinct values; ``form`` formats the name, count and share of each."""
    total = sum(entry["count"] for entry in entries)
    texts = [
        form.format(_name(entry["value"]), entry["count"], entry["count"] / total) for entry in entries[:_MOST_VALUES]
    ]
    if len(entries) > _MOST_VALUES:
        texts.append(f"and {len(entries) - _MOST_VALUES} more")
    return f"{len(entries)}: {', '.join(texts)}"


def _name(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_name, value))
    return str(value) if str(value).isprintable() else ascii(value)  # a terminal must not obey control characters


def _attributes(name: str, attributes: dict[str, Any]) -> Iterator[str]:
    yield _line(name, f"{counted(attributes['n_columns'], 'column')}, {attributes['n_distinct']} distinct vectors")
    columns = attributes["columns"][:_MOST_COLUMNS]
    width = max(len(_name(column["name"])) for column in [{"name": "column"}, *columns])
    yield f"    {'column':{width}} {'min':>11} {'max':>11} {'mean':>11} {'sd':>11}"
    for column in columns:
        numbers = " ".join(f"{column[key]:11.4g}" for key in ("min", "max", "mean", "sd"))
        yield f"    {_name(column['name']):{width}} {numbers}"
    if attributes["n_columns"] > _MOST_COLUMNS:
        yield f"    ... and {attributes['n_columns'] - _MOST_COLUMNS} more columns (--json has all)"
    if kernel := attributes.get("node_kernel"):
        numbers = f"gamma {kernel['gamma']:.3g}: median {kernel['median']:.3g} over pairs of equal label"
        yield _line("node kernel", f"rbf, {numbers}")
