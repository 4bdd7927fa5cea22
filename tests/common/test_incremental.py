"""Incremental passes: tests that every model has to pass that makes them."""

import logging
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from unittest.mock import patch

import members
import numpy as np
import pytest
from members import SECOND
from tools.mpiexec import needs

import dpsvi
from dpsvi import VirtualCluster, models
from dpsvi.cluster.nodes.master import Master
from dpsvi.cluster.nodes.worker import Worker
from dpsvi.errors import LostRankError, ModelFormatError
from dpsvi.training.items import count

NAMES = [name for name in members.names() if members.get(name).remembered is not None]
every_member = pytest.mark.parametrize("name", NAMES)


def on_workers(n_workers, **options):
    cluster = VirtualCluster(n_workers=n_workers, timing=SECOND, **options)
    return {"engine": "simulated", "cluster": cluster}


def make(name, **params):
    """A serial fit of 6 passes, of which the last 3 are incremental."""
    params = {"engine": "serial", "max_iter": 6, "batch_size": 16, "incremental": True, **params}
    return members.get(name).estimator(**params)


def fit(name, data, **params):
    return make(name, **params).fit(**data)


def data_of(name, rng, n=150):
    return members.get(name).data(rng, n)


def n_items(name, data):
    return count(fit(name, data, max_iter=1)._read(**{"y": None, **data}, reset=False))


def same(a, b):
    return np.array_equal(a._state.natural(), b._state.natural())


def as_good(name, data, model, less=0.03, **params):
    """A serial fit, after a check that the bound of `model` has risen as much, but for `less`."""
    serial, first = fit(name, data, **params), fit(name, data, max_iter=0)
    gained = serial.lower_bound_ - first.lower_bound_
    assert model.lower_bound_ > serial.lower_bound_ - less * gained > first.lower_bound_
    return serial


def test_models_that_have_the_parameter():
    have = [name for name in models.names() if "incremental" in models.get(name)().get_params()]
    assert have == NAMES


# --- the sum -----------------------------------------------------------------------------------


def close(found, expected, rtol):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


@every_member
def test_parameters_stand_for_all_items_at_all_times(name, rng):
    """What is remembered, and the estimate of the passes before for items not visited yet."""
    data, before, unvisited = data_of(name, rng), [], []
    n = n_items(name, data)

    def look(event):
        state = event.state
        if not state.sums_memory:
            before.append(state.learned())
            return
        unvisited.append(max(0.0, 4 - event.items / n))
        expected = members.get(name).remembered(data, state) + unvisited[-1] * before[-1]
        close(state.learned(), expected, 1e-9)

    fit(name, data, callbacks=[look], evaluate_every=0.25)
    assert len(unvisited) == 12 and 0.6 < unvisited[0] < 0.9 and 0.1 < unvisited[2] < 0.4
    assert not any(unvisited[3:])


@every_member
@pytest.mark.parametrize(
    "more",
    [
        {"engine": "threads", "n_jobs": 2}, on_workers(1), on_workers(12),
        {"n_jobs": 2, **on_workers(3)},
        on_workers(4, strategy="displacement"), on_workers(3, prefetch=True, master_batch=2),
        on_workers(4, local_decay="as_read"), on_workers(4, stragglers=(0.5, 5.0)),
        on_workers(4, late={2: 5.0}, grace_seconds=1.0),
    ],
    ids=[
        "threads", "1", "12", "3 x 2", "displacement", "prefetch", "as read", "stragglers", "late",
    ],
)  # fmt: skip
def test_parameters_are_the_sum_of_what_is_remembered(name, more, rng):
    """No statistic is lost or counts twice, whoever makes the steps."""
    data, states = data_of(name, rng), []
    model = fit(name, data, callbacks=[lambda event: states.append(replace(event.state)) and 0],
                **more)  # fmt: skip
    expected = members.get(name).remembered(data, states[-1])
    found = model._state.learned()
    if more.get("n_jobs", 1) == 1 or len(expected) == 1:
        return close(found, expected, 1e-9)
    # Threads may over-write each other's addition to an entry, of any size, but hardly ever do so.
    # A fault that concerns a row would show in more entries than these.
    as_expected = np.isclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    assert (~as_expected).sum() < expected.shape[1] / 2


