"""The recursions along a chain against enumeration and log-space numpy."""

import numpy as np
import pytest
from reference.hmm import (
    enumerate_chain,
    messages,
)

from dpsvi.models.hmm import markov


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


def test_unlikely_states_have_no_subnormal_posteriors(rng):
    """Arithmetic with them takes many times as long."""
    start, trans = np.ones(3) / 3, rng.dirichlet(np.ones(3), size=3)
    emit = -rng.uniform(0, 800, size=(2000, 3))
    log_z, gamma, _ = run_messages(start, trans, emit)
    assert np.all((gamma == 0) | (gamma > markov.LEAST))
    assert np.any(gamma == 0)
    want_z, want_gamma, _ = messages(np.log(start), np.log(trans), emit)
    assert log_z == pytest.approx(want_z, rel=1e-11)
    np.testing.assert_allclose(gamma, want_gamma, atol=1e-12)


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
