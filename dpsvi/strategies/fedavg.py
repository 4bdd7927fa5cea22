"""Federated averaging (McMahan et al. 2017): rounds of some clients, drawn anew each time.

In each round a share C of the n clients, which is drawn uniformly, reads the parameters v, makes
local steps on data of its own, and the master takes the mean of where they ended, with the items
that each has seen as weights::

    v <- sum_k n_k u_k / sum_k n_k        over max(1, C n) clients k

This is :mod:`dpsvi.strategies.local_sgd` with other clients in every round: convex, so v stays a
valid natural parameter.  Take ``sharding="shard"``, and as many ``local_steps`` as the largest
shard has: then a client visits all of its items before it sends what it has.

With ``epochs`` E > 1 the clients of a round do so E times, each from where it has come to, before
others are drawn.  The master holds their parameters meanwhile, and v is the mean of where they are:
this is the algorithm, not its saving, since messages are as many as with E = 1.  It needs room for
a matrix for each client of a round.

A client's statistics stand for the data of all, so those who are not drawn are forgotten for a
while: the larger C n, the less; :mod:`dpsvi.strategies.pvi` forgets nobody.

A client that has made all its passes is not drawn any more.
"""

from __future__ import annotations

import numpy as np

from dpsvi.base import Parameters, Update
from dpsvi.errors import check_number
from dpsvi.strategies import local_sgd


class Strategy(local_sgd.Strategy):
    """See :class:`dpsvi.base.Star`.

    Parameters
    ----------
    fraction : float, in (0, 1]
        C.  With fewer than 15 workers, 0.1 draws a single one for each round.
    epochs : int, >= 1
        E, how often the clients of a round make local steps.
    """

    def __init__(self, fraction: float = 0.1, epochs: int = 1):
        check_number("fraction", fraction, low=0, high=1, open_low=True)
        check_number("epochs", epochs, low=1, integer=True)
        super().__init__()
        self.fraction, self.epochs = fraction, epochs
        if epochs > 1:
            self.as_sent = False
            self.refuses = {
                **self.refuses,
                "statistics": "rounding errors that are kept for a client would go to the mean",
            }

    def begin(self, parameters: Parameters, n_workers: int, state: dict | None) -> None:
        """Start with the first round, or with that of a checkpoint."""
        self._n_workers = n_workers
        self._n_rounds = int(state["n_rounds"]) if state else 0
        self._clients: dict[int, Parameters] = {}  # of this round, where each of them is
        self._n_items: dict[int, int] = {}  # that each of them has seen
        self._epoch = int(state.get("epoch", 0)) if state else 0
        for name in [name for name in state or {} if name.startswith("n_items_")]:
            client = int(name.removeprefix("n_items_"))
            self._n_items[client] = int(state[name])
            self._clients[client] = parameters.like()
            self._clients[client].restore(
                {k: state[f"{k}_{client}"] for k in ("rows", "totals", "scale")}
            )

    def averaged(self, n_workers: int) -> int:
        """Clients of a round."""
        return max(1, round(self.fraction * n_workers))

    def drawn(self, workers: list[int]) -> list[int]:
        """The clients of this round, as long as it goes on; then some of those with data left."""
        going_on = sorted(self._n_items.keys() & workers) if self._epoch < self.epochs else []
        if going_on:
            return going_on
        draws = np.random.default_rng([self._n_workers, self._n_rounds])
        self._n_rounds += 1
        n = min(len(workers), self.averaged(self._n_workers))
        self._epoch, self._clients, self._n_items = 0, {}, {}
        return draws.choice(sorted(workers), n, replace=False).tolist()

    def reads(self, parameters: Parameters, worker: int) -> Parameters:
        """Where this client has come to in its round."""
        return self._clients.get(worker, parameters)

    def __call__(self, parameters: Parameters, updates: list[Update]) -> None:
        """Take the mean of where the clients of this round are."""
        self._epoch += 1
        if self.epochs == 1:
            super().__call__(parameters, updates)
            return
        for update in updates:
            client = self._clients.setdefault(update.worker, parameters.like())
            client.decay(update, 1.0)
            client.add(update, 1.0)
            seen = self._n_items.get(update.worker, 0)
            self._n_items[update.worker] = seen + update.n_items
        counts = [self._n_items[client] for client in self._clients]
        local_sgd.become_mean(parameters, list(self._clients.values()), counts)

    def state(self) -> dict:
        """The number of rounds, by which clients are drawn, and where those of this one are."""
        found = {"n_rounds": self._n_rounds, "epoch": self._epoch}
        for client, place in self._clients.items():
            found[f"n_items_{client}"] = self._n_items[client]
            found |= {f"{name}_{client}": value for name, value in place.content().items()}
        return found
