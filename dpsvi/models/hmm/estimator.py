"""Bayesian hidden Markov model (Beal 2003; Johnson & Willsky 2014; paper, 7.5) by DPSVI.

    pi ~ Dir(alpha_pi),    A_j ~ Dir(alpha_A),    (mu_k, Lambda_k) ~ NW(m_0, kappa_0, W_0, nu_0)
    z_1 ~ Cat(pi),    z_t ~ Cat(A_{z_{t-1}}),    x_t ~ N(mu_{z_t}, Lambda_{z_t}^-1)

or, of symbols, ``B_k ~ Dir(alpha_B), x_t ~ Cat(B_{z_t})``.  Items are sequences.  The local step
(44) is forward-backward with the sub-normalised weights

    pi~ = exp(psi(u) - psi(sum u)),  A~_jk = exp(psi(U_jk) - psi(sum_l U_jl)),
    B~_tk = exp(E ln p(x_t | k)),

whose total weight Z~ of all paths is the sequence's term of the ELBO, as ln Z~.  Its posteriors
are the statistics: gamma_1 goes to u, sum_t xi_t to U, sum_t gamma_t(k) t(x_t) to the emissions.

As in the mixture all of lam is *one* row of the engine's matrix: a sequence touches everything,
and the column totals, which lose no addition to a race, then are the parameters.  The parts are
in :mod:`dpsvi.models.hmm`, the recursions in :mod:`dpsvi.models.hmm.markov`.
"""

from __future__ import annotations

from typing import Any, Literal, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from dpsvi.errors import check_choice, check_number
from dpsvi.estimators.arrays import ArrayEstimator
from dpsvi.estimators.engine_parameters import engine_parameters
from dpsvi.estimators.fitting import fit_method
from dpsvi.estimators.incremental import Incremental
from dpsvi.estimators.run_options import RestartOptions
from dpsvi.expfam import dirichlet
from dpsvi.families.mixtures.incomplete import has_gaps
from dpsvi.models.hmm.emissions import KINDS
from dpsvi.models.hmm.inference import Inference
from dpsvi.models.hmm.local import options_of
from dpsvi.models.hmm.model import from_arrays, make_model, read, read_prior, remembering, with_gaps
from dpsvi.models.hmm.moves import Moving
from dpsvi.models.hmm.sequences import Steps, holds_sequences, offsets_of, windows
from dpsvi.training.items import count, dense_items
from dpsvi.training.state import State

_SAMPLE = 10_000  # steps that the first parameters are found on


