"""Dirichlet-process mixture of Gaussians (Blei and Jordan 2006; paper, 7.2) by DPSVI.

    V_k ~ Beta(1, omega),    pi_k = V_k prod_{j<k} (1 - V_j),    k = 1, 2, ...
    omega ~ Gamma(s_1, rate s_2),    z_n ~ Cat(pi),    x_n ~ N(mu_{z_n}, Lambda_{z_n}^-1)

with the components of the finite mixture.  Component k is ``N_k | kappa_k | h_k | Psi_k | nu_k`` in
lam: the counts have the prior 0, and sticks and concentration are the best ones for these counts,
:mod:`dpsvi.expfam.stick_breaking`.  Nothing else is new: the statistics and the local step are
those of :mod:`dpsvi.families.mixtures.mixture`, with
``E ln pi_k = E ln V_k + sum_{j<k} E ln(1 - V_j)``.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from dpsvi.base import Model
from dpsvi.errors import check_number
from dpsvi.estimators.engine_parameters import engine_parameters
from dpsvi.estimators.run_options import RestartOptions
from dpsvi.expfam.stick_breaking import Sticks, expected_log_weights
from dpsvi.families.mixtures import incomplete, mixture
from dpsvi.families.mixtures.components import Prior, standardise
from dpsvi.families.mixtures.estimator import MixtureEstimator
from dpsvi.families.mixtures.mixture import add_points, counts, natural, options_of
from dpsvi.kernels.jit import kernel


@kernel
def expect(sums, scale, hyper, expected):
    """Fill `expected`, (K, columns), with all that the local step needs of the parameters.

    A row is a component in standard form, behind the part of ln r_nk that does not depend on x_n.
    `sums` is (lam - prior) / scale in one vector.
    """
    options = options_of(hyper)
    natural(sums, scale, options.prior, expected)
    expected_log_weights(expected, options.weights)
    standardise(expected, options.floor)


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`; items are points, the one row is always touched."""
    options = options_of(hyper)
    expected = work.expected[0].reshape(options.prior.shape)
    expect(work.totals, scale, hyper, expected)
    return add_points(shared.item_memory, items, batch, expected, options.origins, work)


def local_with_gaps(shared, scale, hyper, items, batch, work):
    """The same for points that may miss coordinates."""
    options = options_of(hyper)
    expected = work.expected[0].reshape(options.prior.shape)
    expect(work.totals, scale, hyper, expected)
    return incomplete.add_points(shared.item_memory, items, batch, expected, options.origins, work)


def make_model(concentration_prior, prior: Prior, origins, gaps: bool = False) -> Model:
    """The mixture as a :class:`dpsvi.base.Model`.

    Parameters
    ----------
    concentration_prior : (s_1, s_2) or (omega,), > 0
    prior : Prior
    origins : float64 array, (K, D)
        Where each component counts from.
    gaps : bool
        Whether coordinates of points may be missing.
    """
    return mixture.make_model(_KIND, _STEPS, prior, origins, 0.0, concentration_prior, gaps)


def read_sticks(state) -> Sticks:
    """The sticks and the concentration of a state."""
    return Sticks.of(counts(state), options_of(state.model.hyper).weights)


_STEPS = local, local_with_gaps
_KIND = "dp_mixture"