@every_member
def test_one_worker_makes_the_bits_of_a_serial_fit(name, rng):
    data = data_of(name, rng)
    assert same(fit(name, data), fit(name, data, **on_workers(1)))


def symbols(rng):
    return {"X": rng.integers(4, size=(300, 1)), "lengths": [50, 1, 149, 100]}


def chain(rng):
    states = np.repeat(rng.integers(3, size=30), 10)
    return {"X": rng.normal(size=(300, 2)) + 4 * np.eye(3)[states, :2], "lengths": [290, 10]}


def weighted(rng):
    return data_of("gaussian_mixture", rng) | {"sample_weight": rng.integers(4, size=150)}


@pytest.mark.parametrize(
    ("name", "data", "more"),
    [
        *((name, partial(data_of, name), {}) for name in NAMES),
        ("gaussian_mixture", weighted, {"covariance_type": "diag"}),
        ("dp_mixture", partial(data_of, "dp_mixture"), {"weight_concentration_prior": 1.0}),
        ("hmm", symbols, {"emission": "categorical"}),
        ("hmm", chain, {"window": 20, "buffer": 5, "covariance_type": "diag"}),
    ],
)
def test_a_full_batch_is_a_step_of_coordinate_ascent(name, data, more, rng):
    """The first time, when all items are new, and later."""
    data = data(rng)
    settings = {"batch_size": 10_000, "learning_rate": 1.0, "max_iter": 8, **more}
    one, other = (fit(name, data, incremental=i, **settings) for i in (True, False))
    # Shares of counts are kept in 16 bits.
    rtol = 1e-3 if one._state.model.shape[0] > 1 else 1e-9
    close(one._state.natural(), other._state.natural(), rtol)
    assert one.lower_bound_ == pytest.approx(other.lower_bound_, rel=0.01 * rtol)


# --- where it ends -----------------------------------------------------------------------------


@every_member
def test_it_ends_where_coordinate_ascent_does(name, rng):
    """A full step of it, of all items at once, changes nothing any more; and from there on."""
    data = data_of(name, rng)
    model = fit(name, data, max_iter=400)
    if model._state.model.item_memory:
        pytest.skip("a full step begins with other local parameters than those that are remembered")
    found, lam = model.lower_bound_, model._state.natural()
    model.set_params(batch_size=n_items(name, data), learning_rate=1.0, warm_start=True)
    close(model.set_params(max_iter=1, incremental=False).fit(**data)._state.natural(), lam, 1e-6)
    model.set_params(max_iter=200).fit(**data)
    assert model.lower_bound_ == pytest.approx(found, rel=1e-8)


@every_member
def test_it_gains_on_the_same_number_of_decayed_passes(name, rng):
    data = data_of(name, rng, 300)
    one, other = (fit(name, data, max_iter=10, incremental=i) for i in (True, False))
    assert one.lower_bound_ > other.lower_bound_
    assert one._state.items == other._state.items, "at equal visits"


@every_member
@pytest.mark.parametrize("n_workers", [2, 16])
def test_stale_workers_end_there_too(name, n_workers, rng):
    data = data_of(name, rng)
    several = fit(name, data, max_iter=40, **on_workers(n_workers))
    serial = as_good(name, data, several, max_iter=40)
    assert several._state.items == serial._state.items


# --- what is asked for ---------------------------------------------------------------------------


@every_member
def test_items_stay_with_their_worker(name, rng):
    seen, compute = {}, Worker._compute

    def look(self, grant, mine):
        if self.job.state.sums_memory:
            for i in self.job.passes.items(mine[1]):
                seen.setdefault(int(i), []).append(self.pool)  # kept: an id may come again
        return compute(self, grant, mine)

    data = data_of(name, rng)
    with patch.object(Worker, "_compute", look):
        fit(name, data, **on_workers(4, stragglers=(0.5, 10.0)))
    assert set(seen) == set(range(n_items(name, data)))
    assert all(len(who) == 3 and len(set(who)) == 1 for who in seen.values())


