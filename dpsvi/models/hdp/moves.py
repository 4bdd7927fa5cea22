"""Topics that are merged, deleted and born while an HDP is fitted.

The collapsed step has no ELBO, and that of mean field would rather have too few topics of text.  So
a move is judged by what topics are for: they predict one half of a document from the other, its own
counts left out (:mod:`dpsvi.families.topics.without_own`).  Of two sets of topics the one with more
must be better, by more than chance and than anybody would notice; else the one with fewer is taken.

Moves change columns of topics and tables: a merge adds two of them, a delete shares the counts of
each word among the others as these have the word, a birth divides them
(:mod:`dpsvi.models.hdp.splits`).  Of each kind first the likeliest is tried, then twice as many at
once, until they do not pay.  Topics are so refined by passes that a fit makes anyway (Bryant and
Sudderth 2012; Hughes and Sudderth 2013).
"""

from __future__ import annotations

import numpy as np

from dpsvi.estimators.between_parts import KINDS, BetweenParts
from dpsvi.families.topics.matrix import FLOAT
from dpsvi.families.topics.without_own import WithoutOwn
from dpsvi.models.hdp.splits import splits
from dpsvi.models.hdp.sticks import count_tables
from dpsvi.training.state import State

SURE = 2.0  # standard errors by which more topics must be better
NOTICED = 1e-4  # nats a token by which they must be better


class Moving(BetweenParts):
    """The part of the estimator that moves topics."""

    _remembers = "keep_responsibilities"

    def _restructure(self, items) -> None:
        seed, before = [self._seed, self._state.step], self._state
        taken, known = before, None
        for kind in KINDS:
            taken, known, n_moves = self._most_that_pay(kind, items, taken, known, seed)
            self.moves_[kind] += n_moves
        if taken is not before:
            self._state = self._with_rows(before, taken.shared.rows, self._n_threads)

    def _most_that_pay(self, kind, items, state, known, seed):
        """The state after moves of a kind, its log-likelihoods, and how many moves were made."""
        moves, change = self._candidates(kind, state, items)
        if known is None:
            known = self._judge(state, items, seed)
        before, taken, n_taken = known, state, 0
        while n_taken < len(moves):
            n = min(max(1, 2 * n_taken), len(moves))
            rows = state.learned()
            change(rows, moves[:n])
            trial = self._with_rows(state, rows)
            found = self._judge(trial, items, seed)
            pays = better(found, known) if kind == "birth" else not better(before, found)
            if not self._agree(pays):
                break
            taken, known, n_taken = trial, found, n
        return taken, known, n_taken

    def _judge(self, state, items, seed) -> np.ndarray:
        """Log-likelihood of each document of a sample, and the tokens it is of, (2, n)."""
        rng = np.random.default_rng(seed)
        without = WithoutOwn(state, items, self.n_components, rng, self._n_threads)
        part = without.part(0, len(without))
        tokens = np.add.reduceat(np.append(part.hidden.value, 0.0), part.hidden.offsets[:-1])
        return np.stack([part.log_likelihoods(self._alpha(state)), tokens])

    def _candidates(self, kind, state, items):
        """Moves of a kind, the likeliest first, and the function that makes some of them."""
        tables = count_tables(state.shared.rows[-1], state.scale, self.n_components)
        used = np.flatnonzero(tables >= 1)
        if kind == "delete":
            return used[np.argsort(tables[used], kind="stable")][:-1].tolist(), delete
        basis, _ = self._basis(state, mean_field=False)
        if kind == "merge":
            return most_alike(basis, used), merge
        free = np.setdiff1d(np.arange(self.n_components), used)
        if not len(free):
            return [], divide
        alpha, eta = self._alpha(state).astype(FLOAT), self._used_priors(state.model)[1]
        found = splits(basis, alpha, items, used, eta, self._n_threads)
        return list(zip(found, free.tolist(), strict=False)), divide

    @staticmethod
    def _with_rows(state, rows, n_threads=1) -> State:
        return State.resume(state.model, rows, n_threads, step=state.step, items=state.items)


def better(more, fewer) -> bool:
    """Whether these log-likelihoods are such that more topics pay."""
    gains = (more - fewer)[0]
    margin = max(SURE * np.sqrt(len(gains)) * gains.std(), NOTICED * more[1].sum())
    return bool(gains.sum() > margin)


def most_alike(basis, used) -> list[tuple[int, int]]:
    """Pairs of the topics `used`, by how much the same words are theirs; each topic in one."""
    roots = np.sqrt(basis[:, used])
    i, j = np.triu_indices(len(used), 1)
    pairs, paired = [], set()
    for at in np.argsort(-(roots.T @ roots)[i, j], kind="stable"):
        pair = int(used[i[at]]), int(used[j[at]])
        if paired.isdisjoint(pair):
            paired.update(pair)
            pairs.append(pair)
    return pairs


def merge(rows, pairs) -> None:
    """Give what the second topic of each pair has to the first one."""
    for i, j in pairs:
        rows[:, i] += rows[:, j]
        rows[:, j] = 0


def delete(rows, topics) -> None:
    """Share what these topics have among the others, each word as these have it."""
    words = rows[:-1]
    gone = words[:, topics].sum(axis=1, keepdims=True)
    rows[:, topics] = 0
    words += gone * words / np.maximum(words.sum(axis=1, keepdims=True), 1e-30)


def divide(rows, births) -> None:
    """Let a part of each topic that is split be another one's."""
    for split, new in births:
        share = np.full(len(rows), split.rest, rows.dtype)
        share[split.words] = split.share
        part = share * rows[:, split.topic]
        rows[:, new] += part
        rows[:, split.topic] -= part
