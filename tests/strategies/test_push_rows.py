"""Push-sum row by row: its equations, what it conserves, and what a share of the rows is worth."""

import numpy as np
import pytest
from reference.strategies import ETA, assert_close, first_of, lda, nodes_batches, steps_of

from dpsvi import Cluster, DPSVIGaussianMixture, engines
from dpsvi.cluster.ranks.prepare import for_workers
from dpsvi.cluster.turns import peers_take_turns
from dpsvi.strategies import push_rows
from dpsvi.training.schedules import constant


def test_one_node_is_serial_svi_bit_for_bit(corpus):
    ours, theirs = (lda(corpus, 8, constant(0.5), strategy="push_rows") for _ in range(2))
    peers_take_turns(ours, 1)
    engines.get("serial").fit(theirs)
    assert np.array_equal(ours.state.natural(), theirs.state.natural())


def bfloat16(numbers):
    """The nearest numbers with a significand of 8 bits, by plain arithmetic."""
    significand, exponent = np.frexp(numbers)
    return np.ldexp(np.rint(significand * 2**8) / 2**8, exponent)


@pytest.mark.parametrize("numbers", ["float32", "bfloat16"])
@pytest.mark.parametrize("share", [1.0, 0.2, 0.001])
@pytest.mark.parametrize("n_nodes, delay", [(2, 0), (4, 5)])
def test_push_rows_is_its_equations(corpus, n_nodes, delay, share, numbers, monkeypatch):
    """Words are columns here; those that were sent are recorded, and are known worst."""
    recorded, send = [], push_rows.Strategy.send

    def record(self, state):
        numbers, arrays = send(self, state)
        recorded.append(arrays["sent"])
        return numbers, arrays

    monkeypatch.setattr(push_rows.Strategy, "send", record)
    options = {"share": share, "numbers": numbers}
    job = lda(corpus, strategy="push_rows", strategy_options=options)
    _, step = steps_of(job, corpus)
    batches = nodes_batches(job, n_nodes)
    z = [first_of(job) - ETA] * n_nodes
    peers_take_turns(job, n_nodes, delay)
    turns = iter(recorded)
    known, w = list(z), [np.ones(z[0].shape[1])] * n_nodes
    done, flying, turn = [0] * n_nodes, [], 0
    distances, n_sent = [1, 2][: n_nodes // 2], max(1, round(share * len(w[0])))
    while any(done[i] < len(batches[i]) for i in range(n_nodes)):
        for i in range(n_nodes):
            for _, to, rows, weights in [f for f in flying if f[0] <= turn]:
                z[to] = (w[to] * z[to] + weights * rows) / (w[to] + weights)
                w[to] = w[to] + weights
            flying = [f for f in flying if f[0] > turn]
            if done[i] < len(batches[i]):
                rate = job.schedule(np.array([n_nodes * done[i]]))[0]
                z[i] = step(z[i] + ETA, batches[i][done[i]], rate) - ETA
                known[i] = (1 - rate) * known[i]
                changed = np.abs(z[i] - known[i]).sum(axis=0)
                sent = np.isin(np.arange(len(changed)), next(turns))
                assert n_sent >= sent.sum() >= min(n_sent, np.sum(changed > 1e-3))
                assert changed[sent].min() >= 0.99 * changed[~sent].max(initial=0) - 1e-3
                w[i] = np.where(sent, w[i] / 2, w[i])
                known[i] = np.where(sent, z[i], known[i])
                to = (i + distances[done[i] % len(distances)]) % n_nodes
                told = bfloat16(z[i]) if numbers == "bfloat16" else z[i]
                flying.append((turn + delay, to, told, sent * w[i]))
                z[i] = np.where(sent, z[i] + (z[i] - told), z[i])
                done[i] += 1
            turn += 1
    weights = w + [f[3] for f in flying]
    np.testing.assert_allclose(sum(weights), n_nodes)
    expected = sum(a * b for a, b in zip(weights, z + [f[2] for f in flying], strict=True))
    assert_close(job, ETA + expected / n_nodes)


@pytest.mark.parametrize("together, n", [(None, 8), (3, 3), (20, 8)])
def test_steps_may_be_made_for_fewer_nodes(corpus, together, n):
    options = {"together": together}
    job = lda(corpus, schedule=constant(0.1), strategy="push_rows", strategy_options=options)
    job = for_workers(job, job.cluster, 8)
    assert job.schedule(np.array([0]))[0] == pytest.approx(1 - 0.9**n)


def test_bfloat16_is_half_as_long_and_loses_nothing(corpus):
    """What rounding takes off stays with the sender: the mean of all nodes does not move."""
    sums, lengths = {}, {}
    for numbers in ("float32", "bfloat16"):
        strategy = push_rows.Strategy(1.0, numbers=numbers)
        state = lda(corpus, strategy="push_rows").state
        strategy.begin(state, 0, 2, None)
        before = np.float64(state.shared.rows)
        state.shared.rows[...] *= np.float32(1.1)
        _, arrays = strategy.send(state)
        sent = arrays["rows"].astype(np.float64)
        if numbers == "bfloat16":
            sent = np.float64((arrays["rows"].astype(np.uint32) << 16).view(np.float32))
            assert (sent != np.float32(1.1) * before[:, : sent.shape[1]]).any()
        sums[numbers] = sent + state.shared.rows[:, : sent.shape[1]]
        lengths[numbers] = arrays["rows"].nbytes
        # Numbers of rows take a byte, of fewer than 256, and weights four; halves of 1 are exact.
        assert arrays["sent"].itemsize == 1 and arrays["weights"].dtype == np.float32
        assert np.all(arrays["weights"] == 0.5)
    np.testing.assert_allclose(sums["bfloat16"], sums["float32"], rtol=1e-6)
    assert 2 * lengths["bfloat16"] == lengths["float32"]


def test_bfloat16_is_refused_where_it_could_leave_the_domain():
    points = np.random.default_rng(0).normal(size=(60, 2))
    cluster = Cluster(strategy="push_rows", strategy_options={"numbers": "bfloat16"})
    mixture = DPSVIGaussianMixture(2, engine="mpi", cluster=cluster, random_state=0)
    with pytest.raises(ValueError, match="not negative: not for gaussian_mixture"):
        mixture.fit(points)
    with pytest.raises(ValueError, match="numbers must be one of"):
        Cluster(strategy="push_rows", strategy_options={"numbers": "float16"})
