"""Signals between two messages instead of in the middle of a merge."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable

# Those that ask a fit to end.  Windows has no SIGUSR1.
ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGUSR1") if hasattr(signal, name)
)
_EXPECTED = 1.0  # seconds from the first rank that gets a signal to the last one, at most


class Deferred:
    """Keeps signals until :meth:`deliver` or the end; a handler raises when all is whole.

    After the first signal handlers are called at once, so that one which ends the process at the
    second signal does so; what they raise still waits.  Outside the main thread nothing is changed:
    Python runs its handlers there only.

    Parameters
    ----------
    wake : callable or None
        Called whenever a signal comes.
    take_over : bool
        Whether signals that a surrounding one keeps, and those that come now, are handled here and
        not there.
    """

    def __init__(self, wake: Callable[[], None] | None = None, take_over: bool = False):
        self._wake, self._take_over = wake, take_over
        self._before: dict[int, object] = {}  # handlers to put back, and those to call
        self._handlers: dict[int, object] = {}
        self._kept: list[tuple[int, object]] = []
        self._seen = False
        self._raised: BaseException | None = None
        self._since: float | None = None  # when the first one came

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            try:
                for number in ENDING:
                    if callable(handler := signal.getsignal(number)):
                        self._before[number] = self._handlers[number] = handler
                        signal.signal(number, self._keep)
                if self._take_over:
                    self._take_over_signals()
            except BaseException:  # by a handler that was not replaced yet
                self._restore()
                raise
        return self

    def __exit__(self, *error):
        self._restore()
        if error[0] is None or self._kept or self._raised is not None:
            self.deliver()

    def deliver_after(self, seconds: float) -> None:
        """As :meth:`deliver`, if the first signal came so long ago."""
        if self._since is not None and time.monotonic() - self._since >= seconds:
            self.deliver()

    def expect(self) -> None:
        """As :meth:`deliver`, and wait a moment: others have got a signal that may be for all."""
        end = time.monotonic() + _EXPECTED
        while time.monotonic() < end:
            self.deliver()
            time.sleep(0.05)

    def deliver(self) -> None:
        """Handle what was kept; may raise what a handler raises."""
        self._handle()
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised

    def _take_over_signals(self):
        for number, handler in self._before.items():
            outer = getattr(handler, "__self__", None)
            if isinstance(outer, Deferred):
                self._handlers[number] = outer._handlers[number]
                self._kept, outer._kept = self._kept + outer._kept, []
                self._raised, outer._raised = self._raised or outer._raised, None
                self._seen, self._since = self._seen or outer._seen, self._since or outer._since

    def _keep(self, number, frame):
        self._kept.append((number, frame))
        self._since = self._since or time.monotonic()
        if self._seen:
            self._handle()
        self._seen = True
        if self._wake is not None:
            self._wake()

    def _restore(self):
        replaced = list(self._before)
        while replaced:
            try:
                signal.signal(replaced[-1], self._before[replaced[-1]])
                replaced.pop()
            except BaseException as error:  # by a handler that is there again
                self._raised = error

    def _handle(self):
        while self._kept:
            number, frame = self._kept.pop(0)
            try:
                self._handlers[number](number, frame)
            except BaseException as error:
                self._raised = error
