"""Rank 0's side of a fit: messages to the master and back, lost workers, the end.

What the master decides is in :mod:`dpsvi.cluster.nodes.master`.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from dpsvi.cluster.contracts import DROPPED, LONGEST, POLLS, UNREADABLE
from dpsvi.cluster.nodes.master import Master
from dpsvi.cluster.nodes.worker import Worker
from dpsvi.cluster.ranks.heartbeat import SILENT, Heartbeat
from dpsvi.cluster.ranks.world import World
from dpsvi.cluster.transports.messages import Message, Pool, deliver
from dpsvi.cluster.transports.window import opened
from dpsvi.errors import DivergedError, LostRankError
from dpsvi.files.launcher import launched_with_ulfm
from dpsvi.training.job import Job
from dpsvi.training.signals import Deferred

log = logging.getLogger(__name__)


def lead(
    job: Job, here: World, heartbeat: Heartbeat | None, n_workers: int, signals: Deferred
) -> bool:
    """Be the master, and a worker too where that is wanted; whether the observer ended the fit."""
    with opened(job.state, here.near, here.size) as window:
        master = Master(job, n_workers, pool=Pool(shared=bool(here.near)), window=window)
        if here.lost - here.announced:
            master.lose_memory()
        _lead(master, here, heartbeat, n_workers, signals)
    signals.deliver()
    return master.result()


def _lead(master, here, heartbeat, n_workers, signals) -> None:
    job, channel = master.job, None
    if here.others:
        channel = here.channel(master.pool, heartbeat.silent)
    local = None
    if n_workers > len(here.others):
        local = _LocalWorker(job, master, here.near.notify if here.near else lambda: None)
    reason = "failed"
    try:
        with master.boundary.interruptible(master.snapshot):
            _serve(master, channel, local, here, heartbeat, signals)
        reason = "done"
    except KeyboardInterrupt:
        reason = "interrupted"
        raise
    except DivergedError as error:
        reason = f"diverged: {error}"
        raise
    except Exception as error:
        reason = f"failed: {error}"
        raise
    finally:
        master.report()
        if local is not None:
            local.stop()
        if channel is not None:
            _stop_all(master, channel, here, heartbeat, signals, reason)
        elif reason in ("done", "interrupted"):
            master.parameters.renormalise()


def _serve(master, channel, local, here, heartbeat, signals) -> None:
    """Take messages and answer them until all is done."""
    pause, window = POLLS[0], master.window
    held: deque[tuple[int, Message | str]] = deque()  # messages, or why the rank is lost
    grace, started = master.job.cluster.grace_seconds, time.monotonic()
    while held or not master.finished:
        signals.deliver()
        if grace is not None and time.monotonic() - started >= grace:
            master.wait_no_longer()
            grace = None
        arrived = local.poll() if local is not None else []
        if channel is not None:
            arrived += channel.poll()
            arrived += channel.newly_lost().items()
        for rank, what in arrived:
            if not _is_last(what):
                held.append((rank, what))
            elif not any(who == rank and _is_last(last) for who, last in held):
                # Before anything else, and instead of what it still asks for: an answer would let
                # it read, and it would never end.
                held = deque([(rank, what), *(item for item in held if item[0] != rank)])
        taken: set[int] = set()
        # With prefetch a rank asks, then reports: it is to read what was there before its report.
        while held and held[0][0] not in taken and not _read_by_others(window, held):
            signals.deliver()
            rank, what = held.popleft()
            taken.add(rank)
            if isinstance(what, str):
                _lose(master, rank, what, here, heartbeat)
            elif _is_last(what):
                if master.n_workers == 1 or master.job.cluster.on_lost == "abort":
                    signals.expect()  # it may have left by one
                channel.send(rank, master.pool.message({"kind": "stop", "reason": DROPPED}))
                _lose(master, rank, what.header["reason"], here, heartbeat)
            else:
                master.take(rank, what)
        signals.deliver()
        for rank, message in master.turn():
            if rank == 0:
                local.send(message)
            else:
                channel.send(rank, message)
        if arrived:
            pause = POLLS[0]
        elif channel is not None:  # what is held waits for a reader, for milliseconds
            pause = channel.rest(POLLS[0] if held else pause)
        else:
            time.sleep(POLLS[1])


def _read_by_others(window, held) -> bool:
    """Whether somebody reads the master's rows who has not ended meanwhile."""
    if window is None:
        return False
    for rank, what in held:
        if _is_last(what):
            window.end(rank)
    return window.busy


