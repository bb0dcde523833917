"""Tests of the text helpers that messages share."""

import pytest

from treegram._core.text import counted, listed, suggest


@pytest.mark.parametrize(
    ("number", "words", "expected"),
    [
        (0, ("graph",), "0 graphs"),
        (1, ("graph",), "1 graph"),
        (9600, ("repeat",), "9,600 repeats"),
        (1, ("accuracy", "accuracies"), "1 accuracy"),
        (2, ("accuracy", "accuracies"), "2 accuracies"),
    ],
)
def test_counted(number, words, expected):
    assert counted(number, *words) == expected


@pytest.mark.parametrize(
    ("words", "expected"), [([], ""), (["A"], "A"), (["A", "B"], "A and B"), (list("ABC"), "A, B and C")]
)
def test_listed(words, expected):
    assert listed(words) == expected


@pytest.mark.parametrize(
    ("word", "known", "expected"),
    [
        ("sed", ["seed", "title"], "; did you mean seed?"),
        ("WLC", ["wl", "wlcl", "csm"], "; did you mean wlcl or wl?"),
        ("color", ["two colors", "color, scaled"], "; did you mean 'two colors'?"),
        ("zzz", ["seed"], ""),
        ("zzz", [], ""),
    ],
)
def test_suggest(word, known, expected):
    assert suggest(word, known) == expected
