"""DPSVI on several processes (Alg. 1-4): rank 0 is the master, the others are workers.

Every rank calls :func:`fit` with the same job and gets the same parameters back.  A process alone
is master and worker at once.
"""

from __future__ import annotations

import logging
import os
import platform
import queue
import signal
import threading
import time
from contextlib import suppress

import numpy as np

from dpsvi.cluster.channel import DROPPED, POLLS, Channel
from dpsvi.cluster.master import Master
from dpsvi.cluster.messages import deliver
from dpsvi.cluster.options import Cluster
from dpsvi.cluster.pulse import SILENT, Pulse
from dpsvi.cluster.signals import Deferred
from dpsvi.cluster.worker import Worker
from dpsvi.cluster.world import World, launched_with_ulfm, placement, world
from dpsvi.errors import DivergedError, DroppedError, LostRankError
from dpsvi.fit import Job
from dpsvi.passes import Passes

log = logging.getLogger(__name__)

_LEAVE_SECONDS = 20.0
_ABORT_APART, _ABORT_LATEST = 0.5, 2.0  # seconds
_LONGEST = 200  # characters of a reason


def fit(job: Job) -> bool:
    """Carry out `job` together with the other ranks; whether the observer of rank 0 ended it.

    Raises
    ------
    LostRankError
        Rank 0 or the last worker is lost, or any rank and ``on_lost="abort"``.
    DivergedError
        On all ranks, when a parameter became NaN or infinite on any.
    """
    here = world()
    model = job.state.model
    options = job.cluster or Cluster()
    if model.item_memory or model.value_memory:
        raise ValueError(
            "engine='mpi' cannot remember local parameters between visits: a document may be at "
            "another rank next time"
        )
    if options.statistics == "bfloat16" and model.real != np.float32:
        raise ValueError(f"statistics='bfloat16' needs float32 parameters, not {model.real}")
    passes = job.passes
    n_workers = len(here.others) + (options.master_works or not here.others)
    if options.sharding == "shard" and not passes.n_done:
        passes = Passes(
            passes.n_items, passes.batch_size, passes.n_passes, passes.seed, n_workers,
            passes.clock,
        )  # fmt: skip
    job = job._replace(cluster=options, passes=passes)
    placement(job.n_jobs)
    pulse = Pulse(here.beats, options.silent_seconds) if here.size > 1 else None
    if pulse is not None:
        for rank in here.lost:
            pulse.forget(rank)
        pulse.start()
    try:
        return _work(job, here, pulse) if here.rank else _lead(job, here, pulse, n_workers)
    finally:
        if pulse is not None:
            pulse.stop()


# --- rank 0 -----------------------------------------------------------------------------------


def _lead(job: Job, here: World, pulse: Pulse | None, n_workers: int) -> bool:
    master = Master(job, n_workers)
    channel = Channel(here.data, master.pool, pulse.silent, here.near) if here.others else None
    if channel is not None:
        channel.gone |= here.lost
    local = _LocalWorker(job, master) if n_workers > len(here.others) else None
    reason = "failed"
    try:
        with Deferred() as signals:
            _serve(master, channel, local, here, pulse, signals)
        reason = "done"
    except KeyboardInterrupt:
        reason = "interrupted"
        if job.checkpoint is not None:
            job.checkpoint(master.snapshot(), True)
        raise
    except DivergedError as error:
        reason = f"diverged: {error}"
        raise
    except Exception as error:
        reason = f"failed: {error}"
        raise
    finally:
        if local is not None:
            local.stop()
        if channel is not None:
            _dismiss(master, channel, here, pulse, reason)
        elif reason in ("done", "interrupted"):
            master.parameters.renormalise()
        master.report()
    return master.ended


def _serve(master, channel, local, here, pulse, signals) -> None:
    """Take messages and answer them until all is done."""
    pause = POLLS[0]
    while not master.finished:
        signals.deliver()
        arrived = list(channel.poll()) if channel is not None else []
        if local is not None:
            arrived += local.poll()
        for rank, message in arrived:
            if message.header["kind"] == "leave":
                left = master.pool.message({"kind": "stop", "reason": DROPPED})
                channel.send(rank, left)
                _lose(master, rank, message.header["reason"], here, pulse)
            else:
                master.take(rank, message)
            signals.deliver()
        if channel is not None:
            for rank, reason in channel.lost().items():
                _lose(master, rank, reason, here, pulse)
        outbox, master.outbox = master.outbox, []
        for rank, message, keep in outbox:
            if rank == 0:
                local.send(message, keep)
            else:
                channel.send(rank, message, keep)
        if arrived:
            pause = POLLS[0]
        elif channel is not None:
            pause = channel.rest(pause)
        else:
            time.sleep(POLLS[1])


def _lose(master, rank, reason, here, pulse):
    _forget(rank, reason, here, pulse)
    host, number = master.places.get(rank, (None, None))
    if rank in here.frozen and host == platform.node() and launched_with_ulfm():
        # A dead rank is no trouble to this MPI; a stopped one keeps mpiexec from ending.
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
        here.frozen.discard(rank)
    if master.job.cluster.on_lost == "abort":
        log.error("rank %d is lost (%s)", rank, reason)
        raise LostRankError(f"rank {rank} is lost: {reason}")
    master.drop(rank, reason)


