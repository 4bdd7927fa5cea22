"""The hidden Markov model against enumeration, log-space numpy, Monte Carlo and hmmlearn."""

import math

import numpy as np
import pytest
from reference.hmm import (
    CategoricalEmissions,
    CoordinateAscent,
    GaussianEmissions,
    all_paths,
    enumerate_chain,
    expected_log,
    messages,
)
from scipy import special, stats

import dpsvi
from dpsvi import DPSVIHMM
from dpsvi.estimators.items import count, dense_items
from dpsvi.kernels.hyper import pack
from dpsvi.kernels.jit import compile_local
from dpsvi.models.hmm import markov
from dpsvi.models.hmm.local import options_of
from dpsvi.models.hmm.model import read
from dpsvi.models.hmm.sequences import offsets_of, windows
from dpsvi.training.task import make_works

MEANS = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
TRANS = np.array([[0.8, 0.1, 0.1], [0.05, 0.9, 0.05], [0.2, 0.2, 0.6]])
SYMBOLS = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.4, 0.4, 0.1], [0.05, 0.05, 0.1, 0.8]])


def chains(rng, lengths, symbols=False, spread=1.0):
    """X, lengths and states of sequences that begin in state 0 and follow TRANS."""
    z = []
    for length in lengths:
        z.append(0)
        for _ in range(length - 1):
            z.append(rng.choice(3, p=TRANS[z[-1]]))
    z = np.array(z)
    if symbols:
        return np.array([rng.choice(4, p=SYMBOLS[k]) for k in z])[:, None], np.array(lengths), z
    return spread * MEANS[z] + rng.normal(size=(len(z), 2)), np.array(lengths), z


def ascent(**params):
    """An estimator whose every pass is one step of coordinate ascent."""
    return DPSVIHMM(
        **{"n_components": 3, "batch_size": 10_000, "learning_rate": 1.0, "random_state": 0}
        | params
    )


GAUSSIAN = dict(
    startprob_prior=0.7, transmat_prior=1.0 + np.eye(3), means_prior=[0.5, 0.2], beta_prior=0.3,
    dof_prior=3.5, scale_prior=[[2.0, 0.3], [0.3, 1.0]],
)  # fmt: skip
CATEGORICAL = dict(
    emission="categorical", startprob_prior=[0.5, 1.0, 2.0], transmat_prior=0.4,
    emissionprob_prior=0.6,
)  # fmt: skip
DIAGONAL = GAUSSIAN | dict(covariance_type="diag", dof_prior=1.7, scale_prior=[2.0, 1.0])
KINDS = pytest.mark.parametrize(
    "prior", [GAUSSIAN, DIAGONAL, CATEGORICAL], ids=["gaussian", "diagonal", "categorical"]
)


def reference(X, lengths, prior):
    start = np.broadcast_to(np.array(prior["startprob_prior"], float), 3)
    trans = np.broadcast_to(np.array(prior["transmat_prior"], float), (3, 3))
    if "emission" in prior:
        emissions = CategoricalEmissions(np.full((3, 4), prior["emissionprob_prior"]))
    else:
        names = "beta_prior", "means_prior", "scale_prior", "dof_prior"
        emissions = GaussianEmissions(*(np.array(prior[name]) for name in names))
    return CoordinateAscent(X, lengths, start, trans, emissions)


def set_posterior(slow, hmm):
    """Give the reference the posterior of an estimator."""
    slow.start, slow.trans = hmm.startprob_posterior_, hmm.transmat_posterior_
    if hmm.emission == "categorical":
        slow.emissions.q = hmm.emissionprob_posterior_
    else:
        slow.emissions.q = list(
            zip(
                hmm.beta_posterior_, hmm.means_, hmm.scale_posterior_, hmm.dof_posterior_,
                strict=True,
            )
        )  # fmt: skip


