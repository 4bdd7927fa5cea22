"""A worker rank's side of a fit: messages to rank 0 and back, its loss, signals, the end.

What a worker does is in :mod:`dpsvi.cluster.nodes.worker`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait

from dpsvi.cluster.contracts import DROPPED, LONGEST, MASTER
from dpsvi.cluster.nodes.adopt import adopt
from dpsvi.cluster.nodes.problem import check_same
from dpsvi.cluster.nodes.worker import Worker
from dpsvi.cluster.ranks.heartbeat import Heartbeat
from dpsvi.cluster.ranks.world import World
from dpsvi.cluster.transports.messages import Message, Pool
from dpsvi.errors import DivergedError, DroppedError, LostMemoryError, LostRankError
from dpsvi.training.job import Job
from dpsvi.training.signals import Deferred

log = logging.getLogger(__name__)

_NO_ANSWER = "no answer"
_ABORT_APART, _ABORT_LATEST = 0.5, 2.0  # seconds
_ANSWER, _CLOSE_SECONDS = 10.0, 20.0
_RANK_0_ENDS = 10.0  # it may still wait for others
_LOOK_APART = 0.1


def follow(job: Job, here: World, heartbeat: Heartbeat, signals: Deferred) -> bool:
    """Work for rank 0 until it says stop; whether its observer ended the fit.

    `signals` are delivered between messages and while a turn is made: numba swallows what they
    raise in the midst of it while it compiles.
    """
    pool = Pool(shared=bool(here.near))
    channel = here.channel(pool, heartbeat.silent)
    try:
        return _follow(job, here, pool, channel, signals)
    finally:
        channel.close(0.0)  # also where nothing was said: MPI may still write to its buffers


def _follow(job, here, pool, channel, signals) -> bool:
    def check():
        signals.deliver()
        for rank, reason in channel.newly_lost().items():
            if rank == MASTER:
                # One after the other: the first that raises ends the job, and Open MPI's mpiexec
                # (5.0.11) can deadlock when two ranks abort at once.
                time.sleep(min(_ABORT_APART * (here.rank - 1), _ABORT_LATEST))
            Worker.lose(rank, reason)

    def check_rank_0():
        signals.deliver()
        # Rank 0 sends a dropped rank no heartbeats any more: only its death counts.
        if 0 in channel.lost:
            raise LostRankError("rank 0, the master, is lost: its process ended")

    interrupt = None
    log.info("rank %d works for rank 0, %d threads", here.rank, job.n_jobs)
    try:
        message = _serve(Worker(job, pool=pool), channel, check, here.rank)
    except KeyboardInterrupt as error:
        interrupt = error
        message = _leave(pool, channel, check, "ended by a signal")
    except LostRankError:
        raise
    except Exception as error:
        channel.send(0, _note(pool, "leave", f"failed: {error}"))
        channel.close(1.0)
        raise
    reason = message.header["reason"] if message is not None else _NO_ANSWER
    log.info("rank %d ends, rank 0 says: %s", here.rank, reason)
    if reason == DROPPED and interrupt is None:
        here.left = True
        log.warning("the others continue without this rank: it was silent for too long")
        # Not before they have ended: a rank that leaves with an error ends the whole job.
        while channel.receive(check_rank_0)[1].header["kind"] != "stop":
            pass
        raise DroppedError("the others continue without this rank: it was silent for too long")
    here.left = interrupt is not None and reason in (DROPPED, _NO_ANSWER)
    arrays = message.arrays if message is not None else {}
    if "lost" in arrays:
        here.lost |= set(arrays["lost"].tolist())
    if "rows" in arrays:
        adopt(job.state, message)
    channel.send(0, pool.message({"kind": "bye"}))
    channel.close(_CLOSE_SECONDS)
    signals.deliver()
    if interrupt is not None:
        raise interrupt
    if reason.startswith("diverged"):
        raise DivergedError(reason.removeprefix("diverged: "))
    if reason == "interrupted":
        # A signal that comes after the fit, where nothing is ready for it, would end the job.
        signals.expect()
        raise KeyboardInterrupt
    if reason != "done":
        time.sleep(_RANK_0_ENDS)  # it knows more, and is to end the job
        raise LostRankError(f"rank 0, the master, {reason}")
    if message.header["memory_lost"]:
        raise LostMemoryError
    return message.header["ended"]


def _serve(worker, channel, check, own_rank) -> Message:
    """Work until rank 0 says stop; the message that says so."""
    with ThreadPoolExecutor(1, "dpsvi-worker") as thread:
        while True:
            try:
                for rank, message in _turn(worker, thread, channel, check):
                    channel.send(rank, message)
            except DivergedError as error:
                channel.send(0, _note(worker.pool, "diverged", str(error)))
            rank, message = channel.receive(check)
            if message.header["kind"] == "stop":
                return message
            if message.header["kind"] == "hello":  # of a fit without a master
                problem = message.header["problem"]
                check_same(worker.problem, own_rank, rank, problem)
            check()  # what comes may never let it wait
            worker.take(rank, message)


def _turn(worker, thread, channel, check) -> Iterator[tuple[int, Message]]:
    """The messages of a turn that is made in `thread`.

    Meanwhile this one watches for signals and for rank 0: steps that nobody waits for any more are
    not made.
    """
    turn = worker.turn()
    while True:
        future = thread.submit(next, turn, None)
        try:
            while wait([future], _LOOK_APART).not_done:
                check()
                if any(message.header["kind"] == "stop" for message in channel.look()):
                    worker.stop()
        except BaseException:
            while not future.done():
                worker.stop()  # again: the steps may not have begun yet
                wait([future], _LOOK_APART)
            raise
        if (answer := future.result()) is None:
            return
        yield answer


def _note(pool, kind, reason):
    return pool.message({"kind": kind, "reason": reason[:LONGEST]})


def _leave(pool, channel, check, reason):
    """Give all work back and wait for the end; None when it does not come."""
    channel.send(0, _note(pool, "leave", reason))
    end = time.monotonic() + _ANSWER

    def limited():
        check()
        if time.monotonic() > end:
            raise TimeoutError

    try:
        while (message := channel.receive(limited)[1]).header["kind"] != "stop":
            pool.give(message.buffer)
    except (TimeoutError, LostRankError, KeyboardInterrupt):
        return None
    return message
