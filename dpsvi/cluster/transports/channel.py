"""Messages over MPI; a lost rank is an answer.

A long message to a rank of the same host stays where it is; a note says where.

Waiting is a poll and a short sleep, which a rank of the same host ends: a blocking call of either
MPI burns the core that a thread of the fit could use.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator

from dpsvi.cluster.contracts import DROPPED, ENDED, POLLS, UNREADABLE
from dpsvi.cluster.transports import messages
from dpsvi.cluster.transports.buffers import Buffer, Place
from dpsvi.cluster.transports.chunks import Chunks
from dpsvi.cluster.transports.messages import Message, Pool, parse

_POLL_NEAR = 1e-2  # seconds between two polls, at most, where everybody notifies
_MAPPED = 4  # buffers of a rank that stay mapped: both ways it uses two at a time


class Channel:
    """Sends and receives the messages of one fit.

    A rank may have begun the next fit while this one has not received all of the one before, and
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
        self.here, self.near, self.pool, self.watch = here, here.near, pool, watch
        self._longest = _POLL_NEAR if self.near is not None and self.near.everybody else POLLS[1]
        self.lost = dict.fromkeys(here.lost, "lost in an earlier fit")
        self._chunks = Chunks(
            here.data, pool, self.lost, self._arrive, lambda rank: self._lose(rank, ENDED)
        )
        self._arrived: deque[tuple[int, Message]] = deque()
        self._newly_lost: dict[int, str] = {}
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
            message = self._leave_in_place(rank, message)
        self._chunks.send(rank, message, keep)
        if near:
            self.near.notify(rank)

    def notify(self, rank: int, message: Message) -> None:
        """Send a short message to a rank that is not waited for."""
        message.header["fit"] = self.here.fits
        self._chunks.send_unwatched(rank, message)

    def look(self) -> list[Message]:
        """What has arrived by now, and stays there."""
        self._chunks.look()
        return [message for _, message in self._arrived]

    @property
    def receiving(self) -> bool:
        """Whether a message is on its way in, of which MPI has delivered a part."""
        return self._chunks.receiving

    def poll(self) -> Iterator[tuple[int, Message]]:
        """What has arrived by now, by rank of the sender."""
        self.look()
        while self._arrived:
            yield self._arrived.popleft()

    def newly_lost(self) -> dict[int, str]:
        """Ranks found lost since the last call, with the reason."""
        for rank, reason in self.watch().items():
            self._lose(rank, reason)
        found, self._newly_lost = self._newly_lost, {}
        return found

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
        if self._chunks.sending or self._chunks.receiving:
            time.sleep(0)
            return POLLS[0]
        if self.near is None:
            time.sleep(pause)
        else:
            self.near.wait(pause)
        return min(self._longest, pause * 1.3)

    def close(self, seconds: float) -> None:
        """End: let what is on its way go through, at most for so long.

        MPI may still write to what is left, and read it: its memory is never freed.  What others
        have not read where it lies stays there until the end of the next fit.
        """
        self._chunks.close(seconds)
        self.here.unread = self.pool.unread()

    def abandon(self, rank: int, reason: str) -> None:
        """Forget all traffic with `rank`."""
        self.lost[rank] = reason
        self._chunks.abandon(rank)
        self._mapped.pop(rank, None)
        self._arrived = deque(found for found in self._arrived if found[0] != rank)

    def _leave_in_place(self, rank, message) -> Message:
        """Leave a message where it is, for `rank` to read; returns the note that says where."""
        _ = message.payload
        self.pool.lend(message.buffer, rank)
        header = {"kind": "in_place", "place": list(message.buffer.place), "fit": self.here.fits}
        return self.pool.message(header)

    def _read_note(self, rank, message) -> Message:
        """The message itself, where this is a note."""
        if message.header["kind"] != "in_place":
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
                self.notify(rank, self.pool.message({"kind": "stop", "reason": DROPPED}))
            self.abandon(rank, reason)
            self._newly_lost[rank] = reason

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
            self._arrived.append((rank, self._read_note(rank, message)))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            # Its memory went with it: what is left of a process is root's.
            self._lose(rank, ENDED)
        except OSError as error:
            self._lose(rank, f"{UNREADABLE}: {error}")
