"""Weights of rows, in every model whose `fit` takes `sample_weight`."""

from inspect import signature

import members
import numpy as np
import pytest

import dpsvi
from dpsvi import models
from dpsvi.training.items import count

WEIGHTED = [
    name for name in members.names()
    if "sample_weight" in signature(models.get(name).fit).parameters
]  # fmt: skip
GROUPED = [name for name in WEIGHTED if hasattr(models.get(name), "fit_predict")]
every_weighted = pytest.mark.parametrize("name", WEIGHTED)


def test_some_models_take_weights():
    assert len(WEIGHTED) >= 3 and GROUPED


@every_weighted
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_weights_are_repetitions(name, method, rng, tmp_path):
    """Full batches from the same parameters: rows that count twice are rows that are there twice.

    One that counts 0 times is not there.
    """
    member = members.get(name)
    data = member.data(rng, 60)
    weight = rng.integers(4, size=len(data["X"]))
    assert weight.min() == 0
    repeated = {key: np.repeat(array, weight, axis=0) for key, array in data.items()}
    member.estimator(max_iter=2).fit(**data).save(tmp_path)
    settings = dict(batch_size=10_000, learning_rate=1.0, max_iter=3, warm_start=True)
    weighted, plain = (dpsvi.load(tmp_path).set_params(**settings) for _ in range(2))
    # The items of a mixture are its rows: of a stream there would be more.
    weighted.set_params(total_samples=count(weighted._read(
        **{"y": None, **data}, sample_weight=weight, reset=False
    )))  # fmt: skip
    plain.set_params(total_samples=count(plain._read(**{"y": None, **repeated}, reset=False)))
    getattr(weighted, method)(**data, sample_weight=weight)
    getattr(plain, method)(**repeated)
    np.testing.assert_allclose(
        weighted._state.natural(), plain._state.natural(), rtol=1e-9, atol=1e-9
    )
    assert weighted.lower_bound_ == pytest.approx(plain.lower_bound_, rel=1e-9)
    np.testing.assert_allclose(
        member.answer(weighted, data), member.answer(plain, data), rtol=1e-8, atol=1e-8
    )


@every_weighted
def test_weights_that_cannot_be_are_refused(name, rng):
    member = members.get(name)
    data = member.data(rng, 10)
    n = len(data["X"])
    for weight, got in (
        (np.ones(n + 1), rf"shape \({n},\) as X has, got \({n + 1},\)"),
        (np.where(np.arange(n), 1.0, -2.0), "not all 0, got -2"),
        (np.where(np.arange(n), 1.0, np.nan), "not all 0, got nan"),
        (np.zeros(n), "not all 0, got zeros only"),
        (["many"] * n, "be numbers: .*'many'"),
    ):
        with pytest.raises(ValueError, match=f"sample_weight must .*{got}"):
            member.estimator().fit(**data, sample_weight=weight)


@pytest.mark.parametrize("name", GROUPED)
def test_weights_count_where_groups_are_fitted_and_predicted_at_once(name, rng):
    member = members.get(name)
    data = member.data(rng, 60)
    data["sample_weight"] = np.arange(len(data["X"])) % 3
    found = member.estimator(max_iter=2).fit_predict(**data)
    assert np.array_equal(found, member.estimator(max_iter=2).fit(**data).predict(data["X"]))
