"""The equations again, slowly: float64, one document and one token type at a time.

Written from the paper (equation numbers in brackets) and the sources it cites, and in the paper's
layout: lam has shape (topics, words).  Nothing here comes from the package under test, except the
container that corpora are handed over in and the ledger of steps.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.special import gammaln, logsumexp, psi

from dpsvi.training.ledger import Ledger, StepRange


class FixedPasses(Ledger):
    """Every pass in the same given order, where a test must know it."""

    def __init__(self, order, batch_size, n_passes):
        super().__init__(len(order), batch_size, n_passes, seed=0)
        self.order = np.asarray(order, np.int32)

    def items(self, work):
        return self.order[work.first * self.batch_size : work.last * self.batch_size]

    @staticmethod
    def batch(passes, epoch, step):
        """Items of one step of any ledger."""
        return passes.items(StepRange(epoch, 0, step, step + 1, 0))


def expected_log(a):
    """E log of a Dirichlet variable, along the last axis."""
    a = np.asarray(a, np.float64)
    return psi(a) - psi(a.sum(axis=-1, keepdims=True))


def normalised(weights):
    """Rows that sum to 1."""
    return weights / weights.sum(axis=-1, keepdims=True)


# --- local steps -------------------------------------------------------------------------------


def mean_field_phi(gamma, lam, ids):
    """phi of every word type of a document, (n, K): exp(E log theta + E log beta), (44)."""
    log_phi = expected_log(gamma)[None, :] + expected_log(lam)[:, ids].T
    return normalised(np.exp(log_phi - log_phi.max(axis=1, keepdims=True)))


def collapsed_phi(gamma, lam, ids):
    """The zeroth-order form (Asuncion et al. 2009): means instead of exp(E log)."""
    return normalised(gamma[None, :] * normalised(lam)[:, ids].T)


PHI = {"mean_field": mean_field_phi, "collapsed": collapsed_phi}


def infer(kind, ids, counts, lam, alpha, n_sweeps, tol):
    """gamma of a document that the topics have not seen; `tol` is a mean change.

    The collapsed step's EM is squared: after two of three sweeps it goes on along both, by formulas
    (7) and (S3) of Varadhan and Roland (2008), 16 times as far at most.  In the first sweep of
    mean field all topics weigh the same.
    """
    gamma = alpha + counts.sum() / len(lam)
    path = []
    for sweep in range(1, n_sweeps + 1):
        path = [*path, gamma] if sweep % 3 != 1 else [gamma]
        first = kind == "mean_field" and sweep == 1
        weight = np.ones(len(lam)) if first else gamma
        assigned = counts[:, None] * PHI[kind](weight, lam, ids)
        last, gamma = gamma, alpha + assigned.sum(axis=0)
        if np.mean(np.abs(gamma - last)) < tol and not first:
            break
        if kind == "collapsed" and sweep % 3 == 2 and sweep < n_sweeps:
            r, v = last - path[0], (gamma - last) - (last - path[0])
            step = -np.linalg.norm(r) / np.linalg.norm(v)
            if step < -1:
                step = max(step, -16.0)
                gamma = np.maximum(path[0] - 2 * step * r + step**2 * v, alpha)
    return gamma


def local_step(kind, ids, counts, lam, alpha, n_sweeps=10, tol=0.0, gamma=None):
    """gamma and the expected counts c phi, (n, K), of one document; from an even start.

    Iterations end when gamma changes by less than `tol` times the tokens of the document.
    """
    alpha = np.broadcast_to(alpha, len(lam)).astype(np.float64)
    if gamma is None:
        gamma = alpha + counts.sum() / len(lam)
    explain = {
        "mean_field": mean_field_step, "collapsed": collapsed_step, "sparse": sparse_step,
    }[kind]  # fmt: skip
    return explain(ids, counts, lam, alpha, n_sweeps, tol * counts.sum(), gamma)


def mean_field_step(ids, counts, lam, alpha, n_sweeps, tol, gamma):
    """Coordinate ascent on phi and gamma, (44)."""
    assigned = np.zeros((len(ids), len(lam)))
    for _ in range(n_sweeps):
        assigned = counts[:, None] * mean_field_phi(gamma, lam, ids)
        last, gamma = gamma, alpha + assigned.sum(axis=0)
        if np.abs(gamma - last).sum() < tol:
            break
    return gamma, assigned


def unexpected_repetition(ids, counts, lam):
    """Share of the pairs of equal tokens of a document beyond those expected of its words."""
    pairs = (counts * np.maximum(counts - 1, 0)).sum()
    share = lam[:, ids].sum(axis=0) / lam.sum()
    expected = (counts * max(counts.sum() - 1, 0) * share).sum()
    return max(0.0, 1 - expected / pairs) if pairs else 1.0


def taken_less(counts, lam, alpha, repeats, most=2.0, many=3.0, short=10.0):
    """How many tokens of a document each topic gets less, (K,): `most` at most on average.

    Where few words repeat for the topic's sake, it is as the topic's alpha is.
    """
    n_topics = alpha.sum() ** 2 / (alpha**2).sum()
    tokens = lam.sum() / (lam.shape[1] * n_topics)  # for each word and topic
    less = most * tokens / (tokens + many) * max(0.0, 1 - short / counts.sum())
    few = (1 - repeats) ** 1.5
    return less * (1 - few + few * n_topics * alpha / alpha.sum())


def collapsed_step(
    ids, counts, lam, alpha, n_sweeps, tol, gamma, own=2.0, every=3, prior=None, repeats=None,
    less=None,
):  # fmt: skip
    """CVB0 without a word's own count in its document, `own` times.

    With b = lam / sum lam, phi = (gamma - own c phi) b / norm is phi = gamma b / (norm + own c b).
    In place of c stands its square root, but to the share `repeats` only beyond the first token:
    as many pairs of equal tokens as the words' shares in all topics do not lead one to expect.
    And gamma is gamma^2 / (gamma + less) there, that of topics that have little is small.
    The norm is that of the last sweep, and is put in again every few sweeps.  For one word no more
    is left out than half of the document, `prior` included, the sum of alpha by default.
    """
    prior = alpha.sum() if prior is None else prior
    if repeats is None:
        repeats = unexpected_repetition(ids, counts, lam)
    less = taken_less(counts, lam, alpha, repeats) if less is None else less
    b = normalised(lam)[:, ids].T
    block, norm, assigned = b, np.ones(len(ids)), np.zeros((len(ids), len(lam)))
    counted = np.minimum(counts, 1) + repeats * (np.sqrt(np.maximum(counts, 1)) - 1)
    document = 0.0
    for sweep in range(n_sweeps):
        if sweep % every == 1:
            left_out = np.minimum(own * counted, document / 2)  # tokens
            block = b / (1 + (left_out / norm)[:, None] * b)
        weight = gamma**2 / (gamma + less)
        document = counts.sum() + prior - (gamma - weight).sum()
        phi = weight * block
        norm = phi.sum(axis=1)
        assigned = (counts / norm)[:, None] * phi
        last, gamma = gamma, alpha + assigned.sum(axis=0)
        if sweep > 0 and np.abs(gamma - last).sum() < tol:
            break
    return gamma, assigned


def most_votes(ids, counts, lam, listed, few):
    """The topics with the most votes of a document's words, each of which has some on its list."""
    b = normalised(lam)[:, ids].T
    shares, votes = b / b.sum(axis=1, keepdims=True), np.zeros(len(lam))
    for count, share in zip(counts, shares, strict=True):
        best = np.argsort(share)[-listed:]
        votes[best] += count * share[best]
    return [k for k in np.argsort(votes)[::-1][:few] if votes[k] > 0]


