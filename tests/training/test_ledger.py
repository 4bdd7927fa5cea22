"""The ledger of all steps: shards, what is left to do, where segments end."""

import numpy as np

from dpsvi.training.ledger import Cuts, Ledger


def test_shards_are_disjoint_and_the_order_differs():
    passes = Ledger(100, 10, 2, seed=1, n_shards=3)
    seen = {}
    for worker in range(3):
        while work := passes.grant(worker, 3, owners=range(3)):
            seen.setdefault((work.epoch, work.shard), []).extend(passes.items(work))
            passes.done(worker, work)
            assert work.shard == worker
    assert passes.finished
    for shard in range(3):
        assert sorted(seen[0, shard]) == list(range(shard, 100, 3))
        assert seen[0, shard] != seen[1, shard]


def test_without_a_seed_items_come_in_their_order():
    passes = Ledger(100, 10, 1, seed=None, n_shards=3)
    for shard in range(3):
        work = passes.grant(shard, 10, owners=range(3))
        assert passes.items(work).tolist() == list(range(shard, 100, 3))


def test_no_two_workers_own_a_shard_while_there_are_shards_for_all():
    """Ranks 1 and 3 are left of four: both are odd, and there are two shards."""
    passes = Ledger(40, 10, 1, seed=1, n_shards=2)
    owners = {3, 1}
    shards = {worker: passes.grant(worker, 2, owners).shard for worker in (3, 1)}
    assert sorted(shards.values()) == [0, 1]
    again = Ledger(40, 10, 1, seed=1, n_shards=2)
    assert {worker: again.grant(worker, 2, owners).shard for worker in (1, 3)} == shards
    assert passes.grant(3, 2, owners) is None and passes.finished is False
    three = Ledger(40, 10, 2, seed=1, n_shards=2)
    assert {three.grant(worker, 1, {1, 2, 3}).shard for worker in (1, 2, 3)} == {0, 1}


def test_a_position_is_the_rest_of_the_work():
    """JSON of a ledger with steps in three states: done, given out, given back."""
    passes = Ledger(95, 10, 2, seed=1, n_shards=2)
    first, second = passes.grant(0, 2), passes.grant(1, 3)
    passes.done(0, first, 1)
    again = Ledger.resume(95, 10, 2, passes.position())
    rest = []
    while work := again.grant(0, 4):
        rest.append(again.items(work))
        again.done(0, work)
    done = passes.items(first._replace(last=first.first + 1))
    counts = np.bincount(np.concatenate(rest), minlength=95)
    assert np.all(counts[done] == 1) and np.all(np.delete(counts, done) == 2)
    assert second.n_steps == 3 and again.finished


def test_there_are_no_more_cuts_than_steps():
    """However small the share of a pass is, at once."""
    for every in (1 / 7, 0.01, 1e-12):
        cuts = Cuts(7, every)
        assert [cuts.after(step) for step in range(9)] == list(range(1, 10))


def test_passes_that_are_not_made_cost_nothing_and_passes_can_be_added():
    """So work needs no second kind without an end."""
    passes = Ledger(95, 10, 10**12, seed=1)
    for _ in range(30):
        passes.done(0, passes.grant(0, 1))
    position = passes.position()
    assert len(str(position)) < 200 and not passes.finished
    more = Ledger.resume(95, 10, 4, position)
    assert more.n_left == 10 and np.array_equal(
        more.items(more.grant(0, 10)), passes.items(passes.grant(0, 10))
    )


def test_cuts():
    cuts = Cuts(7, 0.5)
    assert [cuts.after(step) for step in (0, 3, 4, 6, 7, 11)] == [4, 4, 7, 7, 11, 14]
