"""Coins with unknown chances of heads: ``p_j ~ Beta(a, a)``, ``x_ij ~ Bernoulli(p_j)``.

The parameters are one row, the heads and then the tails of every coin.
"""

import numpy as np
from scipy.special import betaln, psi

from dpsvi.base import Model
from dpsvi.estimators.arrays import ArrayEstimator
from dpsvi.estimators.engine_parameters import engine_parameters
from dpsvi.training.items import count, dense_items
from dpsvi.training.state import State


def local(shared, scale, hyper, items, batch, work):
    """Count heads and tails."""
    n = shared.rows.shape[1] // 2
    for item in batch:
        for j in range(n):
            x = items.value[items.offsets[item] + j]
            work.stats[0, j] += x
            work.stats[0, n + j] += 1 - x
    work.touched[0] = 0
    return 1


def make_model(shape, prior, hyper):
    """The model of these arrays."""
    return Model("coins", shape, prior, hyper, local, scratch=lambda longest: 0)


@engine_parameters("tosses")
class DPSVICoins(ArrayEstimator):
    """Coins.

    Parameters
    ----------
    heads : float, > 0, default=1.0
        a.
    {engine}

    Attributes
    ----------
    chances_ : ndarray of shape (n_features_in_,)
    {fitted}
    """

    _kind = "coins"
    _model = staticmethod(make_model)

    def __init__(self, heads=1.0):
        self.heads = heads

    def check_params(self):
        """Refuse a prior that is not above 0."""
        super().check_params()
        self._check_positive("heads")

    def _read(self, X, y=None, *, reset):
        return dense_items(self._points(X, reset).astype(np.float64))

    def _start(self, items, total, rng):
        shape = (1, 2 * self.n_features_in_)
        model = self._model(shape, np.full(shape, float(self.heads)), np.zeros(0))
        return State.resume(model, np.zeros(shape), self._n_threads)

    def _fitted(self, state):
        heads, tails = state.natural()[0].reshape(2, -1)
        return {"chances_": (heads / (heads + tails)).astype(self._dtype)}

    def _bounds(self, state, items):
        heads, tails = state.natural()[0].reshape(2, -1)
        X = items.value.reshape(count(items), -1)
        whole = psi(heads + tails)
        return X @ (psi(heads) - whole) + (1 - X) @ (psi(tails) - whole)

    def _divergence(self, state):
        a = state.natural()[0].reshape(2, -1)
        a0 = state.model.prior[0].reshape(2, -1)
        terms = (a - a0) * (psi(a) - psi(a.sum(axis=0)))
        return float(np.sum(betaln(*a0) - betaln(*a)) + terms.sum())


ESTIMATOR = DPSVICoins
