"""Steps that are missing, or some of their numbers: against slow messages and known answers."""

import numpy as np
import pytest
from reference.gaps import diagonal_components, diagonal_log_density, with_gaps
from reference.hmm import expected_log, messages
from tools.hmm_cases import CATEGORICAL, DIAGONAL, GAUSSIAN, ascent, chains

from dpsvi import DPSVIHMM
from dpsvi.families.mixtures.components import Prior

BOTH = pytest.mark.parametrize("settings", [DIAGONAL, CATEGORICAL], ids=["diagonal", "categorical"])


def data(settings, rng, lengths=(40, 1, 60, 30), share=0.3):
    X, lengths, z = chains(rng, lengths, "emission" in settings)
    return with_gaps(X.astype(float), share, rng), lengths, z


def log_emissions(X, hmm):
    """E ln p(x_t | k) of what is there, (n, K)."""
    if hmm.emission == "categorical":
        table = expected_log(hmm.emissionprob_posterior_)
        given = np.nan_to_num(X[:, 0]).astype(int)
        return np.where(np.isnan(X), 0.0, table[:, given].T)
    states = zip(
        hmm.beta_posterior_, hmm.means_, hmm.scale_posterior_, hmm.dof_posterior_, strict=True
    )
    return np.array([[diagonal_log_density(x, q) for x in X] for q in states]).T


def slow_step(X, lengths, hmm):
    """Posteriors, bounds of sequences, and pairs, by messages in log space."""
    parts = np.split(log_emissions(X, hmm), np.cumsum(lengths)[:-1])
    start, trans = expected_log(hmm.startprob_posterior_), expected_log(hmm.transmat_posterior_)
    bounds, gammas, pairs = zip(*(messages(start, trans, part) for part in parts), strict=True)
    return np.concatenate(gammas), np.array(bounds), sum(xi.sum(axis=0) for xi in pairs)


@BOTH
@pytest.mark.parametrize("window", [None, 20])
def test_steps_are_those_of_the_slow_reference(rng, settings, window):
    X, lengths, _ = data(settings, rng)
    more = dict(n_features=4, max_iter=1, warm_start=True, window=window, buffer=100)
    hmm, bounds = ascent(**settings, **more).fit(X, lengths=lengths), []
    for _ in range(6):
        gamma, bound, pairs = slow_step(X, lengths, hmm)
        np.testing.assert_allclose(hmm.predict_proba(X, lengths), gamma, rtol=1e-7, atol=1e-10)
        assert hmm.score(X, lengths=lengths) == pytest.approx(bound.sum(), rel=1e-9)
        bounds.append(hmm.lower_bound_)
        hmm.fit(X, lengths=lengths)
        prior = np.array(settings["transmat_prior"])
        np.testing.assert_allclose(hmm.transmat_posterior_, prior + pairs, rtol=1e-7)
        if hmm.emission == "categorical":
            symbols = np.array([gamma[X[:, 0] == v].sum(axis=0) for v in range(4)]).T
            wanted = settings["emissionprob_prior"] + symbols
            np.testing.assert_allclose(hmm.emissionprob_posterior_, wanted, rtol=1e-7)
            continue
        names = "beta_prior", "means_prior", "dof_prior", "scale_prior"
        prior = Prior(*(np.array(settings[name]) for name in names))
        found = hmm.beta_posterior_, hmm.means_, hmm.scale_posterior_, hmm.dof_posterior_
        states = diagonal_components(X, gamma, prior)
        for got, wanted in zip(found, zip(*states, strict=True), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-7)
    if window is None:
        assert (np.diff(bounds) > -1e-9 * abs(bounds[-1])).all()


@BOTH
def test_missing_steps_are_told_by_their_neighbours(settings):
    rng = np.random.default_rng(0)
    states = np.repeat(rng.permutation(np.tile([0, 1, 2], 40)), 20)
    if "emission" in settings:
        X = (states[:, None] + (rng.random((len(states), 1)) < 0.1)) % 4.0
    else:
        X = 5.0 * np.eye(3, 2)[states] + rng.normal(size=(len(states), 2))
    gone = rng.random(len(X)) < 0.3
    X[gone] = np.nan
    kind = {name: settings[name] for name in ("emission", "covariance_type") if name in settings}
    hmm = DPSVIHMM(3, **kind, n_features=4, window=60, max_iter=20, random_state=0).fit(X)
    for found in (hmm.predict(X), hmm.predict_proba(X).argmax(axis=1)):
        name = np.array([np.bincount(found[states == k], minlength=3).argmax() for k in range(3)])
        assert len(set(name)) == 3
        assert (found == name[states])[gone].mean() > 0.9
    assert hmm.transmat_.diagonal().min() > 0.8


def test_streams_may_begin_to_have_gaps(rng, tmp_path):
    X, lengths, _ = chains(rng, [100, 100], spread=2.0)
    hmm = DPSVIHMM(3, covariance_type="diag", random_state=0).partial_fit(X, lengths=lengths)
    assert hmm.beta_posterior_.shape == (3,)
    later = with_gaps(X, 0.3, rng)
    before = hmm.score(later, lengths=lengths)
    hmm.partial_fit(later, lengths=lengths).save(tmp_path / "model")
    assert hmm.beta_posterior_.shape == (3, 2)
    loaded = DPSVIHMM.load(tmp_path / "model")
    assert loaded.score(later, lengths=lengths) == pytest.approx(hmm.score(later, lengths=lengths))
    assert hmm.score(later, lengths=lengths) > before - 20
    assert hmm.posterior_samples(4)["covars"].shape == (4, 3, 2)


def test_whole_models_score_what_has_gaps(rng):
    """A model of complete steps knows the marginal of each feature."""
    X, _, _ = chains(rng, [400], spread=3.0)
    both = DPSVIHMM(3, covariance_type="diag", random_state=0, max_iter=30).fit(X)
    gaps = X.copy()
    gaps[200:210] = np.nan
    gaps[300:310, 0] = np.nan
    np.testing.assert_array_equal(both.predict(gaps)[:190], both.predict(X)[:190])
    assert (both.predict(gaps) == both.predict(X)).mean() > 0.97
    steps = both.score_samples(gaps)
    assert (steps[201:210] <= 0).all() and steps[201:210].min() > -0.2  # little but A~ sums to < 1


def test_what_cannot_be_is_refused(rng):
    X, lengths, _ = data(GAUSSIAN, rng)
    with pytest.raises(ValueError, match="covariance_type='diag', got 'full'"):
        DPSVIHMM(3).fit(X, lengths=lengths)
    full = DPSVIHMM(3, random_state=0).fit(np.nan_to_num(X), lengths=lengths)
    with pytest.raises(ValueError, match="covariance_type='diag', got 'full'"):
        full.predict(X)
    X[:, 1] = np.nan
    with pytest.raises(ValueError, match="feature 1 of X has no value"):
        DPSVIHMM(3, covariance_type="diag").fit(X)
    with pytest.raises(ValueError, match="X has no symbol"):
        DPSVIHMM(2, emission="categorical").fit(np.full((3, 1), np.nan))
