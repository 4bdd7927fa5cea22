"""Small, serial, seeded fits of every model and every local step.

They run with the dpsvi of any revision that is first on the path (:mod:`experiments.digests.make`).
So they take nothing from their neighbours, and of dpsvi only what users are promised: the
estimators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

import dpsvi

N_ITEMS = 150  # of every fit whose numbers are compared


class Fit(NamedTuple):
    """One fit.

    Parameters
    ----------
    estimator : str
        Its name in `dpsvi`.
    data : callable(rng, n) -> dict
        Keyword arguments of `fit`, n items.
    answers : callable(estimator, data) -> dict of str to array
        What the fitted model says of the data.
    params : dict
        Parameters of the estimator besides engine and seed.
    timed : (int, dict) or None
        Items and parameters of a longer fit whose seconds are compared.
    """

    estimator: str
    data: Callable[..., dict]
    answers: Callable[..., dict]
    params: dict
    timed: tuple[int, dict] | None = None


# --- data -------------------------------------------------------------------------------------


def documents(rng, n):
    """Documents of 60 tokens of 200 words, drawn from 5 topics."""
    topics = rng.dirichlet(np.full(200, 0.05), size=5)
    words = rng.dirichlet(np.full(5, 0.2), size=n) @ topics
    return {"X": scipy.sparse.csr_array(rng.multinomial(60, words).astype(float))}


def points(rng, n):
    """Points around three centres, in three dimensions."""
    return {"X": 6.0 * np.eye(3)[rng.integers(3, size=n)] + rng.normal(size=(n, 3))}


def sequences(rng, n):
    """Sequences of 1 to 19 points, which stay near one of three centres for some 5 steps."""
    lengths = rng.integers(1, 20, size=n)
    steps = np.arange(lengths.sum())
    fresh = rng.random(len(steps)) < 0.2
    fresh[np.cumsum(lengths) - lengths] = True
    states = rng.integers(3, size=len(steps))[np.maximum.accumulate(np.where(fresh, steps, 0))]
    return {"X": 4.0 * np.eye(3)[states] + rng.normal(size=(len(steps), 3)), "lengths": lengths}


def symbols(rng, n):
    """Such sequences of symbols 0 to 5."""
    found = sequences(rng, n)
    nearest, sign = found["X"].argmax(axis=1), found["X"][:, 0] > 0
    return {**found, "X": (2 * nearest + sign)[:, None]}


def groups(rng, n):
    """Groups of 1 to 9 rows, each with a line of its own."""
    numbers = np.repeat(np.arange(n), rng.integers(1, 10, size=n))
    X = rng.normal(size=(len(numbers), 2))
    lines = rng.normal([2.0, -1.0, 0.5], 0.5, size=(n, 3))[numbers]
    y = (lines[:, :2] * X).sum(axis=1) + lines[:, 2] + rng.normal(size=len(numbers))
    return {"X": X, "y": y, "groups": numbers}


def labelled_groups(rng, n):
    """Such groups with labels 0 and 1."""
    found = groups(rng, n)
    return {**found, "y": (found["y"] > 0).astype(int)}


def ratings(rng, n):
    """Two thirds of the ratings of 30 items, from two factors."""
    values = 3.0 + rng.normal(size=(n, 2)) @ rng.normal(size=(2, 30)) + rng.normal(size=(n, 30))
    users, items = np.nonzero(rng.random(values.shape) < 2 / 3)
    return {"X": scipy.sparse.csr_array((values[users, items], (users, items)), values.shape)}


def counts(rng, n):
    """Counts of 30 items, from three factors."""
    rates = rng.gamma(0.5, 2.0, (n, 3)) @ rng.gamma(0.3, 2.0, (3, 30))
    return {"X": scipy.sparse.csr_array(rng.poisson(rates).astype(float))}


# --- answers ----------------------------------------------------------------------------------


def _of_topics(model, data):
    return {"transform": model.transform(data["X"]), "perplexity": model.perplexity(data["X"])}


def _of_a_mixture(model, data):
    X = data["X"]
    scores, shares = model.score_samples(X), model.predict_proba(X)
    return {"predict": model.predict(X), "predict_proba": shares, "score_samples": scores}


def _of_a_chain(model, data):
    given = data["X"], data["lengths"]
    scores, shares = model.score_samples(*given), model.predict_proba(*given)
    return {"predict": model.predict(*given), "predict_proba": shares, "score_samples": scores}


def _of_a_regressor(model, data):
    mean, std = model.predict(data["X"], data["groups"], return_std=True)
    return {"predict": mean, "std": std, "predict new groups": model.predict(data["X"])}


def _of_a_classifier(model, data):
    X, known = data["X"], data["groups"]
    shares, new = model.predict_proba(X, known), model.predict_proba(X)
    return {"predict": model.predict(X, known), "predict_proba": shares, "new groups": new}


def _of_factors(model, data):
    X = data["X"]
    return {"transform": model.transform(X), "predict_ratings": model.predict_ratings(X)}


# --- fits -------------------------------------------------------------------------------------

_FIXED = {"doc_topic_prior": 0.1, "topic_word_prior": 0.03}
_LEARNED = {"doc_topic_prior": "auto", "topic_word_prior": "auto"}
_MEAN_FIELD = {"local_step": "mean_field"}


def _lda(*settings, timed=None):
    params = {"n_components": 5, "max_iter": 6, "batch_size": 8}
    for more in settings:
        params |= more
    return Fit("DPSVILDA", documents, _of_topics, params, timed)


def _hdp(timed, **params):
    params = {"n_components": 12, "max_iter": 6, "batch_size": 8, **params}
    return Fit("DPSVIHDP", documents, _of_topics, params, timed)


def _mixture(estimator, timed=None, **params):
    params = {"batch_size": 32, "max_iter": 8, **params}
    return Fit(estimator, points, _of_a_mixture, params, timed)


def _hmm(data, timed=None, **params):
    params = {"n_components": 3, "batch_size": 32, "max_iter": 8, **params}
    return Fit("DPSVIHMM", data, _of_a_chain, params, timed)


FITS = {
    "lda, collapsed, fixed priors": _lda(_FIXED, timed=(6000, {"n_components": 50})),
    "lda, collapsed, learned priors": _lda(_LEARNED),
    "lda, collapsed, warm documents": _lda(_FIXED, {"warm_documents": True}),
    "lda, kept responsibilities": _lda(
        _FIXED, {"keep_responsibilities": True}, timed=(4000, {"n_components": 50})
    ),
    "lda, kept responsibilities, learned priors": _lda(_LEARNED, {"keep_responsibilities": True}),
    "lda, mean field, fixed priors": _lda(
        _FIXED, _MEAN_FIELD, timed=(1500, {"n_components": 50})
    ),
    "lda, mean field, learned priors": _lda(_LEARNED, _MEAN_FIELD),
    "lda, mean field, warm documents": _lda(_FIXED, _MEAN_FIELD, {"warm_documents": True}),
    "hdp, collapsed": _hdp((4000, {"n_components": 50})),
    "hdp, mean field": _hdp((600, {"n_components": 50}), **_MEAN_FIELD),
    "gaussian mixture, full": _mixture("DPSVIGaussianMixture", (40_000, {}), n_components=4),
    "gaussian mixture, diagonal": _mixture(
        "DPSVIGaussianMixture", n_components=4, covariance_type="diag", init_params="random"
    ),
    "dp mixture, full": _mixture("DPSVIDPMixture", (40_000, {}), n_components=8),
    "dp mixture, diagonal": _mixture("DPSVIDPMixture", n_components=8, covariance_type="diag"),
    "hmm, full": _hmm(sequences, (4000, {})),
    "hmm, diagonal": _hmm(sequences, covariance_type="diag"),
    "hmm, categorical": _hmm(symbols, emission="categorical"),
    "hmm, windows": _hmm(sequences, window=5, buffer=3),
    "hierarchical regression": Fit(
        "DPSVIHierarchicalRegressor", groups, _of_a_regressor, {"batch_size": 16, "max_iter": 8},
        (8000, {}),
    ),
    "hierarchical probit": Fit(
        "DPSVIHierarchicalProbit", labelled_groups, _of_a_classifier,
        {"batch_size": 16, "max_iter": 8}, (2000, {}),
    ),
    "matrix factorisation": Fit(
        "DPSVIMatrixFactorization", ratings, _of_factors,
        {"n_components": 2, "batch_size": 32, "max_iter": 8}, (4000, {"n_components": 10}),
    ),
    "poisson factorisation": Fit(
        "DPSVIPoissonFactorization", counts, _of_factors,
        {"n_components": 3, "batch_size": 32, "max_iter": 8}, (1500, {"n_components": 10}),
    ),
}  # fmt: skip


class Timed(NamedTuple):
    """One fit whose seconds are compared.

    Parameters
    ----------
    fit : str
        One of `FITS`.
    n_items : int
    params : dict
        In the place of those of the fit.
    ranks : int
        Of a fit over MPI; 0: in one process.
    """

    fit: str
    n_items: int
    params: dict
    ranks: int = 0

    @property
    def by_the_clock(self) -> bool:
        """Whether seconds are those of the clock, not of the processor."""
        return self.params.get("engine", "serial") != "serial"


def _several(fit, n_items, **params):
    """Two threads and two workers, of 40 topics and ten passes."""
    params |= {"n_components": 40, "max_iter": 10}
    return {
        f"{fit}, two threads": Timed(fit, n_items, {**params, "engine": "threads", "n_jobs": 2}),
        f"{fit}, two workers": Timed(fit, n_items, {**params, "engine": "mpi"}, ranks=3),
    }


TIMED = {
    **{name: Timed(name, *fit.timed) for name, fit in FITS.items() if fit.timed},
    **_several("lda, collapsed, fixed priors", 60_000, batch_size=32),
    **_several("lda, mean field, fixed priors", 20_000, batch_size=32),
}


def fitted(fit: Fit, data: dict, more: dict) -> Any:
    """A fitted estimator: one thread, one seed."""
    estimator = getattr(dpsvi, fit.estimator)
    params = {"engine": "serial", "n_jobs": 1, "random_state": 0, **fit.params, **more}
    return estimator(**params).fit(**data)
