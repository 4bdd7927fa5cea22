"""Parameters that are refused before anything is fitted, by whatever estimator has them."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from dpsvi import DPSVIHDP, DPSVIHMM, DPSVILDA, VirtualCluster, models
from dpsvi.errors import resolve_jobs
from dpsvi.training.items import count, dense_items

ITEMS = dense_items(np.full((100, 2), 5.0))

REFUSED = [
    ("callbacks", print, TypeError, "must be a list or tuple or None"),
    ("callbacks", (print for _ in range(1)), TypeError, "must be a list or tuple or None"),
    ("callbacks", [3], TypeError, "must be callables, got 3"),
    ("early_stopping", "no", TypeError, "must be True or False, got 'no'"),
    ("warm_start", "x", TypeError, "must be True or False, got 'x'"),
    ("engine", "gpu", ValueError, "must be one of"),
    ("cluster", VirtualCluster(), ValueError, "needs an engine with workers, got .*'threads'"),
    ("batch_size", 0, ValueError, "must be an integer >= 1, got 0"),
    ("most_blind", 0, ValueError, "must be a number > 0, got 0"),
    ("most_blind", "never", ValueError, r"must be one of \['auto'\], got 'never'"),
]


@pytest.mark.parametrize("model", models.names())
@pytest.mark.parametrize(("name", "value", "error", "message"), REFUSED)
def test_of_every_estimator(model, name, value, error, message):
    with pytest.raises(error, match=f"{name} {message}"):
        models.get(model)(**{name: value}).check_params()


@pytest.mark.parametrize("engine", ["mpi", "simulated"])
def test_a_rule_that_needs_b_is_told_b(engine):
    cluster = VirtualCluster() if engine == "simulated" else None
    rule = dict(engine=engine, cluster=cluster, lr_rule="per_T")
    with pytest.raises(ValueError, match=rf"per_T.*'{engine}' needs local_steps.*got None"):
        DPSVILDA(**rule).check_params()
    DPSVILDA(local_steps=4, **rule).check_params()


def test_the_mean_of_updates_takes_larger_steps():
    """Rule (13): M times as large, and no rate may be larger than 1."""
    mean = VirtualCluster(master_batch=4, global_rate=0.25)
    rule = dict(engine="simulated", cluster=mean, local_steps=4)
    rates = {
        (name, learned): DPSVILDA(lr_rule=name, learning_rate=learned, **rule)
        for name in ("per_T", "per_sample", "constant") for learned in (0.2, 0.5)
    }  # fmt: skip
    found = {}
    for key, estimator in rates.items():
        if key == ("per_sample", 0.5):
            with pytest.raises(ValueError, match=r"learning_rate=0.5 becomes 2 .*<= 0.25"):
                estimator.check_params()
            continue
        estimator.check_params()
        found[key] = float(estimator._schedule()(np.zeros(1))[0])
    assert found == pytest.approx({
        ("per_T", 0.2): 0.2, ("per_T", 0.5): 0.5, ("per_sample", 0.2): 0.8,
        ("constant", 0.2): 0.2, ("constant", 0.5): 0.5,
    })  # fmt: skip


@pytest.mark.parametrize("model", models.names())
def test_flags_may_be_of_numpy(model):
    models.get(model)(early_stopping=np.bool_(True), warm_start=np.bool_(False)).check_params()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (dict(topic_word_prior=True), "topic_word_prior must be > 0, 'auto' or None, got True"),
        (dict(warm_documents="no"), "warm_documents must be True or False, got 'no'"),
        (dict(keep_responsibilities="no"), "keep_responsibilities must be True or False"),
        (dict(grow_vocabulary="no"), "grow_vocabulary must be True or False, got 'no'"),
    ],
)
def test_of_lda(params, message):
    with pytest.raises((ValueError, TypeError), match=message):
        DPSVILDA(**params).check_params()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (dict(transmat_prior="text"), "transmat_prior must be numbers: could not convert"),
        (dict(transmat_prior=[1.0, 0.0]), "transmat_prior must be > 0"),
        (dict(dof_prior=-1), "dof_prior must be a number > 0, got -1"),
        (dict(emissionprob_prior=-3), "emissionprob_prior must be > 0, got -3"),
    ],
)
def test_of_hidden_markov_models(params, message):
    """Of the other kind of emissions, too."""
    for emission in ("gaussian", "categorical"):
        with pytest.raises(ValueError, match=message):
            DPSVIHMM(emission=emission, **params).check_params()


@pytest.mark.parametrize("size", [0.25, np.float32(0.25), 25, np.int32(25)])
def test_the_size_of_what_is_held_out(size, rng):
    train, held_out = DPSVILDA(validation_size=size)._hold_out(ITEMS, rng)
    assert count(held_out) == 25 and count(train) == 75


def test_too_many_held_out(rng):
    with pytest.raises(ValueError, match="less than 100, the number of documents, got 100$"):
        DPSVILDA(validation_size=100)._hold_out(ITEMS, rng)


@pytest.mark.parametrize("size", [0.0, 1.0, np.float32(1.5), 100, 0, True, "a"])
def test_bad_sizes_of_what_is_held_out(size, rng):
    with pytest.raises((ValueError, TypeError), match="validation_size must be"):
        DPSVILDA(validation_size=size)._hold_out(ITEMS, rng)


@pytest.mark.parametrize("estimator", [DPSVILDA(), DPSVIHDP()], ids=["lda", "hdp"])
@pytest.mark.parametrize(
    "name",
    [
        "components_", "doc_topic_prior_", "topic_word_prior_", "exp_dirichlet_component_",
        "tables_", "topic_weights_", "n_topics_active_", "doc_concentration_",
    ],
)  # fmt: skip
def test_attributes_before_the_fit(estimator, name):
    assert not hasattr(estimator, name)
    if hasattr(type(estimator), name):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            getattr(estimator, name)


def test_jobs_are_counted_back_from_all_cores(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(6)), raising=False)
    assert [resolve_jobs(n) for n in (None, 3, -1, -2, -6, -9)] == [1, 3, 6, 5, 1, 1]
    for wrong, error in ((0, ValueError), (1.5, TypeError), (True, TypeError)):
        with pytest.raises(error, match="n_jobs must be an integer >= 1, got .*; -1 is all cores"):
            resolve_jobs(wrong)


def test_a_generator_of_numpy_is_a_random_state():
    """Two that are alike give the same fit, and what a fit has drawn is gone."""
    X = np.random.default_rng(0).poisson(1.0, (30, 8))

    def topics(generator):
        return DPSVILDA(2, max_iter=2, random_state=generator).fit(X).components_

    ours, theirs = np.random.default_rng(3), np.random.default_rng(3)
    first = topics(ours)
    assert np.array_equal(first, topics(theirs))
    assert not np.array_equal(first, topics(ours))
