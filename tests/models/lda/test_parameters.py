"""Saved models and parameters of DPSVILDA: back bit for bit, or refused by name."""

import json

import numpy as np
import pytest
from reference.lda import TopicCorpus
from scipy.sparse import csr_array
from sklearn.base import clone
from tools.lda_cases import OPTIONS, frame, make

from dpsvi import DPSVILDA, as_corpus
from dpsvi.errors import DpsviError, ModelFormatError
from dpsvi.files import io


@pytest.fixture(scope="module")
def fitted(X):
    return make().fit(X)


# --- saved models ------------------------------------------------------------------------------


@pytest.mark.parametrize("options", OPTIONS)
def test_save_and_load(options, tmp_path):
    """Bit for bit, over enough numbers for a rounding error to show."""
    drawn = TopicCorpus(20, n_words=2000, n_documents=500, n_tokens=100, alpha=0.1, seed=7)
    X = csr_array(drawn.counts)
    words = [f"w{i}" for i in range(2000)]
    model = make(n_components=20, **OPTIONS[options]).fit(as_corpus(X, words))
    model.save(tmp_path / "model")
    loaded = DPSVILDA.load(tmp_path / "model")
    assert np.array_equal(loaded.components_, model.components_)
    assert np.array_equal(loaded.doc_topic_prior_, model.doc_topic_prior_)
    assert loaded.topic_word_prior_ == model.topic_word_prior_
    assert np.array_equal(loaded.transform(X), model.transform(X))
    assert loaded.evaluate(X) == model.evaluate(X)
    assert loaded.get_params() == model.get_params()
    assert loaded.vocabulary_ == tuple(words)
    for name in ("n_iter_", "n_batch_iter_", "bound_", "n_features_in_"):
        assert getattr(loaded, name) == getattr(model, name)
    assert list(loaded.get_feature_names_out()) == list(model.get_feature_names_out())


def test_a_loaded_model_goes_on(X, tmp_path):
    model = make(warm_start=True).fit(X)
    model.save(tmp_path / "model")
    loaded = DPSVILDA.load(tmp_path / "model")
    for one in (model, loaded):
        one.partial_fit(X)
    assert loaded.n_batch_iter_ == model.n_batch_iter_ == 40
    np.testing.assert_allclose(loaded.components_, model.components_, rtol=1e-3, atol=1e-3)
    for one in (model, loaded):
        one.fit(X)
    assert loaded.n_batch_iter_ == model.n_batch_iter_ == 70
    np.testing.assert_allclose(loaded.components_, model.components_, rtol=1e-3, atol=1e-3)


def test_names_are_saved(X, tmp_path):
    model = make().fit(frame(X))
    model.save(tmp_path / "model")
    loaded = DPSVILDA.load(tmp_path / "model")
    assert list(loaded.feature_names_in_) == list(model.feature_names_in_)
    assert np.array_equal(loaded.transform(frame(X)), model.transform(frame(X)))
    with pytest.raises(ValueError, match="feature names"):
        loaded.transform(frame(X)[model.feature_names_in_[::-1]])


@pytest.mark.parametrize(
    "prior",
    [None, 0.3, np.float32(0.25), np.full(5, 0.2), [0.1, 0.2, 0.3, 0.4, 0.5], "auto"],
    ids=str,
)
def test_every_kind_of_prior_can_be_saved(X, prior, tmp_path):
    model = make(doc_topic_prior=prior).fit(X)
    model.save(tmp_path / "model")
    loaded = DPSVILDA.load(tmp_path / "model")
    assert np.array_equal(loaded.doc_topic_prior_, model.doc_topic_prior_)
    clone(loaded).fit(X)


