"""Poisson factorisation beside hpfrec and poismf.

Every tool gives one array, the factors of the items.  The rest is the same code for all: each
column is scaled to the sum 1, so that nobody's scale matters, a thousandth of it goes to the
frequencies of the items, since poismf has zeros; each test user's counts are thinned in two halves,
theta is inferred from one by variational inference, and the mean log-likelihood of the other in
nats per entry, zeros included, is the score (as ``DPSVIPoissonFactorization.score``).

Tools without a callback are fitted anew for every number of iterations; seconds are of `fit` alone.
Documents are few and long: of our batches of 256, 128 and 64 the middle one was taken for them.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import scipy.sparse

from dpsvi import DPSVIPoissonFactorization, load_corpus
from dpsvi.models.poisson_factorization.model import completion
from experiments.family.recorder import point, recorded

N_THREADS = 2
SMOOTHING = 1e-3


def run(seed: int, quick: bool, corpus=None) -> list[dict]:
    """Fit all tools to synthetic counts, and to the bag of words `corpus`."""
    problems = {"synthetic": synthetic(seed, quick)}
    if corpus is not None:
        problems[Path(corpus).name] = load_corpus(corpus).to_csr().astype(np.float64)
    return [row for name, counts in problems.items() for row in _problem(name, counts, seed, quick)]


def _problem(name, counts, seed, quick):
    counts = counts[: 2000 if quick else None]
    order = np.random.default_rng(0).permutation(counts.shape[0])
    test, train = np.split(order, [min(1000, counts.shape[0] // 10)])
    test, train = counts[np.sort(test)], counts[np.sort(train)]
    n_components = 10 if quick else 20
    problem = f"{name}, {train.shape[0]:,} x {train.shape[1]:,}, K = {n_components}"
    batch_size = 256 if name == "synthetic" else 128
    ours = DPSVIPoissonFactorization(
        n_components,
        n_jobs=N_THREADS,
        batch_size=batch_size,
        max_iter=5 if quick else 30,
        random_state=seed,
    )
    rows = recorded(
        ours, lambda fitted: held_out_score(test, fitted.components_.T, train), problem,
        f"2 threads, batches of {batch_size}", X=train,
    )  # fmt: skip
    for tool, fits in (("hpfrec", hpfrec), ("poismf", poismf)):
        for settings, seconds, factors in fits(train, n_components, seed, quick):
            score = held_out_score(test, factors, train)
            rows.append(point(problem, tool, settings, seconds, score))
    return rows


def synthetic(seed, quick):
    """Counts of users and items with planted gamma factors, as a sparse matrix."""
    rng = np.random.default_rng(seed)
    n_users, n_items, n_components = (2000, 500, 10) if quick else (20_000, 3000, 20)
    items = rng.gamma(0.1, 1.0, (n_components, n_items)) * rng.pareto(1.5, n_items)
    items /= items.sum(axis=1, keepdims=True)
    users = rng.gamma(0.2, 1.0, (n_users, n_components)) * rng.gamma(0.5, 40.0, (n_users, 1))
    parts = []
    for some in np.array_split(users, max(1, n_users // 1000)):
        parts.append(scipy.sparse.csr_array(rng.poisson(some @ items)))
    return scipy.sparse.vstack(parts, format="csr").astype(np.float64)


def held_out_score(test, factors, train) -> float:
    """Mean log-likelihood of the second halves; see the module."""
    frequencies = np.asarray(train.sum(axis=0), dtype=np.float64).ravel() + 1.0
    frequencies /= frequencies.sum()
    factors = np.maximum(np.asarray(factors, dtype=np.float64), 0.0)
    sums = factors.sum(axis=0)
    factors = factors[:, sums > 0] / sums[sums > 0]
    return completion(test, (1 - SMOOTHING) * factors + SMOOTHING * frequencies[:, None])


# --- the tools ----------------------------------------------------------------------------------


def hpfrec(train, n_components, seed, quick):
    """Coordinate ascent, and stochastic steps on batches of users; its own defaults otherwise."""
    for n in (5,) if quick else (30, 100):
        yield _hpfrec(train, n_components, seed, maxiter=n)
    for n in (5,) if quick else (5, 20):
        yield _hpfrec(train, n_components, seed, maxiter=n, users_per_batch=1000)


def _hpfrec(train, n_components, seed, **settings):
    import pandas
    from hpfrec import HPF

    counts = train.tocoo()
    frame = pandas.DataFrame(
        {"UserId": counts.row, "ItemId": counts.col, "Count": counts.data.astype(np.float32)}
    )
    model = HPF(
        k=n_components, ncores=N_THREADS, random_seed=seed + 1, reindex=False, verbose=False,
        stop_crit="maxiter", check_every=settings["maxiter"], **settings,
    )  # fmt: skip
    started = time.perf_counter()
    model.fit(frame)
    seconds = time.perf_counter() - started
    factors = np.zeros((train.shape[1], n_components))
    factors[: len(model.Beta)] = model.Beta
    return ", ".join(f"{k}={v}" for k, v in settings.items()), seconds, factors


def poismf(train, n_components, seed, quick):
    """Two of its methods, iterations as it chooses; "pg" ended with all factors 0 here."""
    from poismf import PoisMF

    counts = scipy.sparse.csr_matrix(train).tocoo()
    for method, iterations in (("tncg", ("auto", 50)), ("cg", ("auto",))):
        for n in (2,) if quick else iterations:
            model = PoisMF(
                k=n_components, method=method, niter=n, nthreads=N_THREADS, random_state=seed + 1,
                reindex=False,
            )  # fmt: skip
            started = time.perf_counter()
            model.fit(counts)
            seconds = time.perf_counter() - started
            factors = np.zeros((train.shape[1], n_components))
            factors[: len(model.B)] = model.B
            yield f"{method}, niter={n}", seconds, factors