def sparse_step(ids, counts, lam, alpha, n_sweeps, tol, gamma, listed=8, few=32):
    """The collapsed step with the topics that have the most votes, from an even start."""
    topics = most_votes(ids, counts, lam, listed, few)
    repeats = unexpected_repetition(ids, counts, lam)
    gamma, assigned = alpha.copy(), np.zeros((len(ids), len(lam)))
    gamma[topics], assigned[:, topics] = collapsed_step(
        ids, counts, lam[topics], alpha[topics], n_sweeps, tol,
        alpha[topics] + counts.sum() / len(topics), prior=alpha.sum(),
        repeats=repeats, less=taken_less(counts, lam, alpha, repeats)[topics],
    )  # fmt: skip
    return gamma, assigned


def statistics(kind, documents, lam, alpha, **options):
    """sum_d c_dw phi_dwk as (K, V), and gamma of every document."""
    stats, gammas = np.zeros_like(lam, dtype=np.float64), []
    for ids, counts in documents:
        gamma, assigned = local_step(kind, ids, counts, lam, alpha, **options)
        np.add.at(stats.T, ids, assigned)
        gammas.append(gamma)
    return stats, np.array(gammas)


@dataclass
class Kept:
    """CVB0 with every responsibility kept and a token's own count left out (Asuncion 2009, 20).

    It is left out of its document `times` times, once in the paper; the document's prior stays.

    The counts of a batch of documents are brought into lam together, after the batch.
    """

    documents: list
    lam: np.ndarray  # (K, V)
    alpha: float
    eta: float  # what a word has in a topic without any token
    first_sweeps: int
    times: float = 1
    phi: dict = field(default_factory=dict)

    def visit(self, batch):
        """Sweep over the documents of one batch."""
        change = np.zeros_like(self.lam)
        for d in batch:
            ids, counts = self.documents[d]
            first = d not in self.phi
            kept = self.phi.setdefault(d, np.zeros((len(ids), len(self.lam))))
            before = counts[:, None] * kept
            gamma = self.alpha + before.sum(axis=0)
            for _ in range(self.first_sweeps if first else 1):
                for i, (w, count) in enumerate(zip(ids, counts, strict=True)):
                    own = kept[i].copy()
                    others = np.maximum(self.lam[:, w] - own, self.eta)
                    others = others / (self.lam.sum(axis=1) - own)
                    document = np.maximum(gamma - self.times * own, self.alpha)
                    kept[i] = normalised(document * others)
                    gamma = gamma + count * (kept[i] - own)
            np.add.at(change.T, ids, counts[:, None] * kept - before)
        self.lam = self.lam + change


