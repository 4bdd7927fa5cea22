"""LDA as a :class:`dpsvi.base.Model`: rows are words, columns topics."""

from __future__ import annotations

from functools import partial

import numpy as np

from dpsvi.base import Model
from dpsvi.families.topics.matrix import FLOAT, first_rows, padded
from dpsvi.kernels.collapsed import scratch
from dpsvi.kernels.fold import Options, options_of
from dpsvi.kernels.hyper import pack
from dpsvi.kernels.responsibilities import keeping
from dpsvi.models.lda import kept, local_steps

_STEPS = {name: local_steps.get(name) for name in local_steps.names()}
LOCAL_STEPS = {name: step.local for name, step in _STEPS.items()}


def make_model(
    n_words,
    n_topics,
    alpha,
    eta,
    *,
    local_step,
    n_sweeps,
    tol,
    warm_documents=False,
) -> Model:
    """The model of a corpus of `n_words` words.

    Parameters
    ----------
    n_words, n_topics : int
    alpha : float or array, (n_topics,)
        Dirichlet prior of the topic proportions, > 0.
    eta : float or array, (n_words,) or (n_topics, n_words)
        Dirichlet prior of the words of a topic, > 0.
    local_step : {"mean_field", "collapsed", "sparse"}
    n_sweeps : int
        Most iterations over a document in one visit.
    tol : float
        Change of gamma, as a share of the document's tokens, that ends them.
    warm_documents : bool
        Start a document from the gamma of its last visit.
    """
    columns = padded(n_topics)
    alphas = np.zeros(columns)
    alphas[:n_topics] = alpha
    word_prior = np.zeros((0, columns))
    if np.ndim(eta):
        word_prior = np.zeros((n_words, columns))
        word_prior[:, :n_topics] = np.broadcast_to(eta, (n_topics, n_words)).T
    options = Options(
        alphas, np.min(eta), tol, n_sweeps, word_prior.sum(axis=0)[: columns * np.ndim(eta)],
        word_prior,
    )  # fmt: skip
    step = _STEPS[local_step]
    model = Model(
        name="lda",
        shape=(n_words, columns),
        prior=word_prior.astype(FLOAT) if np.ndim(eta) else np.full(columns, eta, FLOAT),
        hyper=pack(options),
        init=partial(first_rows, n_words, n_topics),
        local=step.local,
        scratch=partial(scratch, columns),
        item_memory=columns if warm_documents else 0,
        nonnegative=True,
        used_columns=n_topics,
    )
    return model._replace(**step.fields(n_words, columns)) if hasattr(step, "fields") else model


def with_responsibilities(model: Model) -> Model:
    """The same model with the local step that keeps every token's responsibilities."""
    return keeping(model, kept.local, options_of)
