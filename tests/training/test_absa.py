"""Batches that grow: eigenvalues of local maps, the rule, fits of every learner."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from dpsvi import DPSGD, DPSVILDA, DPSVIGaussianMixture, VirtualCluster
from dpsvi.base import Model
from dpsvi.cluster.virtual import Network, Timing
from dpsvi.engines import serial
from dpsvi.kernels.jit import as_items
from dpsvi.optimize.objective import from_callable
from dpsvi.training import absa
from dpsvi.training.absa import Growth, LocalMap
from dpsvi.training.driver import one_step
from dpsvi.training.job import Job
from dpsvi.training.ledger import Ledger
from dpsvi.training.state import State

D, N = 6, 300


@pytest.fixture
def quadratic(rng):
    """A mean of f_i(x) = (x - c_i)' A (x - c_i) / 2, and A, whose largest eigenvalue is simple."""
    basis = np.linalg.qr(rng.normal(size=(D, D)))[0]
    A = basis @ np.diag([7.0, 3.0, 2.0, 1.0, 0.5, 0.1]) @ basis.T
    centres = rng.normal(size=(N, D))
    return lambda x, items: A @ (x - centres[items].mean(axis=0)), A


def job_of(objective, x0, penalty=0.0, batch_size=4, n_passes=3):
    model = objective.model(penalty)
    state = State.resume(model, np.array(x0, float).reshape(objective.shape), 1)
    passes = Ledger(objective.n_items, batch_size, n_passes, 0)
    return Job(state, objective.items, passes, lambda t: np.full(np.shape(t), 0.05))


@pytest.mark.parametrize("penalty", [0.0, 0.5])
def test_of_a_gradient_it_is_the_hessian(penalty, quadratic, rng):
    gradient, A = quadratic
    job = job_of(from_callable(gradient, np.ones(D), N), np.ones(D), penalty)
    local_map = LocalMap(job, rng)
    point = rng.normal(size=(1, D))
    expected = -gradient(point[0], np.arange(N)) - penalty * point[0]
    np.testing.assert_allclose(local_map(point)[0], expected, rtol=1e-10)
    hessian, w = A + penalty * np.eye(D), rng.normal(size=D)
    for _ in range(200):
        w = hessian @ w / np.linalg.norm(hessian @ w)
    top = w @ hessian @ w
    assert top == pytest.approx(7 + penalty)
    assert local_map.top_eigenvalue(point, rng) == pytest.approx(top, rel=0.02)


def dense_jacobian(state, items, order, at):
    """d lam^ / d lam of one-step estimates, by central differences in every coordinate."""

    def estimate(learned):
        found = State.resume(state.model, learned.astype(state.model.real), 1)
        one_step(found, items, order)
        return found.learned().ravel()

    columns = []
    for i in range(at.size):
        step = np.zeros(at.size)
        step[i] = np.cbrt(np.finfo(state.model.real).eps) * max(0.1, abs(at.ravel()[i]))
        step = step.reshape(at.shape)
        columns.append((estimate(at + step) - estimate(at - step)) / (2 * step.sum()))
    return np.array(columns).T


def fitted(kind, rng):
    """A model of this kind after two passes: its job."""
    if kind == "lda":
        X = csr_array(rng.poisson(1.0, size=(40, 12)).astype(float))
        model = DPSVILDA(
            3, max_iter=2, max_doc_update_iter=7, engine="serial", random_state=0
        )
    else:
        X = np.concatenate([rng.normal(-1.5, 1, (150, 2)), rng.normal(1.5, 1, (150, 2))])
        model = DPSVIGaussianMixture(2, max_iter=2, engine="serial", random_state=0)
    model.fit(X)
    items = model._read(X, None, reset=False)
    n_items = len(items.offsets) - 1
    passes = Ledger(n_items, 4, 3, 0)
    return Job(model._state, items, passes, lambda t: np.full(np.shape(t), 0.1))


# Power iteration tells apart in ten steps what is a third apart; LDA's largest ones are closer.
@pytest.mark.parametrize("kind, within", [("lda", 0.2), ("mixture", 0.03)])
def test_of_an_estimate_it_is_that_of_the_natural_parameters(kind, within, rng):
    job = fitted(kind, rng)
    learned = np.asarray(job.state.learned(), np.float64)
    order = np.arange(len(job.items.offsets) - 1, dtype=np.int32)
    jacobian = dense_jacobian(job.state, job.items, order, learned)
    top = np.abs(np.linalg.eigvals(jacobian)).max()
    found = LocalMap(job, rng).top_eigenvalue(learned, rng)
    assert found == pytest.approx(top, rel=within) and top > 0.01


