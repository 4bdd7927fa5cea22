"""Hierarchical local SGD (Lin et al. 2020): groups of workers average among themselves more often.

The workers are in groups, those of a host for instance, which have parameters of their own.  In
every round each group takes the mean of where its workers ended, with their items as weights; in
every H-th round all groups take the mean of all, with the items since the last time as weights::

    v_g <- sum_i n_i u_i / sum_i n_i        over the workers i of group g
    v_g <- v = sum_g n_g v_g / sum_g n_g    every H-th round

All means are convex, so v, which is what the fit reports after every round, and all v_g are valid
natural parameters.  The master holds the groups, so this is the algorithm, not its saving: messages
are as many and as long as those of :mod:`dpsvi.strategies.local_sgd`.  It needs room for one matrix
a group, and a round costs it a pass over all of them.
"""

from __future__ import annotations

from typing import ClassVar

from dpsvi.base import Parameters, Update
from dpsvi.errors import check_number
from dpsvi.strategies import local_sgd


class Strategy(local_sgd.Strategy):
    """See :class:`dpsvi.base.Star`.

    Parameters
    ----------
    groups : int, >= 1
        Worker i is in group ``i % groups``.
    every : int, >= 1
        H.
    """

    refuses: ClassVar[dict[str, str]] = {
        **local_sgd.Strategy.refuses,
        "statistics": "rounding errors that are kept for a group would go to the mean of all",
    }

    def __init__(self, groups: int = 2, every: int = 4):
        check_number("groups", groups, low=1, integer=True)
        check_number("every", every, low=1, integer=True)
        super().__init__()
        self.groups, self.every = groups, every

    def begin(self, parameters: Parameters, n_workers: int, state: dict | None) -> None:
        """Start all groups at the parameters, or where a checkpoint has them."""
        self._groups = [parameters.like() for _ in range(min(self.groups, n_workers))]
        self._n_items = [0] * len(self._groups)  # since the mean of all
        self._n_rounds = 0
        if n_workers == 1:
            self._groups = []
        elif state and int(state["n_groups"]) == len(self._groups):
            self._n_rounds = int(state["n_rounds"])
            self._n_items = [int(state[f"n_items_{g}"]) for g in range(len(self._groups))]
            for g, group in enumerate(self._groups):
                group.restore({k: state[f"{k}_{g}"] for k in ("rows", "totals", "scale")})

    def reads(self, parameters: Parameters, worker: int) -> Parameters:
        """Those of its group."""
        return self._groups[worker % len(self._groups)] if self._groups else parameters

    def __call__(self, parameters: Parameters, updates: list[Update]) -> None:
        """Take the mean of each group, then that of all."""
        if not self._groups:
            super().__call__(parameters, updates)
            return
        for g, group in enumerate(self._groups):
            mine = [u for u in updates if u.worker % len(self._groups) == g]
            if mine:
                super().__call__(group, mine)
                self._n_items[g] += sum(update.n_items for update in mine)
        local_sgd.become_mean(parameters, self._groups, self._n_items)
        self._n_rounds += 1
        if self._n_rounds % self.every == 0:
            self._n_items = [0] * len(self._groups)
            for group in self._groups:
                group.restore(parameters.content())

    def state(self) -> dict:
        """The groups' parameters and clocks."""
        numbers = {"n_groups": len(self._groups), "n_rounds": self._n_rounds}
        for g, group in enumerate(self._groups):
            numbers[f"n_items_{g}"] = self._n_items[g]
            numbers |= {f"{name}_{g}": value for name, value in group.content().items()}
        return numbers
