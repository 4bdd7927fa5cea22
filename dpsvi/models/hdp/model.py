"""The HDP as a :class:`dpsvi.base.Model`: the rows of the words, then one row of tables."""

from __future__ import annotations

from functools import partial

import numpy as np

from dpsvi.base import Model
from dpsvi.families.topics.matrix import FLOAT, first_rows, padded
from dpsvi.kernels.collapsed import scratch
from dpsvi.kernels.hyper import pack
from dpsvi.kernels.responsibilities import keeping
from dpsvi.models.hdp import collapsed, kept, mean_field
from dpsvi.models.hdp.options import Options, options_of

LOCAL_STEPS = {"mean_field": mean_field.local, "collapsed": collapsed.local}
FIRST_TABLES = 100.0  # of every topic: enough for sticks that are all of about the same weight


def make_model(
    n_words, n_topics, alpha, omega, eta, *, local_step, truncation, n_sweeps, tol
) -> Model:  # fmt: skip
    """The model of a corpus of `n_words` words.

    Parameters
    ----------
    n_words, n_topics : int
        V and the truncation T.
    alpha, omega : float
        Concentrations of the documents, alpha_0, and of the corpus, > 0.
    eta : float
        Dirichlet prior of the words of a topic, > 0.
    local_step : {"mean_field", "collapsed"}
    truncation : int
        K_d, sticks of a document; mean field only.
    n_sweeps : int
        Most iterations over a document in one visit.
    tol : float
        Change of the expected counts, as a share of the document's tokens, that ends them.
    """
    columns = padded(n_topics)
    marks = np.zeros(columns)
    marks[:n_topics] = 1
    options = Options(marks, eta, tol, n_sweeps, alpha, omega, min(truncation, n_topics))
    prior = np.full((n_words + 1, 1), eta, FLOAT)
    prior[-1] = 0
    return Model(
        name="hdp",
        shape=(n_words + 1, columns),
        prior=prior,
        hyper=pack(options),
        init=partial(_first_rows, n_words, n_topics),
        local=LOCAL_STEPS[local_step],
        scratch=partial(scratch, columns),
        common_rows=1,
        nonnegative=True,
        used_columns=n_topics,
    )


def with_responsibilities(model: Model) -> Model:
    """The same model with the local step that keeps every token's responsibilities."""
    return keeping(model, kept.local, options_of)


def _first_rows(n_words, n_topics, rng):
    rows = first_rows(n_words, n_topics, rng)
    tables = np.zeros((1, rows.shape[1]), FLOAT)
    tables[0, :n_topics] = FIRST_TABLES
    return np.vstack([rows, tables])
