"""Says that code compiles, and how long it took, where a user waits for it.

A fit compiles its step and loop in a block of :func:`reported`.  What predicts and scores is
compiled when it is first called, in many places, so numba itself says when that begins and ends.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager

from numba.core import event

from dpsvi.files.notices import notice
from dpsvi.kernels.code_cache import can_be_kept

log = logging.getLogger(__name__)

_SILENT_SECONDS = 1.0  # code that was compiled before is there sooner
_open: list[str] = []  # blocks under way, of all threads


@contextmanager
def reported(name: str):
    """Say that the block compiles, and how long it took, where that is worth a word.

    What is compiled inside of another block, be it by another thread, is a part of that.
    """
    inside = bool(_open)
    _open.append(name)
    started = time.monotonic()
    later = ", once; later runs find the compiled code" * can_be_kept()
    timer = threading.Timer(_SILENT_SECONDS, notice, [log, "%s: compiling%s", name, later])
    timer.daemon = True
    if not inside:
        timer.start()
    try:
        yield
    finally:
        if not inside:
            timer.cancel()
            timer.join()  # it does not outlive the block
        _open.remove(name)
    seconds = time.monotonic() - started
    if seconds > _SILENT_SECONDS and not inside:
        notice(log, "%s: compiled in %.1f s", name, seconds)


class _Alone(event.Listener):
    """Reports kernels of the package that are compiled outside of every block.

    Numba compiles one function at a time, with those that it calls; so the outermost one counts.
    """

    def __init__(self):
        self._names: list[str] = []
        self._block = None

    def on_start(self, event):
        """See the class; code that numba compiles for others is none of our business."""
        name = event.data["dispatcher"].py_func.__module__ or ""
        if not self._names and name.startswith("dpsvi.") and not _open:
            self._block = reported(name)
            self._block.__enter__()
        self._names.append(name)

    def on_end(self, event):
        """Also after an error of the compiler."""
        self._names.pop()
        if not self._names and self._block is not None:
            block, self._block = self._block, None
            block.__exit__(None, None, None)


event.register("numba:compile", _Alone())
