"""Priors of a topic model, learned from the topics when a fit has ended.

While a fit runs, topics and priors lead each other astray: a prior that lets documents have more
topics makes the topics alike, and topics that are alike ask for such a prior.  On short documents
that has no end.  So topics are fitted with fixed priors, and the priors are learned once.
"""

from __future__ import annotations

import numpy as np
from scipy.special import psi

from dpsvi.families.topics.without_own import WithoutOwn, topic_tokens

FEW_DOCUMENTS = 200  # that are asked first
STEP = 2.0  # between the concentrations that are compared
RANGE = 64.0  # the one learned is within this factor of the one that was used
SURE = 2.0  # standard errors by which a concentration must be worse to be out of the question
NOISE = 0.01  # nats a token; beyond a concentration that is worse by so much no other is looked at
MANY_TOKENS = 5.0  # for each word and topic: half way between topics of few tokens and of many
ETA_RANGE = 4.0  # a learned eta is within this factor of the one that was used


def learned_concentration(state, items, shares, used, rng, n_jobs=1) -> float:
    """Sum of alpha that predicts documents best from topics without their own counts.

    With a document's own counts in the topics, each looks as if it had a topic of its own, and the
    answer would be far too small.  The other documents' topics still know of it, a little, so that
    the best is too small, by the factor :func:`too_small`.

    A few documents tell which concentrations are out of the question; more are asked, twice as many
    each time, until they tell one from all others.

    Parameters
    ----------
    state, items, rng, n_jobs
        As for :class:`dpsvi.families.topics.without_own.WithoutOwn`.
    shares : array, (n_topics,)
        alpha over its sum.
    used : float
        Sum of alpha while the topics were fitted; the answer is `RANGE` times more or less at most.
    """
    shares = np.asarray(shares, np.float64)
    without, last = WithoutOwn(state, items, len(shares), rng, n_jobs), FEW_DOCUMENTS
    part = without.part(0, last)
    if len(shares) == 1 or not part.n_hidden:
        return used
    known = _first_round(part, shares, used)
    while len(known := _left(known)) > 1 and last < len(without):
        part, last = without.part(last, 2 * last), 2 * last
        known = {
            total: np.append(found, part.log_likelihoods(total * shares))
            for total, found in known.items()
        }
    best = max(known, key=lambda total: known[total].sum())
    return min(too_small(without.tokens_a_word(shares)) * best, used * RANGE)


def too_small(tokens_a_word: float) -> float:
    """How many times too small an alpha is that is best for the documents of a fit.

    A document is in the topics by way of others, which it led there.  Topics that rest on few
    tokens know most of it: the factor falls from 2 to 1 the more tokens there are for each word and
    topic.  `python -m experiments.learned_alpha` compares it with the best for new documents.
    """
    return 1 + 1 / (1 + tokens_a_word / MANY_TOKENS)


def _first_round(part, shares, used) -> dict[float, np.ndarray]:
    """Log-likelihoods of the documents by each concentration that may be the best."""
    known = {used: part.log_likelihoods(used * shares)}
    for factor in (STEP, 1 / STEP):
        total = used * factor
        while 1 / RANGE <= total / used <= RANGE:
            known[total] = part.log_likelihoods(total * shares)
            if _behind(known[total], _best(known)) > NOISE * part.n_hidden:
                break
            total *= factor
    return known


def _best(known) -> np.ndarray:
    return max(known.values(), key=np.sum)


def _behind(mine, best) -> float:
    """By how much the sum of `mine` is below that of `best`, at least, for all that chance does."""
    less = best - mine
    return float(less.sum() - SURE * np.sqrt(len(less)) * less.std())


def _left(known) -> dict[float, np.ndarray]:
    """The concentrations that are not clearly worse than the best."""
    best = _best(known)
    return {total: found for total, found in known.items() if _behind(found, best) <= 0}


def learned_eta(state, n_topics) -> float:
    """Eta of the topics by Minka's fixed point, within a factor `ETA_RANGE` of the one used."""
    eta = float(state.model.prior.flat[0])
    n_words = state.model.shape[0] - state.model.common_rows
    every = max(1, n_words // 2000)  # 2,000 words say enough about one number
    sample = state.scale * state.shared.rows[:n_words:every, :n_topics].astype(np.float64)
    found = fixed_point_eta(eta, sample, topic_tokens(state, n_topics), n_words)
    return float(np.clip(found, eta / ETA_RANGE, eta * ETA_RANGE))


def fixed_point_eta(eta, sample, totals, n_words, n_steps: int = 5):
    """A few of Minka's (2000) fixed-point steps for a symmetric Dirichlet, given expected counts.

    Counts are random; see :func:`dpsvi.kernels.fold.count_evidence`.

    Parameters
    ----------
    eta : float
    sample : float64 array, (n_sampled_words, n_topics)
        Expected counts of some of the words.
    totals : float64 array, (n_topics,)
        Expected counts of all words.
    n_words, n_steps : int
    """
    sample = np.maximum(sample, 1e-6)
    present = -np.expm1(-sample)
    for _ in range(n_steps):
        above = (present * (psi(sample / present + eta) - psi(eta))).sum()
        below = (psi(totals + n_words * eta) - psi(n_words * eta)).sum()
        eta = float(np.clip(eta * above / (len(sample) * below), 1e-4, 10.0))
    return eta
