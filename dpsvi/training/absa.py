"""Batches that grow as the curvature falls (ABSA; Yao, Gholami, Keutzer and Mahoney 2018).

Small batches find the way while much still changes, and large ones, of which fewer are needed,
finish: when the largest eigenvalue of the Hessian has fallen to half of what it was, or ten passes
have gone by without a change, the batch doubles, and so does the rate.

For every learner the Hessian is the Jacobian of its *local map*: what the statistics of some items
say of all, as a function of the parameters.  For gradients that is minus the Hessian, with the
penalty; for estimates of natural parameters d lam^ / d lam; for changes, to be summed, the same.
The items, a probe of 512, are drawn once, and the map knows nothing that is remembered of them.
The eigenvalue of largest size is found by power iteration on differences of the map::

    w <- J w / |J w|        J w = (map(v + e D w) - map(v)) / (e D)        eigenvalue = w . J w

at most ten times, or until it changes by a hundredth.  D is v where v must stay positive, else 1:
the Jacobian in relative coordinates has the same eigenvalues, and no difference leaves the domain.

A fit is carried out in parts, each with batches of one size; workers meet where one ends, and
strategies begin anew from what all have found.  Rates follow the schedule by the items visited, so
that after as many items it is where it would be without this, and are multiplied by what the batch
is to the first one; a rate that is a share of a new estimate is at most 1.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np

from dpsvi import learners
from dpsvi.training.items import count, take
from dpsvi.training.job import Job
from dpsvi.training.ledger import Ledger
from dpsvi.training.state import State
from dpsvi.training.task import make_task, make_works

log = logging.getLogger(__name__)

_PROBE = 512  # items
_ITERATIONS, _TOLERANCE = 10, 1e-2
_PATIENCE = 10  # passes without a change


class LocalMap:
    """What the statistics of a probe say of all items, as a function of ``lam - prior``.

    Parameters
    ----------
    job : Job
    rng : numpy.random.Generator
        Draws the probe.
    """

    def __init__(self, job: Job, rng: np.random.Generator):
        n = count(job.items)
        items = take(job.items, np.sort(rng.choice(n, min(n, _PROBE), replace=False)))
        size = count(items)
        self.model = job.state.model
        model = self.model._replace(hyper=self.model.hyper.copy())
        zero = np.zeros(model.shape, model.real)
        self._state = State.resume(model, zero, 1, size, len(items.index) or len(items.value))
        shared, works = self._state.shared, make_works(model, items, size, 1)
        task = make_task(model, shared, items, size, works)
        self._task = task._replace(order=np.arange(size, dtype=np.int32), scales=np.ones(1))
        learner = learners.get(model.learner)
        total = job.total_items or n
        self._weight = (total if learner.ESTIMATES or learner.COUNTS_ONCE else 1) / size

    def __call__(self, learned: np.ndarray) -> np.ndarray:
        """The map at ``lam - prior``; float64, of the shape of the parameters."""
        task, shared = self._task, self._task.shared
        task.hyper[:] = self.model.hyper  # a fit may change them
        shared.rows[...] = learned
        for memory in (shared.item_memory, shared.value_memory):
            memory[...] = 0
        self._state.recount()
        n, (work,) = task.loop.begin(task, 0, 0), task.works
        found = -self.model.weight_decay * np.asarray(learned, np.float64)
        rows, stats = work.touched[:n], self._weight * work.stats[:n]
        if len(work.columns):
            np.add.at(found, (rows[:, None], work.columns[:n]), stats)
        else:
            found[rows] += stats
            work.stats[:n] = 0
        return found

    def top_eigenvalue(self, learned: np.ndarray, rng: np.random.Generator) -> float:
        """Size of the largest eigenvalue of the Jacobian at ``lam - prior``.

        Parameters
        ----------
        learned : array of the shape of the parameters
        rng : numpy.random.Generator
            Draws where the iteration begins.
        """
        model = self.model
        learned = np.asarray(learned, np.float64)
        before, scale, most = self(learned), 1.0, max(1.0, float(np.abs(learned).max()))
        if model.nonnegative:
            scale = np.maximum(model.prior + learned, np.finfo(model.real).tiny)
            most = 1.0
        direction, found = rng.normal(size=model.shape), 0.0
        direction[:, model.sent_columns :] = 0
        for _ in range(_ITERATIONS):
            direction /= np.linalg.norm(direction)
            length = most * float(np.sqrt(np.finfo(model.real).eps)) / np.abs(direction).max()
            moved = (self(learned + length * scale * direction) - before) / (length * scale)
            last, found = found, float(np.sum(direction * moved))
            if not moved.any() or abs(found - last) <= _TOLERANCE * abs(found):
                break
            direction = moved
        return abs(found)


class Growth:
    """How large batches are to be, by what the eigenvalue was after each pass.

    Parameters
    ----------
    size, most : int
        Items of the first batches, and of the largest ones.

    Examples
    --------
    >>> growth = Growth(8, 32)
    >>> [growth.after(eigenvalue) for eigenvalue in (4.0, 3.0, 2.0, 1.5, 1.0)]
    [8, 8, 16, 16, 32]
    """

    def __init__(self, size: int, most: int):
        self.size, self._most = size, most
        self._reference, self._passes = None, 0

    @property
    def ended(self) -> bool:
        """Whether batches are as large as they may be."""
        return self.size >= self._most

    def after(self, eigenvalue: float) -> int:
        """The size of the batches after one more pass, at whose end the eigenvalue is this."""
        self._passes += 1
        if self._reference is None:
            self._reference = eigenvalue
        halved = eigenvalue <= self._reference / 2
        if halved:
            self._reference = eigenvalue
        if halved or self._passes >= _PATIENCE:
            self.size, self._passes = min(2 * self.size, self._most), 0
        return self.size


def fit(carry_out: Callable[[Job], bool], job: Job, most: int) -> bool:
    """Carry out `job`, of whole passes, with batches that grow; whether its observer ended it.

    Parameters
    ----------
    carry_out : callable(job) -> bool
        ``fit`` of an engine that is not collective.
    job : Job
        Of its ``report`` the exchanges are those of all parts; ``report["growth"]`` holds a tuple
        for each look: passes, eigenvalue, items of a batch from then on.
    most : int
        Items of the largest batches.

    Raises
    ------
    ValueError
        Workers would lose what they remember of items.
    """
    if job.cluster is not None and job.state.sums_memory:
        raise ValueError(
            "batches cannot grow where workers remember what the parameters are a sum of: they "
            "forget it when a part of the fit ends"
        )
    return _Parts(carry_out, job, most).run()


class _Parts:
    """The parts of one fit."""

    def __init__(self, carry_out, job: Job, most: int):
        self._carry_out, self._job = carry_out, job
        self._rng = np.random.default_rng(job.passes.seed)
        self._map = LocalMap(job, self._rng)
        self._growth = Growth(job.passes.batch_size, most)
        self._first = 0  # passes before this part
        self._looked = 0.0  # passes of it at the last look
        self._stopped, self._seconds = False, job.seconds
        self._looks: list[tuple[int, float, int]] = []

    def run(self) -> bool:
        job, report, exchanges = self._job, {}, []
        while not self._stopped and self._first < job.passes.n_passes:
            self._looked = 0.0
            ended = self._carry_out(self._part(report))
            exchanges += report.pop("exchanges", [])
            if not ended:
                break
            self._first += round(self._looked)
        if job.report is not None:
            job.report.update(report, exchanges=exchanges, growth=self._looks)
        return self._stopped

    def _part(self, report) -> Job:
        """What is left to do, with batches of the size that they have come to."""
        job, whole = self._job, self._job.passes
        grown = self._growth.size / whole.batch_size
        begun = whole.clock + self._first * whole.steps_a_pass
        share = learners.get(job.state.model.learner).ESTIMATES

        def schedule(t):
            rates = grown * np.asarray(job.schedule(begun + grown * np.asarray(t)), np.float64)
            return np.minimum(1.0, rates) if share else rates

        seed = np.random.SeedSequence([whole.seed, self._first]).generate_state(1)[0]
        passes = Ledger(
            whole.n_items, self._growth.size, whole.n_passes - self._first, int(seed)
        )
        return job._replace(
            passes=passes, schedule=schedule, observer=self._look, seconds=self._seconds,
            report=report,
        )  # fmt: skip

    def _look(self, event) -> bool:
        """Let the observer look, then, after a pass, at the curvature; whether this part ends."""
        self._seconds, observer = event.seconds, self._job.observer
        epoch = self._first + event.epoch
        if observer is not None and observer(event._replace(epoch=epoch)):
            self._stopped = True
            return True
        passed, self._looked = int(event.epoch) > int(self._looked), event.epoch
        if self._growth.ended or not passed:
            return False
        eigenvalue = self._map.top_eigenvalue(event.state.learned(), self._rng)
        before, now = self._growth.size, self._growth.after(eigenvalue)
        self._looks.append((round(epoch), eigenvalue, now))
        if now > before:
            log.info("top eigenvalue %.3g after pass %d: batches of %d", eigenvalue, epoch, now)
        return now > before
