"""Moves of components between the parts of a fit, of which only those that raise the ELBO are made.

Between two :mod:`parts <dpsvi.estimators.between_parts>` the components are looked at on a sample
of the items, at most `SAMPLE` or 20 a component.  The fit so far, and each of the :mod:`proposals
<dpsvi.families.mixtures.moves>`, get a few steps of coordinate ascent on the sample; a proposal is
taken if it then has the higher ELBO, and the next ones go on from it.  When none is any better the
fit goes on from the last one taken, or, to the bit, from where it was.

A sample stands for all items.  Counted as all of them, its noise would look like components, and
pay for births; counted as what it is, components that are small in it would look like noise, and
pay for merges.  So a move must raise the ELBO counted both ways.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpsvi.engines import fit
from dpsvi.estimators.between_parts import BetweenParts
from dpsvi.families.mixtures.moves import proposals
from dpsvi.training.items import count, take
from dpsvi.training.schedules import constant
from dpsvi.training.state import State

SAMPLE = 2000  # items
SWEEPS = 5  # of coordinate ascent


class Trial(NamedTuple):
    """What coordinate ascent makes of some responsibilities."""

    state: State
    bound: float  # ELBO of the sample, in nats


def sweep(state, items, total) -> None:
    """Some steps of coordinate ascent, where `items` count as `total`."""
    fit(
        state, items, schedule=constant(1.0), batch_size=count(items), n_passes=SWEEPS, seed=0,
        total_items=total,
    )  # fmt: skip


class Restructuring(BetweenParts):
    """The part of an estimator that moves components where that raises the ELBO.

    It has parameters `incremental` and `n_components`, and defines

    * ``_look(items, state, rng) -> view`` of a sample of items: with ``view.items``, and with
      ``view.points``, (n, D), ``view.weight``, (n,) or None, for
      :func:`dpsvi.families.mixtures.moves.proposals`;
    * ``_responsibilities(state, view) -> array``, (n, K);
    * ``_try(view, resp, total) -> Trial``: coordinate ascent from the best parameters for these
      responsibilities, where the sample counts as `total` items.
    """

    def _check_restructure(self) -> None:
        super()._check_restructure()
        if self.restructure and self.incremental:
            raise ValueError(
                "restructure=True needs incremental=False: the passes that remember begin when "
                "components stay where they are; warm_start=True lets them follow in another fit"
            )

    def _sample_size(self, items) -> int:
        """How many items are enough."""
        return max(SAMPLE, 20 * self.n_components)

    def _restructure(self, items) -> None:
        """Make the moves that pay, and count them in `moves_`."""
        rng = np.random.default_rng([self._seed, self._state.step])
        n, n_sample = count(items), self._sample_size(items)
        sample = items
        if n > n_sample:
            sample = take(items, np.sort(rng.choice(n, n_sample, replace=False)))
        view, totals = self._look(sample, self._state, rng), sorted({count(sample), n})
        before = taken = Trial(self._state, self._lower_bound(self._state, sample, n))
        for _ in range(self.n_components):
            kind, trial = self._first_that_pays(view, taken, totals)
            if trial is None:
                break
            self.moves_[kind] += 1
            taken = trial
        if taken is not before:
            self._state = State.resume(
                taken.state.model, taken.state.learned(), self._n_threads, self._n_kept(items),
                step=before.state.step, items=before.state.items,
            )  # fmt: skip

    def _first_that_pays(self, view, now, totals):
        """Kind and trial of the first proposal that does; None, None: none does."""
        resp = self._responsibilities(now.state, view)
        before = [self._try(view, resp, total).bound for total in totals]
        before[-1] = max(before[-1], now.bound)
        for kind, proposal in proposals(resp, view.points, view.weight):
            for total, bound in zip(totals, before, strict=True):
                trial = self._try(view, proposal, total)
                # By more than rounding.
                if not self._agree(trial.bound > bound + 1e-9 * abs(bound)):
                    break
            else:
                return kind, trial
        return None, None
