"""Documents of a fit whose own counts have been taken out of the topics.

With them in the topics each document looks as if it had a topic of its own.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numba
import numpy as np
from numba import types
from numba.np.numpy_support import from_dtype

from dpsvi.base import Items
from dpsvi.evaluation.completion import infer_documents, score, split_tokens
from dpsvi.families.topics.matrix import FLOAT
from dpsvi.kernels.jit import FLAGS, abi, as_items, compile_local, copy
from dpsvi.training.items import take
from dpsvi.training.loop import read_statistics
from dpsvi.training.signals import Deferred
from dpsvi.training.task import make_works

MOST_DOCUMENTS = 2000
MOST_VALUES = 2**22  # numbers in the rows of their words


class WithoutOwn:
    """Documents of a fit, each with topics from which its own counts have been taken out.

    What a document adds to the topics is what one more local step finds.

    Parameters
    ----------
    state : dpsvi.training.state.State
        Its rows of words come first, the others are :attr:`dpsvi.base.Model.common_rows`.
    items : Items
    n_topics : int
    rng : numpy.random.Generator
        Chooses the documents, 2,000 at most, fewer where they are long or topics are many.
    n_jobs : int
        Threads; they do not change the results.
    """

    def __init__(self, state, items, n_topics: int, rng, n_jobs: int = 1):
        self.state, self.items, self.n_topics, self.n_jobs = state, items, n_topics, n_jobs
        chosen = rng.permutation(len(items.offsets) - 1)[:MOST_DOCUMENTS].astype(np.int32)
        lengths = np.cumsum(np.diff(items.offsets)[chosen])
        n = max(1, np.searchsorted(lengths * n_topics, MOST_VALUES, side="right"))
        self.chosen, offsets = chosen[:n], np.concatenate([[0], lengths[:n]])
        values = take(items, self.chosen).value
        first, second = split_tokens(values, seed=int(rng.integers(2**31)))
        index = np.arange(len(values))
        self.seen = as_items(offsets, index, first, FLOAT)
        self.hidden = as_items(offsets, index, second, FLOAT)

    def __len__(self):
        return len(self.chosen)

    def tokens_a_word(self, shares) -> float:
        """Tokens of the fit for each word and topic; topics count by their `shares` of alpha."""
        n_words = self.state.model.shape[0] - self.state.model.common_rows
        n_topics = 1 / float(np.square(shares).sum())  # K, where shares are equal
        return float(self.items.value.sum(dtype=np.float64)) / (n_topics * n_words)

    def part(self, first: int, last: int) -> Part:
        """Documents [first, last), or fewer at the end."""
        offsets = self.seen.offsets[first : last + 1]
        basis = _basis(
            self.state, self.items, self.chosen[first:last], offsets - offsets[0], self.n_topics
        )
        index, values = np.arange(len(basis)), slice(offsets[0], offsets[-1])
        seen, hidden = (
            as_items(offsets - offsets[0], index, half.value[values], FLOAT)
            for half in (self.seen, self.hidden)
        )
        return Part(basis, seen, hidden, self.n_jobs)


class Part(NamedTuple):
    """Some of these documents; each word of each has a row of its own."""

    basis: np.ndarray  # float32, (n_rows, n_topics): E beta
    seen: Items  # one half of the tokens
    hidden: Items  # the other half
    n_jobs: int

    @property
    def n_hidden(self) -> float:
        """Tokens of the other half."""
        return float(self.hidden.value.sum(dtype=np.float64))

    def log_likelihoods(self, alpha) -> np.ndarray:
        """Of one half of the tokens given the other, of each document; alpha is (n_topics,)."""
        alpha = np.asarray(alpha, FLOAT)
        gamma = infer_documents(
            self.basis, alpha, self.seen, digamma=True, tol=1e-3, n_sweeps=50, n_jobs=self.n_jobs
        )
        theta = gamma / gamma.sum(axis=1, keepdims=True)
        found = np.empty(len(gamma))
        score(self.basis, theta, self.hidden, 0, len(gamma), found)
        return found


def score_without_own(state, items, alpha, rng, n_jobs: int = 1) -> float:
    """Log-likelihood a token, by document completion of documents without their own counts.

    Parameters
    ----------
    state, items, rng, n_jobs
        As for :class:`WithoutOwn`.
    alpha : array, (n_topics,)
        Dirichlet prior of the topic proportions.
    """
    without = WithoutOwn(state, items, len(alpha), rng, n_jobs)
    part = without.part(0, len(without))
    return float(part.log_likelihoods(alpha).sum() / max(1.0, part.n_hidden))


def _basis(state, items, chosen, offsets, n_topics):
    """E beta of the words of some documents without the documents' own counts.

    Those of ``chosen[i]`` are the rows from ``offsets[i]`` on.
    """
    model = state.model
    (work,) = make_works(model, items, 1, 1)
    eta = np.broadcast_to(model.prior, model.shape)[:, :n_topics]
    n_words = model.shape[0] - model.common_rows
    basis = np.empty((offsets[-1], n_topics), FLOAT)
    with Deferred():  # numba swallows what a signal raises while it takes a function
        _compile(FLOAT)(
            compile_local(model.local, model.real), state.shared, state.scale, model.hyper, items,
            chosen, state.shared.totals.sum(axis=0), eta,
            eta[:n_words].sum(axis=0, dtype=np.float64), topic_tokens(state, n_topics),
            model.common_rows, work, offsets, basis,
        )  # fmt: skip
    return basis


def _leave_own_out(
    local, shared, scale, hyper, items, chosen, totals, eta, smooth, tokens, common_rows, work,
    offsets, basis,
):  # fmt: skip
    """Local steps of one document each, and what is left of the topics without it."""
    n_topics = basis.shape[1]
    sizes, own = np.empty(n_topics), np.empty(work.totals.shape[0], work.stats.dtype)
    for i in range(chosen.shape[0]):
        copy(totals, work.totals)
        n = local(shared, scale, hyper, items, chosen[i : i + 1], work)
        copy(tokens, sizes)
        for j in range(n - common_rows):
            read_statistics(work, j, own)
            for k in range(n_topics):
                sizes[k] -= own[k]
        for j in range(n - common_rows):
            word, row = work.touched[j], basis[offsets[i] + j]
            read_statistics(work, j, own)
            for k in range(n_topics):
                count = scale * np.float64(shared.rows[word, k]) - own[k]
                row[k] = (eta[word, k] + max(count, 0.0)) / (smooth[k] + max(sizes[k], 0.0))
        work.stats[:n] = 0


@cache
def _compile(real: np.dtype):
    """Compile :func:`_leave_own_out`; the typed signature as in :mod:`dpsvi.training.loop`."""
    shared_t, items_t, work_t, local_t = abi(real)
    vector, eta_t = types.float64[::1], types.Array(from_dtype(real), 2, "A", readonly=True)
    signature = types.void(
        types.FunctionType(local_t), shared_t, types.float64, vector, items_t, types.int32[::1],
        vector, eta_t, vector, vector, types.int64, work_t, types.int64[::1],
        types.Array(from_dtype(real), 2, "C"),
    )  # fmt: skip
    return numba.njit(signature, **FLAGS)(_leave_own_out)


def topic_tokens(state, n_topics):
    """Expected tokens of every topic, float64, (n_topics,)."""
    n_words = state.model.shape[0] - state.model.common_rows
    totals = state.shared.totals.sum(axis=0) - state.shared.rows[n_words:].sum(axis=0)
    return state.scale * totals[:n_topics].astype(np.float64)
