"""What every topic model is made of: the layout of its matrix, first topics, eta, the bound.

Rows are words and columns topics, padded with empty columns to a multiple of the vector width.
``lam_wk = eta + scale rows_wk`` is the Dirichlet parameter of topic k (natural parameter plus one).
A model may have rows behind those of the words.
"""

from __future__ import annotations

import numpy as np

from dpsvi.kernels.jit import kernel

LANES = 16  # float32 numbers in the widest vector register; rows start on a cache line
FLOAT = np.dtype(np.float32)


def padded(n_topics: int) -> int:
    """Columns of the matrix of so many topics."""
    return -(-n_topics // LANES) * LANES


def first_rows(n_words, n_topics, rng):
    """First value of the words' rows, (n_words, n_columns), the prior not included."""
    # Topics must differ to begin with, but little.  Uniform with the mean 1 and the deviation 0.1
    # of the Gamma(100, 1/100) of Hoffman et al. (2010), which takes ten times as long to draw:
    # 100,000 words and 100 topics are 10 million numbers.
    noise = rng.random((n_words, n_topics), dtype=np.float32)
    noise *= np.float32(0.2 * 3**0.5)
    noise += np.float32(1 - 0.1 * 3**0.5)
    rows = np.zeros((n_words, padded(n_topics)), np.float32)
    rows[:, :n_topics] = noise
    return rows


_PARTS = 4  # topics that a document is split among at the start
_NOISE = 0.2  # share of the first topics that is noise
_LEAST_NOISE = 0.5  # tokens of a word in all topics


def split_documents(rows, items, n_topics, rng, total_items, noise=True) -> None:
    """Make `rows`, the noise of :func:`first_rows`, into first topics of whole documents, in place.

    Each document is split evenly among a few random topics, so that words which are together in
    documents are together in topics from the start, and no document has more say than another.
    With noise alone, short documents look alike for many passes, and the first batches decide.

    Parameters
    ----------
    rows : float32 array, (n_words, n_columns)
    items : Items or Corpus
    n_topics : int
    rng : numpy.random.Generator
    total_items : float
        N: the topics hold the tokens of so many documents.
    noise : bool
        False where `rows` hold topics of earlier documents, which stay as they are.
    """
    n_items, n_words = len(items.offsets) - 1, len(rows)
    share = total_items / max(1, n_items)
    tokens = share * items.value.sum(dtype=np.float64)
    if noise:
        # A few documents must not take all differences from topics that others are to fill.
        rows *= np.float32(max(_NOISE * tokens / n_words, _LEAST_NOISE) / n_topics)
    topic = rng.integers(n_topics, size=(n_items, _PARTS), dtype=np.int32)
    share *= (1 - _NOISE) / _PARTS
    _add_documents(items.offsets, items.index, items.value, topic, np.float32(share), rows)


@kernel
def _add_documents(offsets, index, value, topic, share, rows):
    for d in range(topic.shape[0]):
        for j in range(offsets[d], offsets[d + 1]):
            for part in range(topic.shape[1]):
                rows[index[j], topic[d, part]] += share * np.float32(value[j])


def column_sums(lam):
    """Sums over the words, float64, (n_columns,)."""
    return lam.sum(axis=0, dtype=np.float64)


def document_bounds(alpha, gamma, log_norm, lengths):
    """The document terms of the bound (43) at given gamma, in nats; (n_items,).

    Parameters
    ----------
    alpha : array, (n_topics,)
    gamma : array, (n_items, n_topics)
    log_norm : array, (n_items,)
        sum_w c_dw log sum_k exp(psi(gamma_dk) + E log beta_kw).
    lengths : array, (n_items,)
    """
    from scipy.special import gammaln, psi

    gamma = gamma.astype(np.float64)
    total = gamma.sum(axis=1)
    e_log_theta = psi(gamma) - psi(total)[:, None]
    words = log_norm - lengths * psi(total)
    prior = gammaln(alpha.sum()) - gammaln(alpha).sum()
    entropy = gammaln(gamma).sum(axis=1) - gammaln(total)
    return words + ((alpha - gamma) * e_log_theta).sum(axis=1) + prior + entropy
