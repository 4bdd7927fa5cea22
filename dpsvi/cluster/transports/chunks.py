"""Messages as bytes over MPI: never blocking, in chunks of at most 1 GiB (counts are 32-bit)."""

from __future__ import annotations

import time
from collections.abc import Callable, Container
from functools import partial

from dpsvi.cluster.contracts import POLLS
from dpsvi.cluster.transports.failures import failed_ranks
from dpsvi.cluster.transports.messages import Message, Pool, parse, total_bytes
from dpsvi.errors import LostRankError

CHUNK = 2**30  # bytes
_TAG, _TAG_MORE = 1, 2
# What MPI may still read or write is never freed.
_ABANDONED: list = []


class Chunks:
    """Sends and receives whole messages.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        Nobody else may use it.
    pool : Pool
        Gives the buffers of what is received; takes back those of what was sent.
    lost : container of int
        Ranks of which nothing is received any more.
    on_arrival : callable(rank, message)
    on_failure : callable(rank)
        MPI says that this process, not yet in `lost`, has failed.
    """

    def __init__(
        self, comm, pool: Pool, lost: Container[int],
        on_arrival: Callable[[int, Message], None], on_failure: Callable[[int], None],
    ):  # fmt: skip
        self.comm, self.pool, self.lost = comm, pool, lost
        self._on_arrival, self._on_failure = on_arrival, on_failure
        self._sending: list[tuple[int, list, Message, bool]] = []
        self._receiving: dict[int, tuple[list, object]] = {}

    @property
    def sending(self) -> bool:
        """Whether a message is on its way out."""
        return bool(self._sending)

    @property
    def receiving(self) -> bool:
        """Whether a message is on its way in, of which MPI has delivered a part."""
        return bool(self._receiving)

    def send(self, rank: int, message: Message, keep: bool = False) -> None:
        """Begin to send; the buffer goes back to the pool when it is away, unless `keep`."""
        payload, requests = message.payload, []

        def start():
            for first in range(0, len(payload), CHUNK):
                tag = _TAG if first == 0 else _TAG_MORE
                requests.append(self.comm.Isend(payload[first : first + CHUNK], rank, tag))

        self._guarded(start)
        self._sending.append((rank, requests, message, keep))

    def send_unwatched(self, rank: int, message: Message) -> None:
        """Send a short message to a rank that is not waited for."""

        def start():
            _ABANDONED.append((message, self.comm.Isend(message.payload, rank, _TAG)))

        self._guarded(start)

    def look(self) -> None:
        """Let MPI make progress, and hand over what has arrived."""
        self._guarded(self._test_sends)
        self._guarded(self._test_receives)
        self._guarded(self._probe)

    def close(self, seconds: float) -> None:
        """End: let what is on its way go through, at most for so long each way."""
        end = time.perf_counter() + seconds
        while self._sending and time.perf_counter() < end:
            self._guarded(self._test_sends)
            time.sleep(POLLS[0])
        end = time.perf_counter() + seconds
        while self._receiving and time.perf_counter() < end:
            self._guarded(self._test_receives)
            time.sleep(POLLS[0])
        _ABANDONED.extend([*self._sending, *self._receiving.values()])

    def abandon(self, rank: int) -> None:
        """Forget all traffic with `rank`, which may still read it, should it wake up."""
        _ABANDONED.extend(s for s in self._sending if s[0] == rank)
        _ABANDONED.append(self._receiving.pop(rank, None))
        _ABANDONED.extend(self.pool.forget(rank))
        self._sending = [s for s in self._sending if s[0] != rank]

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
                self._receiving[rank][0].append((request, buffer, size))
            else:
                self._receiving[rank] = ([(request, buffer, size)], None)
            self._test_receives()

    def _test_receives(self):
        for rank in list(self._receiving):
            queue, more = self._receiving[rank]
            while queue:
                request, buffer, n_here = queue[0]
                if more is None:
                    if not request.Test():
                        break
                    size = total_bytes(buffer)
                    if min(size, CHUNK) != n_here:  # MPICH says of no process that it has died
                        raise LostRankError(f"rank {rank} is lost: its message did not come whole")
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
                    self._on_arrival(rank, parse(buffer))
            if not queue:
                self._receiving.pop(rank, None)

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
            for rank in failed:
                if rank not in self.lost:
                    self._on_failure(rank)
