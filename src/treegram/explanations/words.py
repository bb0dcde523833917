"""Words for the names of features, columns and labels, such as "at least two C bonded to O" for ``C(O) #2``."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Hashable
from itertools import chain, takewhile

from treegram._core.text import counted, label_text, listed

_LONGEST = 110  # characters; a longer description of a tree only says how deep it is
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_ELEMENT = re.compile("H|Li|B|C|N|O|F|Na|Mg|Al|Si|P|S|Cl|K|Ca|Fe|Cu|Zn|As|Se|Br|Sn|I|Pt|Hg")  # in molecules
_POINTS = "donor|acceptor|positive|negative|hydrophobe|aromatic"  # of ErG fingerprints
_BONDS = ("single", "double", "triple", "aromatic", "dative")

Tree = tuple[str, list["Tree"]]  # label of the root, after that of the edge above it, if any; and the trees below it


def feature_words(name: str) -> str:
    """Return the name of a feature in words: "C bonded to N and two O" for ``WL: C(N,O,O)``; other names as they are."""
    tree, number = split_feature(name)
    if re.fullmatch("[0-9a-f]{16}", tree):  # a hash of NSPDK
        return f"pair of neighborhoods {tree}"
    if bin_of := re.fullmatch(r"iteration (\d+), bin (\d+)", tree):  # of P2K
        return f"nodes in bin {bin_of[2]}" + ("" if bin_of[1] == "0" else f" after {counted(int(bin_of[1]), 'step')}")
    try:
        root, children = parse_tree(re.sub(r"(\(\))+$", "", tree))
        if ":" in root and root[0] != '"':  # a walk, such as C-single:O
            return tree
        words = label_words(_read_label(root), is_plural=number > 1)
        words += " without neighbors" if tree.endswith("()") else ""
        if children:
            around = _surroundings((root, children))
            steps = f"with its surroundings, {_depth((root, children))} steps deep"
            words += " " + (around if len(around) <= _LONGEST else steps)
    except ValueError:
        return tree
    return f"at least {_count(number)} {words}" if number else words


def split_feature(name: str) -> tuple[str, int]:
    """Split the name of a feature into its tree and WLOA's number, 0 for other kernels; a kernel before the name is left out."""
    kernel, colon, rest = name.partition(": ")
    name = rest if colon and kernel.isidentifier() else name
    tree, mark, number = name.rpartition(" #")
    return (tree, int(number)) if mark and number.isdecimal() else (name, 0)


def column_words(name: str) -> str:
    """Return the name of a number of the whole graph in words: "donor and acceptor, 2 bonds apart" for ``donor acceptor 2``."""
    if pair := re.fullmatch(rf"(?:erg: )?({_POINTS}) ({_POINTS}) (\d+)", name):
        return f"{pair[1]} and {pair[2]}, {pair[3]} {'bond' if pair[3] == '1' else 'bonds'} apart"
    return name.removeprefix("rdkit2d: ")


def label_words(label: Hashable, *, is_plural: bool = False) -> str:
    """Return a label in words: "C (aromatic)" for ("C", "aromatic"), "other C" for ("C", ""), "node labeled 3" for 3."""
    text = label_text(label)
    if re.match(r"-?\d", text):
        return f"{'nodes' if is_plural else 'node'} labeled {text}"
    if not isinstance(label, tuple) or not text.strip("/"):
        return text
    noun, *parts = (str(part) for part in label)
    properties = ", ".join(filter(None, parts))
    return f"{noun} ({properties})" if properties else f"other {noun}"


def _surroundings(tree: Tree) -> str:
    """Return the trees below a root in words: "bonded to N and two O", "with a double bond to O and a single bond to C"."""
    root, children = tree
    labels, groups = [_read_label(root)], defaultdict[str, Counter[str]](Counter)
    for child in children:
        edge, _ = split_edge(child[0])
        labels.append(_read_label(child[0]))
        words = label_words(labels[-1]).removeprefix("node labeled ")
        words += f" ({_surroundings(child)})" if child[1] else ""
        groups[edge][words] += 1
    phrases = []
    for edge, counts in groups.items():
        # Numbers are repeated: "two 3" would be hard to read.
        ends = [
            [words] * n if n == 1 or words[:1].isdigit() else [f"{_count(n)} {words}"] for words, n in counts.items()
        ]
        names = listed(list(chain.from_iterable(ends)))
        phrases.append(f"{_joint(edge, is_plural=counts.total() > 1)} to {names}" if edge else names)
    if "" not in groups:
        return f"with {listed(phrases)}"
    is_molecule = all(_ELEMENT.fullmatch(label[0] if isinstance(label, tuple) else label) for label in labels)
    return f"{'bonded' if is_molecule else 'next'} to {listed(phrases)}"


def _joint(edge: str, *, is_plural: bool) -> str:
    """Return "a double bond", "single bonds", "an edge labeled 3"."""
    before, noun, after = ("", "edge", f" labeled {edge}")
    if edge.partition(" ")[0] in _BONDS:
        before, noun, after = f"{edge} ", "bond", ""
    if is_plural:
        return f"{before}{noun}s{after}"
    return f"{'an' if (before + noun)[0] in 'aeiou' else 'a'} {before}{noun}{after}"


def _read_label(text: str) -> str | tuple[str, ...]:
    """Return the label of a node from the name of a tree: tuples are written as ``C/aromatic``."""
    label = split_edge(text)[1]
    return label if text.endswith('"') or "/" not in label else tuple(label.split("/"))


def _count(number: int) -> str:
    return _NUMBERS[number] if number < len(_NUMBERS) else str(number)


def _depth(tree: Tree) -> int:
    return 1 + max((_depth(child) for child in tree[1]), default=-1)


# -------------------------------------------------------------------- names of trees


def split_edge(label: str) -> tuple[str, str]:
    """Split off the label of the edge above a node, "" if there is none; both without quotes."""
    parts = re.findall(r'"(?:[^"\\]|\\.)*"|[^":]+', label)
    edge, node = ["", *(str(json.loads(part)) if part[0] == '"' else part for part in parts)][-2:]
    return edge, node


def parse_tree(name: str) -> Tree:
    """Read a tree such as ``C(N,C(O))``; raise ValueError for other names."""
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"|[(),]|[^"(),]+|"', name)  # quoted labels are one token

    def read_words() -> str:
        words = list(takewhile(lambda token: token not in "(),", tokens))
        del tokens[: len(words)]
        return "".join(words)

    def read_tree() -> Tree:
        label, children = read_words().strip(), []
        if tokens[:1] == ["("]:
            while tokens.pop(0) != ")":  # an opening parenthesis or a comma
                children.append(read_tree())
            label += read_words().rstrip()  # WLOA's number, such as " #2"
        return label, [child for child in children if child != ("", [])]

    try:
        root = read_tree()
    except IndexError:
        root = ("", [])
    if tokens or not root[0]:
        raise ValueError(f"name must be one tree such as 'C(N,C(O))'; got {name!r}.")
    return root
