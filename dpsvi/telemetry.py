"""What a running fit shows.  Nothing here is called from a compiled loop."""

from __future__ import annotations

import logging
import sys
import threading
from contextlib import contextmanager

log = logging.getLogger(__name__)

_TERMINAL_SECONDS, _LOG_SECONDS = 0.2, 30.0


@contextmanager
def progress(state, total: int, label: str, unit: str = "doc"):
    """Show how many of `total` items are done while the block runs.

    Yields a function for ``fit(on_task=...)``.  A watcher thread reads the step counter that the
    kernels share, so that training is never interrupted.  On a terminal it draws a bar on stderr,
    elsewhere it logs one line every 30 s.
    """
    from tqdm import tqdm

    terminal = sys.stderr.isatty()
    start, tasks, ended = state.items, [], threading.Event()
    bar = tqdm(total=total, desc=label, unit=unit, unit_scale=True, disable=not terminal)

    def show():
        # The clock of the state moves at the end of a segment, the counter within one.
        running = sum(int(task.counter[0]) * task.batch_size for task in tasks)
        done = min(state.items - start + running, total)
        if not terminal:
            log.info("%s: %d of %d %ss", label, done, total, unit)
        elif done > bar.n:
            bar.update(done - bar.n)

    def watch():
        while not ended.wait(_TERMINAL_SECONDS if terminal else _LOG_SECONDS):
            show()

    watcher = threading.Thread(target=watch, name="dpsvi-progress", daemon=True)
    watcher.start()
    try:
        yield tasks.append
    finally:
        ended.set()
        watcher.join()
        if terminal:
            bar.update(max(0, min(state.items - start, total) - bar.n))
        bar.close()
