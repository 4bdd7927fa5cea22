"""Signals between two messages instead of in the middle of a merge."""

from __future__ import annotations

import signal
import threading

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Deferred:
    """Keeps signals until :meth:`deliver`, so that parameters are whole when a handler raises.

    A second signal is not kept.  Outside the main thread nothing is changed: Python runs its
    handlers there only.
    """

    def __init__(self):
        self._handlers: dict[int, object] = {}
        self._kept: list[tuple[int, object]] = []

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            for number in _NUMBERS:
                if callable(handler := signal.getsignal(number)):
                    self._handlers[number] = handler
                    signal.signal(number, self._keep)
        return self

    def __exit__(self, *error):
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        if error[0] is None:
            self.deliver()

    def deliver(self) -> None:
        """Handle what was kept; may raise what the handler raises."""
        while self._kept:
            number, frame = self._kept.pop()
            self._handlers[number](number, frame)

    def _keep(self, number, frame):
        if self._kept:
            self._handlers[number](number, frame)
        self._kept.append((number, frame))
