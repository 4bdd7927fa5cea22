"""Weights of a Dirichlet process, and its concentration (Blei and Jordan 2006).

    V_k ~ Beta(1, omega),    pi_k = V_k prod_{j<k} (1 - V_j),    k = 1, 2, ...
    omega ~ Gamma(s_1, rate s_2), or given

q has no points beyond component K, and leaves the sticks there as the prior has them (Kurihara,
Welling and Vlassis 2007).  So the process itself is not truncated, the bound is one of its evidence
and rises with K; with V_K = 1 in q it would be one of a process that ends at K.

Given the expected counts N_k of the components, the optimal factors are

    q(V_k) = Beta(1 + N_k, E[omega] + sum_{j>k} N_j)
    q(omega) = Gamma(s_1 + K, s_2 - sum_{k<=K} E ln(1 - V_k))

and each needs the other.  Both hold for exactly one E[omega], see :func:`concentration`, so that
the counts, which are additive, are all that is kept: the factors are *functions* of them, always
at their joint optimum.  That optimum, less what does not depend on it, is a convex function A(N)
with the gradient E ln pi, and the gradient of the bound is ``A''(N) (N-hat - N)``: mixing counts is
a natural-gradient step in the metric A'' (the Fisher matrix where omega is given).

So is the order in which components have their sticks.  It is a parameter of q as well, for the
components' prior is the same for all.  Where omega is given, ``exp A(N)`` is proportional to
``prod_k Gamma(1 + N_k) / (omega + N_k + sum_{j>k} N_j)``, largest for decreasing counts: that is
the best order whatever omega is, and it is found anew in every step.  No component ever moves.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpsvi.expfam import gamma
from dpsvi.kernels.digamma import digamma, trigamma
from dpsvi.kernels.jit import copy, kernel


@kernel
def by_size(counts):
    """Numbers of the components in the order of their sticks: largest first, (K,)."""
    order = np.arange(counts.shape[0])
    for i in range(1, order.shape[0]):  # insertion: nearly sorted in all steps but the first
        k, j = order[i], i
        while j > 0 and counts[order[j - 1]] < counts[k]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = k
    return order


@kernel
def concentration(counts, tails, prior):
    """E[omega] for sticks with these counts and these counts behind them, (K,) each.

    Parameters
    ----------
    prior : float64 array
        (s_1, s_2), or (omega,) when it is given.

    Notes
    -----
    ``E[omega] = (s_1 + K) / (s_2 - sum E ln(1 - V_k))`` is ``g(E[omega]) = s_1 + K`` with

        g(w) = s_2 w + sum_k w (psi(1 + N_k + T_k + w) - psi(T_k + w)),    T_k = sum_{j>k} N_j

    of which every term increases and is concave: there is one solution, and Newton's steps from
    below it increase towards it.  We begin where an upper bound of g has that value: the terms with
    psi(T + w) = psi(T + 1 + w) - 1 / (T + w) are at most 1 + w (psi(1 + N + T) - psi(1 + T)).
    """
    if prior.shape[0] == 1:
        return prior[0]
    n_sticks = counts.shape[0]
    slope = prior[1]
    for k in range(n_sticks):
        slope += digamma(1.0 + counts[k] + tails[k]) - digamma(1.0 + tails[k])
    omega = prior[0] / slope
    for _ in range(100):
        missing, slope = prior[0] + n_sticks - prior[1] * omega, prior[1]
        for k in range(n_sticks):
            here = tails[k] + omega
            psi = digamma(1.0 + counts[k] + here) - digamma(here)
            missing -= omega * psi
            slope += psi + omega * (trigamma(1.0 + counts[k] + here) - trigamma(here))
        step = missing / slope
        omega += step
        if not step > 1e-13 * omega:
            break
    return omega


@kernel
def sticks(counts, prior, order, a, b):
    """Fill `order` and the Beta parameters `a` and `b`, (K,) each; returns E[omega]."""
    copy(by_size(counts), order)
    tail = 0.0
    for i in range(a.shape[0] - 1, -1, -1):
        # A difference of additions that others lost may be a little below 0.
        a[i], b[i] = max(counts[order[i]], 0.0), tail
        tail += a[i]
    omega = concentration(a, b, prior)
    for i in range(a.shape[0]):
        a[i] += 1.0
        b[i] += omega
    return omega


@kernel
def expected_log_weights(rows, prior):
    """Replace the counts, the first numbers of `rows`, (K, columns), by E ln pi_k."""
    n_components = rows.shape[0]
    counts, order = rows[:, 0].copy(), np.empty(n_components, np.int64)
    a, b = np.empty(n_components), np.empty(n_components)
    sticks(counts, prior, order, a, b)
    before = 0.0  # sum of E ln(1 - V_j)
    for i in range(n_components):
        both = digamma(a[i] + b[i])
        rows[order[i], 0] = before + digamma(a[i]) - both
        before += digamma(b[i]) - both


def draw_weights(order, a, b, n_samples, rng):
    """Draws of pi, (n_samples, K); what is missing to a sum of 1 lies beyond component K.

    Parameters
    ----------
    order : int array, (K,)
        Whose stick it is.
    a, b : float arrays, (K,)
        Of the sticks, ``Beta(a, b)``.
    n_samples : int
    rng : numpy.random.Generator
    """
    share = rng.beta(a, b, (n_samples, len(a)))
    left = np.cumprod(1 - share[:, :-1], axis=1)
    weights = np.empty(share.shape)
    weights[:, order] = share
    weights[:, order[1:]] *= left
    return weights


class Sticks(NamedTuple):
    """Q(V, omega)."""

    order: np.ndarray  # int, (K,): whose stick it is
    a: np.ndarray  # (K,)
    b: np.ndarray  # (K,)
    concentration: float  # E[omega]
    prior: np.ndarray  # (s_1, s_2) or (omega,)

    @classmethod
    def of(cls, counts, prior) -> Sticks:
        """The optimum for the counts N_k, (K,)."""
        order, a, b = np.empty(len(counts), np.int64), *np.empty((2, len(counts)))
        omega = sticks(np.ascontiguousarray(counts), prior, order, a, b)
        return cls(order, a, b, omega, prior)

    @property
    def weights(self):
        """E[pi], (K,), as shares of what the K components have."""
        share = self.a / (self.a + self.b)
        weights = np.empty(len(share))
        weights[self.order] = share * np.cumprod(np.append(1.0, 1.0 - share[:-1]))
        return weights / weights.sum()

    def draw(self, n_samples, rng) -> dict:
        """Draws of the weights, (n_samples, K), and of omega, (n_samples,), unless it is given."""
        weights = draw_weights(self.order, self.a, self.b, n_samples, rng)
        if len(self.prior) == 1:
            return {"weights": weights}
        shape, rate = self._concentration()
        return {"weights": weights, "concentration": rng.gamma(shape, 1 / rate, n_samples)}

    def _concentration(self):
        """Shape and rate of q(omega)."""
        shape = self.prior[0] + len(self.a)
        return shape, shape / self.concentration

    def bound(self) -> float:
        """A(N): the most that weights contribute to the ELBO of these counts, in nats."""
        from scipy.special import betaln, psi

        n_sticks, omega = len(self.a), self.concentration
        value = np.sum(betaln(self.a, self.b))
        if len(self.prior) == 1:
            return float(value + n_sticks * math.log(omega))
        shape, rate = self._concentration()
        value += n_sticks * (psi(shape) - math.log(rate))
        return float(value - gamma.kl(shape, rate, *self.prior))

    def divergence(self) -> float:
        """KL of q(V, omega) from the prior in nats: the counts' expected log-weights less A(N)."""
        from scipy.special import psi

        a, b, both = self.a, self.b, psi(self.a + self.b)
        expected = (a - 1) * (psi(a) - both) + (b - self.concentration) * (psi(b) - both)
        return float(np.sum(expected) - self.bound())
