"""DPSGD: Alg. 1 and 2 against plain numpy, on every engine."""

import threading

import numpy as np
import pytest
from scipy.optimize import OptimizeResult

from dpsvi import DPSGD, Cluster, VirtualCluster, engines
from dpsvi.cluster.virtual import Network, Timing
from dpsvi.errors import DivergedError

N, D = 60, 4
TIMING, INSTANT = Timing(step=1.0, value=0.0), Network(0.0, np.inf)


def virtual(**options):
    return VirtualCluster(**{"timing": TIMING, "network": INSTANT, **options})


CLUSTERS = {"simulated": virtual()}


class LeastSquares:
    """Mean gradient of (x . a_i - b_i)^2 / 2; notes where and for which items it was asked."""

    def __init__(self, rng, shape=(D,)):
        self.A, self.b = rng.normal(size=(N, D)), rng.normal(size=N)
        self.shape, self.log = shape, []

    def __call__(self, x, items):
        assert x.shape == self.shape
        self.log.append((x.copy(), items.copy()))
        return self.gradient(x.ravel(), items).reshape(self.shape)

    def gradient(self, x, items):
        return self.A[items].T @ (self.A[items] @ x - self.b[items]) / len(items)

    def optimum(self, penalty=0.0):
        return np.linalg.solve(self.A.T @ self.A / N + penalty * np.eye(D), self.A.T @ self.b / N)


@pytest.fixture
def problem(rng):
    return LeastSquares(rng)


@pytest.mark.parametrize("shape", [(D,), (2, 2), (1, D, 1)])
@pytest.mark.parametrize("penalty", [0.0, 0.4, 4.9])  # the last one folds the scale in
@pytest.mark.parametrize("engine", engines.names())
def test_one_thread_is_plain_sgd(engine, penalty, shape, rng):
    """On any engine; the last batch of a pass is short, the rate falls."""
    problem = LeastSquares(rng, shape)
    x0 = rng.normal(size=shape)
    optimizer = DPSGD(
        learning_rate=0.2, learning_decay=0.6, learning_offset=5.0, weight_decay=penalty,
        batch_size=7, max_iter=4, engine=engine, cluster=CLUSTERS.get(engine), random_state=1,
    )  # fmt: skip
    before = x0.copy()
    result = optimizer.minimize(problem, x0, N)
    assert np.array_equal(x0, before), "x0 is the caller's"
    x = x0.ravel().copy()
    assert len(problem.log) == result.njev == 4 * 9
    for t, (seen, items) in enumerate(problem.log):
        np.testing.assert_allclose(seen.ravel(), x, rtol=1e-10, atol=1e-12)
        rate = 0.2 * (1 + t / 5.0) ** -0.6
        x = x - rate * (problem.gradient(x, items) + penalty * x)
    np.testing.assert_allclose(result.x.ravel(), x, rtol=1e-10, atol=1e-12)
    assert result.x.shape == shape and result.success and result.nit == 4
    for first in range(0, 36, 9):
        seen = np.concatenate([items for _, items in problem.log[first : first + 9]])
        assert np.array_equal(np.sort(seen), np.arange(N)), "a pass visits every item once"


@pytest.mark.parametrize("strategy", ["decay", "displacement"])
@pytest.mark.parametrize("penalty", [0.0, 0.1])
def test_n_p_b_m_of_1_is_serial_sgd_bit_for_bit(strategy, penalty, problem):
    """The paper's special case, though master and worker send everything."""
    settings = dict(
        learning_rate=0.1, weight_decay=penalty, batch_size=3, local_steps=1, random_state=0
    )
    serial = DPSGD(engine="serial", **settings).minimize(problem, np.ones(D), N)
    cluster = virtual(strategy=strategy, master_batch=1, n_workers=1)
    found = DPSGD(engine="simulated", cluster=cluster, **settings).minimize(
        problem, np.ones(D), N
    )
    assert np.array_equal(found.x, serial.x)
    assert len(found.exchanges) == serial.njev == 200


