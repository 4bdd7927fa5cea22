"""Who of several peers does what: the ledger of a fit in parts, and together again."""

from __future__ import annotations

from collections import Counter

import numpy as np

from dpsvi.training.ledger import Ledger, StepRange


def shares(passes: Ledger, n_nodes: int) -> list[list[StepRange]]:
    """What each node does of what is left: the same answer wherever it is asked for.

    A node has a shard of its own where there are as many shards, else an equal part of each pass.
    """
    position = passes.position()
    ranges = [[*piece, shard] for shard, open_ in enumerate(position["again"]) for piece in open_]
    for epoch in range(passes.n_passes):
        for shard, (begun, first) in enumerate(position["next"]):
            n_steps = passes.steps_of(shard)
            if epoch >= begun and n_steps:
                ranges.append([epoch, first if epoch == begun else 0, n_steps, shard])
    found = [[] for _ in range(n_nodes)]
    for epoch, first, last, shard in ranges:
        if passes.n_shards == n_nodes:
            found[shard].append(StepRange(epoch, shard, first, last, 0))
            continue
        cuts = np.linspace(first, last, n_nodes + 1).round().astype(int).tolist()
        for node, (begin, end) in enumerate(zip(cuts[:-1], cuts[1:], strict=True)):
            if begin < end:
                found[node].append(StepRange(epoch, shard, begin, end, 0))
    return found


def rest_of(passes: Ledger, left: list) -> Ledger:
    """The ledger when of all that `passes` had to do the ranges `left` are still to be done."""
    open_ = Counter()
    for epoch, _, first, last in left:
        open_[epoch] += last - first
    whole = passes.steps_a_pass
    begun = max((e + 1 for e in range(passes.n_passes) if open_[e] < whole), default=0)
    position = passes.position()
    n_done = passes.n_left - sum(last - first for _, _, first, last in left)
    position |= {
        "n_done": passes.n_done + n_done, "clock": passes.clock + n_done,
        "next": [[begun, 0]] * passes.n_shards,
        "again": [
            sorted([e, first, last] for e, s, first, last in left if s == shard and e < begun)
            for shard in range(passes.n_shards)
        ],
    }  # fmt: skip
    return Ledger.resume(passes.n_items, passes.batch_size, passes.n_passes, position)
