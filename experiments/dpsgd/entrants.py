"""Who races: scikit-learn's classifiers and ours, with the step sizes that each may choose from.

Both sides have the same grid.  For logistic regression it holds three schedules of
``SGDClassifier``, of which each is one of DPSGD's, at the same first rates; for the network
constant rates.  Batches are one item for logistic regression, as in ``SGDClassifier``, and each
side's own default for the network, 200 and 8.  Penalties are the same, all else is the default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier

from dpsvi import DPSGD, DPSGDLogisticRegression, DPSGDMLPClassifier

RATES = tuple(10 ** (half / 2) for half in range(-2, 5))  # of logistic regression, .1 to 100
CONSTANT = tuple(10 ** (half / 2) for half in range(-6, 1))  # of the network, .001 to 1
THREADS = (1, 2)


class Entrant(NamedTuple):
    """A way to fit a problem.

    Parameters
    ----------
    make : callable(step, seed, passes or None)
        A classifier with these parameters of its step size; None: its own rule of stopping.
    steps : dict of str to dict
        What the step size is chosen from.
    like : str or None
        The entrant whose choice this one takes instead of its own.
    same : bool
        Its parameters are those of `like`, bit for bit, so it needs as many passes.
    """

    make: Callable
    steps: dict[str, dict]
    like: str | None = None
    same: bool = False


class Problem(NamedTuple):
    """Training and test data, and who is fitted to them; the first entrant sets the mark."""

    name: str
    data: tuple  # X, y, test X, test y
    entrants: dict[str, Entrant]


def schedules(alpha: float) -> tuple[dict[str, dict], dict[str, dict]]:
    """The same step sizes as parameters of ``SGDClassifier`` and of ``DPSGD``.

    Step t = 0, 1, ... has the size eta, eta / sqrt(1 + t), or, as in "optimal", which computes its
    first rate from alpha, eta / (1 + alpha eta t).
    """
    first = alpha**-0.25  # the rate that "optimal" begins with, of this loss
    theirs = {"optimal": {"learning_rate": "optimal"}}
    ours = {
        "optimal": {
            "learning_rate": first, "learning_decay": 1.0, "learning_offset": 1 / (alpha * first)
        }
    }  # fmt: skip
    for rate in RATES:
        name = f"constant {rate:.2g}"
        theirs[name] = {"learning_rate": "constant", "eta0": rate}
        ours[name] = {"learning_rate": rate}
        name = f"{rate:.2g} / sqrt(1 + t)"
        theirs[name] = {"learning_rate": "invscaling", "eta0": rate, "power_t": 0.5}
        ours[name] = {"learning_rate": rate, "learning_decay": 0.5, "learning_offset": 1.0}
    return theirs, ours


def logistic(name: str, data: tuple, alpha: float, intercept_scaling: float) -> Problem:
    """One-vs-rest logistic regression, the loss and the penalty of ``SGDClassifier``."""
    theirs, ours = schedules(alpha)

    def peer(n_jobs, step, seed, passes):
        limit = {} if passes is None else {"max_iter": passes, "tol": None}
        return SGDClassifier(
            loss="log_loss", alpha=alpha, random_state=seed, n_jobs=n_jobs, **step, **limit
        )

    def own(n_jobs, step, seed, passes):
        return DPSGDLogisticRegression(
            alpha=alpha, loss="ovr", intercept_scaling=intercept_scaling,
            optimizer=_optimizer(n_jobs, step, seed, passes, 1),
        )  # fmt: skip

    first = "SGDClassifier"
    entrants = {
        first: Entrant(_with(peer, 1), theirs),
        "SGDClassifier, n_jobs=2": Entrant(_with(peer, 2), theirs, first, same=True),
        **_threads(own, ours),
    }
    return Problem(name, data, entrants)


def network(name: str, data: tuple, alpha: float, hidden: int) -> Problem:
    """A hidden layer of tanh and a softmax; scikit-learn divides its penalty by the batch."""
    rates = {f"constant {rate:.2g}": rate for rate in CONSTANT}

    def peer(solver, step, seed, passes):
        limit = {} if passes is None else {"max_iter": passes, "tol": 0.0}
        batch = 200
        return MLPClassifier(
            (hidden,), activation="tanh", alpha=alpha * batch, batch_size=batch,
            random_state=seed, solver=solver, **step, **limit,
        )  # fmt: skip

    def own(n_jobs, step, seed, passes):
        return DPSGDMLPClassifier(
            hidden, activation="tanh", alpha=alpha, random_state=seed,
            optimizer=_optimizer(n_jobs, step, seed, passes, 8),
        )  # fmt: skip

    theirs = {key: {"learning_rate_init": rate} for key, rate in rates.items()}
    ours = {key: {"learning_rate": rate} for key, rate in rates.items()}
    entrants = {
        "MLPClassifier, adam": Entrant(_with(peer, "adam"), theirs),
        "MLPClassifier, sgd": Entrant(_with(peer, "sgd"), theirs),
        **_threads(own, ours),
    }
    return Problem(name, data, entrants)


def _optimizer(n_jobs, step, seed, passes, batch_size) -> DPSGD:
    return DPSGD(n_jobs=n_jobs, max_iter=passes, random_state=seed, batch_size=batch_size, **step)


def _with(make, first) -> Callable:
    return lambda *others: make(first, *others)


def _threads(make, steps) -> dict[str, Entrant]:
    """DPSGD on each number of threads, with the step size that is best for one."""
    names = {n: f"DPSGD, {n} thread{'s' * (n > 1)}" for n in THREADS}
    return {
        name: Entrant(_with(make, n), steps, names[1] if n > 1 else None)
        for n, name in names.items()
    }
