"""SDA-Bayes (Broderick et al. 2013): the posterior of a stream, each of whose items is seen once.

A worker reads the parameters v, makes one local step on a batch, and the master adds what it found,
for these items alone and without any decay::

    v <- v + sum of the statistics of the batch at w

In the end v is the prior and the statistics of all items, each of them computed with what was known
when it came: the order and the number of workers matter, rates do not.  The sum is convex, so v
stays a valid natural parameter however late an update comes.

The rows that a fit starts from are a guess, not data.  They stand for the items that have not been
seen yet: an update takes out as much of them as it has items, and nothing is left of them after a
pass.  Parameters that have been fitted before are kept: what comes is added to them.

Items that are seen twice count twice, so this is for one pass.  After k passes the posterior is as
narrow as if there were k times the data, and what was found first, with topics that were hardly
known, is never forgotten.

The master needs room for two matrices, and a merge costs it a pass over both.
"""

from __future__ import annotations

from typing import ClassVar

from dpsvi.base import Parameters, Star, Update


class Strategy(Star):
    """See :class:`dpsvi.base.Star`."""

    incremental = False  # changes have no decay, which says what a worker's statistics stand for
    as_sent = False
    projected = True
    one_pass = "items that are seen again count again, and first guesses are never forgotten"
    refuses: ClassVar[dict[str, str]] = {
        "global_rate": "all items count alike",
        "strict": "there is no unstable rate",
        "waiting": "an update is one step",
    }

    def begin(self, parameters: Parameters, n_workers: int, state: dict | None) -> None:
        """Take note of the guess to be replaced, unless `parameters` have seen items."""
        self._guess, self._left = parameters.like(), float(parameters.items == 0)
        if state and "left" in state:
            self._left = float(state["left"])
            self._guess.restore({k: state[k] for k in ("rows", "totals", "scale")})

    def local_steps(self, done: float) -> float:
        """One: a second would have to know that the first has not been decayed."""
        return 1

    def __call__(self, parameters: Parameters, updates: list[Update]) -> None:
        """Add the statistics of the items, which stand for all of them in an update."""
        for update in updates:
            taken = 1 - update.decay
            parameters.add(update, update.share / taken if taken else 1.0)
            if self._left:
                parameters.combine(1.0, -min(update.share, self._left), self._guess)
                self._left = max(0.0, self._left - update.share)

    def state(self) -> dict:
        """What is left of the guess."""
        return {"left": self._left, **self._guess.content()} if self._left else {}
