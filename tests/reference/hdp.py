"""The equations of the HDP again, slowly: float64, one document at a time, lam is (topics, words).

Nothing here comes from the package under test.
"""

import numpy as np
from scipy.special import betaln, digamma, gammaln, logsumexp

from reference.lda import collapsed_step, expected_evidence, expected_log, normalised


def stick_parameters(tables, omega):
    """Topics in the order of the sticks, and a, b of their Beta variables."""
    order = sorted(range(len(tables)), key=lambda i: -tables[i])
    a = np.array([1 + tables[i] for i in order])
    b = np.array([omega + sum(tables[j] for j in order[i + 1 :]) for i in range(len(order))])
    return order, a, b


def mean_weights(tables, omega):
    """E sigma_i(V) of every topic, as shares of what the T topics have."""
    order, a, b = stick_parameters(tables, omega)
    weights = np.empty(len(tables))
    for i, topic in enumerate(order):
        weights[topic] = a[i] / (a[i] + b[i]) * np.prod(b[:i] / (a + b)[:i])
    return normalised(weights)


def log_sticks(a, b):
    """E ln sigma_i for sticks with these parameters, in their order."""
    left = digamma(b) - digamma(a + b)
    return digamma(a) - digamma(a + b) + np.concatenate([[0], left[:-1].cumsum()])


def mean_log_weights(tables, omega):
    """E ln sigma_i(V) of every topic."""
    order, a, b = stick_parameters(tables, omega)
    logs = np.empty(len(tables))
    logs[order] = log_sticks(a, b)
    return logs


# --- collapsed ---------------------------------------------------------------------------------


def collapsed_document(ids, counts, lam, alphas, n_sweeps, tol):
    """Expected counts c phi, (n, T), and expected tables, (T,), of one document."""
    even = alphas + counts.sum() / len(lam)
    gamma, assigned = collapsed_step(
        ids, counts, lam, alphas, n_sweeps, tol * counts.sum(), even
    )
    mean = np.maximum(gamma - alphas, 1e-6)
    return assigned, alphas * expected_evidence(mean, alphas)


# --- mean field --------------------------------------------------------------------------------


def softmax(x):
    return np.exp(x - logsumexp(x, axis=-1, keepdims=True))


def first_zeta(ids, counts, lam, truncation):
    """One topic a stick: the largest of the document by five EM steps for its proportions.

    A document has no more sticks than tokens.
    """
    truncation = min(truncation, int(np.ceil(counts.sum())))
    logs = expected_log(lam)[:, ids].T
    theta = np.full(len(lam), 1 / len(lam))
    for _ in range(5):
        theta = counts @ normalised(theta * np.exp(logs - logs.max(axis=1, keepdims=True)))
    return np.eye(len(lam))[np.argsort(-theta, kind="stable")[:truncation]]


def stick_gammas(usage, alpha):
    """Beta parameters of a document's sticks."""
    return 1 + usage, alpha + np.array([usage[t + 1 :].sum() for t in range(len(usage))])


def mean_field_document(
    ids, counts, lam, log_weights, alpha, zeta, n_sweeps, tol=0.0, log_stick=0.0, least=0.5
):
    """zeta (K_d, T), phi (n, K_d) and the tokens of each stick, (K_d,), of one document.

    Between sweeps sticks with less than `least` tokens are taken away, but for the largest.
    """
    logs = expected_log(lam)[:, ids].T
    usage = np.zeros(len(zeta))
    for sweep in range(n_sweeps):
        if sweep:
            busy = usage >= min(least, usage.max())
            zeta, usage = zeta[busy], usage[busy]
            log_stick = log_sticks(*stick_gammas(usage, alpha))
        phi = softmax(log_stick + logs @ zeta.T)
        last, usage = usage, counts @ phi
        log_stick = log_sticks(*stick_gammas(usage, alpha))
        zeta = softmax(log_weights + (counts[:, None] * phi).T @ logs)
        if sweep and np.abs(usage - last).sum() < tol * counts.sum():
            break
    return zeta, phi, usage


def document_elbo(ids, counts, lam, log_weights, alpha, zeta, phi, usage):
    """Terms of one document in the ELBO, at the best sticks for these phi."""
    a, b = stick_gammas(usage, alpha)
    logs = expected_log(lam)[:, ids].T
    weighted = counts[:, None] * phi
    with np.errstate(divide="ignore", invalid="ignore"):
        zeta_entropy = -np.nansum(zeta * np.log(zeta))
        phi_entropy = -np.nansum(weighted * np.log(phi))
    return (
        (zeta * log_weights).sum() + zeta_entropy
        + (weighted * log_sticks(a, b)).sum() + phi_entropy
        - beta_kl(a, b, 1, alpha).sum() + (weighted * (logs @ zeta.T)).sum()
    )  # fmt: skip


def beta_kl(a, b, a0, b0):
    """KL of Beta(a, b) from Beta(a0, b0)."""
    both = digamma(a + b)
    means = (a - a0) * (digamma(a) - both) + (b - b0) * (digamma(b) - both)
    return betaln(a0, b0) - betaln(a, b) + means


def global_elbo(lam, tables, eta, omega):
    """Minus the divergence of topics and sticks from their priors."""
    _, a, b = stick_parameters(tables, omega)
    total, n_words = -beta_kl(a, b, 1, omega).sum(), lam.shape[1]
    for row in lam:
        log_beta = expected_log(row)
        total += gammaln(n_words * eta) - n_words * gammaln(eta) + (eta - 1) * log_beta.sum()
        total -= gammaln(row.sum()) - gammaln(row).sum() + (row - 1) @ log_beta
    return total
