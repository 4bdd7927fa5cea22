"""Elastic averaging (EASGD; Zhang, Choromanska and LeCun 2015): workers on springs.

Every worker goes on from its own parameters x_i.  After its local steps they and the centre, which
is what the fit reports, move towards each other::

    d = alpha (x_i - centre)        x_i <- x_i - d        centre <- centre + d

Both are convex mixtures for alpha in (0, 1), so they stay valid natural parameters, and the sum of
all replicas and the centre is only changed by local steps.

The master holds the replicas: a worker reads the rows that it needs of its own one, and nothing
else changes that one meanwhile.  So messages stay as short as for other strategies, a checkpoint
has all replicas, and a lost worker takes none away; the master needs room for n + 2 matrices, and
an exchange costs it a pass over two of them.
"""

from __future__ import annotations

from typing import ClassVar

from dpsvi.base import Parameters, Star, Update
from dpsvi.errors import check_number

_BETA = 0.9  # n alpha of the paper


class Strategy(Star):
    """See :class:`dpsvi.base.Star`.

    Parameters
    ----------
    alpha : float in (0, 1), or None
        What one exchange takes of the difference; None: 0.9 / n for n workers, as in the paper.
    """

    incremental = False  # the centre would get alpha of each change
    replicas = True
    as_sent = False
    refuses: ClassVar[dict[str, str]] = {
        "master_batch": "each worker is exchanged with on its own",
        "global_rate": "alpha says how far the centre moves",
        "strict": "there is no unstable rate",
        "prefetch": "a replica is read when its last update has been merged, not before",
        "statistics": "rounding errors would have to be exchanged, too",
    }

    def __init__(self, alpha: float | None = None):
        if alpha is not None:
            check_number("alpha", alpha, low=0, open_low=True)
            if alpha >= 1:
                raise ValueError(f"alpha must be a number > 0 and < 1, got {alpha!r}")
        self.alpha = alpha
        self._replicas: dict[int, Parameters] = {}

    def begin(self, parameters: Parameters, n_workers: int, state: dict | None) -> None:
        """Start all replicas at the centre, or where a checkpoint has them."""
        self._share = _BETA / n_workers if self.alpha is None else self.alpha
        self._first = parameters.like()
        state = state or {}
        for worker in {int(name.rsplit("_")[-1]) for name in state}:
            replica = self._replicas[worker] = parameters.like()
            replica.restore({k: state[f"{k}_{worker}"] for k in ("rows", "totals", "scale")})

    def reads(self, parameters: Parameters, worker: int) -> Parameters:
        """The replica of `worker`."""
        if worker not in self._replicas:
            self._replicas[worker] = self._first.like()
        return self._replicas[worker]

    def __call__(self, parameters: Parameters, updates: list[Update]) -> None:
        """Bring the replica up to date, then exchange with the centre."""
        for update in updates:
            replica = self.reads(parameters, update.worker)
            replica.decay(update, 1.0)
            replica.add(update, 1.0)
            replica.exchange(parameters, self._share)

    def state(self) -> dict:
        """All replicas."""
        return {
            f"{name}_{worker}": value
            for worker, replica in self._replicas.items()
            for name, value in replica.content().items()
        }
