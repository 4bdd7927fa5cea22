"""Latent Dirichlet allocation."""

from functools import partial

import numpy as np
import scipy.sparse
from reference import laws as known

from dpsvi import DPSVILDA
from members import Member

TOPICS = np.random.default_rng(7).dirichlet(np.full(40, 0.1), 4)


def data(rng, n):
    """Documents of 30 tokens, most of them of one or two topics."""
    counts = rng.multinomial(30, rng.dirichlet(np.full(4, 0.2), n) @ TOPICS)
    return {"X": scipy.sparse.csr_array(counts.astype(float))}


def degenerate(rng):
    counts = {
        "one document": [[3, 0, 2, 1]],
        "one token": [[0, 1, 0]],
        "one word": [[3], [1], [7]],
        "identical documents": [[2, 1, 0, 4]] * 20,
        "empty documents": [[0, 0, 0], [4, 1, 0], [0, 0, 0], [0, 2, 9]],
        "fractions": [[0.1, 0.7, 0.0], [0.0, 1e-3, 2.5]],
        "large counts": [[1e6, 1, 0], [0, 3, 1e5]],
    }
    return {name: {"X": np.array(rows, dtype=float)} for name, rows in counts.items()}


def laws(model, data):
    lam = model.components_.astype(float)
    return {"components": (lambda draws: draws["components"], known.dirichlet(lam))}


def means(model):
    lam = model.components_.astype(float)
    topics = lam / lam.sum(axis=1, keepdims=True)
    return {"components": (lambda draws: draws["components"], topics)}


MEMBER = Member(
    estimator=partial(DPSVILDA, n_components=4, random_state=0, batch_size=32, max_iter=20),
    data=data,
    degenerate=degenerate,
    answer=lambda model, data: model.transform(data["X"]),
    bad=[
        (dict(n_components=0), "n_components must be an integer >= 1"),
        (dict(doc_topic_prior=0.0), "doc_topic_prior must be > 0, 'auto' or None, got 0.0"),
        (dict(topic_word_prior=0), "topic_word_prior must be > 0, 'auto' or None, got 0"),
        (dict(local_step="gibbs"), "local_step must be one of"),
    ],
    others=dict(n_components=5),
    laws=laws,
    means=means,
    phases=(dict(keep_responsibilities=True), dict(doc_topic_prior=3.0, topic_word_prior=5.0)),
    monotone=False,
)
