"""Measure the size of the code, for comparison with other code bases: ``pip install radon``, then ``python benchmarks/code_sizes.py``.

Lines of a function are code lines: without docstring, comments and blank ones. Errors: of the ``raise`` with a message, those
that show a value, and those that say what they got.
"""

from __future__ import annotations

import ast
import io
import tokenize
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from radon.complexity import cc_visit

ROOT = Path(__file__).parents[1]
Function = ast.FunctionDef | ast.AsyncFunctionDef
SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(text: str) -> set[int]:
    """Return the numbers of the lines that hold code, without docstrings."""
    lines = set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def documented(tree: ast.Module) -> Iterator[bool]:
    """Return for each public class, function and method whether it has a docstring."""
    for node in tree.body:
        if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_"):
            yield ast.get_docstring(node) is not None
            for inner in node.body if isinstance(node, ast.ClassDef) else []:
                if isinstance(inner, Function) and not inner.name.startswith("_"):
                    yield ast.get_docstring(inner) is not None


def messages(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            yield ast.unparse(node.exc)


def percentiles(values: Iterable[int], *ranks: int) -> str:
    return " / ".join(f"{np.percentile(list(values), rank):.0f}" for rank in ranks)


def share(flags: Iterable[bool]) -> str:
    return f"{100 * np.mean(list(flags)):.1f} %"


def main() -> None:
    texts = [path.read_text("utf-8") for path in sorted((ROOT / "src").rglob("*.py"))]
    tests = [path.read_text("utf-8") for path in sorted((ROOT / "tests").rglob("*.py"))]
    trees, lines = [ast.parse(text) for text in texts], [code_lines(text) for text in texts]
    sizes, arguments = list[int](), list[int]()
    for tree, own in zip(trees, lines, strict=True):
        for node in functions(tree):
            sizes.append(len(own & set(range(node.lineno, (node.end_lineno or 0) + 1))))
            arguments.append(len(node.args.posonlyargs) + len(node.args.args) + len(node.args.kwonlyargs))
    blocks = [block for text in texts for block in cc_visit(text) if block.letter in "FM"]
    named = [node for text in tests for node in functions(ast.parse(text)) if node.name.startswith("test_")]
    error_texts = [message for tree in trees for message in messages(tree)]
    n_code, n_test_code = sum(map(len, lines)), sum(len(code_lines(text)) for text in tests)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    facts = {
        "modules": str(len(texts)),
        "code lines": f"{n_code:,}",
        "module lines, median / p90 / max": percentiles([text.count("\n") for text in texts], 50, 90, 100),
        "function lines, median / p90 / p99": percentiles(sizes, 50, 90, 99),
        "functions of 20 lines or fewer": share(size <= 20 for size in sizes),
        "functions of complexity above 10": share(block.complexity > 10 for block in blocks),
        "arguments, p90": percentiles(arguments, 90),
        "public objects with a docstring": share(has for tree in trees for has in documented(tree)),
        "test code / code": f"{n_test_code / n_code:.2f}",
        "tests that are parametrized": share("parametrize" in ast.unparse(node).partition("def ")[0] for node in named),
        "errors that show a value": share("f'" in message or 'f"' in message for message in error_texts),
        "errors that say what they got": share("got " in message for message in error_texts),
        "dependencies": str(len(project["dependencies"])),
    }
    for name, value in facts.items():
        print(f"{name:40}{value}")


if __name__ == "__main__":
    main()