def assert_posterior(hmm, slow, tol=1e-8):
    np.testing.assert_allclose(hmm.startprob_posterior_, slow.start, rtol=tol)
    np.testing.assert_allclose(hmm.transmat_posterior_, slow.trans, rtol=tol)
    if hmm.emission == "categorical":
        np.testing.assert_allclose(hmm.emissionprob_posterior_, slow.emissions.q, rtol=tol)
        return
    found = zip(
        hmm.beta_posterior_, hmm.means_, hmm.scale_posterior_, hmm.dof_posterior_, strict=True
    )
    for state, wanted in zip(found, slow.emissions.q, strict=True):
        for value, want in zip(state, wanted, strict=True):
            np.testing.assert_allclose(value, want, rtol=tol, atol=tol * np.abs(want).max())


# --- the recursions ---------------------------------------------------------------------------


def run_messages(start, trans, emit):
    """(ln Z, gamma, sum of xi) by the kernels."""
    shift = emit.max(axis=1)
    weight, posterior = np.exp(emit - shift[:, None]), np.empty_like(emit)
    factor, pairs = np.empty(len(emit)), np.zeros_like(trans)
    markov.forward(start, trans, weight, posterior, factor)
    markov.smooth(trans, weight, posterior, 0, len(emit), pairs)
    return np.log(factor).sum() + shift.sum(), posterior, pairs * trans


