"""Fits to few items, whose batches are left to them."""

import numpy as np
import pytest

from dpsvi import (
    DPSVIDPMixture,
    DPSVIGaussianMixture,
    DPSVIMatrixFactorization,
    DPSVIPoissonFactorization,
)

MODELS = DPSVIGaussianMixture, DPSVIDPMixture, DPSVIMatrixFactorization, DPSVIPoissonFactorization


def counts(n, seed=0):
    """Numbers that each of the models accepts: counts of two kinds of rows."""
    rng = np.random.default_rng(seed)
    means = np.array([[1, 1, 6, 6], [6, 6, 1, 1]])
    return rng.poisson(means[rng.integers(2, size=n)]).astype(float)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("n", "batch"), [(10, 16), (400, 20), (1000, 50), (6000, 256)])
def test_a_pass_has_twenty_steps_where_items_are_few(model, n, batch):
    fitted = model(2, max_iter=1, n_jobs=1, random_state=0).fit(counts(n))
    assert fitted.n_batch_iter_ == -(-n // batch)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("seen", "n", "batch"), [(0, 10, 16), (0, 200, 16), (400, 600, 50), (6000, 500, 256)]
)
def test_a_stream_has_steps_as_a_fit_to_all_that_came(model, seen, n, batch):
    """`python -m experiments.portions` compares them with steps of 256."""
    fitted = model(2, n_jobs=1, random_state=0)
    if seen:
        fitted.partial_fit(counts(seen))
    before = fitted.n_batch_iter_ if seen else 0
    assert fitted.partial_fit(counts(n, seed=1)).n_batch_iter_ - before == -(-n // batch)


def test_small_steps_end_higher_than_whole_passes():
    """Twelve seeds, since each fit ends in an optimum of its own."""
    from sklearn.datasets import load_diabetes

    X = load_diabetes().data
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    bounds = [
        [
            DPSVIGaussianMixture(6, batch_size=batch, n_jobs=1, random_state=seed).fit(X)
            .lower_bound_ / len(X)
            for seed in range(12)
        ]
        for batch in (None, 256)
    ]  # fmt: skip
    assert np.mean(bounds[0]) > np.mean(bounds[1]) + 0.02
