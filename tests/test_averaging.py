"""Averaged parameters against dense SVI in NumPy, written from the paper; means of several fits."""

import numpy as np
import pandas as pd
import pytest
from reference.lda import TopicCorpus, documents_of, natural_step, statistics
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dpsvi import (
    DPSVIHDP,
    DPSVIHMM,
    DPSVILDA,
    DPSVIDPMixture,
    DPSVIGaussianMixture,
    averaging,
)
from dpsvi.averaging import Averaged, matching, mean_of
from dpsvi.engines import fit
from dpsvi.families.mixtures.components import Components
from dpsvi.kernels.jit import as_items
from dpsvi.models.lda.model import make_model
from dpsvi.training.ledger import Ledger, StepRange
from dpsvi.training.schedules import constant
from dpsvi.training.state import State
from experiments.averaging import main

K, ALPHA, ETA, RATE, BATCH, SEED = 4, 0.3, 0.05, 0.1, 10, 7
FLOAT = np.dtype(np.float32)


def test_against_slow_svi(corpus, rng):
    """Three passes of 6 steps, a look after every second; what is seen after two passes counts."""
    corpus = corpus.select(slice(0, 60))
    first = rng.exponential(size=(K, corpus.n_features)).astype(np.float32)
    model = make_model(
        corpus.n_features, K, ALPHA, ETA, local_step="mean_field", n_sweeps=5, tol=0.0
    )
    rows = np.zeros(model.shape, np.float32)
    rows[:, :K] = first.T
    averaged = Averaged(start=2)
    fit(
        State.resume(model, rows, 1), as_items(corpus.offsets, corpus.index, corpus.value, FLOAT),
        schedule=constant(RATE), batch_size=BATCH, n_passes=3, seed=SEED, observe_every=1 / 3,
        observer=averaged,
    )  # fmt: skip

    documents, passes, lam, seen = documents_of(corpus), Ledger(60, BATCH, 3, SEED), ETA + first, []
    for epoch in range(3):
        for step in range(6):
            batch = [documents[d] for d in passes.items(StepRange(epoch, 0, step, step + 1, 0))]
            stats, _ = statistics("mean_field", batch, lam, ALPHA, n_sweeps=5)
            lam = natural_step(lam, ETA, stats, RATE, 60 / BATCH)
            if epoch == 2 and step % 2:
                seen.append(lam)
    assert averaged.n == len(seen) == 3
    np.testing.assert_allclose(averaged.mean[:, :K].T, np.mean(seen, axis=0), rtol=2e-4)
    assert not np.allclose(lam, np.mean(seen, axis=0), rtol=2e-2), "there was something to average"


def test_less_noise_from_the_same_documents(corpus):
    """At a constant rate the mean predicts better than where the fit happens to end."""
    averaged = Averaged(start=2)
    lda = DPSVILDA(
        K, engine="serial", n_jobs=1, batch_size=BATCH, max_iter=6, learning_rate=0.3,
        evaluate_every=0.1, random_state=0, callbacks=[averaged],
    ).fit(corpus)  # fmt: skip
    mean = averaged.fitted(lda)
    assert averaged.n == 40
    np.testing.assert_allclose(mean.components_, averaged.mean[:, :K].T, rtol=1e-5)
    assert mean.perplexity(corpus) < lda.perplexity(corpus)
    assert mean.transform(corpus).shape == (corpus.n_items, K)


def test_nothing_to_average(corpus):
    averaged = Averaged(start=5)
    lda = DPSVILDA(K, max_iter=1, random_state=0, callbacks=[averaged]).fit(corpus)
    with pytest.raises(ValueError, match="nothing was averaged"):
        averaged.fitted(lda)
    with pytest.raises(ValueError, match="start"):
        Averaged(start=-1)


