"""Tests that every model has to pass, whatever it models."""

import json
import warnings

import members
import numba
import numpy as np
import pytest
import scipy.sparse
import sklearn
from members import every_member, fit, quality
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks
from tools.mpiexec import needs

import dpsvi
from dpsvi import VirtualCluster, models
from dpsvi.__main__ import main
from dpsvi.errors import CorpusWarning, ModelFormatError
from dpsvi.kernels.jit import compile_local
from dpsvi.training.items import count, dense_items, take
from dpsvi.training.task import make_works

SCIKIT_LEARN, NUMBA = (
    tuple(int(part) for part in package.__version__.split(".")[:2]) for package in (sklearn, numba)
)
NAMES = members.names()
every_member_of_several_starts = pytest.mark.parametrize(
    "name", [name for name in NAMES if "n_init" in models.get(name)().get_params()]
)


def test_no_model_is_forgotten():
    assert set(models.names()) == set(NAMES)


@parametrize_with_checks([models.get(name)() for name in NAMES])
def test_scikit_learn_checks(estimator, check):
    classes = get_tags(estimator).classifier_tags
    weights = check.func.__name__ == "check_sample_weight_equivalence_on_dense_data"
    if weights and classes is not None and not classes.multi_class and SCIKIT_LEARN < (1, 7):
        pytest.skip("scikit-learn 1.6 names the two classes of its samples in different orders")
    if weights and hasattr(estimator, "init_params") and estimator.n_components > 1:
        pytest.skip("k-means draws other first components where points are repeated")
    check(estimator)


@every_member
def test_bad_parameters_are_named(name, rng):
    member = members.get(name)
    assert member.bad
    for params, message in member.bad:
        with pytest.raises((ValueError, TypeError), match=message):
            member.estimator(**params).fit(**member.data(rng, 40))


# --- the maths --------------------------------------------------------------------------------


def tolerance(estimator, double, single):
    """What rounding allows, by the type of the parameters."""
    return double if estimator._state.model.real == np.float64 else single


def full_batch(member, data, **params):
    """An estimator whose every pass is one step of coordinate ascent."""
    n = member.estimator(max_iter=1).fit(**data)._state.items
    return member.estimator(batch_size=n, learning_rate=1.0, warm_start=True, **params)


@every_member
def test_coordinate_ascent_never_lowers_the_bound(name, rng):
    member = members.get(name)
    data = member.data(rng, 150)
    estimator, bounds = full_batch(member, data, max_iter=1), []
    for _ in range(25):
        bounds.append(quality(estimator.fit(**data)))
    rises = np.diff(bounds)
    assert np.isfinite(bounds).all() and bounds[-1] > bounds[0]
    if member.monotone:
        assert (rises > -1e-8 * abs(bounds[-1])).all()


def target(state, items, batch):
    """lam-hat of some items: what a step at rate 1 would make of the parameters."""
    model = state.model
    (work,) = make_works(model, items, len(batch), 1)
    work.totals[:] = state.shared.totals.sum(axis=0)
    local = compile_local(model.local, model.real)
    n = local(state.shared, state.scale, model.hyper, items, np.array(batch, np.int32), work)
    assert (work.slot == -1).all(), "a local step must leave slot as it was"
    lam = np.array(np.broadcast_to(model.prior, model.shape))
    lam[work.touched[:n]] += work.stats[:n] * (count(items) / len(batch))
    assert len(np.unique(work.touched[:n])) == n
    return lam


@every_member
def test_single_items_are_unbiased(name, rng):
    """The mean of lam-hat over all batches of one item is lam-hat of all items."""
    member = members.get(name)
    data = member.data(rng, 30)
    estimator = member.estimator(max_iter=3).fit(**data)
    items = estimator._read(**{"y": None, **data}, reset=False)
    state, n = estimator._state, count(items)
    mean = np.mean([target(state, items, [i]) for i in range(n)], axis=0)
    whole = target(state, items, range(n))
    rtol, atol = tolerance(estimator, 1e-8, 1e-4), tolerance(estimator, 1e-9, 1e-6)
    np.testing.assert_allclose(mean, whole, rtol=rtol, atol=atol * np.abs(whole).max())


