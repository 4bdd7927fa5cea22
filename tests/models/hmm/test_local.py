"""The local step against a slow reference, and coordinate ascent by its steps."""

import numpy as np
import pytest
from tools.hmm_cases import KINDS, ascent, assert_posterior, chains, reference, set_posterior


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
