"""Batches whose size is left to the fit are cut in parts, which workers share."""

import json
from math import ceil

import numpy as np
import pytest
from reference.lda import TopicCorpus
from tools.mpiexec import EVERY_MPI

from dpsvi import DPSVIHDP, DPSVILDA, Cluster, VirtualCluster
from dpsvi.cluster.virtual import Timing
from dpsvi.errors import ModelFormatError
from dpsvi.families.topics.defaults import FEWEST, MOST_PARTS
from dpsvi.files import io
from dpsvi.models.lda.estimator import DEFAULTS
from dpsvi.training.ledger import Ledger
from dpsvi.training.schedules import averaged_from, of_parts, robbins_monro

N = 4096  # documents, a whole number of batches and of parts
BATCH = DEFAULTS["collapsed"].batch_size(N)
MOST = BATCH // FEWEST  # parts
TIMING = Timing(step=1e-5, value=1e-6)


@pytest.fixture(scope="module")
def corpora():
    topics = TopicCorpus(5, n_words=100, n_documents=N + 400, n_tokens=30, alpha=0.1, seed=0)
    corpus = topics.corpus()
    return corpus[:N], corpus[N:]


def virtual(n_workers, **options):
    cluster = VirtualCluster(n_workers=n_workers, timing=TIMING, **options)
    return {"engine": "simulated", "cluster": cluster}


def lda(**params):
    return DPSVILDA(5, **{"max_iter": 6, "random_state": 0, "doc_topic_prior": 0.1, **params})


def hdp(**params):
    # With many more topics than the corpus has, smaller steps find a better optimum.
    return DPSVIHDP(10, **{"max_iter": 6, "random_state": 0, **params})


def steps_a_pass(model):
    if "exchanges" not in model.exchanges_:
        return model._state.step / model.n_iter_
    return sum(e.n_steps for e in model.exchanges_["exchanges"]) / model.n_iter_


@pytest.mark.parametrize(("n_workers", "parts"), [(1, 1), (2, 2), (3, 3), (16, MOST)])
def test_workers_share_a_batch(corpora, n_workers, parts):
    model = lda(max_iter=2, **virtual(n_workers)).fit(corpora[0])
    assert steps_a_pass(model) == ceil(N / ceil(BATCH / parts))
    assert model.n_batch_iter_ == 2 * N / BATCH, "whole batches"


@pytest.mark.parametrize("n_items", [1, 300, 2225, 8355, 30_000, 10**7])
@pytest.mark.parametrize("n_workers", [1, 2, 8, 64])
def test_parts_are_not_too_small(n_items, n_workers):
    whole = DEFAULTS["collapsed"].batch_size(n_items)
    size = lda(**virtual(n_workers))._resolve_batch_size(n_items)
    assert size >= max(FEWEST, whole / MOST_PARTS, whole / n_workers)
    assert size == whole or size < whole / min(MOST_PARTS, n_workers, whole / FEWEST) + 1


@pytest.mark.parametrize(
    ("where", "params"),
    [
        ({"engine": "serial"}, {}),
        ({"engine": "threads", "n_jobs": 2}, {}),
        (virtual(4, strategy="local_sgd"), {}),
        (virtual(4, strategy="push_sum"), {}),
        (virtual(4), {"max_batch_size": 2 * BATCH}),
        (virtual(4), {"local_steps": 10}),
        (virtual(4), {"batch_size": BATCH}),
        (virtual(4), {"learning_decay": 0.7}),
        (virtual(4), {"learning_rate": 0.05}),
    ],
    ids=str,
)
def test_what_is_given_or_alone_is_not_cut(corpora, where, params):
    """Replicas are alone, too: no other worker steps on their parameters."""
    model = lda(max_iter=2, **where, **params)
    assert model._resolve_batch_size(N) == BATCH
    if "max_batch_size" not in params:
        assert steps_a_pass(model.fit(corpora[0])) == ceil(N / BATCH)


