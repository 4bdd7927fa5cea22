"""Messages over MPI: never blocking, in chunks of at most 1 GiB, a lost rank is an answer.

A long message to a rank of the same host stays where it is; a note says where.

Waiting is a poll and a short sleep, which a rank of the same host ends: a blocking call of either
MPI burns the core that a thread of the fit could use.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

from dpsvi.cluster.transports import messages
from dpsvi.cluster.transports.buffers import Buffer, Place
from dpsvi.cluster.transports.messages import Message, Pool, parse, total_bytes
from dpsvi.errors import LostRankError

CHUNK = 2**30  # bytes; MPI counts are 32-bit
POLLS = 5e-5, 1e-3  # seconds between two polls, at first and at most
_POLL_NEAR = 1e-2  # at most, where everybody notifies
_TAG, _TAG_MORE = 1, 2
ENDED = "its process ended"  # so says MPI, or the system; silence may be something else
UNREADABLE = "its message cannot be read"
LONGEST = 200  # characters of a reason
_MAPPED = 4  # buffers of a rank that stay mapped: both ways it uses two at a time
DROPPED = "dropped"  # sent to a rank that is not waited for any more
_ABANDONED: list = []


class Channel:
    """Sends and receives the messages of one fit.

    A rank may have begun the next fit while this one has not heard the last of the one before, and
    what was on its way when a fit failed is left over: messages say of which fit they are.

    Parameters
    ----------
    here : dpsvi.cluster.ranks.world.World
        This process's place.  Nobody else may use its communicator `data`.
    pool : Pool
        Gives the buffers of what is received; takes back those of what was sent.
    watch : callable
        Called by :meth:`newly_lost`; returns the ranks that are lost now, with the reason.

    Attributes
    ----------
    lost : dict of int
        Ranks that are lost, with the reason.
    """

    def __init__(self, here, pool: Pool, watch: Callable[[], dict[int, str]]):
        self.here, self.comm, self.near, self.pool, self.watch = (
            here, here.data, here.near, pool, watch
        )  # fmt: skip
        self._longest = _POLL_NEAR if self.near is not None and self.near.everybody else POLLS[1]
        self.lost = dict.fromkeys(here.lost, "lost in an earlier fit")
        self._sending: list[tuple[int, list, Message, bool]] = []
        self._receiving: dict[int, tuple[list, object]] = {}
        self._arrived: deque[tuple[int, Message]] = deque()
        self._news: dict[int, str] = {}
        self._mapped: dict[int, dict[Place, Buffer]] = {}
        early, here.early = here.early, []
        for rank, message in early:
            if rank not in self.lost:
                self._arrive(rank, message)

    def send(self, rank: int, message: Message, keep: bool = False) -> None:
        """Begin to send; the buffer goes back to the pool when it is away, unless `keep`."""
        if rank in self.lost:
            return
        message.header["fit"] = self.here.fits
        near = self.near is not None and rank in self.near
        if near and message.n_bytes >= messages.SHARED_FROM and not keep:
            message = self._note(rank, message)
        payload, requests = message.payload, []

        def start():
            for first in range(0, len(payload), CHUNK):
                tag = _TAG if first == 0 else _TAG_MORE
                requests.append(self.comm.Isend(payload[first : first + CHUNK], rank, tag))

        self._guarded(start)
        if near:
            self.near.notify(rank)
        self._sending.append((rank, requests, message, keep))

    def tell(self, rank: int, message: Message) -> None:
        """Send a short message to a rank that is not waited for."""
        message.header["fit"] = self.here.fits

        def start():
            _ABANDONED.append((message, self.comm.Isend(message.payload, rank, _TAG)))

        self._guarded(start)

    def look(self) -> list[Message]:
        """What has arrived by now, and stays there."""
        self._guarded(self._test_sends)
        self._guarded(self._test_receives)
        self._guarded(self._probe)
        return [message for _, message in self._arrived]

    @property
    def receiving(self) -> bool:
        """Whether a message is on its way in, of which MPI has delivered a part."""
        return bool(self._receiving)

    def poll(self) -> Iterator[tuple[int, Message]]:
        """What has arrived by now, by rank of the sender."""
        self.look()
        while self._arrived:
            yield self._arrived.popleft()

    def newly_lost(self) -> dict[int, str]:
        """Ranks found lost since the last call, with the reason."""
        for rank, reason in self.watch().items():
            self._lose(rank, reason)
        news, self._news = self._news, {}
        return news

    def receive(self, on_wait: Callable[[], None] = lambda: None) -> tuple[int, Message]:
        """Wait for one message; `on_wait` is called between two polls and may raise."""
        pause = POLLS[0]
        while True:
            for found in self.poll():
                return found
            on_wait()
            pause = self.rest(pause)

    def rest(self, pause: float) -> float:
        """Sleep for `pause` seconds before the next poll; returns the next pause, a longer one.

        MPI moves a long message in pieces, one for each look at it: no rest until it is through.
        """
        if self._sending or self._receiving:
            time.sleep(0)
            return POLLS[0]
        if self.near is None:
            time.sleep(pause)
        else:
            self.near.wait(pause)
        return min(self._longest, pause * 1.3)

    def flush(self, seconds: float) -> None:
        """Wait until everything is sent, at most `seconds`."""
        end = time.perf_counter() + seconds
        while self._sending and time.perf_counter() < end:
            self._guarded(self._test_sends)
            time.sleep(POLLS[0])

    def close(self, seconds: float) -> None:
        """End: let what is on its way go through, at most for so long.

        MPI may still write to what is left, and read it: its memory is never freed.  What others
        have not read where it lies stays there until the end of the next fit.
        """
        self.flush(seconds)
        end = time.perf_counter() + seconds
        while self._receiving and time.perf_counter() < end:
            self._guarded(self._test_receives)
            time.sleep(POLLS[0])
        _ABANDONED.extend([*self._sending, *self._receiving.values()])
        self.here.unread = self.pool.unread()

    def abandon(self, rank: int, reason: str) -> None:
        """Forget all traffic with `rank`."""
        self.lost[rank] = reason
        # MPI may still write to these buffers, and the rank read them, should it wake up: they are
        # never freed.
        _ABANDONED.extend(s for s in self._sending if s[0] == rank)
        _ABANDONED.append(self._receiving.pop(rank, None))
        self._sending = [s for s in self._sending if s[0] != rank]
        self._mapped.pop(rank, None)
        _ABANDONED.extend(self.pool.forget(rank))
        self._arrived = deque(found for found in self._arrived if found[0] != rank)

    def _note(self, rank, message) -> Message:
        """Leave a message where it is, for `rank` to read; returns the note that says where."""
        _ = message.payload
        self.pool.lend(message.buffer, rank)
        header = {"kind": "lies", "place": list(message.buffer.place), "fit": self.here.fits}
        return self.pool.message(header)

    def _found(self, rank, message) -> Message:
        """The message itself, where this is a note."""
        if message.header["kind"] != "lies":
            return message
        place, mapped = Place(*message.header["place"]), self._mapped.setdefault(rank, {})
        if place not in mapped:
            while len(mapped) >= _MAPPED:  # the oldest; longer ones have replaced it
                del mapped[next(iter(mapped))]
            mapped[place] = Buffer.of(place)
        mapped[place] = mapped.pop(place)
        return parse(mapped[place])

    def _lose(self, rank, reason):
        if rank not in self.lost:
            if reason != ENDED:
                # It may only have slept: then this tells it not to come back.
                self.tell(rank, self.pool.message({"kind": "stop", "reason": DROPPED}))
            self.abandon(rank, reason)
            self._news[rank] = reason

    def _test_sends(self):
        for sending in list(self._sending):
            _, requests, message, keep = sending
            if all(request.Test() for request in requests):
                # At once: the test of the next one may raise.
                self._sending = [other for other in self._sending if other is not sending]
                if not keep:
                    self.pool.give(message.buffer)

    def _probe(self):
        from mpi4py import MPI

        status = MPI.Status()
        probe = partial(self.comm.Improbe, MPI.ANY_SOURCE, _TAG, status)
        # Open MPI looks first and makes progress then: what has just come is found the second time.
        while (found := probe() or probe()) is not None:
            rank, size = status.Get_source(), status.Get_count(MPI.BYTE)
            buffer = self.pool.take(size)
            request = found.Irecv(buffer.bytes[:size])
            if rank in self.lost:  # sent before; it may never come whole
                _ABANDONED.append((request, buffer))
            elif rank in self._receiving:  # in order: a second one waits for the first
                self._receiving[rank][0].append((request, buffer))
            else:
                self._receiving[rank] = ([(request, buffer)], None)
            self._test_receives()

    def _test_receives(self):
        for rank in list(self._receiving):
            queue, more = self._receiving[rank]
            while queue:
                request, buffer = queue[0]
                if more is None:
                    if not request.Test():
                        break
                    size = total_bytes(buffer)
                    if size > CHUNK:
                        more = self._rest(rank, buffer, size)
                        self._receiving[rank] = (queue, more)
                if more is not None:
                    if not all(r.Test() for r in more[1]):
                        break
                    buffer, more = more[0], None
                queue.pop(0)
                self._receiving[rank] = (queue, None)
                if rank not in self.lost:
                    self._arrive(rank, parse(buffer))
            if not queue:
                self._receiving.pop(rank, None)

    def _arrive(self, rank, message):
        fit = message.header["fit"]
        # A rank that is told to stop in the next fit was taken for lost in this one.
        if fit != self.here.fits and message.header["kind"] != "stop":
            if fit > self.here.fits:
                self.here.early.append((rank, message))
            else:
                self.pool.give(message.buffer)
            return
        try:
            self._arrived.append((rank, self._found(rank, message)))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            # Its memory went with it: what is left of a process is root's.
            self._lose(rank, ENDED)
        except OSError as error:
            self._lose(rank, f"{UNREADABLE}: {error}")

    def _rest(self, rank, beginning, size):
        """Receive the chunks after the first into one buffer."""
        whole = self.pool.take(size)
        whole.bytes[:CHUNK] = beginning.bytes[:CHUNK]
        self.pool.give(beginning)
        requests = [
            self.comm.Irecv(whole.bytes[first : min(first + CHUNK, size)], rank, _TAG_MORE)
            for first in range(CHUNK, size, CHUNK)
        ]
        return whole, requests

    def _guarded(self, call):
        """Call; when MPI says that processes have failed, note which, and go on."""
        from mpi4py import MPI

        try:
            call()
        except MPI.Exception as error:
            failed = failed_ranks(self.comm)
            if failed is None:
                raise LostRankError(f"MPI failed: {error}") from error
            if not failed and error.Get_error_class() not in (
                MPI.ERR_PROC_FAILED, MPI.ERR_PROC_FAILED_PENDING,
            ):  # fmt: skip
                raise LostRankError(f"MPI failed, although no process has: {error}") from error
            for rank in failed - self.lost.keys():
                self._lose(rank, ENDED)


def failed_ranks(comm) -> set[int] | None:
    """Acknowledge the failed processes of `comm` and return their ranks.

    None when this MPI cannot tell: it has no user-level failure mitigation (ULFM).
    """
    from mpi4py import MPI

    try:
        failed = comm.Get_failed()
        comm.Ack_failed(failed.Get_size())
        ranks = failed.Translate_ranks(list(range(failed.Get_size())), comm.Get_group())
    except (MPI.Exception, NotImplementedError):
        return None
    return set(ranks)
