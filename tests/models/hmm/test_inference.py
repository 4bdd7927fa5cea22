"""What a fitted model answers: paths, scores, samples."""

import numpy as np
import pytest
from reference.hmm import (
    enumerate_chain,
)
from reference.laws import dirichlet
from scipy import stats
from tools.hmm_cases import KINDS, ascent, chains, reference, set_posterior

import dpsvi
from dpsvi import DPSVIHMM
from dpsvi.models.hmm.model import read


@KINDS
def test_decoding_is_the_best_of_all_paths(rng, prior):
    X, lengths, _ = chains(rng, [6, 5], "emission" in prior, spread=0.3)
    hmm = ascent(max_iter=3, n_features=4, **prior).fit(X, lengths=lengths)
    weights = read(hmm._state).weights
    slow = reference(X, lengths, prior)
    set_posterior(slow, hmm)
    emit = slow.emissions.expected_log_density(X)
    found = [
        enumerate_chain(np.log(weights.start), np.log(weights.trans), part)
        for part in np.split(emit, [6])
    ]
    value, path = hmm.decode(X, lengths)
    assert path.tolist() == [k for result in found for k in result[3]]
    assert value == pytest.approx(sum(result[4] for result in found))
    gamma = np.concatenate([result[1] for result in found])
    value, path = hmm.decode(X, lengths, algorithm="map")
    assert path.tolist() == gamma.argmax(axis=1).tolist()
    assert value == pytest.approx(gamma.max(axis=1).sum())
    assert hmm.score(X, lengths=lengths) == pytest.approx(sum(result[0] for result in found))


def test_scores_of_steps_add_up(rng):
    X, lengths, _ = chains(rng, [6, 5, 9])
    hmm = DPSVIHMM(3, random_state=0).fit(X, lengths=lengths)
    steps = hmm.score_samples(X, lengths)
    assert steps.shape == (20,)
    assert steps.sum() == pytest.approx(hmm.score(X, lengths=lengths))
    assert steps[:6].sum() == pytest.approx(hmm.score(X[:6]))


@pytest.mark.parametrize("emission", ["gaussian", "categorical"])
def test_samples_follow_the_model(emission):
    X, lengths, _ = chains(np.random.default_rng(5), [40] * 20, emission == "categorical")
    hmm = DPSVIHMM(3, emission=emission, random_state=0).fit(X, lengths=lengths)
    drawn, states = hmm.sample(30_000)
    assert drawn.shape == (30_000, X.shape[1]) and states.shape == (30_000,)
    pairs = np.zeros((3, 3))
    np.add.at(pairs, (states[:-1], states[1:]), 1)
    np.testing.assert_allclose(pairs / pairs.sum(axis=1, keepdims=True), hmm.transmat_, atol=0.02)
    for k in range(3):
        here = drawn[states == k]
        if emission == "gaussian":
            np.testing.assert_allclose(here.mean(axis=0), hmm.means_[k], atol=0.1)
            np.testing.assert_allclose(np.cov(here.T), hmm.covars_[k], atol=0.15)
        else:
            shares = np.bincount(here[:, 0].astype(int), minlength=4) / len(here)
            np.testing.assert_allclose(shares, hmm.emissionprob_[k], atol=0.02)
    assert hmm.sample(3, currstate=2)[1][0] == 2
    with pytest.raises(ValueError, match="currstate must be an integer >= 0 and <= 2"):
        hmm.sample(3, currstate=3)


@pytest.mark.parametrize("symbols", [False, True])
def test_parameters_set_after_the_fit_change_no_answer(rng, symbols):
    X, lengths, _ = chains(rng, [40, 60], symbols=symbols)
    emission = "categorical" if symbols else "gaussian"
    hmm = DPSVIHMM(3, emission=emission, random_state=0, max_iter=2).fit(X, lengths=lengths)

    def answers():
        return [
            *hmm.decode(X, lengths), *hmm.sample(20), hmm.predict_proba(X, lengths),
            hmm.score(X, lengths=lengths),
        ]  # fmt: skip

    before = answers()
    others = dict(
        n_components=[2, 5], emission=["gaussian", "categorical"], covariance_type=["diag"],
        window=[3],
    )  # fmt: skip
    for size, values in others.items():
        now = getattr(hmm, size)
        for value in values:
            hmm.set_params(**{size: value})
            assert all(map(np.array_equal, answers(), before)), size
        hmm.set_params(**{size: now})


def test_sampling_asks_no_other_rank(rng):
    X, lengths, _ = chains(rng, [50])
    hmm = DPSVIHMM(2, random_state=0, max_iter=1).fit(X, lengths=lengths)
    expected = hmm.sample(5)
    hmm.engine = "mpi"
    assert all(np.array_equal(a, b) for a, b in zip(hmm.sample(5), expected, strict=True))


def test_symbols_survive_saving(rng, tmp_path):
    X, lengths, _ = chains(rng, [40, 60], symbols=True)
    hmm = DPSVIHMM(3, emission="categorical", n_features=6, random_state=0)
    hmm.fit(X, lengths=lengths).save(tmp_path)
    loaded = dpsvi.load(tmp_path)
    assert loaded.n_symbols_ == 6 and loaded.emissionprob_.shape == (3, 6)
    np.testing.assert_allclose(loaded.predict_proba(X, lengths), hmm.predict_proba(X, lengths))


def test_emission_probabilities_are_drawn_from_their_posterior(rng):
    X = rng.integers(4, size=(60, 1)) // 2
    hmm = DPSVIHMM(2, emission="categorical", max_iter=3, random_state=0).fit(X)
    drawn = hmm.posterior_samples(2000)["emissionprob"]
    law = dirichlet(hmm.emissionprob_posterior_)
    np.testing.assert_allclose(drawn.sum(axis=2), 1)
    for k, symbol in np.ndindex(2, 2):
        assert stats.kstest(law.cdf(drawn)[:, k, symbol], "uniform").pvalue > 1e-6
