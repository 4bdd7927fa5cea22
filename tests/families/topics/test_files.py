"""Fitted topic models keep their meaning, whatever is set after the fit, in memory and in files."""

from functools import partial

import numpy as np
import pytest

import dpsvi
from dpsvi import DPSVIHDP, DPSVILDA
from dpsvi.errors import ModelFormatError
from dpsvi.files import io

TOPICS = {
    "lda": partial(DPSVILDA, n_components=3),
    "collapsed hdp": partial(DPSVIHDP, n_components=6),
    "mean-field hdp": partial(DPSVIHDP, n_components=6, local_step="mean_field"),
}
OTHER = dict(n_components=4, local_step=("collapsed", "mean_field"), topic_concentration=9.0)

every_model = pytest.mark.parametrize("name", TOPICS)


def fit(name, X, **params):
    return TOPICS[name](max_iter=2, batch_size=32, random_state=0, **params).fit(X)


@every_model
def test_parameters_set_after_the_fit_change_no_answer(name, X, tmp_path):
    model = fit(name, X)
    theta, values = model.transform(X), model.get_params()
    for size in (*model._fixed, *model._settings):
        other = OTHER[size]
        if isinstance(other, tuple):
            (other,) = set(other) - {values[size]}
        model.set_params(**{size: other})
        assert np.array_equal(model.transform(X), theta), size
        model.save(tmp_path)
        loaded = dpsvi.load(tmp_path)
        assert getattr(loaded, size) == values[size]
        np.testing.assert_allclose(loaded.transform(X), theta, rtol=1e-4, atol=1e-6)
        model.set_params(**{size: values[size]})


@every_model
@pytest.mark.parametrize("n_components", [1, 2, 30])
def test_the_number_of_topics_stays(name, n_components, X, tmp_path):
    """In whatever way it is set: one column could be spread over four."""
    model = fit(name, X)
    was = model.n_components
    model.set_params(n_components=n_components, warm_start=True).save(tmp_path)
    loaded = dpsvi.load(tmp_path)
    assert loaded.n_components == was and loaded.components_.shape == model.components_.shape
    for method in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=f"n_components was {was} when the fit started"):
            method(X)


def test_a_fit_that_goes_on_takes_the_local_step_of_today(X):
    model = fit("lda", X, warm_start=True)
    model.set_params(local_step="mean_field").fit(X)
    changed = model.transform(X)
    model.set_params(local_step="collapsed")
    assert np.array_equal(model.transform(X), changed)


def test_arrays_of_another_number_of_topics_are_refused(X, tmp_path):
    fit("lda", X, doc_topic_prior=None).save(tmp_path)
    arrays, meta = io.load_model(tmp_path)
    arrays["lambda"] = arrays["lambda"][:, :1]
    meta = {k: v for k, v in meta.items() if k not in ("schema", "kind", "sha256", "arrays")}
    io.save_model(tmp_path, kind="lda", arrays=arrays, meta=meta)
    with pytest.raises(ModelFormatError, match=r"lambda of shape \(60, 1\) for 3 topics"):
        dpsvi.load(tmp_path)
