"""All models as the common tests see them: one file a model, named as the model."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from dpsvi import VirtualCluster
from dpsvi.cluster.virtual import Timing

# Every step takes a second, nothing else takes time: the machine is not measured.
SECOND = Timing(step=1.0, value=0.0)

# Parameters of fits in which several threads or workers step at the same time.
several_at_once = pytest.mark.parametrize(
    "more",
    [
        dict(n_jobs=2),
        dict(engine="simulated", cluster=VirtualCluster(n_workers=3, timing=SECOND)),
        dict(
            engine="simulated",
            cluster=VirtualCluster(n_workers=3, timing=SECOND, strategy="displacement"),
        ),
    ],
    ids=["threads", "decay", "displacement"],
)


class Member(NamedTuple):
    """One model.

    Parameters
    ----------
    estimator : callable(**params) -> estimator
        Small, with ``random_state=0``, ready for `data`.
    data : callable(rng, n) -> dict
        Keyword arguments of `fit`, about `n` items that the model suits.
    degenerate : callable(rng) -> dict of name -> keyword arguments of `fit`
        Data that are hard: one item, identical items, ...; each must be fitted, not refused.
    answer : callable(estimator, data) -> array
        What users want of the fitted model: predictions, scores; compared between engines, number
        types, and before and after saving.
    bad : list of (parameters, message)
        Parameters that `fit` refuses with a ValueError or TypeError whose text matches.
    others : dict
        Another value for each parameter that a fit which goes on may not change.
    laws : callable(estimator, data) -> dict of text -> (callable, distribution)
        What numbers the callable makes of draws of the posterior, (n_samples, ...), and their
        distribution by scipy.stats, from the fitted attributes where they say enough.  The text
        begins with the name of a quantity; each has one at least.
    means : callable(estimator) -> dict of name -> (callable, array)
        For quantities whose draws do not have the fitted attribute for a mean: what numbers the
        callable makes of the draws, and their mean.
    phases : tuple of dict
        Parameters of fits that call the engine several times: from one pass on, or from another.
    remembered : callable(data, state) -> array, or None
        ``lam - prior`` as the sum of what incremental passes to `data` remember in a state, of
        models that have such passes.
    wrong_numbers : tuple of (array, place, number)
        Numbers of saved arrays that no model has, such as more components than there are rows.
    monotone : bool
        Full batches at rate 1 are coordinate ascent, so that no step lowers the bound.
    """

    estimator: Callable[..., Any]
    data: Callable[..., dict]
    degenerate: Callable[..., dict]
    answer: Callable[..., Any]
    bad: list
    others: dict
    laws: Callable[..., dict]
    means: Callable[..., dict] = lambda estimator: {}
    phases: tuple[dict, ...] = ()
    remembered: Callable[..., Any] | None = None
    wrong_numbers: tuple = ()
    monotone: bool = True


def names() -> list[str]:
    """Members that have a file here."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def get(name: str) -> Member:
    """The member of this name."""
    return importlib.import_module(f"members.{name}").MEMBER


every_member = pytest.mark.parametrize("name", names())


def fit(member: Member, data: dict, **params):
    """A fitted estimator of this member."""
    return member.estimator(**params).fit(**data)


def quality(estimator):
    """What a fit makes larger: the bound, or minus the perplexity that follows from it."""
    found = getattr(estimator, "lower_bound_", None)
    return -estimator.bound_ if found is None else found
