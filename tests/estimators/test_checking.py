"""Local steps that are wrong are found out: by `check_model`, and the worst of them by the fit."""

import members
import numpy as np
import pytest
from members import SECOND
from numba.extending import register_jitable

from dpsvi import (
    DPSVILDA,
    DPSVIGaussianMixture,
    DPSVIPoissonFactorization,
    VirtualCluster,
    check_model,
    models,
)
from dpsvi.base import Model
from dpsvi.errors import ContractError
from dpsvi.estimators.checking import check_local_step
from dpsvi.kernels.jit import as_items
from dpsvi.training.items import dense_items
from dpsvi.training.state import State

N_ROWS, N_COLUMNS = 5, 2


@register_jitable
def good(shared, scale, hyper, items, batch, work):
    """Sum the items of a batch in row 3."""
    work.touched[0] = 3
    for item in batch:
        for k in range(2):
            work.stats[0, k] += items.value[items.offsets[item] + k]
    return 1


def nothing(shared, scale, hyper, items, batch, work):
    return 0


def negative(shared, scale, hyper, items, batch, work):
    return good(shared, scale, hyper, items, batch, work) - 2


def too_many(shared, scale, hyper, items, batch, work):
    return good(shared, scale, hyper, items, batch, work) + 5


def row_behind(shared, scale, hyper, items, batch, work):
    n = good(shared, scale, hyper, items, batch, work)
    work.touched[0] = 5
    return n


def row_before(shared, scale, hyper, items, batch, work):
    n = good(shared, scale, hyper, items, batch, work)
    work.touched[0] = -1
    return n


def row_twice(shared, scale, hyper, items, batch, work):
    n = good(shared, scale, hyper, items, batch, work)
    work.touched[1] = 3
    return n + 1


def slot_left(shared, scale, hyper, items, batch, work):
    work.slot[3] = 0
    return good(shared, scale, hyper, items, batch, work)


def behind(shared, scale, hyper, items, batch, work):
    work.stats[2, 0] = 1
    return good(shared, scale, hyper, items, batch, work)


def outside(shared, scale, hyper, items, batch, work):
    work.stats[len(work.stats) + len(batch), 0] = 1
    return good(shared, scale, hyper, items, batch, work)


def parameters(shared, scale, hyper, items, batch, work):
    shared.rows[3, 0] += 1
    return good(shared, scale, hyper, items, batch, work)


def not_a_number(shared, scale, hyper, items, batch, work):
    n = good(shared, scale, hyper, items, batch, work)
    work.stats[0, 0] = np.nan
    return n


def below_zero(shared, scale, hyper, items, batch, work):
    n = good(shared, scale, hyper, items, batch, work)
    work.stats[0, 0] *= -1
    return n


def not_compiled(shared, scale, hyper, items, batch, work):
    return {"n": undefined} + 1  # noqa: F821


def forgets_one(shared, scale, hyper, items, batch, work):
    return good(shared, scale, hyper, items, batch[: max(1, len(batch) - 1)], work)


WRONG = {
    nothing: "gives no statistics of the items",
    negative: "must return how many rows it touched, 0 to 5, returned -1",
    too_many: "0 to 5, returned 6",
    row_behind: "names row 5, there are 0 to 4",
    row_before: "names row -1, there are 0 to 4",
    row_twice: "names a row twice",
    slot_left: "leaves work.slot of row 3 set",
    behind: "writes statistics behind the first 1",
    outside: "outside of an array",
    parameters: "writes the shared parameters",
    not_a_number: "NaN",
    below_zero: "nonnegative",
    forgets_one: "together than the sum of each alone",
}


def model(local, compiled=True):
    return Model(
        "mine", (N_ROWS, N_COLUMNS), np.ones((1, 1)), np.zeros(0), local, scratch=lambda longest: 0,
        nonnegative=True, compiled=compiled,
    )  # fmt: skip


def begun(local, compiled=True, n_threads=1):
    """A state of a model with this local step, and 20 items of two numbers."""
    items = dense_items(np.random.default_rng(0).random((20, N_COLUMNS)))
    return State.resume(model(local, compiled), np.zeros((N_ROWS, N_COLUMNS)), n_threads), items


@pytest.mark.parametrize("compiled", [True, False])
def test_a_right_one_passes(compiled):
    check_local_step(*begun(good, compiled))


