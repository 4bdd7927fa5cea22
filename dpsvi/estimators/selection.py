"""How many components: fits with several numbers, compared on items that none of them has seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from dpsvi.errors import check_number
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
        Held-out scores of all numbers, in the order in which they were given; higher is better.
    """

    n_components: int
    estimator: Any
    scores: dict[int, float]


def select_components(
    estimator: Any, X: Any, values: Iterable[int], *, validation_size: float = 0.2,
    **fit_params: Any,
) -> Selection:  # fmt: skip
    """Choose the number of components by the score of held-out items.

    Some items are held out, and clones of the estimator are fitted to the others, one for each
    value of `n_components`.  The scores are those that each model has for held-out items: the mean
    term of the ELBO of points, the sum of the terms of sequences, the log-likelihood in nats of
    what is predicted of users and documents by completion (minus the logarithm of the perplexity).

    Parameters
    ----------
    estimator : estimator
        One with a number of components; it stays as it is.
    X : as in its `fit`
        All items.
    values : iterable of int, >= 1
        Numbers of components to compare.
    validation_size : float in (0, 1) or int, default=0.2
        Share or number of the items that are held out, the same ones for all values.
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
        The estimator has no number of components, or learns it; the values, `validation_size` or
        the data are not allowed.

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
    _check(estimator)
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
            n_components=value, validation_size=validation_size, random_state=seed
        )
        scores[value] = _score(candidate.fit(X, **fit_params), X, fit_params)
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


def _score(fitted, X, fit_params) -> float:
    """Score of the items that `fitted` has held out, by the parameters at its end.

    The last score in `history_` may be older: topic models learn priors after it.
    """
    items = fitted._read(X, reset=False, **fit_params)
    _, held_out = fitted._hold_out(items, np.random.default_rng(fitted._seed))
    return float(fitted._held_out_score(fitted._state, held_out)["score"])
