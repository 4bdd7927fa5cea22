"""What a running fit shows.  Nothing here is called from a compiled loop."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager

log = logging.getLogger(__name__)

_LOOK_SECONDS, _LINE_SECONDS = 0.2, 10.0


class Progress:
    """How far a fit is: a bar on a terminal and in a notebook with widgets, elsewhere plain lines.

    A watcher thread reads the step counter that the kernels share, so that training is never
    interrupted.  A line is written at most every 10 s, and one at the end of the fit: as a log
    message where INFO is logged, else on stderr.

    Parameters
    ----------
    label : str
        What is fitted.
    items : str
        What the data are made of, in the plural.
    history : callable, () -> list of dict
        The evaluations so far, of which the last ``"perplexity"`` or ``"score"`` is shown.
    """

    def __init__(self, label: str, items: str, history: Callable[[], list]):
        self.label, self.items, self.history = label, items, history
        self._begun = self._shown_at = time.monotonic()
        self._earlier = 0  # items of the phases before

    @contextmanager
    def phase(self, state, n_items: int, first: float, last: float, whole: float):
        """Show the passes from `first` to `last` of all, `whole`, while the block runs.

        Yields a function for ``fit(on_task=...)``.
        """
        start, total = state.items, round(n_items * (last - first))
        tasks, ended = [], threading.Event()
        make_bar = _bar()
        bar = make_bar and make_bar(
            total=total, desc=self.label, unit=f" {self.items}", unit_scale=True
        )

        def count() -> int:
            # The clock of the state moves at the end of a segment, the counter within one.
            running = sum(int(task.counter[0]) * task.batch_size for task in tasks)
            return max(0, min(state.items - start + running, total))

        def watch():
            while not ended.wait(_LOOK_SECONDS):
                if bar:
                    bar.update(max(0, count() - bar.n))
                elif time.monotonic() - self._shown_at >= _LINE_SECONDS:
                    self._show(count(), first + count() / n_items, whole)

        def on_task(task):
            if not self._earlier:  # what came before was compiling
                self._begun = time.monotonic()
            tasks.append(task)

        watcher = threading.Thread(target=watch, name="dpsvi-progress", daemon=True)
        watcher.start()
        try:
            yield on_task
        finally:
            ended.set()
            watcher.join()
            tasks.clear()
            done = count()
            if bar:
                bar.update(max(0, done - bar.n))
                bar.close()
            elif done < total or last >= whole:
                self._show(done, first + done / n_items, whole)
            self._earlier += done

    def _show(self, n_done: int, passes: float, whole: float) -> None:
        self._shown_at = time.monotonic()
        seconds, n_done = self._shown_at - self._begun, self._earlier + n_done
        line = f"{self.label}: {passes:.4g} of {whole:.4g} passes, {seconds:.1f} s"
        if n_done:  # else it may still compile
            line += f", {n_done / max(seconds, 1e-9):,.0f} {self.items}/s"
        known = [entry for entry in list(self.history()) if "score" in entry]
        for name in ("perplexity", "score"):
            if known and name in known[-1]:
                line += f", {name} {known[-1][name]:.6g}"
                break
        if log.isEnabledFor(logging.INFO) and log.hasHandlers():
            log.info("%s", line)
        elif sys.stderr is not None:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()


def _bar():
    """What makes a bar of tqdm here, or None where there is no place for one."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None and "IPKernelApp" in shell.config:
        from tqdm.notebook import IProgress, tqdm

        return tqdm if IProgress is not None else None
    if sys.stderr is not None and sys.stderr.isatty():
        from tqdm import tqdm

        return tqdm
    return None
