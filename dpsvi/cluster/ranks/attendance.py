"""Which ranks of a fit without a master take part: those that were there, those that have joined.

Rank 0 says who begins, and who joins at the end of a round, so that all know of the same nodes.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator

from dpsvi.cluster.ranks.others import Others

log = logging.getLogger(__name__)


class Attendance:
    """Who is there.

    Parameters
    ----------
    others : Others
    rank : int
        This one.
    ranks : list of int
        Of the nodes, in their order.

    Attributes
    ----------
    begun : bool
        Whether this rank knows who has begun.
    joined : dict of int to float
        Training time at which late ranks have joined, as rank 0 knows.
    """

    def __init__(self, others: Others, rank: int, ranks: list[int]):
        self.ranks, self.begun = ranks, False
        self.joined: dict[int, float] = {}
        self._others, self._rank = others, rank
        self._absent: set[int] = set()  # ranks that were not there, and have not joined
        self._known = set(others.live)  # the other ranks that the node reckons with

    def node(self, rank: int) -> int:
        """The number of the node that `rank` is."""
        return self.ranks.index(rank)

    @property
    def here(self) -> bool:
        """Whether this rank takes part."""
        return self._rank not in self._absent

    @property
    def there(self) -> set[int]:
        """The other ranks that take part."""
        return self._others.live - self._absent

    @property
    def late(self) -> set[int]:
        """Ranks that have not said hello."""
        return self._others.live - self._others.greeted

    @property
    def newcomers(self) -> set[int]:
        """Late ranks that have said hello since the others began."""
        return self._absent & self._others.greeted & self._others.live

    def first(self, absent: set[int]) -> list[int]:
        """Rank 0: all that begin, which are not `absent`."""
        there = sorted({self._rank, *self._others.live - absent})
        if absent:
            log.warning(
                "%d of %d ranks begin; the others join when they come", len(there),
                len(self._others.live) + 1,
            )  # fmt: skip
        return there

    def let_in(self, seconds: float, n_done: int) -> list[int]:
        """Rank 0: all that go on, newcomers too, after so many seconds and steps."""
        newcomers = self.newcomers
        self._absent = self._absent - newcomers
        self.joined |= dict.fromkeys(newcomers, seconds)
        for rank in sorted(newcomers):
            log.info("rank %d joins after %d steps", rank, n_done)
        return sorted({self._rank, *self.there})

    def take_over(self, there: Collection[int]) -> list[int]:
        """Reckon with the ranks that are there, as rank 0 says; returns their nodes."""
        self._absent = set(self.ranks) - set(there)
        self._known = set(there) - {self._rank}
        return [self.node(rank) for rank in there]

    def reckon_with_all(self) -> None:
        """Forget who was known not to be there: a node that begins anew is told again."""
        self._known = set(self.ranks) - {self._rank}

    def newly_gone(self) -> Iterator[tuple[int, str]]:
        """Nodes that this one reckons with and that are not there, with the reason."""
        gone, self._known = self._known - self.there, self._known & self.there
        for rank in sorted(gone):
            yield self.node(rank), self._others.lost.get(rank, "late")