def words(local, common_rows=0):
    """A state of a model whose items name rows 0 to 3, each two of them that follow each other."""
    first = np.arange(20, dtype=np.int32) % 3
    index = np.stack([first, first + 1], axis=1).ravel()
    items = as_items(np.arange(21) * 2, index, np.ones(40), np.dtype(np.float64))
    mine = model(local)._replace(common_rows=common_rows)
    return State.resume(mine, np.zeros((N_ROWS, N_COLUMNS)), 1), items


def counts_items(shared, scale, hyper, items, batch, work):
    """Of all, in row 4."""
    work.touched[0] = 4
    work.stats[0, 0] += len(batch)
    return 1


def next_row(shared, scale, hyper, items, batch, work):
    """Counts the second word of each item in the row behind that of its own."""
    work.touched[0] = items.index[items.offsets[batch[0]] + 1] + 1
    work.stats[0, 0] += len(batch)
    return 1


def test_rows_that_no_item_names_are_common_ones():
    """Workers are sent no others: what a step adds to those would be lost."""
    check_local_step(*words(counts_items, common_rows=1))
    with pytest.raises(ContractError, match="touches row 4, which is in the index of none of the"):
        check_local_step(*words(counts_items))
    with pytest.raises(ContractError, match=r"touches row \d, .*none of the last 1, its model's"):
        check_local_step(*words(next_row, common_rows=1))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("local", WRONG, ids=lambda local: local.__name__)
def test_a_wrong_one_is_told(local, compiled):
    with pytest.raises(ContractError, match=WRONG[local]) as caught:
        check_local_step(*begun(local, compiled))
    assert "mine: the local step " in str(caught.value)


def test_items_of_which_there_is_nothing_give_nothing():
    state, items = begun(good)
    empty = dense_items(np.zeros((20, N_COLUMNS)))
    check_local_step(state, empty)
    empty = dense_items(np.eye(2001, N_COLUMNS, -1))  # the one that is not looked at is not
    check_local_step(state, empty)


def test_one_that_cannot_be_compiled_is_told():
    from dpsvi import engines

    state, items = begun(not_compiled)
    with pytest.raises(ContractError, match=r"cannot be compiled: [\s\S]*undefined"):
        check_local_step(state, items)
    with pytest.raises(ContractError, match=r"mine: its local step cannot be compiled"):
        engines.fit(state, items, schedule=np.ones_like, batch_size=2, n_passes=1, seed=0)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {}) for name in models.names()),
        ("lda", {"warm_documents": True}),
        ("lda", {"local_step": "mean_field", "warm_documents": True}),
        ("lda", {"local_step": "sparse"}),
        ("poisson_factorization", {"incremental": True}),
        ("hdp", {"keep_responsibilities": True}),
    ],
    ids=str,
)
def test_models_of_ours_pass(name, options, rng):
    member = members.get(name)
    estimator = member.estimator(**options)
    check_model(estimator, **member.data(rng, 40))
    assert not hasattr(estimator, "n_iter_")


def test_a_second_visit_counts_as_a_first_one(rng):
    """What is remembered of a document changes what is found the next time."""
    counts = rng.poisson(1.0, (200, 30))
    check_model(DPSVILDA(5, warm_documents=True, random_state=0), counts)
    check_model(DPSVIPoissonFactorization(3, random_state=0), counts)


def test_what_cannot_be_checked_is_refused(rng):
    X = rng.normal(size=(20, 2))
    with pytest.raises(TypeError, match="variational model of dpsvi"):
        check_model(object(), X)
    with pytest.raises(ValueError, match="n_components"):
        check_model(DPSVIGaussianMixture(0), X)


@pytest.mark.parametrize("engine", ["serial", "threads", "simulated"])
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    "local", [negative, too_many, row_behind, row_before], ids=lambda local: local.__name__
)
def test_a_fit_does_not_write_outside_of_its_parameters(local, compiled, engine):
    from dpsvi import engines

    cluster = VirtualCluster(n_workers=2, timing=SECOND) if engine == "simulated" else None
    state, items = begun(local, compiled, 2)
    with pytest.raises(ContractError, match=r"mine: after step \d+ its local step .* there is not"):
        engines.fit(
            state, items, schedule=lambda t: np.full(len(t), 0.1), batch_size=2, n_passes=2,
            seed=0, engine=engine, n_jobs=2, cluster=cluster,
        )  # fmt: skip
    assert not state.shared.rows.any()


def test_a_python_step_without_a_return_is_told():
    from dpsvi import engines

    state, items = begun(lambda *arguments: None, compiled=False)
    with pytest.raises(ContractError, match="must return how many rows it touched, got None"):
        engines.fit(
            state, items, schedule=lambda t: np.full(len(t), 0.1), batch_size=2, n_passes=2, seed=0
        )
