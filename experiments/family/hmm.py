"""Hidden Markov models: dpsvi beside hmmlearn's VariationalGaussianHMM.

The score is the log-likelihood of held-out sequences, per step and in nats, under the parameters
that each tool reports: startprob_, transmat_ and N(means_, covars_).
"""

from __future__ import annotations

import time

import numpy as np

from experiments.family.recorder import point, recorded

K, D = 10, 8
_LENGTH = 200  # of a sequence


class Truth:
    """A chain whose states overlap and last for five steps or so."""

    def __init__(self, rng):
        self.means = 1.2 * rng.normal(size=(K, D))
        self.roots = rng.normal(size=(K, D, D)) / np.sqrt(D) + 0.5 * np.eye(D)
        transitions = 0.8 * np.eye(K) + 0.2 * rng.dirichlet(np.ones(K), size=K)
        self.cumulative = np.cumsum(transitions, axis=1)[:, :-1]

    def draw(self, rng, n_sequences, length):
        """`n_sequences` of one length, one behind the other."""
        states = np.empty((n_sequences, length), int)
        states[:, 0] = rng.integers(K, size=n_sequences)
        for t in range(1, length):
            before = self.cumulative[states[:, t - 1]]
            states[:, t] = (rng.random((n_sequences, 1)) > before).sum(axis=1)
        z = states.ravel()
        noise = rng.normal(size=(len(z), D))
        return self.means[z] + np.einsum("nij,nj->ni", self.roots[z], noise)


def log_likelihood(fitted, X, length) -> float:
    """Mean over the steps of sequences of this length, by the scaled forward recursion."""
    from scipy.stats import multivariate_normal

    emit = [
        multivariate_normal.logpdf(X, m, c)
        for m, c in zip(fitted.means_, fitted.covars_, strict=True)
    ]
    emit = np.array(emit).T.reshape(-1, length, len(fitted.means_))
    top = emit.max(axis=2, keepdims=True)
    weight, total = np.exp(emit - top), top.sum()
    predicted = fitted.startprob_
    for t in range(length):
        here = predicted * weight[:, t]
        mass = here.sum(axis=1, keepdims=True)
        total += np.log(mass).sum()
        predicted = here / mass @ fitted.transmat_
    return float(total / len(X))


def run(seed: int, quick: bool, corpus=None) -> list[dict]:
    """Many sequences, and one chain of as many steps; hmmlearn until its bound rises no more."""
    n_sequences = 25 if quick else 1000
    rng = np.random.default_rng(seed)
    truth = Truth(rng)
    X = truth.draw(rng, n_sequences, _LENGTH)
    test = truth.draw(rng, 100, _LENGTH)
    chain = truth.draw(rng, 1, len(X))
    sizes = f"{len(X):,} steps, {D} features, K = {K}"
    cases = (
        (f"{n_sequences} sequences, {sizes}", X, np.full(n_sequences, _LENGTH), {}),
        (f"one chain, {sizes}", chain, np.array([len(chain)]), {"window": _LENGTH, "buffer": 20}),
    )
    return [row for case in cases for row in _problem(*case, test, seed, quick)]


def _problem(problem, X, lengths, windows, test, seed, quick):
    from dpsvi import DPSVIHMM

    def score(fitted):
        return log_likelihood(fitted, test, _LENGTH)

    settings = "2 threads" + "".join(f", {name} {value}" for name, value in windows.items())
    rows = recorded(
        DPSVIHMM(K, n_jobs=2, max_iter=10, evaluate_every=0.25, random_state=seed, **windows),
        score, problem, settings, X=X, lengths=lengths,
    )  # fmt: skip
    return rows + _hmmlearn(problem, X, lengths, score, seed, 5 if quick else 100)


def _hmmlearn(problem, X, lengths, score, seed, n_iter):
    """A point for every iteration; the defaults but for the faster of two implementations."""
    from hmmlearn.base import ConvergenceMonitor
    from hmmlearn.vhmm import VariationalGaussianHMM

    rows, scoring = [], 0.0

    class Recorder(ConvergenceMonitor):
        def report(self, log_prob):
            nonlocal scoring
            now = time.perf_counter()
            seconds = now - began - scoring
            rows.append(point(problem, "hmmlearn", "scaling", seconds, score(theirs)))
            scoring += time.perf_counter() - now
            super().report(log_prob)

    theirs = VariationalGaussianHMM(K, implementation="scaling", random_state=seed, n_iter=n_iter)
    theirs.monitor_ = Recorder(theirs.tol, n_iter, False)
    began = time.perf_counter()
    theirs.fit(X, lengths)
    return rows