@engine_parameters("sequences", batch_size=4)
class DPSVIHMM(Moving, Inference, Incremental, ArrayEstimator):
    """Bayesian hidden Markov model, fitted by (asynchronous) stochastic variational inference.

    The models are those of hmmlearn's ``VariationalGaussianHMM`` with full covariances (its
    diagonal ones have another prior) and ``VariationalCategoricalHMM``; names and meanings follow
    it, but for `lengths`, which `fit` and `score` take by name, and :meth:`score_samples`.

    Parameters
    ----------
    n_components : int, default=1
        Number of states K.
    emission : {"gaussian", "categorical"}, default="gaussian"
        Points, or symbols 0, 1, ... in the one column of X.
    covariance_type : {"full", "diag"}, default="full"
        Of Gaussian emissions.
    startprob_prior : float > 0, array of shape (n_components,) or None, default=None
        alpha_pi, concentrations of the first state.  None is ``1 / n_components``.
    transmat_prior : float > 0, array of shape (n_components, n_components) or None, default=None
        alpha_A of each row of the transition matrix; a larger diagonal makes states last.  None is
        ``1 / n_components``.
    means_prior : array of shape (n_features,) or None, default=None
        m_0 of Gaussian emissions, of all states.  None is the mean of the data.
    beta_prior : float or None, default=None
        kappa_0 > 0: the prior of the means weighs as much as so many points.  None is 1.
    dof_prior : float or None, default=None
        nu_0 > n_features - 1 of the Wishart prior of the precisions.  None is ``n_features``.
        Diagonal: nu_0 / 2 > 0 is the shape of their Gamma priors, None is nu_0 = 1.
    scale_prior : array of shape (n_features, n_features) or None, default=None
        W_0^-1, positive definite.  None is the covariance of the data with a millionth of each
        variance added, that of constant features taken as 1.  Diagonal: w_0, twice the rates of
        the Gamma priors, (n_features,).
    emissionprob_prior : float > 0, array of shape (n_components, n_symbols) or None, default=None
        alpha_B of categorical emissions.  None is ``1 / n_symbols``.
    n_features : int or None, default=None
        Number of symbols.  None: one more than the largest of the (first) data.
    algorithm : {"viterbi", "map"}, default="viterbi"
        What :meth:`predict` returns: the most probable path, or at each step the most probable
        state.
    window : int or None, default=None
        Items of the fit are windows of at most so many steps instead of whole sequences, for long
        ones (Foti et al. 2014); memory then is by the window.  None: whole sequences.
    buffer : int, default=20
        Steps, >= 1, before and after each window that its messages begin at; enough when the
        chain forgets its state in fewer.
    incremental : bool, default=False
        In the last half of the passes statistics of a sequence, or window, replace those of its
        last visit, and nothing decays: coordinate ascent in steps of a batch.  The statistics are
        remembered (8 bytes for each number that the posterior has, a sequence); short sequences
        then cost as much as one of 64 steps.  See :mod:`dpsvi.estimators.incremental`, and the
        Notes on several processes there.  Streams have no such passes.
    restructure : bool, default=False
        Between passes of `fit`, after the first 1, 2, 4, 8, ... of them and in the first half,
        states are merged, deleted and born where that raises the ELBO
        (:mod:`dpsvi.families.mixtures.restructuring`).  Not with `incremental`.  Streams have no
        such moves, and a single sequence is looked at as a whole unless `window` is set.
    {engine}

    Attributes
    ----------
    startprob_ : ndarray of shape (n_components,)
        E[pi].
    transmat_ : ndarray of shape (n_components, n_components)
        E[A].
    means_ : ndarray of shape (n_components, n_features_in_)
    covars_ : ndarray of shape (n_components, n_features_in_, n_features_in_)
        Inverses of E[Lambda]; diagonal: (n_components, n_features_in_).
    emissionprob_ : ndarray of shape (n_components, n_symbols_)
        E[B], of categorical emissions.
    startprob_posterior_, transmat_posterior_, emissionprob_posterior_ : ndarrays
        Concentrations u, U and those of the symbols.
    beta_posterior_, dof_posterior_, scale_posterior_ : ndarrays
        kappa, nu and W^-1 of every state.  Fitted to points with missing numbers the first two
        are of shape (n_components, n_features_in_), since every feature has seen steps of its own.
    n_symbols_ : int
        Of categorical emissions.
    moves_ : dict
        With `restructure`, how many moves the last `fit` made: ``"merge"``, ``"delete"`` and
        ``"birth"``.
    {fitted}

    Notes
    -----
    `posterior_samples` draws ``"startprob"``, ``"transmat"``, and of Gaussian emissions
    ``"means"`` and ``"covars"``, whose inverses have the inverses of `covars_` for a mean, or of
    categorical ones ``"emissionprob"``.

    Numbers of X that are NaN are missing, in `fit` as in all other methods: symbols, and numbers
    of points with ``covariance_type="diag"``.  They are left out, not imputed; a step without any
    number is a step all the same.  Full covariances refuse them.

    Inference is in float64; for float32 data the fitted arrays, posteriors and scores are float32.
    A thread needs memory for the longest item, of 2 K + D + 3 numbers a step.

    With windows `lower_bound_` is an estimate, as good as `buffer` is long.  The ``score`` in
    `history_` is the sum of the held-out items' terms of the bound.

    References
    ----------
    Mohamad, Alamri, Bouchachia (2022), Machine Learning, doi:10.1007/s10994-022-06243-3.
    Beal (2003), Variational algorithms for approximate Bayesian inference, chapter 3.
    Johnson, Willsky (2014), Stochastic variational inference for Bayesian time series models.
    Foti, Xu, Laird, Fox (2014), Stochastic variational inference for hidden Markov models.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> states = np.tile(np.repeat([0, 1], 10), 20)
    >>> X = 5.0 * states[:, None] + rng.normal(size=(400, 2))
    >>> hmm = DPSVIHMM(n_components=2, random_state=0).fit(X, lengths=[100] * 4)
    >>> hmm.predict(X[:12]).tolist() in ([0] * 10 + [1] * 2, [1] * 10 + [0] * 2)
    True
    """

    startprob_: np.ndarray
    transmat_: np.ndarray
    means_: np.ndarray
    covars_: np.ndarray
    emissionprob_: np.ndarray
    startprob_posterior_: np.ndarray
    transmat_posterior_: np.ndarray
    emissionprob_posterior_: np.ndarray
    beta_posterior_: np.ndarray
    dof_posterior_: np.ndarray
    scale_posterior_: np.ndarray
    n_symbols_: int

    def __init__(
        self, n_components: int = 1, *, emission: Literal["gaussian", "categorical"] = "gaussian",
        covariance_type: Literal["full", "diag"] = "full", startprob_prior: ArrayLike | None = None,
        transmat_prior: ArrayLike | None = None, means_prior: ArrayLike | None = None,
        beta_prior: float | None = None, dof_prior: float | None = None,
        scale_prior: ArrayLike | None = None, emissionprob_prior: ArrayLike | None = None,
        n_features: int | None = None, algorithm: Literal["viterbi", "map"] = "viterbi",
        window: int | None = None, buffer: int = 20, incremental: bool = False,
        restructure: bool = False, **run: Unpack[RestartOptions],
    ) -> None:  # fmt: skip
        self.n_components = n_components
        self.emission = emission
        self.covariance_type = covariance_type
        self.startprob_prior = startprob_prior
        self.transmat_prior = transmat_prior
        self.means_prior = means_prior
        self.beta_prior = beta_prior
        self.dof_prior = dof_prior
        self.scale_prior = scale_prior
        self.emissionprob_prior = emissionprob_prior
        self.n_features = n_features
        self.algorithm = algorithm
        self.window = window
        self.buffer = buffer
        self.incremental = incremental
        self.restructure = restructure

    # --- fitting ------------------------------------------------------------------------------

    _kind = "hmm"
    _free = ("algorithm", "buffer", "incremental", "restructure")
    _settings = ("window",)
    _extra = ("n_symbols_",)
    _warmup = ({"emission": "categorical"}, {"incremental": True})
    _model = staticmethod(from_arrays)
    _remembering = staticmethod(remembering)

    def check_params(self) -> None:
        """Raise ValueError or TypeError for the first parameter that is not allowed."""
        super().check_params()
        check_number("n_components", self.n_components, low=1, high=65_535, integer=True)
        check_choice("emission", self.emission, list(KINDS))
        check_choice("covariance_type", self.covariance_type, ["full", "diag"])
        check_choice("algorithm", self.algorithm, ["viterbi", "map"])
        self._check_positive("beta_prior", "dof_prior")
        for name in ("startprob_prior", "transmat_prior", "emissionprob_prior"):
            value = getattr(self, name)
            if value is not None and not (0 < self._numbers(name)).all():
                raise ValueError(f"{name} must be > 0, got {value!r}")
        for name in ("n_features", "window"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), low=1, integer=True)
        check_number("buffer", self.buffer, low=1, integer=True)
        self._check_incremental()
        self._check_restructure()

    def _note_fixed(self, going_on) -> None:
        if going_on and (self.window is None) != (self._started["window"] is None):
            raise ValueError(
                f"window was {self._started['window']} when the fit started, got {self.window}"
            )
        super()._note_fixed(going_on)

    @fit_method
    def fit(self, X: Any, y: Any = None, lengths: ArrayLike | None = None) -> Self:
        """Learn the model from X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Sequences, one behind the other.
        y : ignored
            Whatever it holds; `lengths` go by name.
        lengths : int array-like of shape (n_sequences,) or None, default=None
            Steps of each sequence, >= 1; they sum to n_samples.  None: X is one sequence.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> states = np.tile(np.repeat([0, 1], 10), 20)
        >>> X = 5.0 * states[:, None] + np.random.default_rng(0).normal(size=(400, 2))
        >>> hmm = DPSVIHMM(n_components=2, random_state=0).fit(X, lengths=[100] * 4)
        >>> sorted(hmm.means_[:, 0].round().astype(int).tolist())
        [0, 5]
        """
        return self._fit(X, y, lengths=lengths)

    @fit_method
    def partial_fit(self, X: Any, y: Any = None, lengths: ArrayLike | None = None) -> Self:
        """Go on learning with one pass over X, the next sequences of a stream.

        The first call also sets the priors that are None and the first parameters, so let it
        have enough data to tell both.

        Parameters
        ----------
        X, y, lengths : as in `fit`

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> states = np.tile(np.repeat([0, 1], 10), 20)
        >>> X = 5.0 * states[:, None] + np.random.default_rng(0).normal(size=(400, 2))
        >>> hmm = DPSVIHMM(n_components=2, random_state=0)
        >>> for sequence in X.reshape(4, 100, 2):
        ...     hmm = hmm.partial_fit(sequence)
        >>> hmm.n_iter_
        4
        """
        return self._partial_fit(X, y, lengths=lengths)

    @property
    def _emissions(self):
        return KINDS[self._started["emission"]]

    def _read(self, X, y=None, *, reset, lengths=None):
        X, offsets = self._sequences(X, lengths, y, reset)
        if self.window is None:
            return dense_items(X, offsets)
        return windows(X, offsets, self.window, self.buffer)

    def _sequences(self, X, lengths, y=None, reset=False):
        """Checked X and where its sequences begin."""
        if isinstance(X, list | tuple) and holds_sequences(X):
            raise ValueError(
                f"X must have one row for each step, all of one length, got a {type(X).__name__} "
                "of rows of several lengths, or of sequences: pass np.concatenate(X) and "
                "lengths=[len(x) for x in X]"
            )
        X = self._points(X, reset, gaps=True)
        if y is not None and len(y) != len(X):
            raise ValueError(
                f"y must be None or have the {len(X)} rows of X, got {len(y)}; "
                "give the lengths of sequences by name, lengths="
            )
        if reset and self.emission == "categorical":
            largest = 0 if np.isnan(X).all() else max(0, int(np.nanmax(X)))
            self.n_symbols_ = largest + 1 if self.n_features is None else self.n_features
        self._emissions.check(self, X)
        return X, offsets_of(lengths, len(X))

    def _concentrations(self, name, shape, default):
        """A prior of Dirichlet distributions as an array of this shape."""
        array = np.array(default) if getattr(self, name) is None else self._numbers(name)
        if array.shape not in ((), shape) or not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite, a number or of shape {shape}, got {array!r}")
        return np.broadcast_to(array, shape)

    def _start(self, items, total, rng) -> State:
        n_states, marked = self.n_components, self.window is not None
        kind, steps = self._emissions, Steps.of(items, self.n_features_in_, marked)
        sample, goes_on = steps.sample(max(_SAMPLE, 10 * n_states), rng)
        X = steps.X[steps.counts] if marked else steps.X
        points = steps.X[sample]
        emissions = kind.start(self, X, points, rng)
        prior = (
            self._concentrations("startprob_prior", (n_states,), 1.0 / n_states),
            self._concentrations("transmat_prior", (n_states, n_states), 1.0 / n_states),
            emissions.prior,
        )
        pairs = np.full((n_states, n_states), goes_on.sum() / n_states**2)
        if emissions.assign is not None and goes_on.any():
            here = emissions.assign(points[goes_on])
            there = emissions.assign(steps.X[sample[goes_on] + 1])
            pairs[:] = 0.0
            np.add.at(pairs, (here, there), 1.0)
        scale = total / count(items)
        start = np.full(n_states, scale * steps.n_begun / n_states)
        scale *= steps.counts.sum() / len(sample)
        rows = [start, scale * pairs.ravel(), scale * emissions.stats.ravel()]
        model = make_model(kind.number, marked, emissions.floor, emissions.origins, *prior)
        return State.resume(model, np.concatenate(rows)[None], self._n_threads)

    def _again(self, items) -> State:
        if not has_gaps(items.value):
            return super()._again(items)
        state = self._state
        return State.resume(
            *with_gaps(state.model, state.learned()), self._n_threads, self._n_kept(items),
            step=state.step, items=state.items,
        )  # fmt: skip

    def _check_read(self, model) -> None:
        self._check_options(model, options_of(model.hyper))

    # --- the fitted model ---------------------------------------------------------------------

    def _fitted(self, state) -> dict:
        q = read(state)
        arrays = {
            "startprob_": q.start / q.start.sum(),
            "transmat_": q.trans / q.trans.sum(axis=1, keepdims=True),
            "startprob_posterior_": q.start,
            "transmat_posterior_": q.trans,
            **self._emissions.fitted(self, q),
        }
        return {name: array.astype(self._dtype) for name, array in arrays.items()}

    def _draw_posterior(self, n_samples, rng) -> dict:
        q = read(self._state)
        return {
            "startprob": dirichlet.draw(q.start, n_samples, rng),
            "transmat": dirichlet.draw(q.trans, n_samples, rng),
            **self._emissions.draw_parameters(self, q, n_samples, rng),
        }

    def _bounds(self, state, items):
        marked = int(self._started["window"] is not None)
        bound, _ = self._infer(state, items, marked)
        return np.add.reduceat(bound, items.offsets[:-1] // (self.n_features_in_ + marked))

    def _score(self, state, items) -> float:
        return float(self._bounds(state, items).sum())

    def _divergence(self, state) -> float:
        q, prior = read(state), read_prior(state.model)
        chain = dirichlet.kl(q.start, prior.start)
        chain += sum(dirichlet.kl(a, a0) for a, a0 in zip(q.trans, prior.trans, strict=True))
        return chain + self._emissions.divergence(self, q, prior)


ESTIMATOR = DPSVIHMM
