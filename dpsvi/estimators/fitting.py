"""`fit` and `partial_fit`, once for all models.

Both check the parameters, read the data, train a state from where it is and finish; `fit` holds
items out before, and may begin several times.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Self, TypeVar

import numpy as np

from dpsvi.base import Items
from dpsvi.estimators.lasting import Lasting
from dpsvi.estimators.monitor import Monitor
from dpsvi.estimators.scikit_learn import CallbackSupportMixin, with_callbacks
from dpsvi.files import io
from dpsvi.training.items import count, take

_Method = TypeVar("_Method", bound=Callable[..., Any])


def fit_method(method: _Method) -> _Method:
    """Decorate `fit` or `partial_fit`, and let scikit-learn's callbacks follow it.

    The estimator stays as it was when the method refuses its input or fails.  One that was
    interrupted while it trained has kept its model: then the interrupt is raised.
    """
    method = with_callbacks(method)

    @wraps(method)
    def guarded(estimator, *args, **kwargs):
        before = dict(estimator.__dict__)
        try:
            fitted = method(estimator, *args, **kwargs)
        except BaseException:
            estimator.__dict__.clear()
            estimator.__dict__.update(before)
            raise
        for name in estimator._while_fitting:
            del vars(estimator)[name]
        interrupt = vars(estimator).pop("_interrupted_by", None)
        if interrupt is not None:
            raise interrupt
        return fitted

    return guarded


class Fitting(CallbackSupportMixin, Lasting):
    """The part of an estimator that carries out a fit."""

    n_iter_: int
    n_batch_iter_: int
    _fixed: tuple[str, ...] = ()
    _settings: tuple[str, ...] = ()
    _while_fitting: tuple[str, ...] = ()  # attributes that are there until the fit has ended

    @fit_method
    def fit(self, X: Any, y: Any = None) -> Self:
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

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIGaussianMixture
        >>> X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0], [9]], 100, axis=0)
        >>> mixture = DPSVIGaussianMixture(2, random_state=0).fit(X)
        >>> sorted(mixture.means_[:, 0].round().astype(int).tolist())
        [0, 9]
        """
        return self._fit(X, y)

    @fit_method
    def partial_fit(self, X: Any, y: Any = None) -> Self:
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

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIGaussianMixture
        >>> X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0], [9]], 100, axis=0)
        >>> mixture = DPSVIGaussianMixture(2, random_state=0)
        >>> for some in np.random.default_rng(0).permutation(X).reshape(2, 100, 2):
        ...     mixture = mixture.partial_fit(some)
        >>> mixture.n_iter_
        2
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
        self._note_data(items)
        rng = self._generator()
        train, held_out = self._hold_out(items, rng)
        monitor = Monitor(self, held_out, self._readable(X, items), y)
        self._n_seen = n = count(train)
        best = None
        with self._signals_for_engines():
            for start in range(1 if going_on else self.n_init):
                if start and self._agree(monitor.cancelled or self.interrupted_ != 0):
                    break
                monitor.restart()
                self._state = self._begin(train, None, rng, going_on)
                first = self._state.items
                self._train_passes(train, rng, monitor)
                self.n_iter_ = -(-(self._state.items - first) // n)
                self._finish(train)
                if best is None or self._agree(self.lower_bound_ > best["lower_bound_"]):
                    best = dict(vars(self))
        vars(self).update(best, interrupted_=self.interrupted_)
        monitor.close(self._state)
        return self

    def _partial_fit(self, X, y, **more):
        self.check_params()
        going_on = hasattr(self, "_state")
        self._note_fixed(going_on)
        items = self._read(X, y, reset=not going_on, **more)
        rng = self._generator()
        # Those of several passes of a fit count once.
        self._n_seen = count(items) + (self._n_seen if going_on else 0)
        total = self._stream_total(items, going_on)
        if self.forgetting is not None:
            total = min(total, self.forgetting)
        self._state = self._begin(items, total, rng, going_on)
        monitor = Monitor(self, None, self._readable(X, items), y)
        self._train_passes(items, rng, monitor, total)
        self.n_iter_ = getattr(self, "n_iter_", 0) + 1
        self._finish(items, total)
        monitor.close(self._state)
        return self

    def _stream_total(self, items, going_on) -> float:
        """N, which the next `items` of a stream stand for: as given, or all seen."""
        return self._n_seen if self.total_samples is None else self.total_samples

    def _note_fixed(self, going_on: bool) -> None:
        """Fill `_started`; raises ValueError if a fit that goes on would change what is fixed."""
        params = io.plain_params(self)
        now = {name: params[name] for name in (*self._fixed, *self._settings)}
        for name in self._fixed if going_on else ():
            if now[name] != self._started[name]:
                raise ValueError(
                    f"{name} was {self._started[name]!r} when the fit started, got {now[name]!r}"
                )
        self._started = now

    def _hold_out(self, items, rng) -> tuple[Items, Items | None]:
        """Items for training and for validation."""
        size = self._resolve_validation_size(count(items))
        if not size:
            return items, None
        order = rng.permutation(count(items))
        return take(items, np.sort(order[size:])), take(items, np.sort(order[:size]))

    def _readable(self, X, items):
        """X as scikit-learn's callbacks get it, which may read it several times."""
        return X

    def _train_passes(self, items, rng, monitor, total=None) -> None:
        """Make all passes of a fit or, with `total`, one over the next items of a stream."""
        if total is None:
            self._train_to_end(items, rng, monitor)
        else:
            self._train(self._state, items, 1, rng, monitor, total)

    def _reached(self, epoch: float, state) -> None:
        """Take note that a fit, whose parameters are in `state`, has come to `epoch`.

        This is called wherever the fit's observer looks, before it does; on several processes on
        rank 0.
        """

    def _finish(self, items, total=None) -> None:
        """End a fit to `items`: set what is fitted."""
        self._state.settle()
        self._state.forget()
        vars(self).update(self._attributes(self._state))
        self.n_batch_iter_ = self._state.step
