"""What tests do to the processes of a fit: slow them down, kill them, set other limits, look on.

``python faults.py FAULTS PROGRAM ARGUMENTS`` runs the command line (``dpsvi``) or the `main` of a
program beside this one.  FAULTS is a JSON dict: names of functions of this file, and what each of
them is told.
"""

import json
import os
import signal
import sys
import threading
import time
import weakref
from contextlib import ExitStack, contextmanager, nullcontext
from importlib import import_module
from pathlib import Path

import numpy as np

if __name__ == "__main__":  # ranks that stay fit all models, some of which need what is left out
    import quick_start  # noqa: F401

from dpsvi.cluster.nodes.master import Master
from dpsvi.cluster.nodes.peer import Peer
from dpsvi.cluster.nodes.worker import Worker
from dpsvi.cluster.transports import channel, chunks, messages
from dpsvi.cluster.transports.buffers import Place
from dpsvi.cluster.transports.window import Window
from dpsvi.errors import DivergedError
from dpsvi.files.launcher import launched_rank

_SLOW = 0.05  # seconds a turn


@contextmanager
def _instead(part, name, value):
    """Another value for a name of a class or module; ``unittest.mock`` would load much more."""
    before = vars(part).get(name)  # None where a class inherits it
    setattr(part, name, value)
    try:
        yield
    finally:
        if before is None:
            delattr(part, name)
        else:
            setattr(part, name, before)


def _on(ranks, part, name, function):
    """A context in which a function of `part` is another one, on these ranks alone."""
    return _instead(part, name, function) if launched_rank() in ranks else nullcontext()


@contextmanager
def slow_until(path):
    """Turns of workers and peers take longer until a file is there: a fit ends when it is told."""
    path, work, gossip = Path(path), Worker.turn, Peer.turn

    def wait():
        if not path.exists():
            time.sleep(_SLOW)

    def turn_of_a_worker(self, *given):
        wait()
        yield from work(self, *given)

    def turn_of_a_peer(self, *given):
        wait()
        return gossip(self, *given)

    with _instead(Worker, "turn", turn_of_a_worker), _instead(Peer, "turn", turn_of_a_peer):
        yield


@contextmanager
def shared_from(n_bytes):
    """Ranks of one host share messages and rows that are as long as this."""
    with _instead(messages, "SHARED_FROM", n_bytes):
        yield


@contextmanager
def chunks_of(n_bytes):
    """Longer messages go in several, as those beyond 1 GiB do."""
    with _instead(chunks, "CHUNK", n_bytes):
        yield


@contextmanager
def lost_while_reading(number):
    """Rank 2 gets this signal, by itself, the 20th time that it reads the master's rows."""
    end, reads = Window.end, []

    def end_reading(self, rank):
        reads.append(rank)
        if len(reads) == 20:
            os.kill(os.getpid(), number)
        end(self, rank)

    # Rank 0 ends readings, too: those of ranks that are lost.
    with _on([2], Window, "end", end_reading):
        yield


@contextmanager
def signalled(told):
    """A rank gets SIGTERM once, by itself: told are its rank and where it is.

    That is as ranks meet for the first time (``Neighbours``), when all have met (``all_gather``),
    before a worker (``channel``) or a peer (``notify``) says hello, as a worker loads compiled
    code, in a callback that swallows what a handler raises (``load``), as a peer hands over what
    it holds for a checkpoint (``whole``), or between two calls of the engine (``_part``).
    """
    from dpsvi.cluster.nodes import kernels
    from dpsvi.cluster.ranks import others, placement
    from dpsvi.cluster.ranks.world import World
    from dpsvi.cluster.transports import neighbours
    from dpsvi.families.topics.kept import KeptPasses

    rank, where = told
    part = {
        "all_gather": placement, "channel": World, "notify": others.Others, "whole": Peer,
        "load": kernels, "Neighbours": neighbours, "_part": KeptPasses,
    }[where]  # fmt: skip
    call, calls = getattr(part, where), []

    def signalled_call(*arguments):
        calls.append(where)
        if len(calls) == 1:
            if where == "load":
                weakref.finalize(type("", (), {})(), os.kill, os.getpid(), signal.SIGTERM)
            else:
                os.kill(os.getpid(), signal.SIGTERM)
        return call(*arguments)

    with _on([rank], part, where, signalled_call):
        yield


@contextmanager
def signalled_late(ranks):
    """These ranks get SIGTERM a moment after they have ended their fit."""
    close, closed = channel.Channel.close, []

    def close_and_be_signalled(self, *given):
        close(self, *given)
        closed.append(given)
        if len(closed) == 1:
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()

    with _on(ranks, channel.Channel, "close", close_and_be_signalled):
        yield


@contextmanager
def patient(seconds):
    """A peer that has ended waits for so long until all that it has said is heard."""
    from dpsvi.cluster.ranks import others

    with _instead(others, "_CLOSE_SECONDS", seconds):
        yield


@contextmanager
def late(told):
    """A peer needs so many seconds more than others to be ready, as if it compiled."""
    rank, seconds = told
    begin = Peer.__init__

    def begin_late(self, *given, **options):
        time.sleep(seconds)
        begin(self, *given, **options)

    with _on([rank], Peer, "__init__", begin_late):
        yield


@contextmanager
def slow_to_turn(told):
    """A peer needs so many seconds more than others from the beginning of a round to its turns."""
    from dpsvi.cluster.ranks import gossip

    rank, seconds = told
    turns = gossip._Rank._turns

    def turns_later(self):
        time.sleep(seconds)
        turns(self)

    with _on([rank], gossip._Rank, "_turns", turns_later):
        yield


