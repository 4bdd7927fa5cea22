"""Threads without locks, step by step: what was read and written, against (2), (5) and (6)."""

from typing import NamedTuple

import numpy as np
import pytest
from reference.cluster import batch_statistics
from reference.lda import TopicCorpus, documents_of

from dpsvi import engines
from dpsvi.cluster.nodes import worker
from dpsvi.cluster.nodes.as_read import AsReadLoop
from dpsvi.cluster.virtual import Timing, VirtualCluster
from dpsvi.kernels.jit import as_items
from dpsvi.models.lda.model import make_model
from dpsvi.training.job import Job
from dpsvi.training.ledger import Ledger
from dpsvi.training.loop import Loop
from dpsvi.training.schedules import constant
from dpsvi.training.state import State

K, ALPHA, ETA, SWEEPS, RATE = 4, 0.3, 0.05, 5, 0.03
N_DOCUMENTS, BATCH, B, P, N = 192, 4, 4, 3, 2


class Step(NamedTuple):
    """One local step m of a segment, as it happened."""

    batch: np.ndarray
    read: np.ndarray  # lam as it was read, (words, K); words that are not held mean nothing
    written_before: frozenset  # the steps of this segment that were in u completely by then
    survived: np.ndarray  # B_m, (words,): False where it was over-written


@pytest.fixture
def trace(monkeypatch):
    """A list with all steps of each segment, in the order of the segments, while fits run."""
    segments, written, at_work = [], set(), {}

    def make_task(model, shared, *arguments):
        task = plain_make_task(model, shared, *arguments)

        def local(seen, scale, hyper, items, batch, work):
            at_work[id(work.stats)] = len(segments[-1])
            lam = np.float32(ETA) + np.float32(scale) * seen.rows
            segments[-1].append(
                Step(batch.copy(), lam, frozenset(written), np.ones(len(seen.rows), bool))
            )
            return task.local(seen, scale, hyper, items, batch, work)

        return task._replace(local=local)

    def compute(self, grant, mine):
        segments.append([])
        written.clear()
        return plain_compute(self, grant, mine)

    def end(self, task, thread, t, n, survives=None):
        step = at_work[id(task.works[thread].stats)]
        written.add(step)
        plain_end(self, task, thread, t, n, survives)

    def end_as_read(self, task, thread, t, n, survives=None):
        step = at_work[id(task.works[thread].stats)]
        written.add(step)

        def noted(n_rows):
            kept = survives(n_rows)
            segments[-1][step].survived[self.held[~kept]] = False
            return kept

        plain_end_as_read(self, task, thread, t, n, survives and noted)

    plain_make_task, plain_compute = worker.make_task, worker.Worker._compute
    plain_end, plain_end_as_read = Loop.end, AsReadLoop.end
    monkeypatch.setattr(worker, "make_task", make_task)
    monkeypatch.setattr(worker.Worker, "_compute", compute)
    monkeypatch.setattr(Loop, "end", end)
    monkeypatch.setattr(AsReadLoop, "end", end_as_read)
    return segments


def run(corpus, local_decay, lost):
    model = make_model(
        corpus.n_features, K, ALPHA, ETA, local_step="mean_field", n_sweeps=SWEEPS, tol=0.0
    )
    state = State.start(model, np.random.default_rng(0), 1)
    first = state.natural()[:, :K].T.astype(np.float64)
    items = as_items(corpus.offsets, corpus.index, corpus.value, np.float32)
    cluster = VirtualCluster(
        n_workers=N, strategy="displacement", local_decay=local_decay, seed=1,
        timing=Timing(step=1.0, value=0.0, spread=(0.5, 1.0, 1.5), lost=lost),
    )  # fmt: skip
    report = {}
    engines.get("simulated").fit(
        Job(
            state, items, Ledger(N_DOCUMENTS, BATCH, 2, 5), constant(RATE), n_jobs=P,
            local_steps=B, cluster=cluster, report=report,
        )
    )  # fmt: skip
    return first, state.natural()[:, :K].T.astype(np.float64), report["exchanges"]