def test_the_command(corpus, tmp_path):
    matrix = corpus.to_csr().tocoo()
    lines = [str(n) for n in (*matrix.shape, matrix.nnz)]
    entries = zip(matrix.row, matrix.col, matrix.data, strict=True)
    lines += [f"{d + 1} {w + 1} {c:g}" for d, w, c in entries]
    path = tmp_path / "docword.tiny.txt"
    path.write_text("\n".join(lines) + "\n")
    main(["--corpus", str(path), "--documents", "100", "--seeds", "1", "--out", str(tmp_path)])
    table = (tmp_path / "averaging.md").read_text()
    assert table.count("\n| ") == 9 and "| 10 | 0.05 |" in table


# --- means of several fits -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def points():
    """Six clusters, the last 500 points to be held out."""
    rng = np.random.default_rng(0)
    means = 12 * rng.normal(size=(6, 3))
    return means[rng.integers(6, size=2000)] + rng.normal(size=(2000, 3))


@pytest.fixture(scope="module")
def documents():
    """Five topics, the last 100 documents to be held out."""
    drawn = TopicCorpus(5, n_words=150, n_documents=900, n_tokens=60, alpha=0.1, seed=3)
    return drawn.counts.astype(np.float64)


FITS = {
    "lda": ("documents", DPSVILDA, 5, {"doc_topic_prior": None}),  # else each learns its own
    "hdp": ("documents", DPSVIHDP, 5, {}),
    "mixture": ("points", DPSVIGaussianMixture, 6, {"batch_size": 64}),
    "diagonal": ("points", DPSVIGaussianMixture, 6, {"batch_size": 64, "covariance_type": "diag"}),
    "process": ("points", DPSVIDPMixture, 6, {"batch_size": 64}),
}


@pytest.fixture(scope="module")
def fits(points, documents):
    """Of each model three fits that start independently, and data that none of them has seen."""
    data = {"points": (points, -500), "documents": (documents, -100)}
    found = {}
    for name, (which, kind, n, more) in FITS.items():
        X, last = data[which]
        several = [kind(n, random_state=seed, **more).fit(X[:last]) for seed in range(3)]
        found[name] = several, X[last:]
    return found


@pytest.mark.parametrize("name", FITS)
def test_components_of_independent_starts_are_to_be_matched(name, fits, monkeypatch):
    """The mean is as good as the best fit; of components of other places it is worse than any.

    As they come, they may belong together by chance: the HDP's do here with every start.
    """
    several, X = fits[name]
    scores = [estimator.score(X) for estimator in several]
    assert mean_of(several).score(X) > max(scores) - 0.005 * abs(max(scores))

    def elsewhere(first, other):
        return np.roll(matching(first, other), int(other is not first))

    monkeypatch.setattr(averaging, "matching", elsewhere)
    assert mean_of(several).score(X) < min(scores) - 0.005 * abs(min(scores))


@pytest.mark.parametrize("name", FITS)
def test_the_same_posterior_in_another_order(name, fits, rng):
    """It answers the same, is found to be the same, and the mean of both is the same.

    Components of mixtures count from other origins, too: those of another fit.
    """
    (first, another, _), X = fits[name]
    order = rng.permutation(FITS[name][2])
    model = another._state.model
    other = averaging._fitted_like(another, first._reordered(order, model), model)
    assert first.score(X) == pytest.approx(other.score(X), rel=1e-6)
    assert np.array_equal(order[matching(first, other)], np.arange(len(order)))
    mean = mean_of([first, other, first])
    np.testing.assert_allclose(
        mean._state.natural(), first._state.natural(), rtol=2e-6, atol=1e-6 * len(X)
    )
    assert mean.get_params() == first.get_params()


