"""What all estimators are: parameters, a fit, files; and what a model's estimator adds to that."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from dpsvi.estimators.docstrings import fill
from dpsvi.estimators.fitting import Fitting
from dpsvi.estimators.sampling import Sampling
from dpsvi.estimators.saving import Saving
from dpsvi.estimators.scikit_learn import BaseEstimator

RUN_ATTRIBUTES = """\
    interrupted_ : int
        0, or the exit status (130 for Ctrl-C) of the signal that ended the fit early.
    exchanges_ : dict
        With ``engine="mpi"`` or ``"simulated"`` what was sent and waited for, and in how many
        exchanges which B and p were used (``local_steps``, ``threads``), answers were withheld
        (``withheld``) and `global_rate` was reduced (``reduced``, of ``global_steps``), and the
        ``order`` in which a master heard of its workers, with 0 where it answered, for
        ``VirtualCluster(replay=...)``.  Else ``threads``: how many steps were made with so many of
        them at work.
    n_iter_, n_batch_iter_ : int
        Passes and steps done; where workers share batches, whole ones.
"""


class SVIEstimator(Saving, Sampling, Fitting, BaseEstimator):
    """Base of the estimators.

    A subclass is decorated by :func:`dpsvi.estimators.engine_parameters.engine_parameters`, names
    its files by `_kind`, stores parameters of its own, and defines

    * ``check_params()``: raise ValueError or TypeError for a parameter that is not allowed;
    * ``_read(X, y=None, *, reset, **more) -> Items``: validated data; on reset they say what the
      features are.  `more` are the parameters of `fit` besides X and y;
    * ``_begin(items, total, rng, going_on) -> State``: the state that training starts from, a new
      one or that of the last fit with these items.  `items` are the next ones of a stream and
      stand for `total`, or (None) are all;
    * ``_held_out_score(state, items) -> dict`` with a ``"score"`` (higher is better) among its
      entries;
    * ``_fitted(state) -> dict``: the fitted attributes that do not depend on the training data;
    * ``_content() -> (arrays, dict)`` and ``_restore(arrays, meta)``: what :meth:`save` is to keep
      besides clocks and names, and how it is taken over;
    * ``_draw_posterior(n_samples, rng) -> dict``: draws from the posterior, for
      :meth:`posterior_samples`;
    * ``_distances(other) -> array``, how unlike its components and those of another fit are, and
      ``_reordered(order, model) -> lam``, its natural parameters with components in another order,
      as those of `model`, which is that of another fit; for :mod:`dpsvi.averaging`;
    * ``lower_bound_``, set by `_finish`, if it has the parameter `n_init`.

    What several estimators say of their parameters and attributes is written once, in `_texts` of
    their base: a line ``{name}`` of a class docstring becomes the text of this name.

    Parameters that say what the fitted arrays mean are named in `_fixed`, or in `_settings` if a
    fit that goes on may change them.  A fit notes them in `_started`, as JSON gives them back, and
    whatever uses the fitted model takes them from there: those of the estimator may be other ones
    by then.

    A fit with the parameters as they are compiles most of a model's code.  Parameters of fits that
    compile the rest are in `_warmup`, for ``dpsvi warmup``.
    """

    _items: str  # what the data are made of, from `engine_parameters`
    _texts: ClassVar[dict[str, str]] = {}
    _learns_size = False  # whether n_components is the most there can be, of which some stay empty
    _extra: tuple[str, ...] = ()  # more attributes that `fit` sets and the fitted model needs
    _warmup: ClassVar[tuple[dict[str, Any], ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for base in cls.__mro__:
            for name, text in vars(base).get("_texts", {}).items():
                cls.__doc__ = fill(cls.__doc__, name, text)

    def _distances(self, other) -> np.ndarray:
        raise NotImplementedError(
            f"{type(self).__name__} does not say how components of several fits are matched: "
            "it defines no _distances(other)"
        )

    def _attributes(self, state) -> dict:
        """Attributes of an estimator whose fit has ended at `state`."""
        kept = (
            "n_features_in_", "feature_names_in_", "_n_threads", "_n_seen", "_started", "_dtype",
            *self._extra,
        )  # fmt: skip
        return (
            {"_state": state}
            | {name: vars(self)[name] for name in kept if name in vars(self)}
            | self._fitted(state)
        )
