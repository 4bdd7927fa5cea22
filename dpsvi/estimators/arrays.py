"""The face of every model that is fitted to arrays.

All that such a model learns is ``lam``, and all that it needs to know besides is in its prior and
its ``hyper`` vector: so a fitted model is three arrays, and one class writes and reads them all.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.utils.validation import validate_data

from dpsvi.errors import check_choice, check_number
from dpsvi.estimators.base import RUN_ATTRIBUTES, SVIEstimator
from dpsvi.estimators.engine_parameters import own_parameters
from dpsvi.files import io
from dpsvi.training.items import count
from dpsvi.training.state import State

_FITTED = """\
    lower_bound_ : float
        ELBO of the training data in nats, all constants included.  After `partial_fit` an estimate
        from the last data.
    history_ : list of dict
        ``step, items, seconds, rate`` of every evaluation, and with `validation_size` ``score``: as
        the method :meth:`score`, if the notes say nothing else.
""" + RUN_ATTRIBUTES + """\
    n_features_in_, feature_names_in_
        As in scikit-learn."""


def unmasked(X):
    """X, or of a masked array the numbers, NaN where they are hidden: scikit-learn reads these."""
    if not np.ma.isMaskedArray(X):
        return X
    return (X if X.dtype.kind == "f" else X.astype(np.float64)).filled(np.nan)


class ArrayEstimator(SVIEstimator):
    """Base of the estimators that are fitted to arrays.

    Of what :class:`~dpsvi.estimators.base.SVIEstimator` wants, a subclass defines ``_fitted``,
    ``check_params``, which calls this class's, and ``_read``, which sets ``n_features_in_`` and
    ``_dtype``, that of results, as `_points` does.  It has besides

    * ``_start(items, total, rng) -> State``: priors resolved, first value of the parameters, for
      `total` items of which `items` are a sample;
    * ``_model(shape, prior, hyper) -> Model``: a static method, the model of these arrays;
    * ``_bounds(state, items) -> array``: the items' terms of the ELBO, in nats;
    * ``_divergence(state) -> float``: KL of the global parameters from their prior, in nats;
    * ``_score(state, items) -> float``, if held-out items are not scored by their mean bound.

    A fit that goes on keeps its priors and sizes: it refuses another value of any parameter of its
    own that is neither in `_free` nor in `_settings`.
    """

    lower_bound_: float
    n_features_in_: int
    _texts: ClassVar[dict[str, str]] = {"fitted": _FITTED}
    _free: tuple[str, ...] = ("init_params",)

    @property
    def _fixed(self):
        changing = {*self._free, *self._settings}
        return tuple(name for name in own_parameters(type(self)) if name not in changing)

    def check_params(self) -> None:
        """Raise ValueError or TypeError for the first parameter that is not allowed."""
        self._check_engine_params()
        check_number("n_init", self.n_init, low=1, integer=True)
        if self.n_init > 1 and self.checkpoint_dir is not None:
            raise ValueError(
                "checkpoint_dir needs n_init=1, for a checkpoint holds one fit; "
                f"got n_init={self.n_init!r}"
            )

    # --- fitting ------------------------------------------------------------------------------

    def _begin(self, items, total, rng, going_on) -> State:
        if going_on:
            return self._again(items)
        return self._start(items, count(items) if total is None else total, rng)

    def _n_kept(self, items) -> int:
        """Of how many items a fit can keep local parameters, if the model has a use for them.

        Of none where there is no master: its nodes remember nothing.
        """
        return 0 if self._masterless() else count(items)

    def _again(self, items) -> State:
        """The same parameters and clock for other data; the state there is stays as it is."""
        state = self._state
        return State.resume(
            state.model, state.learned(), self._n_threads, self._n_kept(items),
            step=state.step, items=state.items,
        )  # fmt: skip

    def _finish(self, items, total=None) -> None:
        super()._finish(items, total)
        n_items = count(items) if total is None else total
        self.lower_bound_ = self._lower_bound(self._state, items, n_items)

    def _lower_bound(self, state, items, total) -> float:
        """ELBO (43) in nats: `total` times the mean of the items' terms, less the divergence."""
        return float(total * np.mean(self._bounds(state, items)) - self._divergence(state))

    def _score(self, state, items) -> float:
        return float(np.mean(self._bounds(state, items)))

    def _held_out_score(self, state, items) -> dict:
        return {"score": self._score(state, items)}

    # --- data and parameters ------------------------------------------------------------------

    def _points(self, X, reset: bool, gaps: bool = False):
        """X as a checked float array, (n_samples, n_features); results will be of its type.

        With `gaps` some of it may be NaN.
        """
        X = validate_data(
            self, unmasked(X), reset=reset, dtype=[np.float64, np.float32], order="C",
            ensure_all_finite="allow-nan" if gaps else True,
        )  # fmt: skip
        if reset:
            self._dtype = str(X.dtype)
        return X

    @staticmethod
    def _weights_of_rows(sample_weight, n_samples):
        """How often each row counts, float64, (n_samples,); raises ValueError if it cannot be."""
        if sample_weight is None:
            return np.ones(n_samples)
        try:
            weight = np.asarray(sample_weight, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"sample_weight must be numbers: {error}") from None
        if weight.shape != (n_samples,):
            raise ValueError(
                f"sample_weight must have shape ({n_samples},) as X has, got {weight.shape}"
            )
        bad = weight[~(np.isfinite(weight) & (weight >= 0))]
        if len(bad) or not weight.any():
            got = f"{bad[0]:g}" if len(bad) else "zeros only"
            raise ValueError(f"sample_weight must be >= 0 and finite, and not all 0, got {got}")
        return weight

    def _numbers(self, name):
        """A parameter as a float64 array; raises ValueError if it is not numbers."""
        try:
            return np.array(getattr(self, name), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must be numbers: {error}") from None

    def _array(self, name, shape):
        """A parameter as a float64 array of this shape; raises ValueError if it is not."""
        array = self._numbers(name)
        if array.shape != shape or not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite and of shape {shape}, got {array!r}")
        return array

    def _covariance(self, name, n, diagonal=False):
        """A parameter as a positive definite matrix, (n, n), or its diagonal, (n,)."""
        array = self._array(name, (n,) if diagonal else (n, n))
        matrix = np.diag(array) if diagonal else array
        symmetric = np.allclose(matrix, matrix.T, rtol=1e-6, atol=0)
        if not symmetric or np.linalg.eigvalsh(matrix)[0] <= 0:
            allowed = "> 0" if diagonal else "symmetric and positive definite"
            raise ValueError(f"{name} must be {allowed}, got {array!r}")
        return array

    def _check_positive(self, *names) -> None:
        """Each of these parameters is None or a number above 0."""
        for name in names:
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), low=0, open_low=True)

    # --- files --------------------------------------------------------------------------------

    def _content(self):
        state = self._state
        extra = {name: vars(self)[name] for name in self._extra if name in vars(self)}
        arrays = {k: v for k, v in extra.items() if isinstance(v, np.ndarray) and v.dtype != object}
        arrays |= {
            "lambda": state.natural(), "prior": state.model.prior, "hyper": state.model.hyper,
        }  # fmt: skip
        return arrays, {
            "items": state.items, **io.known(lower_bound=self.lower_bound_),
            "n_features": self.n_features_in_, "dtype": self._dtype,
            "extra": {k: v for k, v in extra.items() if k not in arrays},
        }  # fmt: skip

    def _check_read(self, model) -> None:
        """Raise ValueError or TypeError where what a file says of the data is not of this model."""

    def _check_options(self, model, options) -> None:
        """The same, for models of one row whose `hyper`, read as `options`, holds the prior too."""
        io.check_equal("n_features", self.n_features_in_, options.n_features)
        io.check_same(prior=model.prior, hyper=options.prior)
        io.check_equal("shape of lambda", model.shape, (1, options.prior.size))

    def _restore(self, arrays, meta):
        io.check_counts(meta, "items", "n_features")
        check_choice("dtype", meta["dtype"], ["float64", "float32"])
        lam, prior = arrays.pop("lambda"), arrays.pop("prior")
        shape = np.broadcast_shapes(lam.shape, prior.shape)
        if not lam.size or lam.ndim != 2 or shape != lam.shape:
            raise ValueError(f"parameters of shape {lam.shape}, their prior of {prior.shape}")
        # Those of a mapped pickle are read-only, and kernels are compiled for those that are not.
        model = self._model(lam.shape, prior, np.array(arrays.pop("hyper")))
        if not np.isfinite(lam).all():
            raise ValueError("parameters are NaN or infinite")
        clock = {"step": meta["step"], "items": meta["items"]}
        state = State.resume(model, lam - prior, self._n_threads, **clock)
        self.n_features_in_, self._dtype = meta["n_features"], meta["dtype"]
        vars(self).update(meta["extra"] | {k: arrays[k] for k in arrays if k in self._extra})
        self._check_read(model)
        vars(self).update(self._attributes(state))
        self.lower_bound_ = io.known_or_nan(meta, "lower_bound")
