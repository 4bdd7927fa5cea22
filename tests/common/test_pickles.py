"""Copies and pickles of every model: joblib and skops make them."""

import copy
import io
import pickle

import joblib
import members
import numpy as np
import pytest
from members import every_member


def fitted(name):
    member = members.get(name)
    data = member.data(np.random.default_rng(3), 60)
    return member, member.estimator(max_iter=3).fit(**data), data


class Looking(pickle.Unpickler):
    """Notes what code a pickle calls for."""

    def __init__(self, data):
        super().__init__(io.BytesIO(data))
        self.found = set()

    def find_class(self, module, name):
        self.found.add((module.partition(".")[0], name))
        return super().find_class(module, name)


@every_member
def test_a_pickle_holds_numbers_and_names(name):
    """Of this package nothing but the estimator's class: skops asks for no other trust."""
    member, model, data = fitted(name)
    looking = Looking(pickle.dumps(model))
    again = looking.load()
    ours = {(package, what) for package, what in looking.found if package == "dpsvi"}
    assert ours == {("dpsvi", type(model).__name__)}
    np.testing.assert_allclose(
        member.answer(again, data), member.answer(model, data), rtol=1e-5, atol=1e-7
    )
    assert again.history_ == model.history_ and again.n_iter_ == model.n_iter_


@every_member
def test_a_copy_goes_on_alone(name):
    """With the parameters of the fit, whatever they were set to since."""
    member, model, data = fitted(name)
    before = model._state.natural().copy()
    other = copy.deepcopy(model).partial_fit(**data)
    assert np.array_equal(model._state.natural(), before)
    same = pickle.loads(pickle.dumps(model)).partial_fit(**data)
    np.testing.assert_array_equal(same._state.natural(), other._state.natural())
    assert other._state.step > model._state.step and np.any(other._state.natural() != before)
    for parameter, value in member.others.items():
        changed = copy.deepcopy(copy.deepcopy(model).set_params(**{parameter: value}))
        np.testing.assert_allclose(changed._state.natural(), before, rtol=1e-5, atol=1e-7)


@every_member
def test_one_that_is_mapped_goes_on(name, tmp_path):
    """Arrays of a mapped file cannot be written, and kernels may be compiled for others alone."""
    member, model, data = fitted(name)
    joblib.dump(model, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    np.testing.assert_allclose(
        member.answer(mapped, data), member.answer(model, data), rtol=1e-5, atol=1e-7
    )
    same = pickle.loads(pickle.dumps(model)).partial_fit(**data)
    found = mapped.partial_fit(**data)._state.natural()
    np.testing.assert_array_equal(found, same._state.natural())


@every_member
def test_a_callback_may_copy_what_is_being_fitted(name):
    member, copies = members.get(name), []
    data = member.data(np.random.default_rng(3), 60)
    model = member.estimator(max_iter=3, callbacks=[lambda _: copies.append(copy.deepcopy(model))])
    if hasattr(model, "topic_word_prior"):
        model.set_params(topic_word_prior=None)  # else it is learned once more in the end
    model.fit(**data)
    rows = [one._state.natural() for one in copies]
    assert len(rows) >= 3 and np.any(rows[0] != rows[-1])
    # The topics of the HDP are put in order in the end.
    found, expected = (np.sort(x, axis=None) for x in (rows[-1], model._state.natural()))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@every_member
def test_an_estimator_that_was_not_fitted(name):
    model = members.get(name).estimator(max_iter=3)
    assert pickle.loads(pickle.dumps(model)).get_params() == model.get_params()


@every_member
def test_skops_trusts_it_by_its_class_alone(name):
    """Stored and loaded by skops itself, which is asked to trust nothing but the estimator."""
    skops_io = pytest.importorskip("skops.io", reason="skops is not installed")
    member, model, data = fitted(name)
    stored = skops_io.dumps(model)
    trusted = skops_io.get_untrusted_types(data=stored)
    assert trusted == [f"{type(model).__module__}.{type(model).__name__}"]
    again = skops_io.loads(stored, trusted=trusted)
    np.testing.assert_allclose(
        member.answer(again, data), member.answer(model, data), rtol=1e-5, atol=1e-7
    )
