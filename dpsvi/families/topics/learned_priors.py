"""Priors of a topic model, learned from the topics: alpha when a fit has ended, eta also before.

While a fit runs, topics and alpha lead each other astray: an alpha that lets documents have more
topics makes the topics alike, and topics that are alike ask for such an alpha.  On short documents
that has no end.  So topics are fitted with a fixed alpha, and it is learned once.

Eta does no such thing as long as it stands for few of a topic's tokens.  It depends on the corpus
more than on the number of topics, and topics that are fitted with the one that is learned predict
new documents better (`python -m experiments.learned_eta`).  So it is learned after every pass.
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
ETA_RANGE = 16.0  # a learned eta is within this factor of the one that a fit begins with
SMALL = 0.1  # so many of the topics that are in use are small
MOST_OF_SMALL = 1 / 3  # of the tokens of these may the priors of all words stand for
MOST_OF_MEAN = 1 / 30  # of the tokens of a topic on average; so much does no harm
ETA_WORDS = 500  # and twice as many at most; they say enough about one number


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


def learned_eta(state, n_topics: int, first: float) -> float:
    """Eta of the topics by Minka's fixed point, from the one in use.

    Topics that are alike, for they are young or there are none to be found, look as if they were
    drawn with a large eta, which makes them more alike.  And where some topics are much larger
    than others, they ask for an eta by which the small ones lose all that they have.  So an eta
    above `first` stands for `MOST_OF_SMALL` of the tokens of small topics at most, or for
    `MOST_OF_MEAN` of those of the mean topic.  Topics of less than a token are not in use.

    Parameters
    ----------
    state, n_topics
        The topics.
    first : float
        Eta of a fit that nothing is known of; the answer is `ETA_RANGE` times more or less at most.
    """
    n_words = state.model.shape[0] - state.model.common_rows
    every = max(1, n_words // ETA_WORDS)
    sample = state.scale * state.shared.rows[:n_words:every, :n_topics].astype(np.float64)
    totals = topic_tokens(state, n_topics)
    in_use = totals[totals > 1]
    small = np.quantile(in_use, SMALL) if len(in_use) else 0.0
    most = max(MOST_OF_SMALL * small, MOST_OF_MEAN * totals.mean()) / n_words
    most = min(ETA_RANGE * first, max(first, most))
    bounds = first / ETA_RANGE, most
    return fixed_point_eta(float(state.model.prior.flat[0]), sample, totals, n_words, bounds)


def fixed_point_eta(eta, sample, totals, n_words, bounds=(1e-6, 1e6), n_steps: int = 2):
    """A few of Minka's (2000) fixed-point steps for a symmetric Dirichlet, given expected counts.

    Counts are random; see :func:`dpsvi.kernels.fold.count_evidence`.

    Parameters
    ----------
    eta : float
    sample : float64 array, (n_sampled_words, n_topics)
        Expected counts of some of the words.
    totals : float64 array, (n_topics,)
        Expected counts of all words.
    n_words : int
    bounds : pair of float
        The answer is between them.
    n_steps : int
    """
    sample = np.maximum(sample, 1e-6)
    present = -np.expm1(-sample)
    for _ in range(n_steps):
        above = (present * (psi(sample / present + eta) - psi(eta))).sum()
        below = (psi(totals + n_words * eta) - psi(n_words * eta)).sum()
        eta = float(np.clip(eta * above / (len(sample) * below), *bounds))
    return eta
