"""The bound against Monte Carlo, the steps against its natural gradient."""

import math

import numpy as np
from reference.hmm import all_paths, expected_log
from reference.mixtures import draw_component
from scipy import special, stats
from tools.hmm_cases import KINDS, ascent, chains, reference, set_posterior

from dpsvi.kernels.jit import compile_local
from dpsvi.training.task import make_works


def draw_log_ratio(hmm, prior, n, rng, X):
    """ln p - ln q of n draws of parameters from q, and the logs of what they give a sequence."""
    ratio = np.zeros(n)

    def draw_dirichlet(alpha, alpha0):
        nonlocal ratio
        drawn = rng.dirichlet(alpha, n)
        ratio += stats.dirichlet(alpha0).logpdf(drawn.T) - stats.dirichlet(alpha).logpdf(drawn.T)
        return np.log(drawn)

    a0 = np.broadcast_to(prior["startprob_prior"], 3)
    b0 = np.broadcast_to(prior["transmat_prior"], (3, 3))
    start = draw_dirichlet(hmm.startprob_posterior_, a0)
    trans = [draw_dirichlet(*row) for row in zip(hmm.transmat_posterior_, b0, strict=True)]
    emit = []
    if hmm.emission == "categorical":
        alpha0 = np.full(4, prior["emissionprob_prior"])
        for alpha in hmm.emissionprob_posterior_:
            emit.append(draw_dirichlet(alpha, alpha0)[:, X[:, 0]])
    else:
        names = "beta_prior", "means_prior", "scale_prior", "dof_prior"
        p = tuple(np.array(prior[name]) for name in names)
        for q in zip(
            hmm.beta_posterior_, hmm.means_, hmm.scale_posterior_, hmm.dof_posterior_, strict=True
        ):
            mu, precision, log_ratio = draw_component(q, p, n, rng)
            ratio -= log_ratio
            if precision.ndim == 2:
                precision = precision[:, :, None] * np.eye(2)
            x = X - mu[:, None]
            square = np.einsum("nti,nij,ntj->nt", x, precision, x)
            log_det = np.linalg.slogdet(precision)[1][:, None]
            emit.append((log_det - square) / 2 - math.log(2 * math.pi))
    return ratio, start, np.stack(trans, 1), np.stack(emit, 2)


@KINDS
def test_the_bound_is_its_definition(rng, prior):
    """E_q[ln p(X, z, theta) - ln q(z) q(theta)] over all paths and drawn parameters."""
    X, lengths, _ = chains(rng, [5], "emission" in prior)
    prior = {**prior, "startprob_prior": 1.5, "transmat_prior": 1.5}  # few draws near 0
    hmm = ascent(max_iter=8, n_features=4, **prior).fit(X)
    slow = reference(X, lengths, prior)
    set_posterior(slow, hmm)
    log_emit = slow.emissions.expected_log_density(X)
    _, weight = all_paths(expected_log(slow.start), expected_log(slow.trans), log_emit)
    log_q = weight - special.logsumexp(weight)
    terms, evidence = [], []
    for ratio, *logs in zip(*draw_log_ratio(hmm, prior, 1000, rng, X), strict=True):
        log_p = all_paths(*logs)[1]
        terms.append(np.exp(log_q) @ (log_p - log_q) + ratio)
        evidence.append(special.logsumexp(log_p) + ratio)
    error = np.std(terms) / math.sqrt(len(terms))
    assert error < 0.03 * abs(hmm.lower_bound_)
    assert abs(np.mean(terms) - hmm.lower_bound_) < 4 * error
    assert hmm.lower_bound_ < special.logsumexp(evidence) - math.log(len(evidence))


def mean_statistics(hmm, vector):
    """E[t] under q with these natural parameters: what they are dual to."""
    start, trans, rows = vector[:3], vector[3:12].reshape(3, 3), vector[12:].reshape(3, -1)
    parts = [expected_log(start), expected_log(trans).ravel()]
    for row in rows:
        parts.append([0.0])  # visits are no parameter
        if hmm.emission == "categorical":
            parts.append(expected_log(row[1:]))
            continue
        kappa, nu, m = row[1], row[-1], row[2:4] / row[1]
        if hmm.covariance_type == "diag":
            w = 1 / (row[4:6] - kappa * m * m)
            log_det = 2 * special.digamma(nu / 2) + np.log(2 * w).sum()
            square = -(2 / kappa + nu * (m * m * w).sum()) / 2
            parts += [[square], nu * w * m, -nu * w / 2, [log_det / 2]]
            continue
        psi = row[4:8].reshape(2, 2)
        w = np.linalg.inv((psi + psi.T) / 2 - kappa * np.outer(m, m))
        log_det = special.digamma((nu - np.arange(2)) / 2).sum() + math.log(4)
        log_det += np.linalg.slogdet(w)[1]
        parts += [[-(2 / kappa + nu * m @ w @ m) / 2], nu * w @ m, (-nu * w / 2).ravel()]
        parts.append([log_det / 2])
    return np.concatenate(parts)


@KINDS
def test_steps_follow_the_natural_gradient(rng, prior):
    """dL/dlam = F (lam-hat - lam), F the Fisher matrix dE[t]/dlam, by finite differences."""
    X, lengths, _ = chains(rng, [20, 30], "emission" in prior)
    hmm = ascent(max_iter=2, n_features=4, **prior).fit(X, lengths=lengths)
    items, state = hmm._read(X, reset=False, lengths=lengths), hmm._state
    state.renormalise()
    (work,) = make_works(state.model, items, 2, 1)
    work.totals[:] = state.shared.totals.sum(axis=0)
    local = compile_local(state.model.local, state.model.real)
    local(state.shared, 1.0, state.model.hyper, items, np.arange(2, dtype=np.int32), work)
    rows, lam = state.shared.rows.copy(), state.natural()[0]
    direction = work.stats[0] - rows[0]
    assert np.abs(direction).max() > 0.01

    def bound(change):
        state.shared.rows[0] = rows[0] + change
        state.recount()
        return hmm._lower_bound(state, items, 2)

    step = 1e-4
    units = step * np.eye(len(lam))
    gradient = np.array([bound(e) - bound(-e) for e in units]) / (2 * step)
    small = 1e-4 * direction
    wanted = (mean_statistics(hmm, lam + small) - mean_statistics(hmm, lam - small)) / 2e-4
    np.testing.assert_allclose(gradient, wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max())