@engine_parameters("points")
class DPSVIDPMixture(MixtureEstimator):
    """Dirichlet-process mixture of Gaussians by (asynchronous) stochastic variational inference.

    It learns how many components the data need, of at most `n_components`, and the concentration.

    Parameters
    ----------
    n_components : int, default=20
        Truncation K: the most components that q has.  More than are needed cost time only; those
        stay empty, see `n_components_active_`.
    covariance_type : {"full", "diag"}, default="full"
    weight_concentration_prior : float or "auto", default="auto"
        omega > 0 of the sticks; more means more components.  "auto" learns it, with the prior
        Gamma(concentration_shape, concentration_rate).
    concentration_shape, concentration_rate : float, default=1.0
        s_1, s_2 > 0.
    {components}
    {engine}

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        E[pi], normalised: beyond the truncation there is a little weight, too.
    counts_ : ndarray of shape (n_components,)
        N_k, the expected number of points of each component, or the sum of their weights.
    n_components_active_ : int
        Components that have at least one point, ``(counts_ >= 1).sum()``; the others are empty.
    concentration_ : float
        E[omega].
    weight_concentration_ : ndarray of shape (2, n_components)
        a and b of the sticks, ``Beta(a, b)``, largest component first.
    {attributes}

    Notes
    -----
    `posterior_samples` draws ``"weights"``, which sum to less than 1, since a little weight is
    beyond the truncation; ``"means"``, ``"covariances"`` and ``"precisions"``, as
    :class:`~dpsvi.DPSVIGaussianMixture`; and ``"concentration"``, if it is learned.

    Components keep their numbers from call to call, so that predictions can be compared; sticks go
    by size at all times.

    scikit-learn's ``BayesianGaussianMixture`` with
    ``weight_concentration_prior_type="dirichlet_process"`` is this model with a given omega, and
    with sticks in the order that k-means found.

    {missing}

    Inference is in float64; for float32 data the fitted arrays, responsibilities and scores are
    float32.

    References
    ----------
    Ghahramani, Jordan (1994), Advances in Neural Information Processing Systems 6 (missing data).
    Blei, Jordan (2006), Bayesian Analysis 1, doi:10.1214/06-BA104.
    Kurihara, Welling, Vlassis (2007), Advances in Neural Information Processing Systems 19.
    Mohamad, Alamri, Bouchachia (2022), Machine Learning, doi:10.1007/s10994-022-06243-3.
    Hoffman, Blei, Wang, Paisley (2013), JMLR 14.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> X[:250] += 10
    >>> mixture = DPSVIDPMixture(n_components=8, random_state=0).fit(X)
    >>> mixture.n_components_active_
    2
    """

    counts_: np.ndarray
    n_components_active_: int
    concentration_: float
    weight_concentration_: np.ndarray

    def __init__(
        self, n_components: int = 20, *, covariance_type: Literal["full", "diag"] = "full",
        weight_concentration_prior: float | Literal["auto"] = "auto",
        concentration_shape: float = 1.0, concentration_rate: float = 1.0,
        mean_precision_prior: float | None = None, mean_prior: ArrayLike | None = None,
        degrees_of_freedom_prior: float | None = None, covariance_prior: ArrayLike | None = None,
        init_params: Literal["merge", "kmeans", "random"] = "merge",
        incremental: bool = False, restructure: bool = False, **run: Unpack[RestartOptions],
    ) -> None:  # fmt: skip
        super().__init__(
            n_components, covariance_type, mean_precision_prior, mean_prior,
            degrees_of_freedom_prior, covariance_prior, init_params, incremental, restructure,
        )  # fmt: skip
        self.weight_concentration_prior = weight_concentration_prior
        self.concentration_shape = concentration_shape
        self.concentration_rate = concentration_rate

    _kind = _KIND
    _learns_size = True
    _model = staticmethod(partial(mixture.from_arrays, _KIND, _STEPS))
    _expect = staticmethod(expect)

    def check_params(self) -> None:
        """Raise ValueError or TypeError for the first parameter that is not allowed."""
        super().check_params()
        if isinstance(self.weight_concentration_prior, str):
            if self.weight_concentration_prior != "auto":
                raise ValueError(
                    "weight_concentration_prior must be a number > 0 or 'auto', "
                    f"got {self.weight_concentration_prior!r}"
                )
        else:
            check_number(
                "weight_concentration_prior", self.weight_concentration_prior, low=0, open_low=True
            )
        check_number("concentration_shape", self.concentration_shape, low=0, open_low=True)
        check_number("concentration_rate", self.concentration_rate, low=0, open_low=True)

    def _concentration_prior(self):
        if self.weight_concentration_prior == "auto":
            return self.concentration_shape, self.concentration_rate
        return (self.weight_concentration_prior,)

    def _make_model(self, prior, origins, gaps):
        return make_model(self._concentration_prior(), prior, origins, gaps)

    def _weight_bound(self, counts):
        return Sticks.of(counts, np.array(self._concentration_prior(), dtype=np.float64)).bound()

    def _weights(self, state):
        return read_sticks(state).weights

    def _weight_attributes(self, state):
        q, size = read_sticks(state), counts(state)
        return {
            "counts_": size,
            "n_components_active_": int((size >= 1).sum()),
            "concentration_": q.concentration,
            "weight_concentration_": np.stack([q.a, q.b]),
        }

    def _weight_divergence(self, state) -> float:
        return read_sticks(state).divergence()

    def _draw_weights(self, n_samples, rng):
        return read_sticks(self._state).draw(n_samples, rng)


ESTIMATOR = DPSVIDPMixture