def _is_last(what: Message | str) -> bool:
    """Whether nothing more will come of a rank: it says that it leaves, or is lost."""
    return isinstance(what, str) or what.header["kind"] == "leave"


def _lose(master, rank, reason, here, heartbeat):
    forget(rank, reason, here, heartbeat)
    if rank in here.frozen and here.near and rank in here.near and launched_with_ulfm():
        # A dead rank is no trouble to this MPI; a stopped one keeps mpiexec from ending.
        with suppress(ProcessLookupError):
            os.kill(here.near.processes[rank], signal.SIGKILL)
        here.frozen.discard(rank)
    if master.job.cluster.on_lost == "abort":
        log.error("rank %d is lost (%s)", rank, reason)
        raise LostRankError(f"rank {rank} is lost: {reason}")
    master.lose(rank, reason)


def _stop_all(master, channel, here, heartbeat, signals, reason) -> None:
    """Tell all workers to stop, and wait until they have: nobody's message may be left over.

    Whoever lives is waited for: it may have a step to end, or much to receive.  Only another signal
    after the one that ended the fit ends that, too.
    """
    for rank in here.frozen:
        channel.notify(rank, master.pool.message({"kind": "stop", "reason": DROPPED}))
    waiting = set(here.others)
    known = reason in ("done", "interrupted")
    here.announced = set(here.lost)
    if waiting:
        message = master.stop_message(reason[:LONGEST], here.lost, parameters=known)
        for rank in waiting:
            channel.send(rank, message, keep=True)
    try:
        while waiting or channel.receiving:
            for rank, answer in channel.poll():
                if answer.header["kind"] == "bye":
                    waiting.discard(rank)
                    heartbeat.forget(rank)
                master.pool.give(answer.buffer)
            channel.newly_lost()
            for rank in waiting & channel.lost.keys():  # also those that nobody knows of yet
                forget(rank, channel.lost[rank], here, heartbeat)
                log.warning("rank %d is lost (%s)", rank, channel.lost[rank])
            waiting -= channel.lost.keys()
            if reason == "interrupted":
                signals.deliver()
            time.sleep(POLLS[0])
    finally:  # a second signal ends the wait
        channel.close(0.0)


def forget(rank, reason, here, heartbeat) -> None:
    """Expect nothing more of a rank that is lost."""
    heartbeat.forget(rank)
    here.lost.add(rank)
    if reason.startswith((SILENT, UNREADABLE)):
        here.frozen.add(rank)


class _LocalWorker:
    """A worker in a thread of rank 0."""

    def __init__(self, job: Job, master: Master, wake: Callable[[], None]):
        self.master, self._inbox, self._outbox = master, queue.Queue(), queue.Queue()
        self._wake = wake
        self._worker, self._job, self._stopped = None, job, False
        self._thread = threading.Thread(target=self._run, name="dpsvi-worker", daemon=True)
        self._thread.start()

    def send(self, message) -> None:
        """Hand over a message."""
        self._inbox.put(message)

    def poll(self):
        """Messages of the worker; raises what the worker raised."""
        found = []
        while not self._outbox.empty():
            item = self._outbox.get()
            if isinstance(item, BaseException):
                raise item
            found.append((0, deliver(item, self._worker.pool, self.master.pool)))
        return found

    def stop(self) -> None:
        """End the thread after the step it is in."""
        self._stopped = True
        self._inbox.put(None)
        while self._thread.is_alive():
            if self._worker is not None:
                self._worker.stop()  # again: the steps may not have begun yet
            self._thread.join(POLLS[1])

    def _run(self):
        try:
            self._worker = Worker(self._job)
            self._worker.problem = self.master.problem  # the others may have begun meanwhile
            while True:
                for _, message in self._worker.turn():
                    self._put(message)
                message = self._inbox.get()
                if message is None or self._stopped:
                    return
                self._worker.take(0, deliver(message, self.master.pool, self._worker.pool))
        except BaseException as error:  # raised again in the main thread
            self._put(error)

    def _put(self, item):
        self._outbox.put(item)
        self._wake()