def test_where_rates_do_not_matter_batches_are_whole(corpora):
    model = lda(max_iter=1, **virtual(4, strategy="sda")).fit(corpora[0])
    assert steps_a_pass(model) == ceil(N / BATCH)


@pytest.mark.parametrize("make", [lda, hdp])
@pytest.mark.parametrize("n_workers", [2, 16])
def test_parts_end_as_low_as_whole_batches(corpora, make, n_workers):
    """Rates that fall with every step, not with every batch, end far from there."""
    train, test = corpora
    serial, shared = (
        np.mean([make(random_state=s, **where).fit(train).score(test) for s in range(3)])
        for where in ({}, virtual(n_workers))
    )
    assert shared == pytest.approx(serial, rel=0.002)


@pytest.mark.parametrize("stopping", [{}, {"early_stopping": True, "validation_size": 0.1}])
@pytest.mark.parametrize("parts", [2, 4])
def test_steps_of_a_fit_are_cut(corpora, parts, stopping):
    """A part counts one of so many times as much as its batch did, all through the fit."""
    one, many = (lda(**where, **stopping) for where in ({}, virtual(parts)))
    size = ceil(BATCH / parts)
    rates = []
    for model, batch in ((one, BATCH), (many, size)):
        model.fit(corpora[0])
        rates.append(model._schedule(Ledger(N, batch, 6, 0)))
    assert BATCH % size == 0
    check_parts(rates[1], rates[0], BATCH // size, 6 * N // BATCH)


def check_parts(rates, whole, parts, n):
    """Parts of each of `n` batches weigh the same, and together as it; what was before, too."""
    cut = rates(np.arange(n * parts)).reshape(n, parts)
    kept = np.cumprod(1 - cut[:, ::-1], axis=1)[:, ::-1]  # of what was there before each part
    np.testing.assert_allclose(kept[:, 0], 1 - whole(np.arange(n)), rtol=1e-9, atol=1e-12)
    after = np.hstack([kept[:, 1:], np.ones((n, 1))])
    weights = np.repeat(whole(np.arange(n))[:, None] / parts, parts, axis=1)
    np.testing.assert_allclose(cut * after, weights, rtol=1e-9)


@pytest.mark.parametrize("first", [1.0, 4.0])  # a rate of 1, which forgets all, and of .38
@pytest.mark.parametrize("parts", [1, 2, 8])
def test_the_parts_of_a_batch_count_as_it_does(parts, first):
    usual = averaged_from(robbins_monro(first, 0.7), 40)
    check_parts(of_parts(usual, parts), usual, parts, 100)


def test_batches_that_are_not_cut_evenly():
    """Where parts are no whole number their rates are between those of one more and one less."""
    usual = averaged_from(robbins_monro(4.0, 0.7), 40)
    t = np.arange(200)
    found, fewer, more = (of_parts(usual, parts)(t * parts) for parts in (2.5, 2, 3))
    assert np.all((more < found) & (found < fewer))
    kept = np.prod(1 - of_parts(lambda t: np.full(t.shape, 0.38), 2.5)(np.arange(5)))
    assert kept == pytest.approx((1 - 0.38) ** 2, rel=0.05), "five parts of two batches"


def test_the_last_third_is_averaged():
    """Each part of the last third has the same weight in the parameters, as batches have."""
    turn, n, parts = 6, 20, 4
    rates = of_parts(averaged_from(robbins_monro(1.0, 0.6), turn), parts)(np.arange(n * parts))
    weights = [rate * np.prod(1 - rates[t + 1 :]) for t, rate in enumerate(rates)]
    last = np.array(weights[turn * parts :])
    np.testing.assert_allclose(last, last.mean(), rtol=1e-9)


def test_an_early_end_needs_no_plan(corpora):
    """With early stopping the rates fall to the end, of parts as of batches."""
    train, test = corpora
    params = {"early_stopping": True, "validation_size": 0.1, "max_iter": 40, "tol": 1e-3}
    serial, shared = lda(**params).fit(train), lda(**params, **virtual(4)).fit(train)
    assert shared.n_iter_ < 40
    assert shared.score(test) == pytest.approx(serial.score(test), rel=0.02)


def test_a_stream_goes_on_at_its_rate(corpora):
    """The clock of a fit on workers is that of one in one process: what follows learns as fast."""
    train, test = corpora
    rates = []
    for where in ({}, virtual(4)):
        model = lda(**where).fit(train).set_params(engine="serial", cluster=None)
        rates.append(model.partial_fit(test).history_[-1]["rate"])
    assert rates[1] == pytest.approx(rates[0], rel=1e-6)


def test_parts_of_a_fit_go_on_at_its_rate(corpora):
    """Passes that keep responsibilities have a clock that goes on where the first passes ended."""
    train, _ = corpora
    clocks = []
    for where in ({}, virtual(4)):
        model = lda(max_iter=8, keep_responsibilities=True, **where).fit(train)
        clocks.append(model.n_batch_iter_)
    assert clocks[1] == pytest.approx(clocks[0], abs=2)


@pytest.mark.parametrize("size", [0, -4, 2.5, "x", None])
def test_a_damaged_size_is_refused(corpora, tmp_path, size):
    settings = {"checkpoint_dir": tmp_path, "checkpoint_seconds": 0.0, **virtual(4)}
    with pytest.raises(KeyboardInterrupt):
        lda(callbacks=[Cut()], **settings).fit(corpora[0])
    (path,) = (tmp_path / "checkpoints").glob(f"{latest(tmp_path)}/model.json")
    meta = json.loads(path.read_text())
    path.write_text(io.meta_text({**meta, "batch_size": size}))
    with pytest.raises(ModelFormatError, match="batch_size"):
        lda(**settings).resume(corpora[0])


def latest(folder):
    return (folder / "checkpoints" / "latest").read_text().strip()


class Cut:
    """A callback that interrupts the fit at its third look."""

    looks = 0

    def __call__(self, event):
        self.looks += 1
        if self.looks == 3:
            raise KeyboardInterrupt


@pytest.mark.parametrize(("before", "after"), [(4, 2), (4, None), (None, 4)])
def test_a_fit_goes_on_with_other_workers(corpora, tmp_path, before, after):
    """In steps of the size that it began with, and as well as one that was not cut."""
    train, test = corpora
    places = [{"engine": "serial"} if n is None else virtual(n) for n in (before, after)]
    settings = {"checkpoint_dir": tmp_path, "checkpoint_seconds": 0.0}
    with pytest.raises(KeyboardInterrupt):
        lda(callbacks=[Cut()], **settings, **places[0]).fit(train)
    model = lda(**settings, **places[1]).resume(train)
    assert model.n_batch_iter_ == pytest.approx(6 * N / BATCH, abs=1)
    assert model.score(test) == pytest.approx(lda().fit(train).score(test), rel=0.02)


@pytest.mark.mpi
@pytest.mark.parametrize("kind", EVERY_MPI)
def test_ranks_agree_on_the_size(kind, ranks, tmp_path):
    """A master and two workers: batches of half the size, and the model of one process."""
    ranks(kind, 3, "mpi_fit", tmp_path / "fit", "mean_field", "max_iter=6", "batch_size=null")
    found = [json.loads((tmp_path / f"fit-{rank}.json").read_text()) for rank in range(3)]
    whole = DEFAULTS["mean_field"].batch_size(1300)
    for rank in found:
        assert rank["bits"] == found[0]["bits"]
        assert rank["step"] == pytest.approx(6 * 1300 / whole, abs=6)
    assert found[0]["steps"] == 6 * ceil(1300 / ceil(whole / 2))
    assert Cluster(master_works=True).n_sharing(3) == 3
