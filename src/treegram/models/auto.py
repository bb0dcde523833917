"""The search of ``kernel="auto"``: all candidates, on a sample first where there are many graphs, then sums of the best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from treegram._core.types import Floats, Ints
from treegram.kernels import KernelSum
from treegram.kernels.base import normalize_gram
from treegram.models.candidates import list_candidates
from treegram.models.crossval import seed_of
from treegram.models.diagonal import nearest_similarity
from treegram.models.memory import HELD_AT_ONCE, check_memory
from treegram.models.search import (
    TIME_IS_UP,
    Budget,
    Entry,
    Found,
    Given,
    Score,
    Tried,
    conclude,
    tell,
    try_entry,
    try_grams,
    with_jobs,
)

__all__ = ["search_auto"]

SAMPLE = 1000  # graphs: with more than MANY, all candidates are tried on so many, and the best on all
MANY = 1500  # graphs
N_FINALISTS = 6  # candidates that go on from the sample
N_PARTS = 3  # of a sum, at most
N_HELD = 6  # best candidates whose Gram matrices are held for sums, if memory allows


class _Auto:
    """One search: what is given, what was tried, and the Gram matrices of the best."""

    def __init__(
        self, given: Given, score_of: Callable[[Given], Score], budget: Budget, n_jobs: int | None, verbose: int
    ) -> None:
        self.given, self.score_of, self.budget = given, score_of, budget
        self.n_jobs, self.verbose = n_jobs, verbose
        self.tried: list[Tried] = []
        self.held: list[tuple[Tried, Floats]] = []  # best first

    def run(self, entries: Sequence[Entry], strength: str) -> Found:
        n_graphs = len(self.given.graphs)
        check_memory(n_graphs)
        if n_graphs > MANY:
            entries = self._finalists(entries)
        for one, K in self._attempts(entries, self.given):
            if K is not None:
                self._hold(one, K)
        if not self.held:
            raise ValueError(f"No candidate could be used. The first: {self.tried[0].note}.")
        self._add_up()
        return conclude(self.tried, self.given, strength, self.chosen)

    def _finalists(self, entries: Sequence[Entry]) -> list[Entry]:
        """The best on a sample, in the order of the list."""
        sample = self.given.taken(_sample(self.given.targets))
        first = len(self.tried)
        for _ in self._attempts(entries, sample):
            pass
        heat = self.tried[first:]
        scored = sorted((one for one in heat if len(one.points)), key=lambda one: -one.score)
        finalists = [one.entry for one in scored[:N_FINALISTS]]
        lost = f"left out: not among the best {N_FINALISTS} on {len(sample.graphs)} graphs"
        self.tried[first:] = [
            replace(one, note=lost) if len(one.points) and one.entry not in finalists else one for one in heat
        ]
        return [entry for entry in entries if entry in finalists]

    def _attempts(self, entries: Sequence[Entry], given: Given) -> Iterator[tuple[Tried, Floats | None]]:
        """Try entries while there is time, and the first in any case; one that cannot be used is left out and noted."""
        score, is_done = self.score_of(given), False
        for entry in entries:
            K = None
            if is_done and self.budget.is_spent():
                one = Tried(entry, len(given.graphs), TIME_IS_UP)
            else:
                try:
                    one, (K,) = try_entry(entry, given, score, self.budget.clock, self.n_jobs)
                    is_done = True
                except ValueError as error:
                    one = Tried(entry, len(given.graphs), f"left out: {error}")
            self._note(one)
            yield one, K

    def _note(self, one: Tried) -> None:
        self.tried.append(one)
        tell(one, self.verbose)

    def _hold(self, one: Tried, K: Floats) -> None:
        n_held = max(2, min(N_HELD, HELD_AT_ONCE // K.nbytes))
        self.held = sorted([*self.held, (one, K)], key=lambda item: -item[0].score)[
            :n_held
        ]  # stable: of equals the first

    def _add_up(self) -> None:
        """Add to the best candidate, one by one, whichever other raises the score most, while it is clearly raised."""
        parts, best = [0], self.held[0][0]
        while len(parts) < N_PARTS:
            others = [i for i in range(len(self.held)) if i not in parts]
            sums = [(self._sum([*parts, i]), i) for i in others if not self.budget.is_spent()]
            top, added = max(sums, key=lambda item: item[0].score, default=(best, 0))
            if not _is_clearly_better(top, best):
                break
            parts, best = [*parts, added], top
        self.chosen = best.entry

    def _sum(self, parts: Sequence[int]) -> Tried:
        start = self.budget.clock()
        entries = [self.held[i][0].entry for i in parts]
        total = np.sum([self.held[i][1] for i in parts], axis=0)
        diagonal = total.diagonal().copy()
        normalize_gram(total, diagonal, diagonal)
        kernel = with_jobs(KernelSum([entry.kernel for entry in entries]), self.n_jobs)
        entry = Entry(" + ".join(one.name for one in entries), kernel, {}, "a sum of the best")
        scores, fits = try_grams(entry.name, [total], self.given, self.score_of(self.given), self.n_jobs)
        seconds, similarity = self.budget.clock() - start, nearest_similarity(total)
        self._note(Tried(entry, len(self.given.graphs), "", seconds, [{}], scores, fits, similarity))
        return self.tried[-1]


def search_auto(
    given: Given,
    score_of: Callable[[Given], Score],
    strength: str,
    *,
    budget: Budget,
    n_jobs: int | None,
    verbose: int = 0,
) -> Found:
    """Try the candidates that suit the graphs, then sums of the best; ``score_of`` makes the score of what is given.

    When the budget is spent, nothing further is begun; the first candidate always is.
    """
    entries = [Entry(one.name, with_jobs(one.kernel, n_jobs), {}, one.reason) for one in list_candidates(given.graphs)]
    return _Auto(given, score_of, budget, n_jobs, verbose).run(entries, strength)


def _is_clearly_better(one: Tried, other: Tried) -> bool:
    """Whether the mean score is higher by more than one standard error of the difference, fold by fold.

    Of many sums one is always a little better by chance.
    """
    gains = one.fold_scores - other.fold_scores
    error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
    return bool(gains.mean() > error + 1e-12)


def _sample(targets: Floats | Ints) -> Ints:
    """Ids of SAMPLE graphs, ascending: at equal steps through all, sorted by target, and by chance among equal targets."""
    chance = np.random.default_rng(seed_of("auto", len(targets))).random(len(targets))
    order = np.lexsort((chance, targets))
    return np.sort(order[np.linspace(0, len(order) - 1, SAMPLE).astype(np.int64)])