def as_read(documents, w, steps):
    """Eq. (2), (5) and (6): all lam that were read, and the last u, of a segment that begins at w.

    What step j adds is B_j rho (lambda_hat(u_read) - u_read); a(m) is the first step that was not
    in u yet when m was read, and of later ones P_mj says which were.
    """
    added, read = [], []
    for m, step in enumerate(steps):
        a = next(j for j in range(m + 1) if j not in step.written_before)
        u_a = w + sum(added[:a])  # (3)
        seen = u_a + sum(added[j] for j in range(a, m) if j in step.written_before)
        stats = batch_statistics([documents[d] for d in step.batch], seen, ALPHA, SWEEPS)
        target = ETA + N_DOCUMENTS / len(step.batch) * stats
        added.append(RATE * step.survived * (target - seen))
        read.append(seen)
    return read, w + sum(added)


def exact(documents, w, steps):
    """The same where the decay of every step is exact: only statistics can be missing."""
    added, read = [], []
    for m, step in enumerate(steps):
        seen = ETA + (1 - RATE) ** m * (w - ETA)
        for j in step.written_before:
            seen = seen + (1 - RATE) ** (m - 1 - j) * added[j]
        stats = batch_statistics([documents[d] for d in step.batch], seen, ALPHA, SWEEPS)
        added.append(RATE * N_DOCUMENTS / len(step.batch) * stats)
        read.append(seen)
    last = len(steps) - 1
    end = ETA + (1 - RATE) ** (last + 1) * (w - ETA)
    return read, end + sum((1 - RATE) ** (last - j) * added[j] for j in range(last + 1))


@pytest.mark.parametrize(
    "form, lost", [(as_read, 0.0), (as_read, 0.1), (exact, 0.0)],
    ids=["as read", "as read and over-written", "exact"],
)  # fmt: skip
def test_a_fit_is_what_the_equations_make_of_its_reads_and_writes(trace, form, lost):
    """Two workers with three threads each: all that was read, and v after all merges, eq. (4)."""
    corpus = TopicCorpus(K, 90, N_DOCUMENTS, 40, 0.1, seed=1).corpus()
    documents = documents_of(corpus)
    first, found, exchanges = run(corpus, form.__name__, lost)
    assert len(trace) == len(exchanges) == 2 * N_DOCUMENTS / BATCH / (P * B)
    v, partial = [first], 0
    for t, (steps, exchange) in enumerate(zip(order(trace, exchanges), exchanges, strict=True)):
        w = v[t - exchange.staleness]
        read, u = form(documents, w, steps)
        for step, expected in zip(steps, read, strict=True):
            words = np.unique(np.concatenate([documents[d][0] for d in step.batch]))
            np.testing.assert_allclose(step.read[words, :K].T, expected[:, words], rtol=2e-4)
        partial += sum(len(s.written_before) < m for m, s in enumerate(steps))
        v.append(np.maximum(v[-1] + (u - w), ETA))
    np.testing.assert_allclose(found, v[-1], rtol=2e-4)
    assert partial > len(trace) * P, "threads have missed what others were doing"
    assert (lost > 0) != all(step.survived.all() for steps in trace for step in steps)
    assert {e.staleness for e in exchanges} >= {1}


def order(trace, exchanges):
    """Segments in the order in which they were merged: a worker's own stay in order."""
    workers = [exchange.worker for exchange in exchanges]
    # Segments are computed at once, when they begin; each worker begins its next one after a merge.
    left = {rank: [] for rank in set(workers)}
    begun = iter(trace)
    for rank in sorted(left):
        left[rank].append(next(begun))
    for rank in workers:
        yield left[rank].pop(0)
        following = next(begun, None)
        if following is not None:
            left[rank].append(following)
