"""LDA as a :class:`dpsvi.base.Model`: rows are words, columns topics; learned priors."""

from __future__ import annotations

from functools import partial

import numpy as np

from dpsvi.base import Model
from dpsvi.kernels.fold import ETA, LEARN_ALPHA, LEARN_ETA, SWEEPS, TOL
from dpsvi.models.lda_steps import collapsed, mean_field, responsibilities
from dpsvi.topics import FLOAT, better_eta, first_rows, padded

FIRST_SWEEPS = 3  # over a document whose tokens are not assigned yet
_FIRST_REFINE = 50  # steps
LOCAL_STEPS = {"mean_field": mean_field.local, "collapsed": collapsed.local}


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
    learn_alpha=False,
    learn_eta=False,
) -> Model:
    """The model of a corpus of `n_words` words.

    Parameters
    ----------
    n_words, n_topics : int
    alpha : float or array, (n_topics,)
        Dirichlet prior of the topic proportions, > 0.
    eta : float
        Dirichlet prior of the words of a topic, > 0.
    local_step : {"mean_field", "collapsed"}
    n_sweeps : int
        Most iterations over a document in one visit.
    tol : float
        Mean change of gamma that ends them.
    warm_documents : bool
        Start a document from the gamma of its last visit.
    learn_alpha, learn_eta : bool
        Adapt the priors while fitting.
    """
    columns = padded(n_topics)
    alphas = np.zeros(columns)
    alphas[:n_topics] = alpha
    options = np.zeros(5)
    options[[ETA, TOL, SWEEPS]] = eta, tol, n_sweeps
    options[[LEARN_ALPHA, LEARN_ETA]] = learn_alpha, learn_eta
    return Model(
        name="lda",
        shape=(n_words, columns),
        prior=np.full(columns, eta, FLOAT),
        hyper=np.concatenate([alphas, options]),
        init=partial(first_rows, n_words, n_topics),
        local=LOCAL_STEPS[local_step],
        scratch=partial(_scratch, columns),
        item_memory=columns if warm_documents else 0,
        refine=refine if learn_alpha or learn_eta else None,
    )


def with_responsibilities(model: Model) -> Model:
    """The same model with the local step that keeps every token's responsibilities."""
    columns = model.shape[1]
    hyper = model.hyper.copy()
    hyper[columns + SWEEPS] = min(hyper[columns + SWEEPS], FIRST_SWEEPS)
    return model._replace(
        hyper=hyper, local=responsibilities.local, item_memory=0, value_memory=columns,
        additive=True,
    )  # fmt: skip


def _scratch(columns, longest):
    return 4 * columns + longest * (columns + 1)


def refine(hyper, state, tally) -> None:
    """Learn the priors from what the local steps saw since the last call; `hyper` in place.

    Not before the topics differ: documents that all look alike would ask for an infinite alpha.
    Half of the way (in logarithms) is taken each time, since the documents of one interval are a
    sample.
    """
    columns = state.model.shape[1]
    if state.step < _FIRST_REFINE:
        return
    real = hyper[:columns] > 0
    n = tally[columns + 1]
    if hyper[columns + LEARN_ALPHA] and n > 0:
        old = hyper[:columns][real]
        if state.model.local is mean_field.local:
            new = newton_alpha(old, (tally[:columns][real] - tally[columns]) / n)
        else:
            new = old * tally[:columns][real] / tally[columns]
        hyper[:columns][real] = np.clip(np.sqrt(old * new), 1e-3, 10.0)
    if hyper[columns + LEARN_ETA]:
        hyper[columns + ETA] = better_eta(
            hyper[columns + ETA], state, state.model.shape[0], np.count_nonzero(real)
        )
        state.model.prior[:] = hyper[columns + ETA]


def newton_alpha(alpha, mean_log_theta, n_steps: int = 20):
    """Maximise ``ln Gamma(sum a) - sum ln Gamma(a_k) + sum (a_k - 1) mean_log_theta_k``.

    The linear-time Newton iteration of Minka (2000), as Hoffman et al. (2010) use it.
    """
    from scipy.special import polygamma, psi

    alpha = alpha.astype(np.float64).copy()
    if len(alpha) == 1:
        return alpha  # theta is 1 whatever alpha is
    for _ in range(n_steps):
        gradient = psi(alpha.sum()) - psi(alpha) + mean_log_theta
        diagonal, common = -polygamma(1, alpha), polygamma(1, alpha.sum())
        b = (gradient / diagonal).sum() / (1 / common + (1 / diagonal).sum())
        step = (gradient - b) / diagonal
        # Halve the step until every alpha stays positive.
        scale = 1.0
        while np.any(alpha - scale * step <= alpha * 1e-2):
            scale /= 2
        alpha -= scale * step
        if np.max(np.abs(scale * step) / alpha) < 1e-6:
            break
    return alpha