@contextmanager
def late_until(told):
    """A rank is not ready before a file is there: told are its rank and the file."""
    rank, path = told[0], Path(told[1])

    def late_begin(begin):
        def begin_late(self, *given, **options):
            while not path.exists():
                time.sleep(_SLOW)
            begin(self, *given, **options)

        return begin_late

    with (
        _on([rank], Worker, "__init__", late_begin(Worker.__init__)),
        _on([rank], Peer, "__init__", late_begin(Peer.__init__)),
    ):
        yield


@contextmanager
def at_a_turn(told):
    """A peer diverges, or stops itself (``freezes``), once: told are its rank, which, and when.

    When is a number of its turns.
    """
    rank, what, number = told
    turn, turns = Peer.turn, []

    def faulty_turn(self, *given):
        turns.append(self)
        if len(turns) == number and what == "freezes":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif len(turns) == number:
            raise DivergedError("this rank has diverged")
        return turn(self, *given)

    with _on([rank], Peer, "turn", faulty_turn):
        yield


def _before_the_tenth(told, act):
    """Do something when a rank is about to read the tenth message of another, where it lies."""
    reader, sender = told
    found, calls = channel.Channel._read_note, []

    def find(self, rank, message):
        calls.extend([rank] * (rank == sender))
        if len(calls) == 10 and rank == sender:
            act(self, rank, Place(*message.header["place"]))
        return found(self, rank, message)

    return _on([reader], channel.Channel, "_read_note", find)


def unreadable(told):
    """A rank cannot read the tenth message of another one where it lies: told are both ranks."""

    def fail(*given):
        raise OSError("not to be found")

    return _before_the_tenth(told, fail)


def killed_unread(told):
    """A rank is killed when another one is about to read a message of it: told are both ranks."""

    def kill(here, rank, place):
        number = here.near.processes[rank]
        os.kill(number, signal.SIGKILL)
        while Path(f"/proc/{number}/fd/{place.fd}").exists():
            time.sleep(0.01)
        here._mapped.pop(rank)

    return _before_the_tenth(told, kill)


@contextmanager
def broken(rank):
    """One rank raises in its first turn, or when it merges for the first time."""

    def fail(*arguments):
        raise RuntimeError("this rank is broken")

    with (
        _on([rank], Worker, "turn", fail), _on([rank], Master, "_collect", fail),
        _on([rank], Peer, "turn", fail),
    ):  # fmt: skip
        yield


@contextmanager
def broken_when(told):
    """A peer raises in its first turn, once a file ``broken`` is there; ``begun`` says it is on.

    Told are its rank and the folder of both files.  It makes no other turn meanwhile: after a few
    it would wait for a peer that the test has frozen.
    """
    rank, folder = told[0], Path(told[1])

    def fail(self, *given):
        (folder / "begun").touch()
        while not (folder / "broken").exists():
            time.sleep(0.01)
        raise RuntimeError("this rank is broken")

    with _on([rank], Peer, "turn", fail):
        yield


@contextmanager
def nan_after(epoch):
    """The parameters of rank 0 are no numbers any more after so many passes."""
    from dpsvi.estimators.monitor import Monitor

    observe = Monitor.__call__

    def poison(self, event):
        ended = observe(self, event)
        if event.epoch > epoch:
            event.state.shared.rows[:] = np.nan
        return ended

    with _instead(Monitor, "__call__", poison):
        yield


@contextmanager
def killed_after(epoch):
    """The process is killed at the first evaluation after so many passes."""
    from dpsvi.estimators.monitor import Monitor

    observe = Monitor.__call__

    def kill(self, event):
        if event.epoch > epoch:
            os.kill(os.getpid(), signal.SIGKILL)
        return observe(self, event)

    with _instead(Monitor, "__call__", kill):
        yield


@contextmanager
def rows_come_by(way):
    """Fail unless messages lie in shared memory and rows come by this way: ``window``, ``rows``."""
    found, read, seen = channel.Channel._read_note, Worker._read, set()

    def look_at_messages(self, rank, message):
        seen.add(message.header["kind"])
        return found(self, rank, message)

    def look_at_rows(self, grant, sent):
        seen.add("window" if grant.header["window"] else "rows")
        return read(self, grant, sent)

    with (
        _instead(channel.Channel, "_read_note", look_at_messages),
        _instead(Worker, "_read", look_at_rows),
    ):
        yield
    assert "in_place" in seen and seen & {"window", "rows"} <= {way}, seen


@contextmanager
def killed_between_fits(told):
    """A rank is killed as it takes over the end of a fit (``adopt``) or begins one (``_hello``).

    Told are its rank, which of both, and in which fit of the process.
    """
    from dpsvi.cluster.ranks import follow

    rank, where, number = told
    calls, part = [], {"adopt": follow, "_hello": Worker}[where]
    method = getattr(part, where)

    def kill(*arguments):
        calls.append(arguments)
        if len(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return method(*arguments)

    with _on([rank], part, where, kill):
        yield


_FAULTS = {
    fault.__name__: fault
    for fault in (
        slow_until, shared_from, chunks_of, lost_while_reading, signalled, signalled_late, patient,
        late, late_until, slow_to_turn, at_a_turn, unreadable, killed_unread, broken, broken_when,
        nan_after, killed_after, killed_between_fits, rows_come_by,
    )
}  # fmt: skip


def run(faults, program, arguments):
    """Run a program with these faults; what it returns."""
    with ExitStack() as stack:
        for name, told in faults.items():
            stack.enter_context(_FAULTS[name](told))
        if program == "dpsvi":
            return import_module("dpsvi.__main__").main(arguments)
        return import_module(program).main(*arguments)


if __name__ == "__main__":
    sys.exit(run(json.loads(sys.argv[1]), sys.argv[2], sys.argv[3:]))