@pytest.mark.parametrize("strategy", ["decay", "displacement"])
@pytest.mark.parametrize(
    "n, m, b", [(1, 1, 3), (2, 2, 1), (3, 1, 2), (4, 2, 5), (4, 4, 2), (5, 3, 1), (3, 6, 2)]
)
@pytest.mark.parametrize("gamma", [1.0, 0.5])
def test_the_algorithm_in_plain_numpy(gamma, n, m, b, strategy, problem):
    """Alg. 1 and 2 step by step: what each worker read, what it pushed, what v became.

    All workers take the same time, so updates arrive in the order in which they were computed.
    """
    rate, x0 = 0.05, np.ones(D)
    cluster = virtual(strategy=strategy, n_workers=n, master_batch=m, global_rate=gamma)
    result = DPSGD(
        learning_rate=rate, batch_size=2, max_iter=6, engine="simulated", local_steps=b,
        cluster=cluster, random_state=0,
    ).minimize(problem, x0, N)  # fmt: skip
    exchanges = result.exchanges
    versions, displacements, log = [x0], [], iter(problem.log)
    for number, exchange in enumerate(exchanges):
        t = len(versions) - 1
        w = versions[t - exchange["staleness"]]
        u = w.copy()
        for _ in range(exchange["n_items"] // 2):
            seen, items = next(log)
            np.testing.assert_allclose(seen, u, rtol=1e-10, atol=1e-12)
            u = u - rate * problem.gradient(u, items)
        displacements.append(u - w)
        if len(displacements) == m or number + 1 == len(exchanges):
            versions.append(versions[-1] + gamma * sum(displacements))
            displacements = []
    np.testing.assert_allclose(result.x, versions[-1], rtol=1e-10, atol=1e-12)
    assert next(log, None) is None and result.njev == 6 * 30
    assert max(exchanges["staleness"]) >= (n - 1) // m, "workers do not see each other's updates"


@pytest.mark.parametrize("strategy", ["decay", "displacement"])
def test_stale_workers_find_the_penalised_optimum(strategy, problem):
    """With a penalty the strategies differ on the way and agree where it ends."""
    cluster = virtual(strategy=strategy, n_workers=4, master_batch=2)
    result = DPSGD(
        learning_rate=0.2, learning_decay=1.0, learning_offset=50.0, weight_decay=0.3,
        batch_size=5, max_iter=300, engine="simulated", local_steps=1, cluster=cluster,
        random_state=0,
    ).minimize(problem, np.ones(D), N)  # fmt: skip
    np.testing.assert_allclose(result.x, problem.optimum(0.3), atol=0.02)


@pytest.mark.parametrize("strategy", ["local_sgd", "gala", "elastic"])
def test_replicas_step_n_times_as_far(strategy):
    """Downhill at any rate, though a rate above 1 is no share of anything."""
    cluster = virtual(strategy=strategy, n_workers=4)
    result = DPSGD(
        learning_rate=3.0, batch_size=1, max_iter=1, engine="simulated", local_steps=1,
        cluster=cluster, random_state=0,
    ).minimize(lambda x, items: np.ones(1), np.zeros(1), 4)  # fmt: skip
    steps = 4 * 3.0 * np.ones(4)
    if strategy == "elastic":  # each replica, and the centre after four exchanges
        centre = 0.0
        for step in -steps:
            centre += 0.9 / 4 * (step - centre)
        assert result.x[0] == pytest.approx(centre)
    else:
        assert result.x[0] == pytest.approx(-steps.mean())


@pytest.mark.parametrize(
    "options",
    [{"prefetch": True}, {"sharding": "shard"}, {"statistics": "bfloat16"}, {"waiting": 0.1}],
)
def test_options_of_a_cluster(options, problem):
    """What other learners can be told on a cluster, gradients can be told, too."""
    result = DPSGD(
        learning_rate=0.2, learning_decay=1.0, learning_offset=100.0, batch_size=2, max_iter=100,
        engine="simulated", cluster=virtual(n_workers=3, **options), random_state=0,
        local_steps=None if "waiting" in options else 2,
    ).minimize(
        lambda x, i: problem.gradient(x, i).astype(np.float32), np.zeros(D, np.float32), N
    )  # fmt: skip
    np.testing.assert_allclose(result.x, problem.optimum(), atol=0.05)
    assert result.njev == 100 * 30 and len(np.unique(result.exchanges["worker"])) == 3


@pytest.mark.parametrize("engine, n_jobs", [("threads", 1), ("threads", 3), ("mpi", 2)])
def test_python_threads_share_the_parameters(engine, n_jobs, problem):
    at_work, seen, lock = set(), [], threading.Lock()

    def gradient(x, items):
        with lock:
            at_work.add(threading.get_ident())
            seen.append(len(at_work))
        g = problem.gradient(x, items)
        with lock:
            at_work.remove(threading.get_ident())
        return g

    result = DPSGD(
        learning_rate=0.2, learning_decay=1.0, learning_offset=100.0, batch_size=2, max_iter=200,
        engine=engine, n_jobs=n_jobs, random_state=0,
    ).minimize(gradient, np.zeros(D), N)  # fmt: skip
    np.testing.assert_allclose(result.x, problem.optimum(), atol=0.03)
    assert result.njev == len(seen) == 200 * 30 and max(seen) <= n_jobs


def test_threads_work_at_the_same_time():
    """Each of two gradients waits for the other: one thread at a time would never get there."""
    both = threading.Barrier(2, timeout=60)

    def gradient(x, items):
        both.wait()
        return x

    DPSGD(n_jobs=2, batch_size=1, max_iter=1).minimize(gradient, np.ones(2), 2)


@pytest.mark.parametrize("engine", engines.names())
def test_a_gradient_by_torch(engine, problem):
    """A tensor from automatic differentiation does what the array of the same numbers does."""
    torch = pytest.importorskip("torch")
    A, b = torch.from_numpy(problem.A), torch.from_numpy(problem.b)

    def gradient(x, items):
        x = torch.tensor(x, requires_grad=True)
        (A[items] @ x - b[items]).square().mean().div(2).backward()
        return x.grad

    settings = dict(learning_rate=0.2, batch_size=7, max_iter=4, random_state=1)
    optimizer = DPSGD(engine=engine, cluster=CLUSTERS.get(engine), **settings)
    found, expected = (optimizer.minimize(g, np.ones(D), N) for g in (gradient, problem))
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-10)
    far = [np.linalg.norm(x - problem.optimum()) for x in (np.ones(D), found.x)]
    assert far[1] < 0.5 * far[0]