@every_member
def test_local_steps_leave_the_parameters_alone(name, rng):
    member = members.get(name)
    data = member.data(rng, 30)
    estimator = member.estimator(max_iter=2).fit(**data)
    items = estimator._read(**{"y": None, **data}, reset=False)
    before = estimator._state.shared.rows.copy()
    first, again = (target(estimator._state, items, range(5)) for _ in range(2))
    assert np.array_equal(first, again)
    assert np.array_equal(before, estimator._state.shared.rows)


@every_member
def test_the_natural_gradient_ascends(name, rng):
    """d bound / d lam along lam-hat - lam is positive away from a fixed point (45)."""
    member = members.get(name)
    if not member.monotone:
        pytest.skip("its bound is no bound of these coordinates")
    data = member.data(rng, 100)
    estimator = full_batch(member, data, max_iter=2).fit(**data)
    items = estimator._read(**{"y": None, **data}, reset=False)
    state, n = estimator._state, count(items)
    state.renormalise()
    lam, rows = state.natural(), state.shared.rows.copy()
    direction = target(state, items, range(n)) - lam
    bounds = []
    for step in (-1e-4, 1e-4):
        state.shared.rows[...] = rows + step * direction
        state.recount()
        bounds.append(estimator._lower_bound(state, items, n))
    assert bounds[1] > bounds[0]


@every_member_of_several_starts
def test_the_best_of_several_starts_is_kept(name, rng):
    """The first start is that of n_init=1; the others go on with the same generator."""
    member = members.get(name)
    data = member.data(rng, 80)
    once = fit(member, data, max_iter=2)
    ends = []
    several = fit(member, data, max_iter=2, n_init=4, callbacks=[lambda e: ends.append(e.step)])
    assert ends == [entry["step"] for entry in several.history_] * 4
    assert several.lower_bound_ >= once.lower_bound_
    assert several._lower_bound(
        several._state, several._read(**{"y": None, **data}, reset=False), several._state.items / 2
    ) == pytest.approx(several.lower_bound_, rel=1e-12)
    gains = [
        fit(member, data, max_iter=2, n_init=4, random_state=seed).lower_bound_
        - fit(member, data, max_iter=2, random_state=seed).lower_bound_
        for seed in range(3)
    ]
    assert min(gains) >= 0 and max(gains) > 0


@every_member_of_several_starts
def test_a_callback_ends_all_starts(name, rng):
    member = members.get(name)
    events = []
    fit(
        member, member.data(rng, 40), n_init=3, callbacks=[lambda e: bool(events.append(e)) or True]
    )
    assert len(events) == 1


@every_member_of_several_starts
def test_several_starts_have_no_checkpoints(name, rng, tmp_path):
    member = members.get(name)
    with pytest.raises(ValueError, match="checkpoint_dir needs n_init=1.*got n_init=2"):
        fit(member, member.data(rng, 20), n_init=2, checkpoint_dir=tmp_path)
    with pytest.raises(ValueError, match="checkpoint_dir must be a folder or None, got ''"):
        fit(member, member.data(rng, 20), checkpoint_dir="")
    with pytest.raises(ValueError, match="n_init must be an integer >= 1, got 0"):
        fit(member, member.data(rng, 20), n_init=0)


# --- engines ----------------------------------------------------------------------------------


@every_member
def test_engines_with_one_thread_give_the_same_bits(name, rng):
    member = members.get(name)
    data = member.data(rng, 120)
    serial, mpi, one = (
        fit(member, data, engine=engine, max_iter=3) for engine in ("serial", "mpi", "threads")
    )
    simulated = fit(
        member, data, engine="simulated", cluster=VirtualCluster(n_workers=1), max_iter=3
    )
    for a, b in [(serial, one), (mpi, simulated), (serial, mpi)]:
        found, expected = a._state.natural(), b._state.natural()
        # numba 0.61 rounds the last bit of some merges of one worker in another way.
        last_bit = 4 * np.finfo(found.dtype).eps if NUMBA < (0, 62) else 0
        difference = np.abs(found - expected).max()
        assert difference <= last_bit * np.abs(expected).max(), (a.engine, b.engine)
        assert a.n_batch_iter_ == b.n_batch_iter_
    other = fit(member, data, engine="serial", max_iter=3, random_state=1)
    assert not np.array_equal(serial._state.natural(), other._state.natural())


