"""Gamma distributions against draws."""

import pytest
from reference.mixtures import assert_mean
from scipy import stats

from dpsvi.expfam import gamma


@pytest.mark.parametrize(
    ("q", "p"), [((3.0, 2.0), (0.7, 0.4)), ((2.5, 0.7), (1.2, 1.9)), ((0.9, 1.4), (2.3, 0.7))]
)
def test_divergence_is_the_mean_of_log_ratios(rng, q, p):
    x = rng.gamma(q[0], 1 / q[1], size=200_000)
    log_q, log_p = (stats.gamma(a, scale=1 / b).logpdf(x) for a, b in (q, p))
    assert_mean(log_q - log_p, gamma.kl(*q, *p))
    assert gamma.kl(*q, *q) == pytest.approx(0, abs=1e-12)