@pytest.mark.parametrize("name", FITS)
def test_a_mean_is_a_model_like_others(name, fits, tmp_path):
    """It is saved, and goes on with a stream as the first fit does: ten rows change it little."""
    some, X = fits[name]
    mean = mean_of(some[:2])
    mean.save(tmp_path / "mean")
    loaded = type(mean).load(tmp_path / "mean")
    bounds = [value for e in (mean, loaded) for name, value in vars(e).items() if "bound_" in name]
    assert len(bounds) == 2 and np.isnan(bounds).all()
    assert loaded.score(X) == mean.score(X)
    assert (mean.n_iter_, mean.history_, mean._n_seen) == (some[0].n_iter_, [], some[0]._n_seen)
    if hasattr(mean, "report"):  # of topic models
        assert mean.report(tmp_path / "mean.html", X[:50]).stat().st_size
    before = mean._state.natural()
    for estimator in (mean, loaded):
        estimator.partial_fit(X[:10])
        change = np.abs(estimator._state.natural() - before).sum() / np.abs(before).sum()
        assert 0 < change < 0.2


@pytest.mark.parametrize("n_axes", [1, 2])
def test_distances_are_those_of_bhattacharyya(n_axes, rng):
    """Of Gaussians, by a sum over a fine grid; `factor` is lower triangular, or diagonal."""
    means, factors = rng.normal(size=(3, 2)), np.tril(rng.uniform(0.5, 1.5, size=(3, 2, 2)))
    if n_axes == 1:
        factors = factors * np.eye(2)
    kept = factors.reshape(3, -1) if n_axes == 2 else np.diagonal(factors, axis1=1, axis2=2)
    standard = np.column_stack([np.ones((3, 2)), means, kept, np.ones(3)])
    axis = np.linspace(-12, 12, 481)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1)
    root = [
        np.sqrt(multivariate_normal(mean, factor @ factor.T).pdf(grid))
        for mean, factor in zip(means, factors, strict=True)
    ]
    overlap = np.array([[(p * q).sum() * (axis[1] - axis[0]) ** 2 for q in root] for p in root])
    components = Components(standard, np.zeros((3, 2)), n_axes)
    np.testing.assert_allclose(components.distances(components), -np.log(overlap), atol=1e-9)


def test_fits_that_have_no_mean(fits, points, documents):
    mixture, topics = fits["mixture"][0][0], fits["lda"][0][0]
    with pytest.raises(ValueError, match="one estimator at least"):
        mean_of([])
    with pytest.raises(NotFittedError):
        mean_of([mixture, DPSVIGaussianMixture(6)])
    with pytest.raises(ValueError, match="of one class, got DPSVIGaussianMixture and DPSVILDA"):
        mean_of([mixture, topics])
    with pytest.raises(ValueError, match="n_components must be the same in all fits, got 6 and 2"):
        mean_of([mixture, DPSVIGaussianMixture(2, random_state=0).fit(points)])
    with pytest.raises(ValueError, match="n_features_in_ must be the same in all fits"):
        mean_of([topics, DPSVILDA(5, max_iter=1, random_state=0).fit(documents[:, :90])])
    texts = [["one two one two", "two three", "three one"], ["four five", "five four", "six five"]]
    fitted = [DPSVILDA(2, max_iter=1, random_state=0).fit(some) for some in texts]
    with pytest.raises(ValueError, match="the same words, in the same order"):
        mean_of(fitted)
    one = DPSVIGaussianMixture(2, max_iter=1, random_state=0)
    named = [pd.DataFrame(points[:200], columns=list(names)) for names in ("abc", "cba")]
    fitted = [clone(one).fit(data) for data in named]
    with pytest.raises(ValueError, match="feature_names_in_ must be the same in all fits"):
        mean_of(fitted)
    gaps = points[:200].copy()
    gaps[0, 0] = np.nan
    diagonal = DPSVIGaussianMixture(6, covariance_type="diag", max_iter=1, random_state=0)
    fitted = [clone(diagonal).fit(some) for some in (points[:200], gaps)]
    for pair in (fitted, fitted[::-1]):
        with pytest.raises(ValueError, match=r"missing numbers \(NaN\), or none: got some of both"):
            mean_of(pair)
    hmm = DPSVIHMM(2, max_iter=1, random_state=0).fit(points[:100])
    with pytest.raises(NotImplementedError, match="DPSVIHMM does not say how components"):
        mean_of([hmm, hmm])
