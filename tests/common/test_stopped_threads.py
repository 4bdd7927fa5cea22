"""A thread may be stopped at any moment, for as long as other work wants its core."""

import members
import pytest
from members import fit, quality

from dpsvi.training import loop

CASES = [
    pytest.param(name, params, id=" ".join([name, *params]))
    for name in members.names()
    for params in ({}, *members.get(name).phases)
]


def stopped_run(self, task, thread, n_steps):
    """Make the steps of two threads in one: the other is stopped in every segment.

    It has taken the first step and read the totals; it goes on, with the scale it was given, when
    all other steps of the segment have been made.
    """
    if thread == 0:
        totals = task.shared.totals.sum(axis=0)
        for t in range(1, n_steps):
            self.end(task, 0, t, self.begin(task, 0, t))
        work = task.works[0]
        work.totals[:] = totals
        n = task.local(task.shared, task.scales[0], task.hyper, task.items, task.batch(0), work)
        self.end(task, 0, 0, n)
        task.counter[0] = n_steps
    return n_steps


@pytest.mark.parametrize("name, params", CASES)
def test_a_fit_survives_it(name, params, rng, monkeypatch):
    member = members.get(name)
    data, params = member.data(rng, 400), {"batch_size": 8, **params}
    usual = fit(member, data, engine="serial", **params)
    gained = quality(usual) - quality(fit(member, data, engine="serial", **params, max_iter=0))
    monkeypatch.setattr(loop.CompiledLoop, "run", stopped_run)
    late = fit(member, data, engine="threads", n_jobs=1, **params)
    assert late.n_batch_iter_ == usual.n_batch_iter_
    assert quality(late) > quality(usual) - 0.1 * gained
