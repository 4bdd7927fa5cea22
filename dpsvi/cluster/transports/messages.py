"""Messages between master and workers: one buffer with a small JSON header and raw arrays.

The arrays are views of the buffer that is sent, so that rows are written once, where they leave
from, and read where they arrive: the same memory, within a host.  Nothing is pickled.
"""

from __future__ import annotations

import json
import math
import threading
from typing import NamedTuple

import numpy as np

from dpsvi.cluster.transports.buffers import Buffer

SHARED_FROM = 1 << 16  # bytes; MPI moves shorter messages as fast as a note about them
_HEADER = 1536  # bytes kept for the header; longer ones are refused
_SIZES = slice(8, 24)  # of the header: bytes of the message, of the JSON; see buffers for [0, 8)
_ALIGN = 64
_SPARE = 4  # times as long as needed now: memory not written to costs nothing, a new buffer does


class Message(NamedTuple):
    """A header and the arrays it announces, both inside `buffer`."""

    header: dict
    arrays: dict[str, np.ndarray]
    buffer: Buffer  # its first `n_bytes` are the message
    n_bytes: int

    @property
    def payload(self) -> np.ndarray:
        """The bytes to send; the header must not change afterwards."""
        data = self.buffer.bytes
        directory = {
            name: [a.dtype.str, a.shape, int(a.ctypes.data - data.ctypes.data)]
            for name, a in self.arrays.items()
        }
        text = json.dumps({"header": self.header, "arrays": directory}).encode()
        if len(text) > _HEADER - _SIZES.stop:
            raise ValueError(f"header of {len(text)} bytes, at most {_HEADER - _SIZES.stop} fit")
        data[_SIZES] = np.array([self.n_bytes, len(text)], np.int64).view(np.uint8)
        data[_SIZES.stop : _SIZES.stop + len(text)] = np.frombuffer(text, np.uint8)
        return data[: self.n_bytes]


class Pool:
    """Buffers used again: a fresh one of 20 MB costs milliseconds in page faults.

    Parameters
    ----------
    shared : bool
        Long messages are to be read by other processes where they lie.
    """

    def __init__(self, shared: bool = False):
        self.shared = shared
        self._free: list[Buffer] = []
        self._lent: list[tuple[int, Buffer]] = []
        self._lock = threading.Lock()

    def take(self, n_bytes: int) -> Buffer:
        """A buffer of at least `n_bytes`; the smallest that will do."""
        if n_bytes < SHARED_FROM:
            return Buffer.private(n_bytes)
        with self._lock:
            lent, self._lent = self._lent, []
            for rank, buffer in lent:
                if buffer.lent:  # one look: its reader may give it back at any time
                    self._lent.append((rank, buffer))
                else:
                    self._free.append(buffer)
            fitting = [i for i, b in enumerate(self._free) if len(b.bytes) >= n_bytes]
            if fitting:
                return self._free.pop(min(fitting, key=lambda i: len(self._free[i].bytes)))
            if self._free:
                self._free.pop()  # too small now, and likely from now on
        make = Buffer.shared if self.shared else Buffer.private
        return make(_SPARE * n_bytes)

    def give(self, buffer: Buffer) -> None:
        """Hand a buffer back, to whomever it belongs; nobody may look at it any more."""
        if buffer.foreign:
            buffer.lent = False
        elif len(buffer.bytes) >= SHARED_FROM:
            with self._lock:
                self._free.append(buffer)

    def lend(self, buffer: Buffer, rank: int) -> None:
        """Leave a shared buffer to `rank` until it has read it."""
        buffer.lent = True
        with self._lock:
            self._lent.append((rank, buffer))

    def forget(self, rank: int) -> list[Buffer]:
        """Expect nothing back from `rank`; returns what it has been lent."""
        with self._lock:
            buffers = [buffer for reader, buffer in self._lent if reader == rank]
            self._lent = [lent for lent in self._lent if lent[0] != rank]
        return buffers

    def unread(self) -> list[Buffer]:
        """What readers still have."""
        with self._lock:
            return [buffer for _, buffer in self._lent if buffer.lent]

    def message(self, header: dict, **arrays) -> Message:
        """A message whose arrays are given, or left to be filled.

        Parameters
        ----------
        header : dict
            What JSON can hold.
        **arrays : ndarray or (shape, dtype)
        """
        layout, n_bytes = {}, _HEADER
        for name, array in arrays.items():
            shape, dtype = array if isinstance(array, tuple) else (array.shape, array.dtype)
            dtype = np.dtype(dtype)
            layout[name] = (n_bytes, tuple(shape), dtype)
            n_bytes += -(-math.prod(shape) * dtype.itemsize // _ALIGN) * _ALIGN
        buffer = self.take(n_bytes)
        views = {name: _view(buffer, *place) for name, place in layout.items()}
        for name, array in arrays.items():
            if not isinstance(array, tuple):
                views[name][...] = array
        return Message(header, views, buffer, n_bytes)


def as_array(content: dict) -> np.ndarray:
    """What JSON can hold, as an array of a message: for what may be too long for its header."""
    return np.frombuffer(json.dumps(content).encode(), np.uint8)


def from_array(array: np.ndarray) -> dict:
    """What :func:`as_array` was given."""
    return json.loads(array.tobytes())


def total_bytes(buffer: Buffer) -> int:
    """Length of the message of which `buffer` is the beginning."""
    return int(buffer.bytes[_SIZES].view(np.int64)[0])


def parse(buffer: Buffer) -> Message:
    """The message that lies in `buffer`."""
    n_bytes, length = (int(n) for n in buffer.bytes[_SIZES].view(np.int64))
    text = buffer.bytes[_SIZES.stop : _SIZES.stop + length].tobytes()
    content = json.loads(text)
    arrays = {
        name: _view(buffer, offset, tuple(shape), np.dtype(dtype))
        for name, (dtype, shape, offset) in content["arrays"].items()
    }
    return Message(content["header"], arrays, buffer, n_bytes)


def deliver(message: Message, sender: Pool, receiver: Pool) -> Message:
    """What MPI does between processes, within one: copy, and give the sender its buffer back."""
    payload = message.payload
    buffer = receiver.take(len(payload))
    buffer.bytes[: len(payload)] = payload
    sender.give(message.buffer)
    return parse(buffer)


def _view(buffer, offset, shape, dtype):
    size = math.prod(shape) * dtype.itemsize
    return buffer.bytes[offset : offset + size].view(dtype).reshape(shape)
