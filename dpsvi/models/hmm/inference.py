"""What a fitted hidden Markov model answers: states, likelihoods and samples.

How many states there are and what they emit is said by the fitted model, never by the parameters
of the estimator, which may have been set anew since.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from dpsvi.errors import check_choice, check_number
from dpsvi.models.hmm.chunk import chunk_of, scratch
from dpsvi.models.hmm.model import read, read_for
from dpsvi.models.hmm.predict import decode, infer, walk
from dpsvi.training.items import count, dense_items


class Inference:
    """Methods of :class:`dpsvi.models.hmm.estimator.DPSVIHMM` that use what it has learned.

    It defines ``_sequences(X, lengths, y) -> (X, offsets)``, which validates, `_emissions`, the
    kind of its emissions, and `fit`.
    """

    def _infer(self, state, items, marked=0, posteriors=False):
        """Bounds of all steps of `items`, and their posteriors, (n, K), or (0, K)."""
        weights, gaps = read_for(state, items)
        chunk, everything, n_steps = _prepare(weights, items, marked)
        bound = np.empty(n_steps)
        posterior = np.empty((n_steps if posteriors else 0, len(weights.start)))
        infer(items, everything, marked, weights, chunk, gaps, posterior, bound)
        return bound, posterior

    def decode(
        self, X: Any, lengths: ArrayLike | None = None,
        algorithm: Literal["viterbi", "map"] | None = None,
    ) -> tuple[float, np.ndarray]:  # fmt: skip
        """Find the states that X was most likely emitted from.

        Parameters
        ----------
        X, lengths : as in `fit`
        algorithm : {"viterbi", "map"} or None, default=None
            None is the parameter of the estimator.

        Returns
        -------
        log_prob : float
            Of ``"viterbi"`` the expected log of the paths' joint probability with X, in nats, to
            compare with :meth:`score`; of ``"map"`` the expected number of steps whose state is
            right.
        states : int ndarray of shape (n_samples,)

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIHMM
        >>> states = np.tile(np.repeat([0, 1], 10), 20)
        >>> X = 5.0 * states[:, None] + np.random.default_rng(0).normal(size=(400, 2))
        >>> hmm = DPSVIHMM(n_components=2, random_state=0).fit(X, lengths=[100] * 4)
        >>> log_probability, states = hmm.decode(X[:20])
        >>> states.shape, len(set(states))
        ((20,), 2)
        """
        check_is_fitted(self, "_state")
        algorithm = self.algorithm if algorithm is None else algorithm
        check_choice("algorithm", algorithm, ["viterbi", "map"])
        if algorithm == "map":
            posterior = self.predict_proba(X, lengths)
            return float(posterior.max(axis=1).sum()), posterior.argmax(axis=1)
        items = dense_items(*self._sequences(X, lengths))
        weights, gaps = read_for(self._state, items)
        chunk, everything, n_steps = _prepare(weights, items)
        path, value = np.empty(n_steps, np.int64), np.empty(len(everything))
        decode(items, everything, 0, weights, chunk, gaps, path, value)
        return float(value.sum()), path

    def predict(self, X: Any, lengths: ArrayLike | None = None) -> np.ndarray:
        """The states of :meth:`decode`, (n_samples,).

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIHMM
        >>> states = np.tile(np.repeat([0, 1], 10), 20)
        >>> X = 5.0 * states[:, None] + np.random.default_rng(0).normal(size=(400, 2))
        >>> hmm = DPSVIHMM(n_components=2, random_state=0).fit(X, lengths=[100] * 4)
        >>> found = hmm.predict(X, lengths=[100] * 4)
        >>> bool(np.mean(found == states) in (0, 1))
        True
        """
        return self.decode(X, lengths)[1]

    def fit_predict(self, X: Any, y: Any = None, lengths: ArrayLike | None = None) -> np.ndarray:
        """Fit to X, then :meth:`predict` its states, (n_samples,).

        Parameters
        ----------
        X, y, lengths : as in `fit`

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIHMM
        >>> states = np.tile(np.repeat([0, 1], 10), 20)
        >>> X = 5.0 * states[:, None] + np.random.default_rng(0).normal(size=(400, 2))
        >>> DPSVIHMM(n_components=2, random_state=0).fit_predict(X, lengths=[100] * 4).shape
        (400,)
        """
        return self.fit(X, y, lengths=lengths).predict(X, lengths)

    def predict_proba(self, X: Any, lengths: ArrayLike | None = None) -> np.ndarray:
        """Posteriors of the states at each step given its sequence, (n_samples, K).

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIHMM
        >>> states = np.tile(np.repeat([0, 1], 10), 20)
        >>> X = 5.0 * states[:, None] + np.random.default_rng(0).normal(size=(400, 2))
        >>> hmm = DPSVIHMM(n_components=2, random_state=0).fit(X, lengths=[100] * 4)
        >>> posterior = hmm.predict_proba(X[:20])
        >>> posterior.shape, bool(np.allclose(posterior.sum(axis=1), 1))
        ((20, 2), True)
        """
        check_is_fitted(self, "_state")
        items = dense_items(*self._sequences(X, lengths))
        return self._infer(self._state, items, posteriors=True)[1].astype(self._dtype, copy=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.emission == "categorical" or self.covariance_type == "diag"
        return tags

    def score_samples(self, X: Any, lengths: ArrayLike | None = None) -> np.ndarray:
        """Log-likelihood of each step given the steps before it in nats, (n_samples,).

        ``ln p~(x_t | x_1 ... x_{t-1})`` under the sub-normalised weights; their sum over a sequence
        is ln Z~, a lower bound of the log of its predictive density.  (hmmlearn's method of this
        name returns what :meth:`score` and :meth:`predict_proba` do.)

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIHMM
        >>> states = np.tile(np.repeat([0, 1], 10), 20)
        >>> X = 5.0 * states[:, None] + np.random.default_rng(0).normal(size=(400, 2))
        >>> hmm = DPSVIHMM(n_components=2, random_state=0).fit(X, lengths=[100] * 4)
        >>> hmm.score_samples(X[:20]).shape
        (20,)
        """
        check_is_fitted(self, "_state")
        items = dense_items(*self._sequences(X, lengths))
        return self._infer(self._state, items)[0].astype(self._dtype, copy=False)

    def score(self, X: Any, y: Any = None, lengths: ArrayLike | None = None) -> float:
        """Sum of :meth:`score_samples`, as in hmmlearn of all sequences together.

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIHMM
        >>> states = np.tile(np.repeat([0, 1], 10), 20)
        >>> X = 5.0 * states[:, None] + np.random.default_rng(0).normal(size=(400, 2))
        >>> hmm = DPSVIHMM(n_components=2, random_state=0).fit(X, lengths=[100] * 4)
        >>> bool(np.isclose(hmm.score(X[:100]), hmm.score_samples(X[:100]).sum()))
        True
        """
        check_is_fitted(self, "_state")
        X, offsets = self._sequences(X, lengths, y)
        return float(self._infer(self._state, dense_items(X, offsets))[0].sum())

    def sample(
        self, n_samples: int = 1, currstate: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Draw one sequence from the chain of startprob_ and transmat_.

        Parameters
        ----------
        n_samples : int, >= 1
            Its steps.
        currstate : int in [0, K) or None, default=None
            Its first state; None draws it.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features_in_)
        states : int ndarray of shape (n_samples,)

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIHMM
        >>> states = np.tile(np.repeat([0, 1], 10), 20)
        >>> X = 5.0 * states[:, None] + np.random.default_rng(0).normal(size=(400, 2))
        >>> hmm = DPSVIHMM(n_components=2, random_state=0).fit(X, lengths=[100] * 4)
        >>> points, states = hmm.sample(30)
        >>> points.shape, states.shape
        ((30, 2), (30,))
        """
        check_is_fitted(self, "_state")
        check_number("n_samples", n_samples, low=1, integer=True)
        if currstate is not None:
            last = len(self.startprob_) - 1
            check_number("currstate", currstate, low=0, high=last, integer=True)
        rng, cumulative = self._sampler(), np.cumsum(self.transmat_, axis=1)[:, :-1]
        states = np.empty(n_samples, np.int64)
        first = np.searchsorted(np.cumsum(self.startprob_)[:-1], rng.random(), side="right")
        states[0] = first if currstate is None else currstate
        for t, u in enumerate(rng.random(n_samples - 1), start=1):
            states[t] = np.searchsorted(cumulative[states[t - 1]], u, side="right")
        X = self._emissions.draw(self, read(self._state), states, rng)
        return X.astype(self._dtype, copy=False), states


    def _like(self, X, lengths=None):
        return self._sequences(X, lengths)[1]

    def _draw_data(self, draw, offsets, rng):
        states = np.empty(offsets[-1], np.int64)
        start, trans = (np.cumsum(draw[name], axis=-1) for name in ("startprob", "transmat"))
        walk(start, trans, offsets, rng.random(offsets[-1]), states)
        return self._emissions.draw_from(draw, states, rng).astype(self._dtype)


def _prepare(weights, items, marked=0):
    """Memory for these items, all their numbers, and the number of their steps."""
    n_components, n = weights.origins.shape
    row, longest = n + marked, int(np.diff(items.offsets).max())
    chunk = chunk_of(np.empty(scratch(n_components, n, row, longest)), n_components, n)
    return chunk, np.arange(count(items), dtype=np.int32), items.offsets[-1] // row
