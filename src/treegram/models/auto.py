"""The search of ``kernel="auto"``: all candidates, on a sample first where there are many graphs, then sums of the best."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from treegram._core.types import Floats, Ints
from treegram.kernels import KernelSum
from treegram.kernels.base import normalize_gram
from treegram.models.candidates import auto_candidates
from treegram.models.crossval import seed_of
from treegram.models.search import HELD_AT_ONCE, Candidate, Search, SearchResult, Trial, nearest_similarity, with_jobs

__all__ = ["AUTO_VERSION", "search_auto"]

# Increase it with every change of the candidates or of the search that can change a choice: stored studies record it, and are
# not continued by another version. tests/models/test_auto.py has the list of candidates of this version.
AUTO_VERSION = "1"

SAMPLE = 1000  # graphs on which all candidates are tried if there are more than MANY; the best are tried on all graphs
MANY = 1500
N_FINALISTS = 6  # candidates that go on from the sample
MAX_TERMS = 3  # of a sum
N_HELD = 6  # best candidates whose Gram matrices are held for sums, if memory allows

Held = list[tuple[Trial, Floats]]  # trials with their Gram matrices, best first


def search_auto(search: Search) -> SearchResult:
    """Try the candidates that suit the graphs, then sums of the best, while there is time."""
    graphs, n_jobs = search.data.graphs, search.n_jobs
    held: Held = []

    def keep(trial: Trial, K: Floats) -> None:
        n_held = max(2, min(N_HELD, HELD_AT_ONCE // K.nbytes))
        held.append((trial, K))
        held.sort(key=lambda item: -item[0].score)  # stable: ties keep their order
        del held[n_held:]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about kernels that the user did not name
        candidates = [replace(one, kernel=with_jobs(one.kernel, n_jobs)) for one in auto_candidates(graphs)]
        if len(graphs) > MANY:
            candidates = _finalists(search, candidates)
        search.try_all(candidates, keep=keep, skip_unusable=True)
        if not held:
            raise ValueError(f"No candidate could be used. The first: {search.trials[0].note}.")
        best = _best_sum(search, held)
    return search.conclude(best.candidate)


def _finalists(search: Search, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the best candidates on a sample, in the order of the list."""
    sample = search.data.subset(_sample(search.data.targets))
    trials = search.try_all(candidates, sample, skip_unusable=True)
    scored = sorted((one for one in trials if len(one.points)), key=lambda one: -one.score)
    finalists = [one.candidate for one in scored[:N_FINALISTS]]
    for i, one in enumerate(search.trials):
        if len(one.points) and one.candidate not in finalists:
            note = f"left out: not among the best {N_FINALISTS} on {len(sample.graphs)} graphs"
            search.trials[i] = replace(one, note=note)
    return [one for one in candidates if one in finalists]


def _sample(targets: Floats | Ints) -> Ints:
    """Return ids of SAMPLE graphs, ascending: evenly spaced in the order of their targets, with ties in random order."""
    ties = np.random.default_rng(seed_of("auto", len(targets))).random(len(targets))
    order = np.lexsort((ties, targets))
    return np.sort(order[np.linspace(0, len(order) - 1, SAMPLE).astype(np.int64)])


def _best_sum(search: Search, held: Held) -> Trial:
    """Add to the best candidate, one by one, the other that raises the score most, as long as the score is clearly raised."""
    terms, best = [0], held[0][0]
    while len(terms) < MAX_TERMS:
        others = [i for i in range(len(held)) if i not in terms]
        sums = [(_try_sum(search, [held[j] for j in [*terms, i]]), i) for i in others if not search.is_out_of_time()]
        top, added = max(sums, key=lambda item: item[0].score, default=(best, 0))
        if not _is_clearly_better(top, best):
            break
        terms, best = [*terms, added], top
    return best


def _try_sum(search: Search, terms: Held) -> Trial:
    start = search.clock()
    total = np.sum([K for _, K in terms], axis=0)
    diagonal = total.diagonal().copy()
    normalize_gram(total, diagonal, diagonal)
    candidates = [trial.candidate for trial, _ in terms]
    kernel = with_jobs(KernelSum([one.kernel for one in candidates]), search.n_jobs)
    one = Candidate(" + ".join(one.name for one in candidates), kernel, reason="a sum of the best")
    scores, fits = search.score_grams(one.name, [total], search.data, search.make_score(search.data))
    seconds = search.clock() - start
    trial = Trial(one, len(total), "", seconds, [{}], scores, fits, nearest_similarity(total))
    search.add(trial)
    return trial


def _is_clearly_better(one: Trial, other: Trial) -> bool:
    """Return whether the mean score is higher by more than one standard error of the difference, fold by fold.

    Of many sums, one is always a little better by chance.
    """
    gains = one.fold_scores - other.fold_scores
    error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
    return bool(gains.mean() > error + 1e-12)
