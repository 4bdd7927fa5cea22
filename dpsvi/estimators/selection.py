"""How many components: fits with several numbers, compared by held-out items or by their ELBO."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import clone

from dpsvi.errors import check_choice, check_number
from dpsvi.estimators.arrays import ArrayEstimator
from dpsvi.estimators.base import SVIEstimator


class Selection(NamedTuple):
    """What :func:`select_components` found.

    Parameters
    ----------
    n_components : int
        The number with the highest score.
    estimator : estimator
        That of this number, fitted to the items that were not held out.
    scores : dict of int to float
        Scores of all numbers, in the order in which they were given; higher is better.
    """

    n_components: int
    estimator: Any
    scores: dict[int, float]


def select_components(
    estimator: Any, X: Any, values: Iterable[int], *,
    criterion: Literal["held_out", "elbo"] = "held_out", validation_size: float = 0.2,
    **fit_params: Any,
) -> Selection:  # fmt: skip
    """Choose the number of components by the score of held-out items, or by the ELBO.

    *Held-out items.*  Some items are held out, and clones of the estimator are fitted to the
    others, one for each value of `n_components`.  The scores are those that each model has for
    held-out items: the mean term of the ELBO of points, the sum of the terms of sequences, the
    log-likelihood in nats of what is predicted of users and documents by completion (minus the
    logarithm of the perplexity).

    *ELBO.*  Clones are fitted to all items, and the scores are their `lower_bound_`, in nats: what
    parameters cost is in it.  q knows one of the K! orders of K components, so that the bound is
    up to ln K! too low (Bishop 2006, 10.2.4); that is not added, for empty components are alike in
    every order.  Topic models do not have this criterion: their `bound_` leaves out what topics
    cost.

    Parameters
    ----------
    estimator : estimator
        One with a number of components; it stays as it is.
    X : as in its `fit`
        All items.
    values : iterable of int, >= 1
        Numbers of components to compare.
    criterion : {"held_out", "elbo"}, default="held_out"
        What scores are.
    validation_size : float in (0, 1) or int, default=0.2
        Share or number of the items that are held out, the same ones for all values; the ELBO
        needs none.
    **fit_params
        What `fit` takes besides, as `lengths` of sequences.

    Returns
    -------
    Selection
        ``(n_components, estimator, scores)``.  To have the same model of all items fit it again:
        ``selection.estimator.set_params(validation_size=None).fit(X)``.

    Raises
    ------
    TypeError, ValueError
        The estimator has no number of components, or learns it, or it has no ELBO; the values,
        `criterion`, `validation_size` or the data are not allowed.

    References
    ----------
    Bishop (2006), Pattern Recognition and Machine Learning, 10.2.4.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsvi import DPSVIGaussianMixture, select_components
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2)) + 10 * rng.integers(2, size=(400, 1))
    >>> found = select_components(DPSVIGaussianMixture(random_state=0), X, [1, 2, 3])
    >>> found.n_components, list(found.scores)
    (2, [1, 2, 3])
    """
    check_choice("criterion", criterion, ["held_out", "elbo"])
    _check(estimator)
    by_elbo = criterion == "elbo"
    if by_elbo and not isinstance(estimator, ArrayEstimator):
        raise ValueError(
            f"criterion must be 'held_out' for {type(estimator).__name__}, whose bound leaves out "
            "what topics cost, got 'elbo'"
        )
    if not isinstance(values, Iterable):
        raise TypeError(f"values must hold numbers of components, as [5, 10] does, got {values!r}")
    values = list(values)
    if not values:
        raise ValueError("values must hold numbers of components, got none")
    for value in values:
        check_number("values", value, low=1, integer=True)
    if validation_size is None:
        raise TypeError("validation_size must be > 0 and < 1.0, or a count, got None")
    if isinstance(X, Iterator):
        X = list(X)  # every fit reads it
    seed = estimator._draw_seed()  # one for all: the same items are held out
    best, scores = None, {}
    for value in dict.fromkeys(map(int, values)):
        candidate = clone(estimator).set_params(
            n_components=value, random_state=seed,
            validation_size=None if by_elbo else validation_size,
        )  # fmt: skip
        candidate.fit(X, **fit_params)
        scores[value] = candidate.lower_bound_ if by_elbo else _held_out(candidate, X, fit_params)
        if best is None or scores[value] > scores[best.n_components]:
            best = candidate
    return Selection(best.n_components, best, scores)


def _check(estimator) -> None:
    name = type(estimator).__name__
    if not isinstance(estimator, SVIEstimator):
        raise TypeError(f"estimator must be a variational model of dpsvi, got {estimator!r}")
    if "n_components" not in estimator.get_params():
        raise ValueError(f"{name} has no parameter n_components to select")
    if estimator._learns_size:
        raise ValueError(
            f"n_components of {name} is not selected but learned: it is the most that there can "
            "be, and a fit uses as many as it needs"
        )
    if estimator.checkpoint_dir is not None:
        raise ValueError(
            "checkpoint_dir must be None, for a folder holds the checkpoints of one fit, got "
            f"{estimator.checkpoint_dir!r}"
        )


def _held_out(fitted, X, fit_params) -> float:
    """Score of the items that `fitted` has held out, by the parameters at its end.

    The last score in `history_` may be older: topic models learn priors after it.
    """
    items = fitted._read(X, reset=False, **fit_params)
    _, held_out = fitted._hold_out(items, np.random.default_rng(fitted._seed))
    return float(fitted._held_out_score(fitted._state, held_out)["score"])