@pytest.mark.parametrize("case", ["mild", "sharp", "impossible"])
@pytest.mark.parametrize(("n_steps", "n_states"), [(1, 1), (1, 4), (2, 3), (6, 1), (7, 3), (5, 4)])
def test_recursions_equal_enumeration(rng, n_steps, n_states, case):
    """Of weights that do not sum to 1; sharp ones differ by hundreds of nats."""
    spread = 1.0 if case == "mild" else 200.0
    start, trans = rng.gamma(1.0, size=n_states), rng.gamma(1.0, size=(n_states, n_states))
    if case == "impossible":
        trans[:, 1:] = markov.LEAST
    emit = spread * rng.normal(size=(n_steps, n_states))
    logs = np.log(start), np.log(trans), emit
    log_z, gamma, pairs, best, value = enumerate_chain(*logs)
    got_z, got_gamma, got_pairs = run_messages(start, trans, emit)
    assert got_z == pytest.approx(log_z, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(got_gamma, gamma, atol=1e-12)
    np.testing.assert_allclose(got_pairs, pairs, atol=1e-12)
    path = np.empty(n_steps, np.int64)
    assert markov.viterbi(*logs[:2], emit.copy(), path) == pytest.approx(value, rel=1e-12)
    assert path.tolist() == best.tolist()


def test_log_space_messages_equal_enumeration(rng):
    """The reference for longer chains itself."""
    logs = rng.normal(size=3), rng.normal(size=(3, 3)), rng.normal(size=(6, 3))
    log_z, gamma, pairs, _, _ = enumerate_chain(*logs)
    got = messages(*logs)
    assert got[0] == pytest.approx(log_z)
    np.testing.assert_allclose(got[1], gamma, atol=1e-12)
    np.testing.assert_allclose(got[2].sum(axis=0), pairs, atol=1e-12)


def test_long_chains_do_not_underflow(rng):
    """Z is below the least number of float64 by far; posteriors keep their sum."""
    start, trans = rng.dirichlet(np.ones(4)), rng.dirichlet(0.1 * np.ones(4), size=4)
    trans = np.maximum(0.9 * trans, markov.LEAST)
    emit = rng.normal(size=(5000, 4)) - 50
    log_z, gamma, pairs = run_messages(start, trans, emit)
    want_z, want_gamma, want_xi = messages(np.log(start), np.log(trans), emit)
    assert log_z == pytest.approx(want_z, rel=1e-11)
    np.testing.assert_allclose(gamma, want_gamma, atol=1e-9)
    np.testing.assert_allclose(pairs, want_xi.sum(axis=0), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(gamma.sum(axis=1), 1, rtol=1e-10)


# --- the local step ---------------------------------------------------------------------------


@KINDS
@pytest.mark.parametrize(
    "lengths", [[1], [2, 1, 1], [63, 65, 64], [300, 1, 270], [20] * 40], ids=str
)
def test_kernel_equals_slow_reference(rng, prior, lengths):
    """Sequences that share a chunk of 256 steps, fill it, or are longer."""
    X, lengths, _ = chains(rng, lengths, "emission" in prior)
    hmm = ascent(max_iter=0, n_features=4, **prior).fit(X, lengths=lengths)
    slow = reference(X, lengths, prior)
    set_posterior(slow, hmm)
    statistics, bounds = slow.local_step()
    items = hmm._read(X, reset=False, lengths=lengths)
    np.testing.assert_allclose(hmm._bounds(hmm._state, items), bounds, rtol=1e-9)
    np.testing.assert_allclose(hmm.predict_proba(X, lengths), statistics[0], atol=1e-9)
    slow.global_step(*statistics)
    hmm.set_params(max_iter=1, warm_start=True).fit(X, lengths=lengths)
    assert_posterior(hmm, slow)


@KINDS
def test_full_batches_are_coordinate_ascent(rng, prior):
    X, lengths, _ = chains(rng, [30, 1, 50, 20], "emission" in prior)
    hmm = ascent(max_iter=0, n_features=4, warm_start=True, **prior).fit(X, lengths=lengths)
    slow, bounds = reference(X, lengths, prior), [hmm.lower_bound_]
    set_posterior(slow, hmm)
    for _ in range(25):
        slow.global_step(*slow.local_step()[0])
        hmm.set_params(max_iter=1).fit(X, lengths=lengths)
        assert_posterior(hmm, slow, 1e-7)
        bounds.append(hmm.lower_bound_)
    rises = np.diff(bounds)
    assert (rises > -1e-9 * abs(bounds[-1])).all() and rises.sum() > 5


def test_data_far_from_zero(rng):
    X, lengths, _ = chains(rng, [40, 60])
    near = ascent(max_iter=10).fit(X, lengths=lengths)
    far = ascent(max_iter=10).fit(X + 1e6, lengths=lengths)
    np.testing.assert_allclose(far.means_ - 1e6, near.means_, atol=1e-6)
    np.testing.assert_allclose(far.covars_, near.covars_, rtol=1e-6, atol=1e-6)
    assert far.lower_bound_ == pytest.approx(near.lower_bound_, rel=1e-7)


# --- bound and gradient -----------------------------------------------------------------------


def draw_log_ratio(hmm, prior, rng, X):
    """ln p - ln q of parameters drawn from q, and the logs of what they give a sequence."""
    start, trans = rng.dirichlet(hmm.startprob_posterior_), []
    a0 = np.broadcast_to(prior["startprob_prior"], 3)
    b0 = np.broadcast_to(prior["transmat_prior"], (3, 3))
    ratio = log_dirichlet(start, a0) - log_dirichlet(start, hmm.startprob_posterior_)
    for alpha, alpha0 in zip(hmm.transmat_posterior_, b0, strict=True):
        trans.append(rng.dirichlet(alpha))
        ratio += log_dirichlet(trans[-1], alpha0) - log_dirichlet(trans[-1], alpha)
    emit = []
    if hmm.emission == "categorical":
        for alpha in hmm.emissionprob_posterior_:
            p = rng.dirichlet(alpha)
            ratio += log_dirichlet(p, np.full(4, prior["emissionprob_prior"]))
            ratio -= log_dirichlet(p, alpha)
            emit.append(np.log(p)[X[:, 0]])
    else:
        names = "beta_prior", "means_prior", "scale_prior", "dof_prior"
        p = tuple(np.array(prior[name]) for name in names)
        for q in zip(
            hmm.beta_posterior_, hmm.means_, hmm.scale_posterior_, hmm.dof_posterior_, strict=True
        ):
            precision = draw_precision(q[3], q[2], rng)
            mu = rng.multivariate_normal(q[1], np.linalg.inv(q[0] * precision))
            for sign, (kappa, m, scale, nu) in ((1, p), (-1, q)):
                normal = stats.multivariate_normal(m, np.linalg.inv(kappa * precision))
                ratio += sign * (normal.logpdf(mu) + log_precision(precision, nu, scale))
            emit.append(stats.multivariate_normal(mu, np.linalg.inv(precision)).logpdf(X))
    return ratio, np.log(start), np.log(trans), np.array(emit).T


def draw_precision(nu, scale, rng):
    if scale.ndim == 1:
        return np.diag(rng.gamma(nu / 2, 2 / scale))
    return stats.wishart(float(nu), np.linalg.inv(scale)).rvs(random_state=rng)


def log_precision(precision, nu, scale):
    if scale.ndim == 1:
        return stats.gamma(nu / 2, scale=2 / scale).logpdf(np.diag(precision)).sum()
    return stats.wishart(float(nu), np.linalg.inv(scale)).logpdf(precision)


def log_dirichlet(p, alpha):
    return stats.dirichlet(alpha).logpdf(p)


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
    for _ in range(1000):
        ratio, *logs = draw_log_ratio(hmm, prior, rng, X)
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


# --- windows of long sequences ----------------------------------------------------------------


def run_local(hmm, items):
    """Statistics of all items, less the ends of what no item begins."""
    model = hmm._state.model
    hyper = pack(options_of(model.hyper)._replace(marked=items.marked))
    model = hmm._model(model.shape, model.prior, hyper)
    batch = np.arange(count(items.items), dtype=np.int32)
    (work,) = make_works(model, items.items, len(batch), 1)
    work.totals[:] = hmm._state.shared.totals.sum(axis=0)
    local = compile_local(model.local, model.real)
    local(hmm._state.shared, hmm._state.scale, hyper, items.items, batch, work)
    return work.stats[0].copy()


class Whole:
    marked = 0

    def __init__(self, X, offsets):
        self.items = dense_items(X, offsets)


class Windows:
    marked = 1

    def __init__(self, X, offsets, window, buffer):
        self.items = windows(X, offsets, window, buffer)


@pytest.fixture
def fitted(rng):
    """A model, and sequences of which some are long."""
    X, lengths, _ = chains(rng, [700, 3, 150, 1])
    hmm = DPSVIHMM(3, random_state=0, max_iter=3, batch_size=2).fit(X, lengths=lengths)
    return hmm, X, np.concatenate([[0], np.cumsum(lengths)])


def test_windows_with_long_buffers_count_everything_once(fitted):
    """So the mean of lam-hat over windows is lam-hat of the chains: nothing to scale apart."""
    hmm, X, offsets = fitted
    whole = run_local(hmm, Whole(X, offsets))
    for window in (1, 7, 100, 10_000):
        parts = Windows(X, offsets, window, 1000)
        assert count(parts.items) == sum(-(-n // window) for n in np.diff(offsets))
        np.testing.assert_allclose(run_local(hmm, parts), whole, rtol=1e-9, atol=1e-8)
        bounds, _ = hmm._infer(hmm._state, parts.items, 1)
        assert bounds.sum() == pytest.approx(hmm.score(X, lengths=np.diff(offsets)), rel=1e-10)


def test_short_buffers_cost_what_the_chain_remembers(fitted):
    hmm, X, offsets = fitted
    whole = run_local(hmm, Whole(X, offsets))
    errors = [
        np.abs(run_local(hmm, Windows(X, offsets, 20, buffer)) - whole).max() / whole.max()
        for buffer in (1, 5, 20)
    ]
    assert 1e-2 > errors[0] > 3 * errors[1] > 0 and errors[2] < 1e-6


def test_windows_are_even_and_stay_in_their_sequence(rng):
    X = rng.normal(size=(24, 2))
    items = windows(X, np.array([0, 11, 12, 24]), window=5, buffer=2)
    rows = [part.reshape(-1, 3) for part in np.split(items.value, items.offsets[1:-1])]
    inside = [int((part[:, 0] % 2).sum()) for part in rows]
    assert inside == [3, 4, 4, 1, 4, 4, 4]
    assert [len(part) for part in rows] == [5, 8, 6, 1, 6, 8, 6]
    assert [int((part[:, 0] >= 2).sum()) for part in rows] == [1, 0, 0, 1, 1, 0, 0]
    np.testing.assert_array_equal(np.concatenate([p[p[:, 0] % 2 == 1, 1:] for p in rows]), X)


def test_windows_of_one_long_chain_find_what_the_whole_finds():
    X, _, z = chains(np.random.default_rng(1), [12_000])
    held_out, _, _ = chains(np.random.default_rng(2), [2000])
    whole = ascent(max_iter=40).fit(X)
    parts = DPSVIHMM(3, window=100, buffer=20, batch_size=8, max_iter=5, random_state=0).fit(X)
    order = np.argmin(np.linalg.norm(parts.means_[:, None] - whole.means_, axis=2), axis=0)
    np.testing.assert_allclose(parts.means_[order], whole.means_, atol=0.05)
    np.testing.assert_allclose(parts.transmat_[order][:, order], whole.transmat_, atol=0.02)
    assert parts.score(held_out) == pytest.approx(whole.score(held_out), rel=2e-3)
    assert parts.lower_bound_ == pytest.approx(whole.lower_bound_, rel=2e-3)


# --- hmmlearn ---------------------------------------------------------------------------------


def test_fixed_point_of_hmmlearn(rng):
    vhmm = pytest.importorskip("hmmlearn.vhmm")
    X, lengths, _ = chains(rng, [100, 80, 120], spread=2.0)
    scale = np.array(GAUSSIAN["scale_prior"])
    theirs = vhmm.VariationalGaussianHMM(
        3, startprob_prior=0.7, transmat_prior=GAUSSIAN["transmat_prior"],
        means_prior=np.tile(GAUSSIAN["means_prior"], (3, 1)), beta_prior=np.full(3, 0.3),
        dof_prior=np.full(3, 3.5), scale_prior=np.tile(scale, (3, 1, 1)), tol=1e-9, n_iter=3000,
        random_state=0,
    ).fit(X, lengths)  # fmt: skip
    ours = ascent(max_iter=200, **GAUSSIAN).fit(X, lengths=lengths)
    order = np.argsort(ours.means_ @ [1, 2])[np.argsort(np.argsort(theirs.means_ @ [1, 2]))]
    for name in (
        "startprob_", "means_", "covars_", "startprob_posterior_", "beta_posterior_",
        "dof_posterior_", "scale_posterior_",
    ):  # fmt: skip
        found, wanted = getattr(ours, name)[order], getattr(theirs, name)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5, err_msg=name)
    transitions = ours.transmat_posterior_[order][:, order]
    np.testing.assert_allclose(transitions, theirs.transmat_posterior_, rtol=1e-4)
    # Theirs leaves out (2 pi)^(D/2) of the emissions.
    constant = len(X) * math.log(2 * math.pi)
    assert ours.lower_bound_ + constant == pytest.approx(theirs.monitor_.history[-1], rel=1e-6)
    assert (order[theirs.predict(X, lengths)] == ours.predict(X, lengths)).mean() > 0.99


# --- the estimator ----------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_known_gaussian_truth_is_recovered(n_jobs):
    X, lengths, z = chains(np.random.default_rng(3), [50] * 200)
    hmm = DPSVIHMM(3, n_jobs=n_jobs, batch_size=5, max_iter=10, random_state=0)
    hmm.fit(X, lengths=lengths)
    order = np.linalg.norm(MEANS[:, None] - hmm.means_, axis=2).argmin(axis=1)
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose(hmm.means_[order], MEANS, atol=0.1)
    np.testing.assert_allclose(hmm.covars_[order], np.tile(np.eye(2), (3, 1, 1)), atol=0.1)
    np.testing.assert_allclose(hmm.transmat_[order][:, order], TRANS, atol=0.03)
    assert hmm.startprob_[order[0]] > 0.97
    assert (hmm.predict(X, lengths) == order[z]).mean() > 0.97
    assert (hmm.set_params(algorithm="map").predict(X, lengths) == order[z]).mean() > 0.97


def test_known_categorical_truth_is_recovered():
    X, lengths, z = chains(np.random.default_rng(4), [100] * 300, symbols=True)
    hmm = DPSVIHMM(
        3, emission="categorical", batch_size=10, learning_rate=0.2, max_iter=30, random_state=0
    ).fit(X, lengths=lengths)
    order = np.linalg.norm(SYMBOLS[:, None] - hmm.emissionprob_, axis=2).argmin(axis=1)
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose(hmm.emissionprob_[order], SYMBOLS, atol=0.08)
    np.testing.assert_allclose(hmm.transmat_[order][:, order], TRANS, atol=0.1)
    assert (hmm.predict(X, lengths) == order[z]).mean() > 0.7


@KINDS
def test_decoding_is_the_best_of_all_paths(rng, prior):
    X, lengths, _ = chains(rng, [6, 5], "emission" in prior, spread=0.3)
    hmm = ascent(max_iter=3, n_features=4, **prior).fit(X, lengths=lengths)
    weights = read(hmm._state).weights
    slow = reference(X, lengths, prior)
    set_posterior(slow, hmm)
    emit = slow.emissions.expected_log_density(X)
    found = [
        enumerate_chain(np.log(weights.start), np.log(weights.trans), part)
        for part in np.split(emit, [6])
    ]
    value, path = hmm.decode(X, lengths)
    assert path.tolist() == [k for result in found for k in result[3]]
    assert value == pytest.approx(sum(result[4] for result in found))
    gamma = np.concatenate([result[1] for result in found])
    value, path = hmm.decode(X, lengths, algorithm="map")
    assert path.tolist() == gamma.argmax(axis=1).tolist()
    assert value == pytest.approx(gamma.max(axis=1).sum())
    assert hmm.score(X, lengths=lengths) == pytest.approx(sum(result[0] for result in found))


def test_scores_of_steps_add_up(rng):
    X, lengths, _ = chains(rng, [6, 5, 9])
    hmm = DPSVIHMM(3, random_state=0).fit(X, lengths=lengths)
    steps = hmm.score_samples(X, lengths)
    assert steps.shape == (20,)
    assert steps.sum() == pytest.approx(hmm.score(X, lengths=lengths))
    assert steps[:6].sum() == pytest.approx(hmm.score(X[:6]))


@pytest.mark.parametrize("emission", ["gaussian", "categorical"])
def test_samples_follow_the_model(emission):
    X, lengths, _ = chains(np.random.default_rng(5), [40] * 20, emission == "categorical")
    hmm = DPSVIHMM(3, emission=emission, random_state=0).fit(X, lengths=lengths)
    drawn, states = hmm.sample(30_000)
    assert drawn.shape == (30_000, X.shape[1]) and states.shape == (30_000,)
    pairs = np.zeros((3, 3))
    np.add.at(pairs, (states[:-1], states[1:]), 1)
    np.testing.assert_allclose(pairs / pairs.sum(axis=1, keepdims=True), hmm.transmat_, atol=0.02)
    for k in range(3):
        here = drawn[states == k]
        if emission == "gaussian":
            np.testing.assert_allclose(here.mean(axis=0), hmm.means_[k], atol=0.1)
            np.testing.assert_allclose(np.cov(here.T), hmm.covars_[k], atol=0.15)
        else:
            shares = np.bincount(here[:, 0].astype(int), minlength=4) / len(here)
            np.testing.assert_allclose(shares, hmm.emissionprob_[k], atol=0.02)
    assert hmm.sample(3, currstate=2)[1][0] == 2
    with pytest.raises(ValueError, match="currstate must be an integer >= 0 and <= 2"):
        hmm.sample(3, currstate=3)


@pytest.mark.parametrize("symbols", [False, True])
def test_parameters_set_after_the_fit_change_no_answer(rng, symbols):
    X, lengths, _ = chains(rng, [40, 60], symbols=symbols)
    emission = "categorical" if symbols else "gaussian"
    hmm = DPSVIHMM(3, emission=emission, random_state=0, max_iter=2).fit(X, lengths=lengths)

    def answers():
        return [
            *hmm.decode(X, lengths), *hmm.sample(20), hmm.predict_proba(X, lengths),
            hmm.score(X, lengths=lengths),
        ]  # fmt: skip

    before = answers()
    others = dict(
        n_components=[2, 5], emission=["gaussian", "categorical"], covariance_type=["diag"],
        window=[3],
    )  # fmt: skip
    for size, values in others.items():
        now = getattr(hmm, size)
        for value in values:
            hmm.set_params(**{size: value})
            assert all(map(np.array_equal, answers(), before)), size
        hmm.set_params(**{size: now})


def test_symbols_survive_saving(rng, tmp_path):
    X, lengths, _ = chains(rng, [40, 60], symbols=True)
    hmm = DPSVIHMM(3, emission="categorical", n_features=6, random_state=0)
    hmm.fit(X, lengths=lengths).save(tmp_path)
    loaded = dpsvi.load(tmp_path)
    assert loaded.n_symbols_ == 6 and loaded.emissionprob_.shape == (3, 6)
    np.testing.assert_allclose(loaded.predict_proba(X, lengths), hmm.predict_proba(X, lengths))


def test_windowed_models_survive_saving(rng, tmp_path):
    X, _, _ = chains(rng, [400])
    hmm = DPSVIHMM(3, window=50, max_iter=3, random_state=0).fit(X)
    hmm.save(tmp_path)
    again = dpsvi.load(tmp_path).partial_fit(X)
    assert again.lower_bound_ == pytest.approx(hmm.partial_fit(X).lower_bound_)


@pytest.mark.parametrize(
    "lengths",
    [[3, 4], [10, 0], [11, -1], [5.0, 5.0], [[5, 5]], [], 10, [4, 6, 1], [2**63 - 1] * 2 + [12]],
    ids=str,
)
def test_bad_lengths_are_refused(rng, lengths):
    with pytest.raises(ValueError, match="lengths must be integers >= 1 that sum to the 10 rows"):
        DPSVIHMM().fit(rng.normal(size=(10, 2)), lengths=lengths)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.uint64])
def test_lengths_of_any_integers(kind):
    offsets = offsets_of(np.array([100, 100, 100], kind), 300)
    assert offsets.tolist() == [0, 100, 200, 300] and offsets.dtype == np.int64


def test_lengths_in_the_place_of_y_are_noticed(rng):
    """As hmmlearn's users would write it; ignoring them would fit another model."""
    X, lengths, _ = chains(rng, [10, 20])
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match="give the lengths of sequences by name"):
            getattr(DPSVIHMM(), method)(X, lengths)
    with pytest.raises(ValueError, match="give the lengths of sequences by name"):
        DPSVIHMM().fit(X).score(X, lengths)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[0], [1.5]], "integers >= 0 and < 3, got 1.5"),
        ([[0], [-1]], "got -1"),
        ([[3]], "got 3; n_features says how many"),
        ([[0, 1]], "2 features"),
    ],
)
def test_bad_symbols_are_refused(X, message):
    hmm = DPSVIHMM(2, emission="categorical", random_state=0).fit([[0], [1], [2], [1]])
    with pytest.raises(ValueError, match=message):
        hmm.predict(X)


def test_windows_of_another_length(rng):
    X, lengths, _ = chains(rng, [100, 200])
    hmm = DPSVIHMM(2, window=50, warm_start=True, random_state=0, max_iter=1)
    hmm.fit(X, lengths=lengths)
    steps = hmm.n_batch_iter_
    hmm.set_params(window=10, batch_size=10).fit(X, lengths=lengths)
    assert hmm.n_batch_iter_ == steps + 3


def test_sampling_asks_no_other_rank(rng):
    X, lengths, _ = chains(rng, [50])
    hmm = DPSVIHMM(2, random_state=0, max_iter=1).fit(X, lengths=lengths)
    expected = hmm.sample(5)
    hmm.engine = "mpi"
    assert all(np.array_equal(a, b) for a, b in zip(hmm.sample(5), expected, strict=True))


def test_sizes_must_stay(rng):
    X, lengths, _ = chains(rng, [10, 20])
    hmm = DPSVIHMM(2, random_state=0).partial_fit(X, lengths=lengths)
    with pytest.raises(ValueError, match="window was None when the fit started, got 5"):
        hmm.set_params(window=5).partial_fit(X, lengths=lengths)