def test_float32_stays(problem):
    result = DPSGD(max_iter=2).minimize(
        lambda x, i: problem.gradient(x, i).astype(np.float32), np.ones(D, np.float32), N
    )
    assert result.x.dtype == np.float32
    assert DPSGD(max_iter=0).minimize(problem, [1, 2, 3, 4], N).x.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_history_and_callback(problem):
    seen = []

    def callback(intermediate_result):
        seen.append(intermediate_result)
        if len(seen) == 6:
            raise StopIteration

    optimizer = DPSGD(
        learning_rate=0.1, learning_decay=0.5, batch_size=6, evaluate_every=0.5, random_state=0
    )
    result = optimizer.minimize(
        problem, np.ones(D), N, fun=lambda x: np.sum(x**2), callback=callback
    )
    assert isinstance(result, OptimizeResult)
    assert (result.success, result.status, result.nit, result.njev) == (False, 99, 3, 30)
    assert "StopIteration" in result.message
    assert result.history["epoch"].tolist() == [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    assert result.nfev == 6 and result.fun == np.sum(result.x**2) == seen[-1].fun
    assert np.array_equal(seen[-1].x, result.x) and not np.array_equal(seen[0].x, result.x)
    plain = optimizer.minimize(problem, np.ones(D), N)
    assert plain.success and plain.status == plain.nfev == 0 and "fun" not in plain
    assert len(plain.history) == 20 and len(plain.exchanges) == 0
    assert np.isnan(plain.history["fun"]).all() and "nit: 10" in repr(plain)


@pytest.mark.parametrize("engine", engines.names())
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_gradient_that_is_no_number(engine, bad, problem):
    def gradient(x, items):
        return np.full(D, bad) if 7 in items else problem.gradient(x, items)

    with pytest.raises(DivergedError, match="gradient: a statistic became NaN or infinite"):
        DPSGD(engine=engine, cluster=CLUSTERS.get(engine)).minimize(gradient, np.ones(D), N)


@pytest.mark.parametrize("engine", engines.names())
def test_errors_of_the_gradient_are_raised(engine):
    def fails(x, items):
        raise ZeroDivisionError("by hand")

    optimizer = DPSGD(engine=engine, cluster=CLUSTERS.get(engine))
    with pytest.raises(ZeroDivisionError, match="by hand"):
        optimizer.minimize(fails, np.ones(D), N)
    with pytest.raises(ValueError, match=r"array of shape \(4,\), got \(3,\)"):
        optimizer.minimize(lambda x, items: x[:3], np.ones(D), N)


@pytest.mark.parametrize(
    "settings, error, said",
    [
        ({"learning_rate": 0.0}, ValueError, "learning_rate must be a number > 0, got 0.0"),
        ({"learning_rate": "fast"}, TypeError, "learning_rate must be a number"),
        ({"learning_decay": 1.5}, ValueError, "learning_decay must be .* <= 1, got 1.5"),
        ({"learning_offset": 0}, ValueError, "learning_offset must be a number > 0"),
        ({"weight_decay": -1}, ValueError, "weight_decay must be a number >= 0, got -1"),
        ({"learning_rate": 2.0, "weight_decay": 0.5}, ValueError, r"must be < 1, got 2.0 \* 0.5"),
        ({"batch_size": 0}, ValueError, "batch_size must be an integer >= 1"),
        ({"max_iter": -1}, ValueError, "max_iter must be an integer >= 0"),
        ({"engine": "steam"}, ValueError, "engine must be one of .*'simulated'"),
        ({"engine": "serial", "n_jobs": 2}, ValueError, "runs one thread, got n_jobs=2"),
        ({"local_steps": 0}, ValueError, "local_steps must be an integer >= 1"),
        ({"cluster": "big"}, TypeError, "cluster must be a dpsvi.Cluster or None, got 'big'"),
        ({"cluster": Cluster()}, ValueError, "None for engine='threads'"),
        ({"evaluate_every": 2}, ValueError, "evaluate_every must be a number > 0 and <= 1, got 2"),
        ({"random_state": "x"}, ValueError, "seed"),
    ],
)
def test_hyper_parameters_are_checked(settings, error, said):
    with pytest.raises(error, match=said):
        DPSGD(**settings)


@pytest.mark.parametrize(
    "arguments, error, said",
    [
        ((3, [1.0], 5), TypeError, "gradient must be callable or an Objective, got 3"),
        ((np.sin, [], 5), ValueError, "at least one number"),
        ((np.sin, [np.nan], 5), ValueError, "x0 must be finite"),
        ((np.sin, ["a"], 5), ValueError, "could not convert"),
        ((np.sin, [1j], 5), TypeError, "real numbers"),
        ((np.sin, [1.0], 0), ValueError, "n_items must be an integer >= 1"),
        ((np.sin, [1.0], None), TypeError, "n_items must be an integer .*, got None"),
    ],
)
def test_arguments_are_checked(arguments, error, said):
    with pytest.raises(error, match=said):
        DPSGD().minimize(*arguments)
    for name in ("fun", "callback"):
        with pytest.raises(TypeError, match=f"{name} must be callable or None, got 3"):
            DPSGD().minimize(np.sin, [1.0], 5, **{name: 3})
