"""Elastic averaging (EASGD; Zhang, Choromanska and LeCun 2015): workers on springs.

Every worker goes on from its own parameters x_i.  After its local steps they and the centre, which
is what the fit reports, move towards each other::

    d = alpha (x_i - centre)        x_i <- x_i - d        centre <- centre + d

Both are convex mixtures for alpha in (0, 1), so they stay valid natural parameters, and the sum of
all replicas and the centre is only changed by local steps.

With ``synchronous=True`` all workers step, and then all of them are exchanged with the same centre,
which takes n alpha of their mean: convex for n alpha < 1, else refused.

With ``momentum`` this is EAMSGD: each worker has Nesterov's momentum, which goes on with what its
earlier updates d did, ::

    m <- delta m + d        x_i <- x_i + d + delta m

so x_i is where the momentum leads to, and local steps are made there.  The two parts of m are kept
apart (:mod:`dpsvi.strategies._velocity`), so that this step is convex, too, and x_i stays a valid
natural parameter.  In the long run an update counts ``1 / (1 - delta)`` times: a delta of 0.9 wants
rates that are ten times smaller.

The authors' workers pull and step from the same point, which is stable, on a quadratic of curvature
1 with rate eta, only if ``alpha <= (4 - 2 eta) / (4 - eta)``.  Here the pull follows the step, the
recursion is a convex mixture of targets, and every alpha in (0, 1) is stable at every rate up to 1.

The master holds the replicas: a worker reads the rows that it needs of its own one, and nothing
else changes that one meanwhile.  So messages stay as short as for other strategies, a checkpoint
has all replicas, and a lost worker takes none away; the master needs room for n + 2 matrices, with
momentum for 2 n + 2, and an exchange costs it a pass over two of them.
"""

from __future__ import annotations

from dpsvi.base import Parameters, Star, Update
from dpsvi.errors import check_flag, check_number
from dpsvi.strategies._velocity import Velocity, check_momentum

_BETA = 0.9  # n alpha of the paper


class Strategy(Star):
    """See :class:`dpsvi.base.Star`.

    Parameters
    ----------
    alpha : float in (0, 1), or None
        What one exchange takes of the difference; None: 0.9 / n for n workers, as in the paper.
    momentum : float, in [0, 1)
        delta of EAMSGD; 0: none.
    synchronous : bool
        Whether all workers are exchanged with at the same time; else nobody waits.
    """

    incremental = False  # the centre would get alpha of each change
    replicas = True
    as_sent = False
    refuses = {
        "master_batch": "each worker is exchanged with on its own",
        "global_rate": "alpha says how far the centre moves",
        "strict": "there is no unstable rate",
        "prefetch": "a replica is read when its last update has been merged, not before",
        "statistics": "rounding errors would have to be exchanged, too",
    }

    def __init__(
        self, alpha: float | None = None, momentum: float = 0.0, synchronous: bool = False
    ):
        if alpha is not None:
            check_number("alpha", alpha, low=0, open_low=True)
            if alpha >= 1:
                raise ValueError(f"alpha must be a number > 0 and < 1, got {alpha!r}")
        check_momentum(momentum)
        check_flag("synchronous", synchronous)
        self.alpha, self.momentum, self.synchronous = alpha, momentum, bool(synchronous)
        if synchronous:
            self.refuses = {**self.refuses, "waiting": "all wait for the slowest worker"}
        self._replicas: dict[int, Parameters] = {}
        self._velocities: dict[int, Velocity] = {}

    def begin(self, parameters: Parameters, n_workers: int, state: dict | None) -> None:
        """Start all replicas at the centre without a velocity, or where a checkpoint has them.

        Raises
        ------
        ValueError
            The centre would take more than all of the mean of so many workers.
        """
        self._share = _BETA / n_workers if self.alpha is None else self.alpha
        if self.synchronous and n_workers * self._share >= 1:
            raise ValueError(
                f"synchronous elastic averaging is stable for alpha < 1 / n, got {self.alpha!r} "
                f"for {n_workers} workers"
            )
        self._first = parameters.like()
        state = state or {}
        for worker in {int(name.rsplit("_")[-1]) for name in state}:
            kept = {k.removesuffix(f"_{worker}"): v for k, v in state.items()
                    if k.endswith(f"_{worker}")}  # fmt: skip
            replica = self._replicas[worker] = parameters.like()
            replica.restore(kept)
            if self.momentum and "decay" in kept:
                self._velocities[worker] = Velocity.begin(parameters, kept)

    def reads(self, parameters: Parameters, worker: int) -> Parameters:
        """The replica of `worker`."""
        if worker not in self._replicas:
            self._replicas[worker] = self._first.like()
        return self._replicas[worker]

    def joined(self, parameters: Parameters, worker: int) -> None:
        """Start the replica of `worker` where the centre is, which all have left the start for."""
        self._replicas[worker] = parameters.like()
        self._velocities.pop(worker, None)

    def __call__(self, parameters: Parameters, updates: list[Update]) -> None:
        """Bring the replicas up to date, then exchange with the centre."""
        replicas = [self._moved(parameters, update) for update in updates]
        if not self.synchronous:
            for replica in replicas:
                replica.exchange(parameters, self._share)
            return
        centre = parameters.like()
        parameters.combine(1 - len(replicas) * self._share)
        for replica in replicas:
            parameters.combine(1.0, self._share, replica)
            replica.combine(1 - self._share, self._share, centre)

    def state(self) -> dict:
        """All replicas and velocities."""
        found = {
            f"{name}_{worker}": value
            for worker, replica in self._replicas.items()
            for name, value in replica.content().items()
        }
        for worker, velocity in self._velocities.items():
            found |= {f"{name}_{worker}": value for name, value in velocity.content().items()}
        return found

    def _moved(self, parameters, update) -> Parameters:
        """The replica that `update` is for, after it."""
        replica = self.reads(parameters, update.worker)
        if not self.momentum:
            replica.decay(update, 1.0)
            replica.add(update, 1.0)
            return replica
        if update.worker not in self._velocities:
            self._velocities[update.worker] = Velocity.begin(self._first, None)
        step = self._velocities[update.worker].nesterov(self.momentum, [update], [1.0])
        step.move(replica, 1.0)
        return replica
