"""Probabilities of classes from the decisions of support vector machines.

A **sigmoid** for each pair of classes turns its decision d into the probability 1 / (1 + exp(slope d + offset)) of the
first class, given that the graph belongs to one of the two. **Coupling** finds the class probabilities that agree best
with those of all pairs. With many classes they are too even: a **temperature** sharpens them, p_i ^ (1 / temperature)
up to a factor. Sigmoids and temperature are fitted on decisions about graphs that the machines have not seen.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from treegram._core.types import Floats, Ints

__all__ = ["class_probabilities", "couple", "fit_sigmoid", "fit_sigmoids", "fit_temperature"]

_MAX_ROUNDS = 100
_SMALLEST = 1e-12  # probability before a logarithm is taken
_LOG_TEMPERATURES = (-4.0, 4.0)


def fit_sigmoids(decisions: Floats, codes: Ints, n_classes: int) -> Floats:
    """Return slope and offset for each pair of classes, (n_pairs, 2), from (n_graphs, n_pairs) held-out decisions."""
    sigmoids = np.zeros((decisions.shape[1], 2))
    for pair, (i, j) in enumerate(combinations(range(n_classes), 2)):
        members = np.flatnonzero((codes == i) | (codes == j))
        sigmoids[pair] = fit_sigmoid(decisions[members, pair], codes[members] == i)
    return sigmoids


def fit_sigmoid(decisions: Floats, is_first: Floats) -> Floats:
    """Return the slope and offset of maximum likelihood, by Newton's method with step halving.

    Targets are not quite 0 and 1, as in Platt's method: (n_first + 1) / (n_first + 2) and 1 / (n_second + 2).
    """
    n_first = int(is_first.sum())
    n_second = len(is_first) - n_first
    targets = np.where(is_first, (n_first + 1) / (n_first + 2), 1 / (n_second + 2))
    scale = np.abs(decisions).max(initial=0.0) or 1.0
    X = np.stack([decisions / scale, np.ones(len(decisions))])
    at = np.array([0.0, np.log((n_second + 1) / (n_first + 1))])

    def loss(at: Floats) -> float:
        exponents = at @ X
        return float((np.logaddexp(0.0, exponents) - (1 - targets) * exponents).sum())

    value = loss(at)
    for _ in range(_MAX_ROUNDS):
        p = 1 / (1 + np.exp(np.clip(at @ X, -700, 700)))
        gradient = X @ (targets - p)
        if np.abs(gradient).max() < 1e-8 * len(decisions):
            break
        direction = np.linalg.solve((X * (p * (1 - p))) @ X.T + 1e-12 * np.eye(2), gradient)
        step = 1.0
        while loss(at - step * direction) > value and step > 1e-10:
            step /= 2
        at = at - step * direction
        value = loss(at)
    at[0] /= scale
    return at


def couple(decisions: Floats, sigmoids: Floats, n_classes: int) -> Floats:
    """Return class probabilities, (n_graphs, n_classes), from (n_graphs, n_pairs) decisions.

    With r_ij the probability of i against j, the sum over all pairs of (r_ji p_i - r_ij p_j)^2 is minimized under sum p
    = 1: the second method of Wu, Lin and Weng (2004), as in libsvm, here as one system of linear equations for each
    graph.
    """
    exponents = np.clip(decisions * sigmoids[:, 0] + sigmoids[:, 1], -700, 700)
    first = np.clip(1 / (1 + np.exp(exponents)), 1e-7, 1 - 1e-7)
    if n_classes == 2:
        return np.column_stack([first[:, 0], 1 - first[:, 0]])
    r = np.zeros((len(decisions), n_classes, n_classes))
    above = np.triu_indices(n_classes, 1)
    r[:, above[0], above[1]] = first
    r[:, above[1], above[0]] = 1 - first
    system = np.ones((len(decisions), n_classes + 1, n_classes + 1))
    system[:, :-1, :-1] = -r * r.swapaxes(1, 2)
    diagonal = np.arange(n_classes)
    system[:, diagonal, diagonal] = (r**2).sum(axis=1)
    system[:, -1, -1] = 0.0
    right = np.zeros((len(decisions), n_classes + 1, 1))
    right[:, -1] = 1.0
    p = np.maximum(np.linalg.solve(system, right)[:, :-1, 0], 0.0)
    probabilities: Floats = p / p.sum(axis=1, keepdims=True)
    return probabilities


def fit_temperature(probabilities: Floats, codes: Ints) -> float:
    """Return the temperature for which the classes are most likely; 1 for two classes, whose sigmoid needs none."""
    if probabilities.shape[1] == 2:
        return 1.0
    members = np.arange(len(codes))

    def loss(log_temperature: float) -> float:
        p = _sharpen(probabilities, float(np.exp(log_temperature)))
        return -float(np.log(np.maximum(p[members, codes], _SMALLEST)).mean())

    return float(np.exp(minimize_scalar(loss, bounds=_LOG_TEMPERATURES, method="bounded").x))


def class_probabilities(
    decisions: Floats, sigmoids: Floats, temperature: float, predicted: Ints, n_classes: int
) -> Floats:
    """Return coupled and sharpened probabilities; with more than two classes, the predicted one is made the most probable.

    It is not always: the vote counts the signs of decisions, while probabilities depend on their sizes. If it is
    not, the two classes swap their probabilities.
    """
    p = couple(decisions, sigmoids, n_classes)
    if n_classes == 2:
        return p
    p = _sharpen(p, temperature)
    rows, most = np.arange(len(p)), p.argmax(axis=1)
    p[rows, most], p[rows, predicted] = p[rows, predicted], p[rows, most]
    return p


def _sharpen(probabilities: Floats, temperature: float) -> Floats:
    sharpened: Floats = softmax(np.log(np.maximum(probabilities, _SMALLEST)) / temperature, axis=1)
    return sharpened
