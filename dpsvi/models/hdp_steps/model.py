"""The HDP as a :class:`dpsvi.base.Model`: the rows of the words, then one row of tables."""

from __future__ import annotations

from functools import partial

import numpy as np

from dpsvi.base import Model
from dpsvi.kernels.fold import ETA, LEARN_ETA, SWEEPS, TOL
from dpsvi.models.hdp_steps import collapsed, mean_field
from dpsvi.models.hdp_steps.sticks import ALPHA, LEARN_CONCENTRATION, OMEGA, TRUNCATION
from dpsvi.topics import FLOAT, better_eta, first_rows, padded

LOCAL_STEPS = {"mean_field": mean_field.local, "collapsed": collapsed.local}
_FIRST_REFINE = 50  # steps
FIRST_TABLES = 100.0  # of every topic: enough for sticks that are all of about the same weight


def make_model(
    n_words, n_topics, alpha, omega, eta, *, local_step, truncation, n_sweeps, tol,
    learn_alpha=False, learn_eta=False,
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
        Mean change of the expected counts that ends them.
    learn_alpha, learn_eta : bool
        Adapt these while fitting.
    """
    columns = padded(n_topics)
    marks, options = np.zeros(columns), np.zeros(9)
    marks[:n_topics] = 1
    options[[ETA, TOL, SWEEPS, ALPHA, OMEGA]] = eta, tol, n_sweeps, alpha, omega
    options[TRUNCATION] = min(truncation, n_topics)
    options[[LEARN_CONCENTRATION, LEARN_ETA]] = learn_alpha, learn_eta
    prior = np.full((n_words + 1, 1), eta, FLOAT)
    prior[-1] = 0
    return Model(
        name="hdp",
        shape=(n_words + 1, columns),
        prior=prior,
        hyper=np.concatenate([marks, options]),
        init=partial(_first_rows, n_words, n_topics),
        local=LOCAL_STEPS[local_step],
        scratch=partial(collapsed.scratch, columns),
        refine=refine if learn_alpha or learn_eta else None,
        common_rows=1,
    )


def _first_rows(n_words, n_topics, rng):
    rows = first_rows(n_words, n_topics, rng)
    tables = np.zeros((1, rows.shape[1]), FLOAT)
    tables[0, :n_topics] = FIRST_TABLES
    return np.vstack([rows, tables])


def refine(hyper, state, tally) -> None:
    """Learn alpha_0 and eta from what the local steps saw since the last call; `hyper` in place.

    Not before the topics differ, and half of the way (in logarithms) each time, since the documents
    of one interval are a sample.  The tables of documents of n_d tokens are ``sum_d alpha_0
    (psi(alpha_0 + n_d) - psi(alpha_0))`` if alpha_0 is right: a fixed point of Minka's (2000).
    """
    columns = state.model.shape[1]
    if state.step < _FIRST_REFINE:
        return
    if hyper[columns + LEARN_CONCENTRATION] and tally[columns] > 0:
        old = hyper[columns + ALPHA]
        new = tally[:columns].sum() / tally[columns]
        hyper[columns + ALPHA] = np.clip(np.sqrt(old * new), 1e-3, 1e3)
    if hyper[columns + LEARN_ETA]:
        n_words, n_topics = state.model.shape[0] - 1, int(hyper[:columns].sum())
        eta = better_eta(hyper[columns + ETA], state, n_words, n_topics)
        hyper[columns + ETA] = state.model.prior[:n_words] = eta