@every_member
@members.several_at_once
def test_several_threads_and_workers_fit_as_well(name, more, rng):
    member = members.get(name)
    data = member.data(rng, 400)
    serial = fit(member, data, engine="serial")
    other = fit(member, data, **more)
    first = fit(member, data, engine="serial", max_iter=0)
    assert first.n_iter_ == 0
    gained = quality(serial) - quality(first)
    assert gained > 0
    assert quality(other) > quality(serial) - 0.1 * gained


# What the command line calls the bound and the speed.
FACTS = {
    "arrays": ("lower_bound", "items_per_second"),
    "corpus": ("bound_perplexity", "tokens_per_second"),
}


def command(name, data, folder, *more, **params):
    """Arguments of ``dpsvi`` that fit `data` to a member, which are written into `folder`."""
    path = folder / "data.npz"
    if scipy.sparse.issparse(data["X"]):
        scipy.sparse.save_npz(path, data["X"])
    else:
        np.savez(path, **data)
    estimator = members.get(name).estimator(**params)
    plain = type(estimator)().get_params()
    settings = {k: v for k, v in estimator.get_params().items() if v != plain[k]}
    settings = [f"--set={name}={json.dumps(value)}" for name, value in settings.items()]
    out = ["--out", str(folder / "run"), "--held-out", "0", "--quiet"]
    source = {"arrays": "--data", "corpus": "--corpus"}[models.declared(name)["FITTED_TO"]]
    return ["fit", name, source, str(path), *out, *settings, *more]


@every_member
def test_command_line(name, rng, tmp_path, capsys):
    member = members.get(name)
    data = member.data(rng, 100)
    assert main(command(name, data, tmp_path, "--json", max_iter=3)) == 0
    facts = json.loads(capsys.readouterr().out)
    estimator = fit(member, data, max_iter=3)
    loaded = dpsvi.load(tmp_path / "run")
    bound, speed = FACTS[models.declared(name)["FITTED_TO"]]
    assert abs(facts[bound]) == abs(quality(loaded)) == abs(quality(estimator))
    assert np.array_equal(loaded._state.natural(), estimator._state.natural())
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").open()]
    assert len(lines) == 3 and {line["metric"] for line in lines} == {speed}


@pytest.mark.mpi
@needs("openmpi")
@every_member
def test_three_ranks_fit_as_well_as_one(name, tmp_path, rng, ranks):
    """Each model over a real MPI: its messages, its parameters, all of its items."""
    member = members.get(name)
    data, start = member.data(rng, 400), {}
    if "init_params" in member.estimator().get_params():
        start["init_params"] = "merge"  # from random ones the order of updates decides the optimum
    ranks("openmpi", 3, "dpsvi", *command(name, data, tmp_path, **start))
    loaded = dpsvi.load(tmp_path / "run")
    serial = fit(member, data, engine="serial", **start)
    gained = quality(serial) - quality(fit(member, data, engine="serial", max_iter=0))
    assert quality(loaded) > quality(serial) - 0.1 * gained
    assert loaded._state.items == serial._state.items
    log = (tmp_path / "run" / "run.log").read_text()
    assert "exchanges," in log, "rank 0 says what the exchanges cost"


# --- users ------------------------------------------------------------------------------------


@every_member
def test_float32_is_near_float64(name, rng, tmp_path):
    member = members.get(name)
    data = member.data(rng, 200)
    wide = fit(member, data)
    narrow_data = {**data, "X": data["X"].astype(np.float32)}
    narrow = fit(member, narrow_data)
    a, b = member.answer(wide, data), member.answer(narrow, narrow_data)
    np.testing.assert_allclose(b, a, rtol=2e-2, atol=2e-2 * np.abs(a).max())
    narrow.save(tmp_path)
    again = member.answer(dpsvi.load(tmp_path), narrow_data)
    assert again.dtype == b.dtype == np.float32
    np.testing.assert_allclose(again, b, rtol=1e-5, atol=1e-6 * np.abs(b).max())


@every_member
def test_what_predicts_groups_fits_and_predicts_at_once(name, rng):
    """As scikit-learn's clusterers; those that predict y have no use for it."""
    member = members.get(name)
    estimator, data = member.estimator(max_iter=2), member.data(rng, 60)
    groups = hasattr(estimator, "predict") and not get_tags(estimator).target_tags.required
    assert hasattr(estimator, "fit_predict") == groups
    if groups:
        found = estimator.fit_predict(**data)
        fitted = fit(member, data, max_iter=2)
        assert np.array_equal(found, fitted.predict(**data))
        assert found.shape == (len(data["X"]),) and len(np.unique(found)) > 1