# --- global step and bound ---------------------------------------------------------------------


def natural_step(lam, prior, stats, rate, scale):
    """lam <- (1 - rho) lam + rho (prior + N/S stats), (52)."""
    return (1 - rate) * lam + rate * (prior + scale * stats)


def svi(kind, documents, lam, alpha, eta, batches, rates, n_items=None, **options):
    """Dense serial SVI: one natural step for each batch of document numbers."""
    n_items = len(documents) if n_items is None else n_items
    for batch, rate in zip(batches, rates, strict=True):
        stats, _ = statistics(kind, [documents[d] for d in batch], lam, alpha, **options)
        lam = natural_step(lam, eta, stats, rate, n_items / len(batch))
    return lam


def document_bound(ids, counts, gamma, lam, alpha):
    """Terms of one document in the bound (43), at the best phi for this gamma."""
    alpha = np.broadcast_to(alpha, len(lam))
    log_theta = expected_log(gamma)
    words = counts @ logsumexp(expected_log(lam)[:, ids].T + log_theta, axis=1)
    prior = gammaln(alpha.sum()) - gammaln(alpha).sum()
    entropy = gammaln(gamma).sum() - gammaln(gamma.sum())
    # Of a topic that nothing has chosen log theta is about -1 / alpha: twice that would cancel.
    return words + prior + entropy + (alpha - gamma) @ log_theta


def elbo(documents, gammas, lam, alpha, eta):
    """The whole bound (43): documents, and minus the divergence of the topics from their prior."""
    total = sum(
        document_bound(ids, counts, gamma, lam, alpha)
        for (ids, counts), gamma in zip(documents, gammas, strict=True)
    )
    n_words = lam.shape[1]
    for row in lam:
        log_beta = expected_log(row)
        total += gammaln(n_words * eta) - n_words * gammaln(eta) + (eta - 1) * log_beta.sum()
        total -= gammaln(row.sum()) - gammaln(row).sum() + (row - 1) @ log_beta
    return total


