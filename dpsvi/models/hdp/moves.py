"""Topics that are merged, deleted and born while an HDP is fitted with the mean-field step.

That step empties topics, and no step fills an empty one again: once topics say what documents are
about, one that says less finds no tables.  So mean field keeps too few of text, and only a birth
mends that.  The bound of mean field would rather have fewer, so a move is judged by what topics are
for: they predict one half of a document from the other, its own counts left out
(:mod:`dpsvi.families.topics.without_own`).

Moves change columns of topics and tables: a merge adds two of them, a birth divides one
(:mod:`dpsvi.models.hdp.splits`), a delete shares the counts of each word among the other topics as
these have the word.  Of each kind the likeliest is tried, then the likeliest two, four
and so on.  As many topics are merged or deleted as bring no loss that anybody would notice; as many
are born as predict best, if that is better by more than chance.  The passes that a fit makes anyway
refine them (Bryant and Sudderth 2012; Hughes and Sudderth 2013).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpsvi.estimators.between_parts import KINDS, BetweenParts
from dpsvi.families.topics.matrix import FLOAT
from dpsvi.families.topics.without_own import WithoutOwn
from dpsvi.models.hdp.splits import Split, splits
from dpsvi.models.hdp.sticks import count_tables
from dpsvi.training.items import count, take
from dpsvi.training.state import State

SURE = 2.0  # standard errors by which births must be better
NOTICED = 1e-4  # nats a token: a gain that is less is none, and so is a loss
JUDGES = 5  # one of so many documents judges moves


class Birth(NamedTuple):
    """A topic that is split, and where the new one is."""

    split: Split
    place: int
    pair: tuple[int, int] | tuple[()]  # topics that are merged to make room


class Moving(BetweenParts):
    """The part of the estimator that moves topics."""

    def _check_restructure(self) -> None:
        super()._check_restructure()
        if self.restructure and self.local_step != "mean_field":
            raise ValueError(
                f"restructure=True needs local_step='mean_field', got {self.local_step!r}, which "
                "leaves no topic of text empty"
            )

    def _restructure(self, items) -> None:
        """Make the moves that pay, and count them in `moves_`."""
        rng, before = np.random.default_rng([self._seed, self._state.step]), self._state
        order = rng.permutation(count(items)).astype(np.int32)
        judges, others = np.split(order, [-(-len(order) // JUDGES)])
        judges, others = take(items, np.sort(judges)), take(items, np.sort(others))
        taken, known = before, self._judge(before, judges)
        for kind in KINDS:
            moves, change = self._candidates(kind, taken, others)
            taken, known, n_moves = self._most_that_pay(kind, moves, change, judges, taken, known)
            self.moves_[kind] += n_moves
        if taken is not before:
            self._state = self._with_rows(before, taken.shared.rows, self._n_threads)

    def _most_that_pay(self, kind, moves, change, judges, state, before):
        """The state after some of these moves, how it is judged, and how many were made."""
        best, n = (state, before, 0), 0
        while self._agree(n < len(moves)):
            n = min(max(1, 2 * n), len(moves))
            rows = state.learned()
            change(rows, moves[:n])
            trial = self._with_rows(state, rows)
            found = self._judge(trial, judges)
            if kind == "birth":
                pays = surely_better(found, before) and found.sum() > best[1].sum()
            else:
                pays = no_worse(found, before)
            if self._agree(pays):
                best = trial, found, n
            elif kind != "birth":
                break
        return best

    def _judge(self, state, judges) -> np.ndarray:
        """What each document adds to the log-likelihood of a token, in nats."""
        without = WithoutOwn(
            state, judges, self.n_components, np.random.default_rng(self._seed), self._n_threads
        )
        part = without.part(0, len(without))
        return part.log_likelihoods(self._alpha(state)) / max(1.0, part.n_hidden)

    def _candidates(self, kind, state, items):
        """Moves of a kind, the likeliest first, and the function that makes some of them."""
        tables = count_tables(state.shared.rows[-1], state.scale, self.n_components)
        used = np.flatnonzero(tables >= 1)
        if kind == "delete":
            return used[np.argsort(tables[used], kind="stable")][:-1].tolist(), delete
        basis, _ = self._basis(state, mean_field=False)
        pairs = most_alike(basis, used)
        if kind == "merge":
            return pairs, merge
        alpha, eta = self._alpha(state).astype(FLOAT), self._used_priors(state.model)[1]
        found = splits(basis, alpha, items, used, eta, self._n_threads)
        free = np.setdiff1d(np.arange(self.n_components), used)
        return births(found, free.tolist(), pairs), divide

    @staticmethod
    def _with_rows(state, rows, n_threads=1) -> State:
        return State.resume(state.model, rows, n_threads, step=state.step, items=state.items)


def surely_better(found, before) -> bool:
    """Whether documents are better predicted, by more than chance and by what would be noticed."""
    gains = found - before
    if len(gains) < 2:  # nothing says how much is chance
        return False
    return bool(gains.sum() > max(SURE * np.sqrt(len(gains)) * gains.std(ddof=1), NOTICED))


def no_worse(found, before) -> bool:
    """Whether documents are predicted as well, but for what nobody would notice."""
    return bool((found - before).sum() > -NOTICED)


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


def births(found, free, pairs) -> list[Birth]:
    """A place for each of these splits: an empty topic, or that of one that is merged."""
    born, busy = [], set()
    for split in found:
        if split.topic in busy:
            continue
        pair = ()
        if len(born) >= len(free):
            fit = (p for p in pairs if busy.isdisjoint(p) and split.topic not in p)
            if not (pair := next(fit, ())):
                continue
        busy.update((split.topic, *pair))
        born.append(Birth(split, pair[1] if pair else free[len(born)], pair))
    return born


def merge(rows, pairs) -> None:
    """Give what the second topic of each pair has to the first one."""
    for i, j in pairs:
        rows[:, i] += rows[:, j]
        rows[:, j] = 0


def delete(rows, topics) -> None:
    """Share the words of these topics among the others, as these have them.

    What none of the others has goes by their tables.
    """
    gone = rows[:-1, topics].sum(axis=1, keepdims=True)
    rows[:, topics] = 0
    share, tables = np.split(np.maximum(rows, 0), [-1])
    share = np.where(share.any(axis=1, keepdims=True), share, tables)
    rows[:-1] += gone * share / share.sum(axis=1, keepdims=True)


def divide(rows, born) -> None:
    """Let a part of each topic that is split be another one's."""
    for split, new, pair in born:
        merge(rows, [pair] if pair else [])
        share = np.full(len(rows), split.rest, rows.dtype)
        share[split.words] = split.share
        part = share * rows[:, split.topic]
        rows[:, new] += part
        rows[:, split.topic] -= part
