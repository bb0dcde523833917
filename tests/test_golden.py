"""Golden values: an independent transcription of the paper's algorithms, and worked examples by a second author."""

import json
from pathlib import Path

import numpy as np
import pytest

from checks import feature_names, gram_array
from treegram import ODDCL, ODDST, Graphs

FILE = json.loads((Path(__file__).parent / "golden" / "odd.json").read_text())
GRAPHS = Graphs.from_edges(
    [g["edges"] for g in FILE["graphs"]],
    labels=[g["labels"] for g in FILE["graphs"]],
    attributes=[g["attributes"] for g in FILE["graphs"]],
)


def name(case):
    return "{kernel}-{counting}-h{h}-lam{lam}-gamma{gamma}".format(**case)


def kernel_of(case):
    shared = {"counting": case["counting"], "lam": case["lam"], "normalize": False}
    if case["kernel"] == "ODD_ST":
        return ODDST(case["h"], **shared)
    return ODDCL(case["h"], gamma=case["gamma"], **shared)


def test_file_covers_both_kernels_and_all_countings():
    assert {(case["kernel"], case["counting"], case["h"]) for case in FILE["cases"]} == {
        (kernel, counting, h)
        for kernel in ("ODD_ST", "ODDCL_ST")
        for counting in ("paper", "visits", "capped")
        for h in range(4)
    }


@pytest.mark.parametrize("case", FILE["cases"], ids=name)
def test_gram_matrix_matches_the_transcribed_algorithms(case):
    kernel = kernel_of(case)
    np.testing.assert_allclose(kernel.fit_transform(GRAPHS), case["gram"], rtol=1e-9, atol=0)
    np.testing.assert_allclose(kernel.transform(GRAPHS), case["gram"], rtol=1e-9, atol=0)


@pytest.mark.parametrize("case", [c for c in FILE["cases"] if c["kernel"] == "ODD_ST"], ids=name)
def test_oddcl_with_gamma_0_matches_the_transcribed_odd_st(case):
    kernel = ODDCL(case["h"], gamma=0.0, counting=case["counting"], lam=case["lam"], normalize=False)
    np.testing.assert_allclose(kernel.fit_transform(GRAPHS), case["gram"], rtol=1e-9, atol=0)


@pytest.mark.parametrize("counting", ["paper", "visits", "capped"])
@pytest.mark.parametrize("kernel", ["ODD_ST", "ODDCL_ST"])
def test_grid_matches_all_cases(kernel, counting):
    cases = [case for case in FILE["cases"] if (case["kernel"], case["counting"]) == (kernel, counting)]
    depths, lams = (sorted({case[key] for case in cases}) for key in ("h", "lam"))
    grid = gram_array(kernel_of(cases[0]), GRAPHS, depth=depths, lam=lams)
    for case in cases:
        np.testing.assert_allclose(
            grid[depths.index(case["h"]), lams.index(case["lam"])], case["gram"], rtol=1e-9, atol=0, err_msg=name(case)
        )


# Worked examples, by hand and by brute force: paths of two and three nodes, and a triangle.
P2, P3, Q3, K3 = range(4)
EXAMPLES = Graphs.from_edges(
    [[(0, 1)], [(0, 1), (1, 2)], [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)]],
    labels=[["A", "B"], ["A", "B", "A"], ["A", "A", "B"], ["A", "A", "B"]],
    attributes=[[[0.0], [1.0]], [[0.0], [1.0], [0.0]], [[0.0], [0.0], [1.0]], [[0.0], [0.0], [1.0]]],
)
PAIRS = [(P2, P2), (P2, P3), (P3, P3), (P2, K3), (P3, K3), (K3, K3), (P2, Q3), (Q3, Q3)]
VALUES = {  # ODD_ST with lambda = 1, in the order of PAIRS
    ("paper", 1): [20, 35, 66, 45, 86, 130, 34, 76],
    ("capped", 1): [10, 16, 30, 18, 34, 50, 15, 32],
    ("visits", 1): [10, 16, 30, 18, 34, 50, 15, 32],
    ("paper", 2): [40, 80, 233, 84, 221, 265, 74, 169],
    ("capped", 2): [10, 22, 58, 18, 46, 50, 20, 54],
    ("visits", 2): [26, 41, 89, 45, 99, 145, 37, 77],
}


@pytest.mark.parametrize("make", [ODDST, ODDCL], ids=lambda make: make.__name__)
@pytest.mark.parametrize(("counting", "depth"), VALUES)
def test_worked_examples(make, counting, depth):
    # Equal labels have equal vectors here, so the vectors have no effect.
    K = make(depth, counting=counting, normalize=False).fit_transform(EXAMPLES)
    assert [K[pair] for pair in PAIRS] == VALUES[counting, depth]


def test_worked_examples_as_polynomials_in_lam():
    lam = 0.5
    K = ODDST(1, lam=lam, counting="capped", normalize=False).fit_transform(EXAMPLES)
    assert K[P2, P2] == pytest.approx(8 * lam + 2 * lam**2, rel=1e-14)
    assert K[P2, P3] == pytest.approx(14 * lam + 2 * lam**2, rel=1e-14)
    assert K[P3, P3] == pytest.approx(25 * lam + 4 * lam**2 + lam**3, rel=1e-14)


def test_decomposition_of_figure_1_of_the_paper():
    """From s the visit reaches b and e, then d along two paths: unrolled to full depth, a tree of five nodes."""
    figure = Graphs.from_edges([FILE["graphs"][0]["edges"]], labels=[FILE["graphs"][0]["nodes"]])
    kernel = ODDST(2, counting="visits").fit(figure)
    assert "s(b(d),e(d))" in feature_names(kernel)