def expected_evidence(mean, alpha):
    """E[psi(n + alpha) - psi(alpha)] for a count n of this mean (Teh et al. 2007, section 4).

    A count of nothing says nothing; given n > 0, the expectation is taken at the mean.
    """
    present = 1 - np.exp(-mean)
    return present * (psi(alpha + mean / present) - psi(alpha))


def log_evidence(ids, counts, topics, alpha, gamma, n_samples, rng):
    """log p(document | topics) by importance sampling from Dir(gamma), and its standard error."""
    theta = rng.dirichlet(gamma, n_samples)
    alpha = np.broadcast_to(alpha, len(topics))
    log_w = counts @ np.log(theta @ topics[:, ids]).T
    log_w += (
        gammaln(alpha.sum()) - gammaln(alpha).sum() - gammaln(gamma.sum()) + gammaln(gamma).sum()
    )
    log_w += np.log(theta) @ (alpha - gamma)
    top = log_w.max()
    weights = np.exp(log_w - top)
    return top + np.log(weights.mean()), weights.std() / weights.mean() / np.sqrt(n_samples)


def completion(first, second, topics, alpha):
    """Log-likelihood and number of the tokens in `second`, theta inferred by EM from `first`."""
    log_likelihood, n_tokens = [], []
    logs = np.log(topics)
    for (ids, seen), (_, hidden) in zip(first, second, strict=True):
        alphas = np.broadcast_to(alpha, len(topics)).astype(np.float64)
        gamma = alphas + seen.sum() / len(topics)
        for _ in range(100 if seen.sum() else 0):
            log_phi = psi(gamma)[None, :] + logs[:, ids].T
            phi = normalised(np.exp(log_phi - log_phi.max(axis=1, keepdims=True)))
            last, gamma = gamma, alphas + seen @ phi
            if np.mean(np.abs(gamma - last)) < 1e-3:
                break
        log_likelihood.append(hidden @ np.log(normalised(gamma) @ topics[:, ids]))
        n_tokens.append(hidden.sum())
    return np.array(log_likelihood), np.array(n_tokens)


# --- synthetic documents -----------------------------------------------------------------------


def documents_of(corpus):
    """Rows of a corpus as a list of (ids, counts)."""
    edges = zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True)
    return [(corpus.index[a:b], corpus.value[a:b].astype(np.float64)) for a, b in edges]


@dataclass
class TopicCorpus:
    """Documents drawn from LDA; each topic has Zipf-distributed words in an order of its own."""

    n_topics: int
    n_words: int
    n_documents: int
    n_tokens: int  # mean tokens of a document
    alpha: float
    seed: int

    def __post_init__(self):
        rng = np.random.default_rng(self.seed)
        zipf = 1.0 / np.arange(1, self.n_words + 1)
        self.topics = normalised(np.array([rng.permutation(zipf) for _ in range(self.n_topics)]))
        self.theta = rng.dirichlet(np.full(self.n_topics, self.alpha), self.n_documents)
        lengths = rng.poisson(self.n_tokens, self.n_documents)
        self.counts = rng.multinomial(lengths, self.theta @ self.topics)

    def corpus(self, vocabulary=None):
        """The counts in the container of the package."""
        from dpsvi.corpus import Corpus

        rows, columns = np.nonzero(self.counts)
        return Corpus(
            np.searchsorted(rows, np.arange(self.n_documents + 1)).astype(np.int64),
            columns.astype(np.int32),
            self.counts[rows, columns].astype(np.float32),
            self.n_words,
            vocabulary,
        )


# --- a local step --------------------------------------------------------------------------------


def count_visits(shared, scale, hyper, items, batch, work):
    """One unit for every visit of every item."""
    n = 0
    for d in batch:
        work.touched[n] = items.index[items.offsets[d]]
        for k in range(work.stats.shape[1]):
            work.stats[n, k] = 1
        n += 1
    return n
