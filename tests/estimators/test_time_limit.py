"""A fit until a time: more passes than can be made, and a callback that ends it."""

import numpy as np

from dpsvi import DPSVIGaussianMixture


def test_a_callback_ends_a_fit_without_an_end():
    X = np.random.default_rng(0).normal(size=(200, 2))
    mixture = DPSVIGaussianMixture(
        2, max_iter=10**12, engine="serial", random_state=0,
        callbacks=[lambda event: event.seconds > 0.1],
    ).fit(X)  # fmt: skip
    assert 1 <= mixture.n_iter_ < 10**6
    assert np.all(np.isfinite(mixture.means_))