@every_member
def test_hard_data_are_fitted(name, rng):
    member = members.get(name)
    cases = member.degenerate(rng)
    assert cases
    for case, data in cases.items():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", CorpusWarning)
            estimator = fit(member, data)
        assert np.isfinite(quality(estimator)), case
        assert np.isfinite(member.answer(estimator, data)).all(), case


@every_member
def test_save_and_load(name, rng, tmp_path):
    member = members.get(name)
    data = member.data(rng, 100)
    estimator = fit(member, data, max_iter=3)
    estimator.save(tmp_path / "model")
    loaded = dpsvi.load(tmp_path / "model")
    assert type(loaded) is type(estimator) and loaded.get_params() == estimator.get_params()
    np.testing.assert_allclose(
        member.answer(loaded, data), member.answer(estimator, data), rtol=1e-9, atol=1e-12
    )
    assert quality(loaded) == quality(estimator)
    for attribute in ("n_iter_", "n_batch_iter_", "n_features_in_"):
        assert getattr(loaded, attribute) == getattr(estimator, attribute)
    a, b = estimator.partial_fit(**data), loaded.partial_fit(**data)
    np.testing.assert_allclose(quality(b), quality(a), rtol=tolerance(a, 1e-9, 1e-4))
    assert a.n_batch_iter_ == b.n_batch_iter_ and a.n_iter_ == b.n_iter_ == 4


@every_member
def test_parameters_set_after_the_fit_change_no_answer(name, rng, tmp_path):
    member = members.get(name)
    data = member.data(rng, 60)
    estimator = fit(member, data, max_iter=2)
    answer, values = member.answer(estimator, data), estimator.get_params()
    assert set(member.others) == set(estimator._fixed)
    for own, other in member.others.items():
        assert other != values[own]
        estimator.set_params(**{own: other})
        assert np.array_equal(member.answer(estimator, data), answer), own
        with pytest.raises(ValueError, match=f"{own} was {values[own]!r} when the fit started"):
            estimator.partial_fit(**data)
        estimator.save(tmp_path / own)
        loaded = dpsvi.load(tmp_path / own)
        assert getattr(loaded, own) == values[own]
        np.testing.assert_allclose(member.answer(loaded, data), answer, rtol=1e-9, atol=1e-12)
        estimator.set_params(**{own: values[own]})


@every_member
def test_resume_without_a_folder(name, rng):
    member = members.get(name)
    with pytest.raises(ValueError, match="resume needs the checkpoint_dir"):
        member.estimator().resume(**member.data(rng, 40))


@every_member
def test_a_new_fit_leaves_nothing_of_the_last(name, rng):
    member = members.get(name)
    data = member.data(rng, 40)
    estimator = fit(member, data, max_iter=1)
    estimator.of_another_fit_ = 1
    estimator.fit(**data)
    assert not hasattr(estimator, "of_another_fit_")


@every_member
def test_what_could_not_be_loaded_is_not_saved(name, rng, tmp_path):
    member = members.get(name)
    estimator = fit(member, member.data(rng, 40), max_iter=1)
    estimator.save(tmp_path)
    with pytest.raises(ValueError, match="n_jobs must be an integer >= 1, got 0"):
        estimator.set_params(n_jobs=0).save(tmp_path)
    assert dpsvi.load(tmp_path).n_jobs is None


@every_member
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_an_error_while_going_on_leaves_the_model_as_it_was(name, method, rng):
    member = members.get(name)
    data = member.data(rng, 60)
    estimator = fit(member, data, max_iter=2, warm_start=True)
    answer, lam = member.answer(estimator, data), estimator._state.natural()

    def callback(event):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        getattr(estimator.set_params(callbacks=[callback]), method)(**data)
    assert np.array_equal(member.answer(estimator, data), answer)
    assert np.array_equal(estimator._state.natural(), lam)


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, options) for name in NAMES for options in ({}, *members.get(name).phases)], ids=str,
)  # fmt: skip
def test_a_fit_is_resumed_bit_for_bit(name, options, rng, tmp_path):
    member = members.get(name)
    data = member.data(rng, 120)
    whole = fit(member, data, max_iter=4, **options)
    looks = []

    def interrupt(event):
        looks.append(event)
        if len(looks) == 3:
            raise KeyboardInterrupt

    settings = dict(max_iter=4, checkpoint_dir=tmp_path, checkpoint_seconds=0.0, **options)
    part = member.estimator(callbacks=[interrupt], **settings)
    with pytest.raises(KeyboardInterrupt):
        part.fit(**data)
    assert part.interrupted_ == 130 and np.isfinite(quality(part))
    assert part.n_batch_iter_ < whole.n_batch_iter_
    again = member.estimator(**settings).resume(**data)
    assert np.array_equal(again._state.natural(), whole._state.natural())
    assert quality(again) == quality(whole)