@every_member
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "momentum"}, "strategy='momentum' cannot fit incremental passes"),
        ({"strategy": "pvi"}, "strategy='pvi' cannot fit incremental passes"),
        ({"strategy": "gossip"}, "strategy='gossip' cannot fit incremental passes"),
        ({"strategy": "ownership"}, "strategy='ownership' has no master"),
        ({"global_rate": 0.5}, "global_rate=0.5 cannot fit incremental .* needs 1.0"),
        ({"statistics": "bfloat16"}, "statistics='bfloat16' cannot .* needs 'float32'"),
    ],
    ids=str,
)
def test_what_would_not_count_once_is_refused(name, options, message, rng):
    steps = []
    with pytest.raises(ValueError, match=message):
        fit(name, data_of(name, rng), callbacks=[steps.append], **on_workers(2, **options))
    assert not steps, "before the fit begins"


@every_member
def test_it_is_true_or_false(name, rng):
    with pytest.raises((ValueError, TypeError), match="incremental must be .* got 'last'"):
        fit(name, data_of(name, rng), incremental="last")


@every_member
def test_streams_and_single_passes_have_none(name, rng):
    """Their items do not come again."""
    data, learners = data_of(name, rng), []

    def look(event):
        learners.append(event.state.model.learner)

    fit(name, data, max_iter=1, callbacks=[look])
    one, other = (make(name, incremental=i, callbacks=[look]) for i in (True, False))
    assert same(one.partial_fit(**data), other.partial_fit(**data))
    assert set(learners) == {"natural"}
    fit(name, data, max_iter=5, callbacks=[look])
    assert learners[-5:] == ["natural"] * 3 + ["incremental"] * 2


@every_member
def test_a_fit_that_goes_on_may_change_it(name, rng, tmp_path):
    data = data_of(name, rng)
    model = fit(name, data, warm_start=True)
    model.set_params(incremental=False).fit(**data)
    again = model.set_params(incremental=True).fit(**data)
    assert again._state.model.learner == "natural" and not again._state.remembers
    again.save(tmp_path)
    loaded = dpsvi.load(tmp_path).partial_fit(**data)
    close(loaded._state.natural(), again.partial_fit(**data)._state.natural(), 1e-9)


# --- losses and checkpoints ----------------------------------------------------------------------


@contextmanager
def lost(when, workers=(2,)):
    """Lose workers before the message with this number of the first incremental passes."""
    take, taken = Master.take, []

    def losing(self, worker, message):
        if self.job.state.sums_memory:
            taken.append(self)
            if len(taken) == when:
                for one in workers:
                    self.lose(one, "it was told to")
        take(self, worker, message)

    with patch.object(Master, "take", losing):
        yield taken


@every_member
@pytest.mark.parametrize("when", [1, 8, 20, 30])
def test_a_lost_worker_is_remembered_no_more(name, when, rng, caplog):
    data, states = data_of(name, rng), []
    with caplog.at_level(logging.WARNING, "dpsvi"), lost(when) as taken:
        model = fit(name, data, callbacks=[lambda e: states.append(replace(e.state)) and 0],
                    max_iter=20, **on_workers(4))  # fmt: skip
    messages = [record.getMessage() for record in caplog.records]
    assert sum("with it what it remembered of its items; 3 workers" in m for m in messages) == 1
    assert len(set(taken)) == 2, "they begin anew"
    close(model._state.learned(), members.get(name).remembered(data, states[-1]), 1e-9)
    assert model.n_iter_ in (20, 21)
    as_good(name, data, model, max_iter=20)


def test_all_workers_lost(rng):
    with pytest.raises(LostRankError, match="no worker is left"), lost(8, (1, 2, 3)):
        fit("gaussian_mixture", data_of("gaussian_mixture", rng), **on_workers(3))


