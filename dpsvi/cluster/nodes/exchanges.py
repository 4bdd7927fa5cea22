"""What exchanges between workers and master cost: a record of each, a summary of all."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple


class Exchange(NamedTuple):
    """One update of a worker, or one turn of a peer, for the log."""

    worker: int
    n_items: int
    n_bytes: int  # both ways
    waited: float  # seconds, of the worker
    staleness: int  # D': global steps since its parameters were read; a peer's turns since a merge
    seconds: float  # of local steps
    n_steps: int  # p B
    n_threads: int  # p, of those that the worker has

    @property
    def local_steps(self) -> float:
        """B, steps of each thread."""
        return round(self.n_steps / self.n_threads, 2)


def histogram(exchanges: Sequence[Exchange]) -> dict[int, int]:
    """How often each staleness D' was met."""
    return dict(sorted(Counter(e.staleness for e in exchanges).items()))


def reported(exchanges: Sequence[Exchange]) -> dict:
    """What a fit reports of them: all of them, and how often each D', B and p was met or used."""
    values = {
        "local_steps": [e.local_steps for e in exchanges],
        "threads": [e.n_threads for e in exchanges],
    }
    return {
        "exchanges": exchanges, "staleness": histogram(exchanges),
        "bytes": sum(exchange.n_bytes for exchange in exchanges),
        **{name: dict(sorted(Counter(found).items())) for name, found in values.items()},
    }  # fmt: skip


def summary(exchanges: Sequence[Exchange], busy: float, seconds: float) -> str:
    """All of them in a line; `busy` are those of the `seconds` in which the master computed."""
    n_bytes, n_items = sum(e.n_bytes for e in exchanges), sum(e.n_items for e in exchanges)
    waited, computed = sum(e.waited for e in exchanges), sum(e.seconds for e in exchanges)
    staleness = [e.staleness for e in exchanges]
    return (
        f"{len(exchanges)} exchanges, {n_bytes / n_items:.0f} bytes an item, "
        f"master busy {100 * busy / max(seconds, 1e-9):.1f} %, "
        f"workers waiting {100 * waited / max(waited + computed, 1e-9):.1f} %; "
        f"median B {statistics.median(e.local_steps for e in exchanges):g}, "
        f"p {statistics.median(e.n_threads for e in exchanges):g}; "
        f"staleness D': median {statistics.median(staleness):g}, at most {max(staleness)}"
    )