@every_member
def test_a_fit_is_not_resumed_with_other_data_of_the_same_shape(name, rng, tmp_path):
    member = members.get(name)
    data = member.data(rng, 60)

    def interrupt(event):
        raise KeyboardInterrupt

    settings = dict(max_iter=3, checkpoint_dir=tmp_path, checkpoint_seconds=0.0)
    with pytest.raises(KeyboardInterrupt):
        member.estimator(callbacks=[interrupt], **settings).fit(**data)
    before = {path: path.read_bytes() for path in tmp_path.rglob("model.*")}
    with pytest.raises(ModelFormatError, match="step-.*data are not those that the fit began with"):
        member.estimator(**settings).resume(**data | {"X": data["X"][::-1]})
    assert {path: path.read_bytes() for path in tmp_path.rglob("model.*")} == before
    assert member.estimator(**settings).resume(**data).n_iter_ == 3


@every_member
def test_a_stream_is_followed(name, rng):
    member = members.get(name)
    estimator = member.estimator()
    for _ in range(4):
        estimator.partial_fit(**member.data(rng, 100))
    assert estimator.n_iter_ == 4 and np.isfinite(quality(estimator))


def test_an_interrupted_stream_keeps_what_was_learned(rng):
    member = members.get("gaussian_mixture")
    estimator = member.estimator(batch_size=10).partial_fit(**member.data(rng, 100))

    def interrupt(event):
        raise KeyboardInterrupt

    estimator.set_params(callbacks=[interrupt], evaluate_every=0.5)
    with pytest.raises(KeyboardInterrupt):
        estimator.partial_fit(**member.data(rng, 100))
    assert estimator.n_batch_iter_ == 15 and estimator.interrupted_ == 130
    estimator.set_params(callbacks=None).partial_fit(**member.data(rng, 100))
    assert estimator.n_batch_iter_ == 25 and estimator.interrupted_ == 0


@every_member
def test_early_stopping_follows_the_held_out_score(name, rng):
    member = members.get(name)
    estimator = fit(
        member, member.data(rng, 300), max_iter=200, early_stopping=True, validation_size=0.25,
        tol=1e-2,
    )  # fmt: skip
    scores = [entry["score"] for entry in estimator.history_]
    assert 3 <= estimator.n_iter_ == len(scores) < 200
    assert np.isfinite(scores).all() and max(scores) > scores[0]


@every_member
def test_a_fit_ends_by_itself(name, rng):
    member = members.get(name)
    data = member.data(rng, 300)
    estimator = fit(member, data, max_iter="auto", tol=1e-2)
    assert estimator.n_iter_ in [10, 20, 40, 80, 160, 320]
    assert estimator.n_iter_ == len(estimator.history_)


@pytest.mark.parametrize("name", ["matrix_factorization", "poisson_factorization"])
@pytest.mark.parametrize("number", [-1, 12, 10**6])
def test_columns_outside_of_a_matrix_are_refused(name, number):
    member = members.get(name)
    X = scipy.sparse.csr_array(np.ones((20, 12)))
    estimator = fit(member, {"X": X}, max_iter=1)
    X.indices[3] = number
    for method in (estimator.fit, estimator.partial_fit, estimator.transform, estimator.score):
        with pytest.raises(ValueError, match=r"no sparse matrix of shape \(20, 12\): .*ind.* must"):
            method(X)


def test_items_are_taken_whole():
    X = np.arange(12.0).reshape(6, 2)
    items = dense_items(X, [0, 1, 4, 6])
    assert count(items) == 3
    taken = take(items, np.array([2, 0]))
    assert taken.offsets.tolist() == [0, 4, 6] and taken.value.tolist() == [8, 9, 10, 11, 0, 1]