def test_the_rule():
    growth = Growth(8, 64)
    sizes = [growth.after(value) for value in (1.0, 8.0, 1.0, 0.5, 0.3, 0.25)]
    assert sizes == [8, 8, 8, 16, 16, 32] and not growth.ended
    patient = Growth(8, 20)
    sizes = [patient.after(1.0) for _ in range(20)]
    assert sizes == 9 * [8] + 10 * [16] + [20] and patient.ended


@pytest.mark.parametrize("engine", ["serial", "threads", "simulated"])
def test_batches_grow_where_the_curvature_falls(engine, rng):
    """Downhill on -ln(1 + (x - c)^2) / 2 leads away from the centres c, to where it is flat."""
    centres = rng.normal(scale=0.1, size=(256, 2))

    def gradient(x, items):
        apart = x - centres[items]
        return (-apart / (1 + apart**2)).mean(axis=0)

    cluster = None
    if engine == "simulated":
        cluster = VirtualCluster(
            n_workers=2, network=Network(0.0, np.inf), timing=Timing(step=1.0, value=0.0)
        )
    settings = dict(
        learning_rate=0.05, batch_size=2, max_iter=12, engine=engine, random_state=0,
        cluster=cluster, local_steps=2 if cluster else None,
    )  # fmt: skip
    x0 = np.array([0.3, -0.2])
    events = []
    found = DPSGD(max_batch_size=16, **settings).minimize(
        gradient, x0, 256, fun=lambda x: float(np.sum(x**2)), callback=events.append
    )
    looks = found.growth
    assert looks["batch_size"][-1] == 16 and len(looks) < 12, "nobody looks at full size"
    reference, size = looks["eigenvalue"][0], 2
    for epoch, (at, eigenvalue, now) in enumerate(looks, start=1):
        assert at == epoch
        if eigenvalue <= reference / 2:
            reference, size = eigenvalue, 2 * size
        assert now == size
    sizes = [2, *looks["batch_size"].tolist()]
    sizes += (12 - len(sizes)) * [16]
    assert found.njev == sum(256 // size for size in sizes[:12])
    assert found.nit == 12 and found.success
    np.testing.assert_allclose(found.history["epoch"], np.arange(1, 13))
    assert np.all(np.diff(found.history["seconds"]) > 0)
    rates = found.history["rate"]
    np.testing.assert_allclose(rates, 0.05 * np.array(sizes[:12]) / 2, rtol=1e-12)
    if cluster is not None:
        assert found.exchanges["n_items"].sum() == 12 * 256


def test_a_part_is_a_fit_of_its_own(quadratic):
    """Equal to two fits, of which the second one has batches and rates twice as large."""
    gradient, _ = quadratic
    job = job_of(from_callable(gradient, np.ones(D), N), np.ones(D), n_passes=11)
    orders = []

    def carry_out(part):
        orders.append((part.passes.batch_size, part.passes.n_passes, part.passes.seed))
        return serial.ENGINE.fit(part)

    assert absa.fit(carry_out, job, 8) is False
    assert [order[:2] for order in orders] == [(4, 11), (8, 1)]
    again = job_of(from_callable(gradient, np.ones(D), N), np.ones(D))
    for (size, _, seed), n, rate in zip(orders, (10, 1), (0.05, 0.1), strict=True):
        passes = Ledger(N, size, n, seed)
        serial.ENGINE.fit(
            again._replace(passes=passes, schedule=lambda t, r=rate: np.full(np.shape(t), r))
        )
    np.testing.assert_array_equal(job.state.natural(), again.state.natural())


def incremental(values):
    """A sum of what items say: v_i + 0.3 lam / n of lam, remembered between visits."""
    n = len(values)

    def local(shared, scale, hyper, items, batch, work):
        learned = scale * shared.rows[0]
        for i in batch:
            said = items.value[i] + 0.3 * learned / n
            work.stats[0] += said - shared.item_memory[i]
            shared.item_memory[i] = said
        work.touched[0] = 0
        return 1

    model = Model(
        "remembering", (1, 1), np.zeros(1), np.zeros(1), local, lambda longest: 0, item_memory=1,
        learner="incremental", compiled=False,
    )  # fmt: skip
    items = as_items(np.arange(n + 1), [], values, np.dtype(float))
    return Job(
        State.resume(model, np.zeros((1, 1)), 1, n), items, Ledger(n, 4, 30, 0), np.ones_like
    )


def test_changes_that_are_remembered(rng):
    """The probe leaves the memory of a fit alone, and no change is lost where a part ends."""
    values = rng.uniform(1.0, 2.0, 64)
    job = incremental(values)
    sizes = []

    def carry_out(part):
        sizes.append(part.passes.batch_size)
        return serial.ENGINE.fit(part)

    assert LocalMap(job, rng).top_eigenvalue(np.ones((1, 1)), rng) == pytest.approx(0.3, rel=1e-4)
    assert absa.fit(carry_out, job, 16) is False and sizes == [4, 8, 16]
    found = job.state.natural()[0, 0]
    assert found == pytest.approx(values.sum() / 0.7, rel=1e-6)
    assert found == pytest.approx(job.state.shared.item_memory.sum(), rel=1e-12)
    with pytest.raises(ValueError, match="workers remember"):
        absa.fit(carry_out, job._replace(cluster=VirtualCluster()), 16)


def test_a_callback_ends_all_parts(quadratic):
    gradient, _ = quadratic

    def stop(result):
        if result.nit == 11:
            raise StopIteration

    found = DPSGD(batch_size=4, max_batch_size=8, max_iter=20, engine="serial").minimize(
        gradient, np.ones(D), N, callback=stop
    )
    assert not found.success and found.nit == 11 and found.growth["batch_size"][-1] == 8


def fitted_topics(**options):
    X = np.random.default_rng(0).poisson(0.7, (256, 30))
    return DPSVILDA(
        3, engine="serial", batch_size=8, learning_rate=0.2, max_iter=14, random_state=0, **options
    ).fit(X)


def test_batches_of_a_posterior_grow():
    """As said at each look: fewer steps than without, over as many documents."""
    plain, found = fitted_topics(), fitted_topics(max_batch_size=32)
    looks = found.exchanges_["growth"]
    sizes = [size for _, _, size in looks]
    assert sizes == sorted(sizes) and sizes[-1] > 8 and all(top > 0 for _, top, _ in looks)
    assert found._state.items == plain._state.items == 14 * 256
    before = [8, *sizes, *[32] * 14][:14]  # of each pass
    assert found._state.step == sum(256 // size for size in before) < plain._state.step
    assert found.history_[-1]["rate"] == pytest.approx(0.2 * before[-1] / 8)
    assert "growth" not in plain.exchanges_


@pytest.mark.parametrize("n_workers", [1, 3])
def test_batches_of_a_mixture_grow_on_workers(rng, n_workers):
    X = rng.normal(size=(2, 2))[rng.integers(2, size=600)] * 6 + rng.normal(size=(600, 2))
    cluster = VirtualCluster(n_workers=n_workers, timing=Timing(step=1.0, value=0.0))
    settings = {"engine": "simulated", "cluster": cluster, "batch_size": 10, "max_iter": 12}
    plain, found = (
        DPSVIGaussianMixture(2, random_state=0, max_batch_size=most, **settings).fit(X)
        for most in (None, 80)
    )
    assert found.exchanges_["growth"][-1][2] > 10 and found._state.step < plain._state.step
    assert found.score(X) == pytest.approx(plain.score(X), abs=0.02)


@pytest.mark.parametrize("options, what", [
    ({"max_batch_size": 4}, "max_batch_size must be an integer >= 8"),
    ({"max_batch_size": 16, "engine": "mpi"}, "max_batch_size must be None for engine='mpi'"),
    ({"max_batch_size": 16, "checkpoint_dir": "x"}, "where there is a checkpoint_dir"),
    ({"max_batch_size": 16, "incremental": True}, "that replace the statistics of points"),
])  # fmt: skip
def test_estimators_refuse(options, what):
    X = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(ValueError, match=what):
        DPSVIGaussianMixture(2, batch_size=8, max_iter=2, **options).fit(X)


def test_refusals():
    with pytest.raises(ValueError, match="max_batch_size must be an integer >= 32, got 8"):
        DPSGD(max_batch_size=8)
    with pytest.raises(ValueError, match="max_batch_size must be None for engine='mpi'"):
        DPSGD(max_batch_size=64, engine="mpi")
