"""Partitioned variational inference (Bui et al. 2018; Ashman et al. 2022).

The parameters are the prior and one factor for each of n workers, in natural parameters::

    v = prior + t_1 + ... + t_n

What a worker sends changes its own factor only.  From B~ local steps come a decay a and statistics
b of all data (:mod:`dpsvi.strategies.decay`); its factor forgets as much as n such updates would
forget of v, and takes as much of the statistics as keeps its weight, one n-th of all data::

    t_k <- a^n t_k + (1 - a^n) / (n (1 - a)) b

and v moves by the difference.  With a damping rho < 1 a factor moves by this share of it,
``t_k <- t_k + rho (new - t_k)``, as in the papers: for local steps that go far, such as one of rate
1 over all items of a worker, which v of other workers' factors would not keep up with.

By default nobody waits for others: the asynchronous server.  With ``synchronous=True`` all workers
read the same v, and v moves by all that they send at once.

An old factor is taken out by
exactly what it had put in, however stale the update is, so that no worker's data are counted twice
or forgotten while others are faster: with ``sharding="shard"``, where a worker has items that no
other one has, that is what other strategies cannot promise.  Where nothing moves any more, v is the
prior and the statistics of all items at v: a fixed point of batch variational inference.

Both changes are convex combinations in the factor, so v stays a valid natural parameter; a rounding
error of the sum is projected away.  The factor of a lost worker is shared out among the others,
which then have its items and forget it.  The master needs room for n + 1 matrices, and a merge
costs it a pass over two of them.
"""

from __future__ import annotations

from typing import ClassVar

from dpsvi.base import Parameters, Star, Update
from dpsvi.errors import check_flag, check_number


class Strategy(Star):
    """See :class:`dpsvi.base.Star`.

    Parameters
    ----------
    synchronous : bool
        Whether all workers go in rounds; else nobody waits.
    damping : float, in (0, 1]
        rho, the share of its change that a factor makes.
    """

    incremental = False  # a change of statistics has no decay that a factor could forget by
    projected = True
    refuses: ClassVar[dict[str, str]] = {
        "global_rate": "the rates of the local steps say how much of a factor is replaced",
        "strict": "there is no unstable rate",
    }

    def __init__(self, synchronous: bool = False, damping: float = 1.0):
        check_flag("synchronous", synchronous)
        check_number("damping", damping, low=0, high=1, open_low=True)
        self.synchronous, self.damping = bool(synchronous), damping
        self.as_sent = damping == 1
        if synchronous:
            self.refuses = {
                **self.refuses, "waiting": "all wait for the slowest worker",
                "master_batch": "all workers of a round are merged at once",
                "prefetch": "a round is read when the last one has been merged, not before",
            }  # fmt: skip

    def begin(self, parameters: Parameters, n_workers: int, state: dict | None) -> None:
        """Make equal parts of the parameters, or what a checkpoint has for as many workers."""
        self._factors: dict[int, Parameters] = {}
        self._owned: dict[int, int] = {}  # worker -> its factor, once it was heard of
        if n_workers == 1:
            return
        state = state or {}
        kept = {int(name.rsplit("_")[-1]) for name in state}
        for i in range(n_workers):
            factor = self._factors[i] = parameters.like()
            if len(kept) == n_workers:
                factor.restore({k: state[f"{k}_{i}"] for k in ("rows", "totals", "scale")})
            else:
                factor.combine(1 / n_workers)

    def lost(self, worker: int) -> None:
        """Share out the factor of `worker`."""
        if not self._factors:
            return
        factor = self._factors.pop(self._factor_of(worker))
        for other in self._factors.values():
            other.combine(1.0, 1 / len(self._factors), factor)

    def __call__(self, parameters: Parameters, updates: list[Update]) -> None:
        """Replace a part of the factor of each worker."""
        n = len(self._factors)
        for update in updates:
            index = self._factor_of(update.worker) if n > 1 else None
            if index not in self._factors:  # alone, or lost since it sent this
                parameters.decay(update, self.damping)
                parameters.add(update, self.damping)
                continue
            factor, taken = self._factors[index], 1 - update.decay
            replaced = self.damping * (1 - update.decay**n)
            kept, weight = 1 - replaced, replaced / (n * taken) if taken else self.damping
            parameters.combine(1.0, kept - 1, factor)
            parameters.add(update, weight)
            factor.combine(kept)
            factor.add(update, weight)

    def state(self) -> dict:
        """All factors, in order, however many are left."""
        return {
            f"{name}_{i}": value
            for i, (_, factor) in enumerate(sorted(self._factors.items()))
            for name, value in factor.content().items()
        }

    def _factor_of(self, worker: int) -> int:
        """Number of the factor of `worker`: the same in every fit if workers are 1 to n."""
        if worker not in self._owned:
            free = sorted(self._factors.keys() - self._owned.values())
            usual = worker - 1
            self._owned[worker] = usual if usual in free else free[0]
        return self._owned[worker]