def _dismiss(master, channel, here, pulse, reason) -> None:
    """Tell all workers to stop, and wait until they have: nobody's message may be left over."""
    for rank in here.frozen:
        channel.tell(rank, master.pool.message({"kind": "stop", "reason": DROPPED}))
    waiting = set(here.others)
    known = reason in ("done", "interrupted")
    if waiting:
        message = master.stop_message(reason[:_LONGEST], here.lost, parameters=known)
        for rank in waiting:
            channel.send(rank, message, keep=True)
    end = time.monotonic() + _LEAVE_SECONDS + master.job.cluster.silent_seconds
    while waiting and time.monotonic() < end:
        for rank, answer in channel.poll():
            if answer.header["kind"] == "bye":
                waiting.discard(rank)
            master.pool.give(answer.buffer)
        for rank, why in channel.lost().items():
            _forget(rank, why, here, pulse)
            waiting.discard(rank)
            log.warning("rank %d is lost (%s)", rank, why)
        time.sleep(POLLS[0])
    for rank in waiting:
        log.warning("rank %d did not say good-bye", rank)
        _forget(rank, SILENT, here, pulse)


def _forget(rank, reason, here, pulse):
    pulse.forget(rank)
    here.lost.add(rank)
    if reason.startswith(SILENT):
        here.frozen.add(rank)


class _LocalWorker:
    """A worker in a thread of rank 0."""

    def __init__(self, job: Job, master: Master):
        self.master, self._inbox, self._outbox = master, queue.Queue(), queue.Queue()
        self._worker, self._job = None, job
        self._thread = threading.Thread(target=self._run, name="dpsvi-worker", daemon=True)
        self._thread.start()

    def send(self, message, keep) -> None:
        """Hand over a message."""
        self._inbox.put((message, keep))

    def poll(self):
        """Messages of the worker; raises what the worker raised."""
        found = []
        while not self._outbox.empty():
            item = self._outbox.get()
            if isinstance(item, BaseException):
                raise item
            found.append((0, deliver(item, self._worker.pool, self.master.pool, False)))
        return found

    def stop(self) -> None:
        """End the thread after the step it is in."""
        if self._worker is not None:
            self._worker.leave()
        self._inbox.put((None, False))
        self._thread.join()

    def _run(self):
        try:
            self._worker = Worker(self._job)
            self._outbox.put(self._worker.hello())
            while True:
                message, keep = self._inbox.get()
                if message is None:
                    return
                grant = deliver(message, self.master.pool, self._worker.pool, keep)
                for answer in self._worker.turn(grant):
                    self._outbox.put(answer)
        except BaseException as error:  # raised again in the main thread
            self._outbox.put(error)


# --- the other ranks ----------------------------------------------------------------------------


def _work(job: Job, here: World, pulse: Pulse) -> bool:
    worker = Worker(job)
    channel = Channel(here.data, worker.pool, pulse.silent, here.near)

    def check():
        if 0 in channel.lost():
            # One after the other: the first that raises ends the job, and Open MPI's mpiexec
            # (5.0.11) can deadlock when two ranks abort at once.
            time.sleep(min(_ABORT_APART * (here.rank - 1), _ABORT_LATEST))
            raise LostRankError("rank 0, the master, is lost")

    interrupt = None
    try:
        channel.send(0, worker.hello())
        while (message := channel.receive(check)[1]).header["kind"] != "stop":
            try:
                for answer in worker.turn(message):
                    channel.send(0, answer)
            except DivergedError as error:
                channel.send(0, _note(worker, "diverged", str(error)))
    except KeyboardInterrupt as error:
        interrupt = error
        message = _leave(worker, channel, check, "ended by a signal")
    except LostRankError:
        raise
    except Exception as error:
        channel.send(0, _note(worker, "leave", f"failed: {error}"))
        channel.flush(1.0)
        raise
    reason = message.header["reason"] if message is not None else "no answer"
    if reason == DROPPED and interrupt is None:
        log.warning("the others go on without this rank: it was silent for too long")
        # Not before they have ended: a rank that leaves with an error ends the whole job.
        while channel.receive()[1].header["kind"] != "stop":
            pass
        raise DroppedError("the others have gone on without this rank: it was silent for too long")
    here.lost |= set(message.header.get("lost", ()) if message is not None else ())
    if message is not None and "rows" in message.arrays:
        _adopt(job.state, message)
    channel.send(0, worker.pool.message({"kind": "bye"}))
    channel.flush(_LEAVE_SECONDS)
    if interrupt is not None:
        raise interrupt
    if reason.startswith("diverged"):
        raise DivergedError(reason.removeprefix("diverged: "))
    if reason == "interrupted":
        raise KeyboardInterrupt
    if reason != "done":
        time.sleep(2.0)  # rank 0 knows more, and is to end the job
        raise LostRankError(f"rank 0, the master, {reason}")
    return message.header["ended"]


def _note(worker, kind, reason):
    return worker.pool.message({"kind": kind, "reason": reason[:_LONGEST]})


def _leave(worker, channel, check, reason):
    """Give all work back and wait for the end; None when it does not come."""
    channel.send(0, _note(worker, "leave", reason))
    end = time.monotonic() + _LEAVE_SECONDS / 2

    def limited():
        check()
        if time.monotonic() > end:
            raise TimeoutError

    try:
        while (message := channel.receive(limited)[1]).header["kind"] != "stop":
            worker.pool.give(message.buffer)
    except (TimeoutError, LostRankError):
        return None
    return message


def _adopt(state, message) -> None:
    """Take over the final parameters of the master."""
    state.shared.rows[...] = message.arrays["rows"]
    state.scale, state.step = 1.0, message.header["step"]
    state.items = message.header["items"]
    state.model.hyper[:] = message.arrays["hyper"]
    state.model.prior[...] = message.arrays["prior"]
    state.recount()
