"""Fits that find their end: ``max_iter="auto"``."""

import json
from unittest.mock import patch

import numpy as np
import pytest
from reference.lda import TopicCorpus
from tools.mpiexec import EVERY_MPI

from dpsvi import DPSVILDA, DPSVIGaussianMixture, VirtualCluster, forecast
from dpsvi.cluster.virtual import Timing
from dpsvi.errors import ModelFormatError
from dpsvi.estimators import lasting
from dpsvi.estimators.lasting import FIRST
from dpsvi.training.items import count

ENGINES = {
    "serial": {"engine": "serial"}, "threads": {"engine": "threads", "n_jobs": 2},
    "simulated": {
        "engine": "simulated",
        "cluster": VirtualCluster(n_workers=3, timing=Timing(step=1.0, value=0.0)),
    },
    "peers": {
        "engine": "simulated",
        "cluster": VirtualCluster(
            n_workers=3, strategy="push_sum", timing=Timing(step=1.0, value=0.0)
        ),
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def corpus():
    return TopicCorpus(10, 300, 1200, 40, 0.1, 0).corpus()


def make(**options):
    options = {"engine": "serial", "max_iter": "auto", "random_state": 0, **options}
    return DPSVILDA(10, **options)


def scored(*scores):
    """A context in which the parts of a fit have these scores, and what was scored."""
    seen, left = [], list(scores)

    def score(self, items, held_out):
        seen.append(held_out)
        return left.pop(0)

    return patch.object(DPSVILDA, "_score_of_part", score), seen


@pytest.mark.parametrize(
    ("scores", "passes"),
    [
        ((-8.0, -8.0), 10),
        ((-8.0, -7.0, -6.994), 20),  # by less than a thousandth
        ((-8.0, -7.0, -6.992, -7.1), 40),
        ((-8.0, -7.9, -7.8, -7.7, -7.6, -7.8), 160),
    ],
)
def test_it_ends_after_the_first_part_that_does_not_pay(corpus, scores, passes):
    patched, seen = scored(*scores)
    with patched:
        lda = make().fit(corpus)
    assert lda.n_iter_ == passes == round(lda.history_[-1]["epoch"])
    assert seen == [None] * len(scores), "nothing is held out"


def test_tol_says_what_pays(corpus):
    patched, _ = scored(-8.0, -7.5)
    with patched:
        assert make(tol=0.1).fit(corpus).n_iter_ == 2 * FIRST


def test_what_is_held_out_is_scored(corpus):
    patched, seen = scored(-8.0, -8.0)
    with patched:
        lda = make(validation_size=50).fit(corpus)
    assert [count(items) for items in seen] == [50, 50]
    assert all("score" in entry for entry in lda.history_)


def test_else_a_sample_of_the_fit_is(rng):
    """The same one after every part: noise of the sample does not look like a gain."""
    seen = []

    class Mixture(DPSVIGaussianMixture):
        def _score(self, state, items):
            seen.append(items)
            return super()._score(state, items)

    Mixture(2, max_iter="auto", random_state=0).fit(rng.normal(size=(1500, 2)))
    assert len(seen) >= 2 and {count(items) for items in seen} == {lasting.SAMPLE}
    for items in seen:
        np.testing.assert_array_equal(items.value, seen[0].value)


def test_documents_of_a_fit_are_scored_without_their_own_counts(corpus):
    """As new documents are: where topics know a document it looks far too probable."""
    train, test = corpus.select(np.arange(150)), corpus.select(np.arange(150, 1200))
    lda = make(max_iter=40).fit(train)
    items = lda._read(train, reset=False)
    found, new = lda._score_of_part(items, None), lda.score(test)
    assert abs(found - new) < 0.5 * (lda.score(train) - new)


@pytest.mark.parametrize("engine", ENGINES)
def test_it_ends_by_itself_and_is_as_good_as_a_long_fit(corpus, engine):
    """By the median of three seeds: with as many topics as there are, some end elsewhere."""
    train, test = corpus.select(np.arange(1000)), corpus.select(np.arange(1000, 1200))
    found = [make(random_state=seed, **ENGINES[engine]).fit(train) for seed in range(3)]
    for lda in found:
        assert 2 * FIRST <= lda.n_iter_ <= 160
        assert lda._state.items == lda.n_iter_ * 1000
    long = make(max_iter=320).fit(train)
    assert np.median([lda.perplexity(test) for lda in found]) < 1.01 * long.perplexity(test)


def test_each_part_ends_with_small_steps(corpus):
    patched, _ = scored(-8.0, -7.0, -7.0)
    with patched:
        lda = make().fit(corpus)
    rates = np.array([entry["rate"] for entry in lda.history_])
    assert len(rates) == 20
    for end in (5, 10):
        assert rates[end] > 3 * rates[end - 1], "the next part learns anew"
    assert rates[19] < rates[9]


def test_priors_that_were_given_hold_at_the_end_of_each_part(corpus):
    """Large ones: topics are looked for with smaller ones (`models/lda/annealed.py`)."""
    seen = {}

    def look(event):
        seen[round(event.epoch)] = event.state.model.hyper[0]

    patched, _ = scored(-8.0, -7.0, -7.0)
    with patched:
        lda = make(doc_topic_prior=2.0, callbacks=[look]).fit(corpus)
    with_own = [epoch for epoch, alpha in seen.items() if alpha == 2.0]
    assert with_own == [3, 4, 5, 8, 9, 10, *range(16, 21)]
    np.testing.assert_allclose(lda.doc_topic_prior_, 2.0)


@pytest.mark.parametrize("step", ["collapsed", "mean_field"])
@pytest.mark.parametrize("after", [2.5, 5.0, 7.0, 10.0, 10.25])
def test_a_resumed_fit_makes_the_bits_of_one_that_went_on(corpus, after, step, tmp_path):
    """Of forty passes: the last twenty do not pay."""
    scored_as_ever = DPSVILDA._score_of_part

    def score(self, items, held_out):
        scored_as_ever(self, items, held_out)
        return -1 / min(self._state.items, 20 * len(corpus))

    def interrupt(event):
        if event.epoch >= after:
            raise KeyboardInterrupt

    options = {
        "checkpoint_dir": tmp_path, "checkpoint_seconds": 3600.0, "evaluate_every": 0.25,
        "tol": 1e-6, "local_step": step, "random_state": 1,
    }  # fmt: skip
    with patch.object(DPSVILDA, "_score_of_part", score):
        with pytest.raises(KeyboardInterrupt):
            make(callbacks=[interrupt], **options).fit(corpus)
        again = make(**options).resume(corpus)
        whole = make(**options | {"checkpoint_dir": None}).fit(corpus)
    assert whole.n_iter_ == again.n_iter_ == 40
    np.testing.assert_array_equal(again.components_, whole.components_)
    assert [e["epoch"] for e in again.history_] == [e["epoch"] for e in whole.history_]


@pytest.mark.parametrize(("before", "after"), [("auto", 10), (10, "auto")])
def test_a_checkpoint_is_of_one_kind_of_fit(corpus, before, after, tmp_path):
    def interrupt(event):
        raise KeyboardInterrupt

    options = {"checkpoint_dir": tmp_path, "checkpoint_seconds": 3600.0}
    with pytest.raises(KeyboardInterrupt):
        make(max_iter=before, callbacks=[interrupt], **options).fit(corpus)
    with pytest.raises(ModelFormatError, match=f"max_iter was .*, now it is {after!r}"):
        make(max_iter=after, **options).resume(corpus)


def test_a_callback_ends_it_too(corpus):
    lda = make(callbacks=[lambda event: event.epoch >= 7]).fit(corpus)
    assert lda.n_iter_ == 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_iter": "always"}, "max_iter must be an integer >= 0 or 'auto', got 'always'"),
        ({"early_stopping": True, "validation_size": 9}, "early_stopping=True .* needs a number"),
        ({"max_batch_size": 512}, "max_batch_size must be None, got 512"),
        ({"keep_responsibilities": True}, "max_iter must be a number: .*responsibilities"),
    ],
)
def test_what_it_cannot_be_combined_with(corpus, options, message):
    with pytest.raises(ValueError, match=message):
        make(**options).fit(corpus)


def test_incremental_passes_and_forecasts_want_a_number(rng):
    X = rng.normal(size=(50, 2))
    with pytest.raises(ValueError, match="max_iter must be a number: incremental passes"):
        DPSVIGaussianMixture(2, max_iter="auto", incremental=True).fit(X)
    with pytest.raises(ValueError, match="needs a number of passes"):
        forecast(DPSVIGaussianMixture(2, max_iter="auto"), X)


@pytest.mark.mpi
@pytest.mark.parametrize("kind", EVERY_MPI)
def test_all_ranks_end_together(kind, ranks, tmp_path):
    ranks(kind, 3, "mpi_fit", tmp_path / "fit", "collapsed", 'max_iter="auto"', "tol=0.01")
    found = [json.loads((tmp_path / f"fit-{rank}.json").read_text()) for rank in range(3)]
    assert found[0]["items"] in [1300 * n for n in (10, 20, 40, 80)]
    for one in found:
        assert (one["bits"], one["items"]) == (found[0]["bits"], found[0]["items"])
