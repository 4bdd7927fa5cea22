"""Averaged parameters: less variance from the same documents (future work of the paper).

With a constant rate, the paper's for its workers, parameters end up wandering around an optimum, as
far from it as the statistics of a few batches are noisy; their mean does not (Polyak and Juditsky
1992; Mandt, Hoffman and Blei 2017 on constant rates).  ``lam = prior + scale * rows`` is linear in
the statistics of all batches so far, so a mean of lam is one with averaged statistics, and valid.
"""

from __future__ import annotations

import numpy as np

from dpsvi.errors import check_number
from dpsvi.training.state import State


class Averaged:
    """Mean of the parameters over the last part of a fit; one of an estimator's `callbacks`.

    Parameters
    ----------
    start : float, >= 0
        Passes over the data after which parameters count, every time that the estimator looks
        (`evaluate_every`).

    Attributes
    ----------
    n : int
        How many parameters count so far.
    mean : float64 array, shape of the model
        Their mean, natural parameters.

    Examples
    --------
    >>> averaged = Averaged(start=3)
    >>> lda = DPSVILDA(50, learning_rate=0.02, max_iter=4, evaluate_every=0.05,
    ...                callbacks=[averaged]).fit(X)  # doctest: +SKIP
    >>> averaged.fitted(lda).perplexity(X_test)  # doctest: +SKIP
    """

    def __init__(self, start: float):
        check_number("start", start, low=0)
        self.start, self.n, self.mean, self._model = start, 0, 0.0, None

    def __call__(self, event) -> None:
        """Take the parameters of one :class:`~dpsvi.base.Event` into account."""
        if event.epoch <= self.start:
            return
        self.n += 1
        self.mean = self.mean + (event.state.natural().astype(np.float64) - self.mean) / self.n
        self._model = event.state.model

    def fitted(self, estimator):
        """An estimator like `estimator`, fitted, with the mean as its parameters.

        Raises
        ------
        ValueError
            Nothing was averaged: the fit ended before `start`.
        """
        if not self.n:
            raise ValueError(f"nothing was averaged: no look after {self.start:g} passes")
        params = estimator.get_params(deep=False) | {"callbacks": None}
        other = type(estimator)(**params)
        rows = (self.mean - self._model.prior).astype(self._model.real)
        other.__dict__.update(estimator._attributes(State.resume(self._model, rows, 1)))
        return other
