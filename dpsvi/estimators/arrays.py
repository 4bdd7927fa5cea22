"""The face of every model that is not a topic model: fit, partial_fit, warm start, save, load.

All that such a model learns is ``lam``, and all that it needs to know besides is in its prior and
its ``hyper`` vector: so a fitted model is three arrays, and one class writes and reads them all.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.utils.validation import validate_data

from dpsvi.base import Items
from dpsvi.errors import check_choice, check_number
from dpsvi.estimators.base import RUN_ATTRIBUTES, SVIEstimator, unchanged_on_error, with_callbacks
from dpsvi.estimators.engine_parameters import own_parameters
from dpsvi.estimators.monitor import Monitor
from dpsvi.files import io
from dpsvi.kernels.jit import as_items
from dpsvi.training.state import State

_FITTED = """\
    lower_bound_ : float
        ELBO of the training data in nats, all constants included.  After `partial_fit` an estimate
        from the last data.
    history_ : list of dict
        ``step, docs, seconds, rate`` of every evaluation, and with `validation_size` ``score``: as
        the method :meth:`score`, if the notes say nothing else.
""" + RUN_ATTRIBUTES + """\
    n_features_in_, feature_names_in_
        As in scikit-learn."""


class FamilyEstimator(SVIEstimator):
    """Base of the estimators of the model family.

    A subclass is decorated by :func:`dpsvi.estimators.engine_parameters.engine_parameters`, names
    its files by `_kind`, and defines

    * ``check_params()``: call this class's, then check its own parameters;
    * ``_read(X, y, *, reset, **more) -> Items``: validated data; on reset ``n_features_in_`` and
      ``_dtype``, that of results, are set, as `_points` does;
    * ``_start(items, total, rng) -> State``: priors resolved, first value of the parameters, for
      `total` items of which `items` are a sample;
    * ``_model(shape, prior, hyper) -> Model``: a static method, the model of these arrays;
    * ``_fitted(state) -> dict``: fitted attributes, their names ending in an underscore;
    * ``_bounds(state, items) -> array``: the items' terms of the ELBO, in nats;
    * ``_divergence(state) -> float``: KL of the global parameters from their prior, in nats;
    * ``_score(state, items) -> float``, if held-out items are not scored by their mean bound.

    Parameters of `fit` besides X and y (the lengths of sequences, groups) go to `_read`.  A fit
    that goes on keeps its priors and sizes: it refuses another value of any parameter of its own
    that is neither in `_free` nor in `_settings`.
    """

    _texts: ClassVar[dict[str, str]] = {"fitted": _FITTED}
    _free: tuple[str, ...] = ("init_params",)
    _extra: tuple[str, ...] = ()  # more attributes that `fit` sets, numbers, text or arrays

    # --- fitting ------------------------------------------------------------------------------

    @property
    def _fixed(self):
        changing = {*self._free, *self._settings}
        return tuple(name for name in own_parameters(type(self)) if name not in changing)

    def check_params(self) -> None:
        """Raise ValueError or TypeError for the first parameter that is not allowed."""
        self._check_engine_params()
        for name in ("n_init", "batch_size"):
            check_number(name, getattr(self, name), low=1, integer=True)
        if self.n_init > 1 and self.checkpoint_dir is not None:
            raise ValueError(
                "checkpoint_dir needs n_init=1, for a checkpoint holds one fit; "
                f"got n_init={self.n_init!r}"
            )

    @unchanged_on_error
    @with_callbacks
    def fit(self, X, y=None):
        """Learn the model from X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            A parameter or the data are not allowed; the estimator is as it was.
        DivergedError
            Parameters became NaN or infinite.
        LostRankError
            Over MPI: the fit cannot go on without a rank that was lost.
        KeyboardInterrupt
            By Ctrl-C, after the step that training was in; the model so far is kept, and
            ``interrupted_`` is not 0.
        """
        return self._fit(X, y)

    @unchanged_on_error
    @with_callbacks
    def partial_fit(self, X, y=None):
        """Go on learning with one pass over X, the next data of a stream.

        The first call also sets the priors that are None and the first parameters, so let it
        have enough data to tell both.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError, DivergedError, LostRankError
            As `fit`; the estimator is as it was.
        KeyboardInterrupt
            As `fit`; the model so far is kept.
        """
        return self._partial_fit(X, y)

    def _fit(self, X, y, **more):
        self.check_params()
        going_on = self.warm_start and hasattr(self, "_state")
        self._note_fixed(going_on)
        if not going_on:  # what a last fit of other settings has left
            for name in [name for name in vars(self) if name.endswith("_")]:
                delattr(self, name)
        items = self._read(X, y, reset=not going_on, **more)
        rng = self._generator()
        chosen, held_out = self._hold_out(count(items), rng)
        train = take(items, chosen) if len(held_out) else items
        monitor = Monitor(self, take(items, held_out) if len(held_out) else None, X, y)
        n, best = count(train), None
        self._n_seen = n
        left = 1 if going_on else self.n_init
        while left:
            monitor.restart()
            self._state = self._again(train) if going_on else self._start(train, n, rng)
            first = self._state.items
            self._train(self._state, train, self.max_iter, rng, monitor, checkpoints=True)
            self.n_iter_ = -(-(self._state.items - first) // n)
            self._finish(train, n)
            if best is None or self._agree(self.lower_bound_ > best["lower_bound_"]):
                best = dict(vars(self))
            left -= 1
            interrupted = self.interrupted_
            if left and self._agree(monitor.cancelled or interrupted != 0):
                break
        vars(self).update(best, interrupted_=interrupted)
        monitor.close(self._state)
        return self

    def _partial_fit(self, X, y, **more):
        self.check_params()
        first = not hasattr(self, "_state")
        self._note_fixed(not first)
        items = self._read(X, y, reset=first, **more)
        rng, n = self._generator(), count(items)
        total = self._count_seen(n, first)
        self._state = self._start(items, total, rng) if first else self._again(items)
        monitor = Monitor(self, None, X, y)
        self._train(self._state, items, 1, rng, monitor, total=total)
        self.n_iter_ = getattr(self, "n_iter_", 0) + 1
        self._finish(items, total)
        monitor.close(self._state)
        return self

    def _n_kept(self, items) -> int:
        """Of how many items a fit can keep local parameters, if the model has a use for them.

        Of none where workers hold no items of their own: one may be elsewhere next time.
        """
        return 0 if self._engine().options else count(items)

    def _again(self, items) -> State:
        """The same parameters and clock for other data; the state there is stays as it is."""
        state = self._state
        return State.resume(
            state.model, state.learned(), self._n_threads, self._n_kept(items),
            step=state.step, items=state.items,
        )  # fmt: skip

    def _finish(self, items, total) -> None:
        self._state.settle()
        self._state.forget()
        vars(self).update(self._attributes(self._state))
        self.n_batch_iter_ = self._state.step
        self.lower_bound_ = self._lower_bound(self._state, items, total)

    def _lower_bound(self, state, items, total) -> float:
        """ELBO (43) in nats: `total` times the mean of the items' terms, less the divergence."""
        return float(total * np.mean(self._bounds(state, items)) - self._divergence(state))

    def _score(self, state, items) -> float:
        return float(np.mean(self._bounds(state, items)))

    def _held_out_score(self, state, items) -> dict:
        return {"score": self._score(state, items)}

    def _attributes(self, state) -> dict:
        kept = (
            "n_features_in_", "feature_names_in_", "_n_threads", "_n_seen", "_started", "_dtype",
            *self._extra,
        )  # fmt: skip
        return (
            {"_state": state}
            | {name: vars(self)[name] for name in kept if name in vars(self)}
            | self._fitted(state)
        )

    def _points(self, X, reset: bool):
        """X as a checked float array, (n_samples, n_features); results will be of its type."""
        X = validate_data(self, X, reset=reset, dtype=[np.float64, np.float32], order="C")
        if reset:
            self._dtype = str(X.dtype)
        return X

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
            "items": state.items, "lower_bound": self.lower_bound_,
            "n_features": self.n_features_in_, "dtype": self._dtype,
            "extra": {k: v for k, v in extra.items() if k not in arrays},
        }  # fmt: skip

    def _restore(self, arrays, meta):
        io.check_counts(meta, "items", "n_features")
        check_choice("dtype", meta["dtype"], ["float64", "float32"])
        lam, prior = arrays.pop("lambda"), arrays.pop("prior")
        model = self._model(lam.shape, prior, arrays.pop("hyper"))
        if not np.isfinite(lam).all():
            raise ValueError("parameters are NaN or infinite")
        clock = {"step": meta["step"], "items": meta["items"]}
        state = State.resume(model, lam - prior, self._n_threads, **clock)
        self.n_features_in_, self._dtype = meta["n_features"], meta["dtype"]
        vars(self).update(meta["extra"] | {k: arrays[k] for k in arrays if k in self._extra})
        vars(self).update(self._attributes(state))
        self.lower_bound_ = meta["lower_bound"]


def count(items: Items) -> int:
    """Number of items."""
    return len(items.offsets) - 1


def take(items: Items, chosen) -> Items:
    """The items with these numbers, in this order."""
    starts, sizes = items.offsets[chosen], np.diff(items.offsets)[chosen]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    places = np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])
    index = items.index[places] if len(items.index) else items.index
    return as_items(offsets, index, items.value[places], items.value.dtype)


def dense_items(X, offsets=None) -> Items:
    """Rows of X as items of dense values, one each, or ``offsets[i]:offsets[i + 1]`` to item i.

    A float64 array in C order is not copied.
    """
    offsets = np.arange(len(X) + 1) if offsets is None else np.asarray(offsets)
    flat = np.ravel(X)
    return as_items(offsets.astype(np.int64) * X.shape[1], [], flat, np.dtype(np.float64))
