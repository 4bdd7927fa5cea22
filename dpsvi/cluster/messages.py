"""Messages between master and workers: one buffer with a small JSON header and raw arrays.

The arrays are views of the buffer that is sent, so that rows are written once, where they leave
from, and read where they arrive.  Nothing is pickled.
"""

from __future__ import annotations

import json
import threading
from typing import NamedTuple

import numpy as np

_HEADER = 1536  # bytes kept for the header; longer ones are refused
_ALIGN = 64


class Message(NamedTuple):
    """A header and the arrays it announces, both inside `buffer`."""

    header: dict
    arrays: dict[str, np.ndarray]
    buffer: np.ndarray  # uint8; the first `n_bytes` are the message
    n_bytes: int

    @property
    def payload(self) -> np.ndarray:
        """The bytes to send; the header must not change afterwards."""
        directory = {
            name: [a.dtype.str, a.shape, int(a.ctypes.data - self.buffer.ctypes.data)]
            for name, a in self.arrays.items()
        }
        text = json.dumps({"header": self.header, "arrays": directory}).encode()
        if len(text) > _HEADER - 16:
            raise ValueError(f"header of {len(text)} bytes, at most {_HEADER - 16} fit")
        sizes = np.array([self.n_bytes, len(text)], np.int64).view(np.uint8)
        self.buffer[:16] = sizes
        self.buffer[16 : 16 + len(text)] = np.frombuffer(text, np.uint8)
        return self.buffer[: self.n_bytes]


class Pool:
    """Buffers used again: a fresh one of 20 MB costs milliseconds in page faults."""

    def __init__(self):
        self._free: list[np.ndarray] = []
        self._lock = threading.Lock()

    def take(self, n_bytes: int) -> np.ndarray:
        """A buffer of at least `n_bytes`; the smallest that will do."""
        with self._lock:
            fitting = [i for i, b in enumerate(self._free) if len(b) >= n_bytes]
            if fitting:
                return self._free.pop(min(fitting, key=lambda i: len(self._free[i])))
            if self._free:
                self._free.pop()  # too small now, and likely from now on
        return np.empty(n_bytes + n_bytes // 4, np.uint8)

    def give(self, buffer: np.ndarray) -> None:
        """Hand a buffer back; nobody may look at it any more."""
        with self._lock:
            self._free.append(buffer)

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
            n_bytes += -(-int(np.prod(shape)) * dtype.itemsize // _ALIGN) * _ALIGN
        buffer = self.take(n_bytes)
        views = {name: _view(buffer, *place) for name, place in layout.items()}
        for name, array in arrays.items():
            if not isinstance(array, tuple):
                views[name][...] = array
        return Message(header, views, buffer, n_bytes)


def total_bytes(buffer: np.ndarray) -> int:
    """Length of the message of which `buffer` is the beginning."""
    return int(buffer[:8].view(np.int64)[0])


def parse(buffer: np.ndarray) -> Message:
    """The message that lies in `buffer`."""
    n_bytes, length = (int(n) for n in buffer[:16].view(np.int64))
    content = json.loads(buffer[16 : 16 + length].tobytes())
    arrays = {
        name: _view(buffer, offset, tuple(shape), np.dtype(dtype))
        for name, (dtype, shape, offset) in content["arrays"].items()
    }
    return Message(content["header"], arrays, buffer, n_bytes)


def deliver(message: Message, sender: Pool, receiver: Pool, keep: bool) -> Message:
    """What MPI does between processes, within one: copy, and give the sender its buffer back."""
    payload = message.payload
    buffer = receiver.take(len(payload))
    buffer[: len(payload)] = payload
    if not keep:
        sender.give(message.buffer)
    return parse(buffer)


def _view(buffer, offset, shape, dtype):
    size = int(np.prod(shape)) * dtype.itemsize
    return buffer[offset : offset + size].view(dtype).reshape(shape)