def interrupted(name, data, folder, after, **options):
    """A fit that is interrupted after so many passes, and leaves a checkpoint."""

    def interrupt(event):
        if event.epoch >= after:
            raise KeyboardInterrupt

    settings = {"checkpoint_dir": folder, "checkpoint_seconds": 3600.0, "evaluate_every": 0.25}
    part = make(name, callbacks=[interrupt], **settings, **options)
    with pytest.raises(KeyboardInterrupt):
        part.fit(**data)
    assert np.isfinite(part.lower_bound_)
    return settings


@every_member
@pytest.mark.parametrize("after", [1.5, 3.0, 3.25, 4.0, 5.5])
def test_a_resumed_fit_makes_the_bits_of_one_that_went_on(name, after, rng, tmp_path):
    """In the passes before, between both kinds, in the first incremental pass, in later ones."""
    data = data_of(name, rng)
    settings = interrupted(name, data, tmp_path, after)
    again, whole = make(name, **settings).resume(**data), fit(name, data, evaluate_every=0.25)
    assert same(again, whole)
    assert (again.n_batch_iter_, again._state.items) == (whole.n_batch_iter_, whole._state.items)
    one, other = ([entry["epoch"] for entry in model.history_] for model in (again, whole))
    assert one == other, "the clock of all passes goes on"


@every_member
@pytest.mark.parametrize("before", ["serial", "workers"])
@pytest.mark.parametrize("after", [5.5, 11.5])
def test_a_fit_is_resumed_on_workers_or_from_them(name, before, after, rng, tmp_path):
    """What is remembered is with the workers: what is resumed begins to remember anew."""
    data, states = data_of(name, rng), []
    engines = {"max_iter": 20}, {"max_iter": 20, **on_workers(3)}
    first, then = engines[:: 1 if before == "serial" else -1]
    settings = interrupted(name, data, tmp_path, after, **first)
    look = [lambda event: states.append(replace(event.state)) and 0]
    again = make(name, callbacks=look, **settings, **then).resume(**data)
    close(again._state.learned(), members.get(name).remembered(data, states[-1]), 1e-9)
    as_good(name, data, again, max_iter=20)


@every_member
def test_more_or_fewer_passes_than_when_it_began(name, rng, tmp_path):
    data = data_of(name, rng)
    settings = interrupted(name, data, tmp_path, 4.5)
    for few in (4, 3):
        with pytest.raises(ModelFormatError, match="had begun, max_iter is . now"):
            make(name, max_iter=few, **settings).resume(**data)
    assert make(name, max_iter=8, **settings).resume(**data).n_iter_ == 8


def test_other_counts_than_those_that_are_remembered(rng, tmp_path):
    name = "poisson_factorization"
    data = data_of(name, rng)
    settings = interrupted(name, data, tmp_path, 4.5)
    other = data["X"].toarray()
    other[0, np.flatnonzero(other[0])[0]] = 0
    n = data["X"].nnz
    with pytest.raises(ModelFormatError, match=f"with {n} values, .* are {n - 1}"):
        make(name, **settings).resume(other)


@pytest.mark.mpi
@needs("openmpi")
@every_member
def test_three_ranks(name, tmp_path, rng, ranks):
    """Over a real MPI, as good as the worst of some serial fits: a mixture has several optima."""
    from common.test_models import command

    data = data_of(name, rng, 300)
    ranks("openmpi", 3, "dpsvi", *command(name, data, tmp_path, incremental=True, max_iter=60))
    loaded, first = dpsvi.load(tmp_path / "run"), fit(name, data, max_iter=0)
    serial = [
        fit(name, data, batch_size=32, max_iter=60, random_state=seed) for seed in range(8)
    ]
    worst = min(one.lower_bound_ for one in serial)
    gained = worst - first.lower_bound_
    assert loaded.lower_bound_ > worst - 0.1 * gained > first.lower_bound_
    assert loaded._state.items == serial[0]._state.items
