"""The posterior of a topic model: draws from it, documents drawn from these, two fits compared."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from sklearn.utils import gen_batches

from dpsvi.expfam import dirichlet

_DOCUMENTS_AT_ONCE = 256  # whose counts of all words are in memory while they are drawn


class TopicPosterior:
    """What `dpsvi.estimators.sampling` and `dpsvi.averaging` ask a topic model's estimator for."""

    def _draw_posterior(self, n_samples, rng) -> dict:
        return {"components": dirichlet.draw(self.components_, n_samples, rng)}

    def _like(self, X) -> np.ndarray:
        items = self._read(X, reset=False)
        before = np.concatenate([[0.0], np.cumsum(items.value, dtype=np.float64)])
        return np.rint(np.diff(before[items.offsets])).astype(np.int64)  # words of each document

    def _prior_of_documents(self, draw) -> np.ndarray:
        """Dirichlet prior of the topic proportions given a draw of the parameters, (K,)."""
        return self._alpha(self._state)

    def _draw_data(self, draw, lengths, rng):
        alpha = np.maximum(self._prior_of_documents(draw), 1e-9)
        words = draw["components"].astype(np.float64)
        words /= words.sum(axis=1, keepdims=True)
        parts = [scipy.sparse.csr_array((0, words.shape[1]))]
        for some in gen_batches(len(lengths), _DOCUMENTS_AT_ONCE):
            mixed = rng.dirichlet(alpha, some.stop - some.start) @ words
            mixed /= mixed.sum(axis=1, keepdims=True)
            parts.append(scipy.sparse.csr_array(rng.multinomial(lengths[some], mixed)))
        return scipy.sparse.csr_array(scipy.sparse.vstack(parts))

    def _distances(self, other) -> np.ndarray:
        """Bhattacharyya distances of topics, as distributions over words, (K, K)."""
        if other.vocabulary_ != self.vocabulary_:
            raise ValueError("both fits must have the same words, in the same order")
        lams = (estimator.components_ for estimator in (self, other))
        mine, theirs = (np.sqrt(lam / lam.sum(axis=1, keepdims=True)) for lam in lams)
        return -np.log(mine @ theirs.T)

    def _reordered(self, order, model) -> np.ndarray:
        """Return lam, of the shape of `model`, with topics in another order."""
        lam = self._state.natural()
        lam[:, : len(order)] = lam[:, order]
        return lam