def test_other_models_are_refused(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    meta = json.loads(path.read_text())
    for change, message in [
        ({"kind": "gaussian_mixture"}, "gaussian_mixture"),
        ({"schema": 99}, "99 is newer"),
        ({"params": {"n_topics": 3}}, "n_topics"),
        ({"params": meta["params"] | {"n_components": 4}}, "n_components|shape"),
    ]:
        path.write_text(io.meta_text(meta | change))
        with pytest.raises(ModelFormatError, match=message):
            DPSVILDA.load(tmp_path / "model")
    for missing in ("step", "eta", "vocabulary"):
        path.write_text(io.meta_text({k: v for k, v in meta.items() if k != missing}))
        with pytest.raises(ModelFormatError, match=missing):
            DPSVILDA.load(tmp_path / "model")


# --- parameters --------------------------------------------------------------------------------

WRONG = [
    ("n_components", 0, ">= 1"),
    ("n_components", 65_536, "<= 65535"),
    ("n_components", 2.0, "integer"),
    ("n_components", "ten", "integer"),
    ("n_components", True, "integer"),
    ("doc_topic_prior", 0.0, "> 0"),
    ("doc_topic_prior", -1, "> 0"),
    ("doc_topic_prior", np.nan, "> 0"),
    ("doc_topic_prior", np.inf, "> 0"),
    ("doc_topic_prior", "asymmetric", "auto"),
    ("doc_topic_prior", [0.1, 0.2], r"\(5,\)"),
    ("doc_topic_prior", [0.1, 0.2, 0.3, 0.4, 0.0], "> 0"),
    ("doc_topic_prior", 1e-50, "> "),  # 0 in float32
    ("topic_word_prior", 0, "> 0"),
    ("topic_word_prior", np.inf, "> 0"),
    ("topic_word_prior", "symmetric", "auto"),
    ("topic_word_prior", [0.1] * 59, "60 words"),
    ("topic_word_prior", 1e-50, "> "),
    ("local_step", "gibbs", "collapsed.*mean_field"),
    ("engine", "mpirun", "serial.*threads"),
    ("n_jobs", 0, ">= 1"),
    ("n_jobs", 0, ">= 1"),
    ("n_jobs", 1.5, "integer"),
    ("local_steps", 0, ">= 1"),
    ("batch_size", 0, ">= 1"),
    ("batch_size", 12.5, "integer"),
    ("max_iter", -1, ">= 0"),
    ("max_iter", None, "integer"),
    ("learning_decay", 0.0, "0"),
    ("learning_decay", 1.1, "1"),
    ("learning_decay", "fast", "number"),
    ("learning_offset", 0.0, "> 0"),
    ("learning_offset", -1.0, "> 0"),
    ("learning_offset", np.inf, "> 0"),
    ("learning_offset", None, "number"),
    ("learning_rate", 0.0, "> 0"),
    ("learning_rate", 1.5, "<= 1"),
    ("learning_rate", "optimal", "number"),
    ("lr_rule", "linear", "constant"),
    ("total_samples", 0, "> 0"),
    ("total_samples", "all", "number"),
    ("max_doc_update_iter", 0, ">= 1"),
    ("mean_change_tol", -1e-3, ">= 0"),
    ("mean_change_tol", np.nan, ">= 0"),
    ("validation_size", 0.0, "> 0"),
    ("validation_size", 1.0, "1.0"),
    ("validation_size", 300, "less than 300, the number of documents"),
    ("validation_size", -3, ">= 1"),
    ("validation_size", "half", "number|integer"),
    ("evaluate_every", 0, "> 0"),
    ("evaluate_every", np.inf, "> 0"),
    ("tol", -1.0, ">= 0"),
    ("n_iter_no_change", 0, ">= 1"),
    ("n_iter_no_change", 1.5, "integer"),
    ("callbacks", [3], "call"),
    ("random_state", "seed", "seed"),
]


ONLY_FIT = ("validation_size", "callbacks", "random_state")


@pytest.mark.parametrize(
    ("method", "name", "value", "allowed"),
    [("fit", *row) for row in WRONG]
    + [("partial_fit", *row) for row in WRONG if row[0] not in ONLY_FIT],
    ids=lambda v: str(v)[:20],
)
def test_wrong_parameters(X, method, name, value, allowed):
    """Refused with name, value and what is allowed, before anything is lost."""
    model = make(max_iter=1).fit(X)
    before, params = model.transform(X), model.get_params()
    model.set_params(**{name: value})
    with pytest.raises((ValueError, TypeError), match=f"(?s){allowed}") as caught:
        getattr(model, method)(X)
    if name != "random_state":  # scikit-learn's own check
        assert name in str(caught.value)
        assert repr(value) in str(caught.value) or np.ndim(value)
    model.set_params(**params)
    assert np.array_equal(model.transform(X), before), "what was learned is still there"


COMBINATIONS = [
    ({"engine": "serial", "n_jobs": 2}, "engine='serial'.*n_jobs=2"),
    ({"keep_responsibilities": True, "local_step": "mean_field"}, "keep_responsibilities"),
    ({"early_stopping": True}, "early_stopping.*validation_size"),
]


@pytest.mark.parametrize(("options", "message"), COMBINATIONS, ids=str)
def test_wrong_combinations(X, options, message):
    with pytest.raises(ValueError, match=message):
        make(**options).fit(X)


def test_one_document_cannot_be_held_out():
    with pytest.raises(ValueError, match="validation_size"):
        make(validation_size=1).fit([[1, 2, 3]])


def test_errors_of_dpsvi_are_also_built_in_ones():
    assert issubclass(ModelFormatError, DpsviError) and issubclass(ModelFormatError, ValueError)
