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


def _number(passes: float) -> str:
    return f"{passes:.4g}" if passes < 1000 else f"{passes:,.0f}"


class Progress:
    """How far a fit is: a bar on a terminal and in a notebook with widgets, elsewhere plain lines.

    A watcher thread reads the step counter that the kernels share, so that training is never
    interrupted.  A line is written at most every 10 s once the first step has begun, and one at
    the end of the fit: as a log message where INFO is logged, else on stderr.  Its only clock is
    the training time, which is in ``history_`` and ``metrics.jsonl``, too.

    Parameters
    ----------
    items : str
        What the data are made of, in the plural.
    history : callable, () -> list of dict
        The evaluations so far, of which the last ``"perplexity"`` or ``"score"`` is shown.
    simulated : bool
        Whether the training time is that of a virtual cluster.
    """

    def __init__(self, items: str, history: Callable[[], list], simulated: bool = False):
        self.items, self.history = items, history
        self._clock = "virtual training" if simulated else "training, without compiling and scoring"
        self._shown_at = time.monotonic()

    @contextmanager
    def phase(
        self, state, n_items: int, first: float, last: float, whole: float, seconds: float = 0.0
    ):
        """Show the passes from `first` to `last` of all, `whole`, while the block runs.

        `seconds` of training came before.  Yields a function for ``Job(on_start=...)``.
        """
        start, total = state.items, round(n_items * (last - first))
        name, tasks, boundaries, ended = state.model.name, [], [], threading.Event()
        make_bar = _bar()
        bar = make_bar and make_bar(total=total, desc=name, unit=f" {self.items}", unit_scale=True)

        def count() -> int:
            # The clock of the state moves at the end of a segment, the counter within one.
            running = sum(int(task.counter[0]) * task.batch_size for task in tasks)
            return max(0, min(state.items - start + running, total))

        def watch():
            while not ended.wait(_LOOK_SECONDS):
                if bar:
                    bar.update(max(0, count() - bar.n))
                elif time.monotonic() - self._shown_at >= _LINE_SECONDS:
                    show()

        def show():
            if not boundaries:
                return  # it compiles, and says so
            done, trained = count(), boundaries[-1].seconds
            rate = done / max(trained - boundaries[0].job.seconds, 1e-9)
            self._show(name, first + done / n_items, whole, seconds + trained, rate)

        def on_start(boundary, task):
            self._shown_at = time.monotonic()
            boundaries.append(boundary)
            if task is not None:
                tasks.append(task)

        watcher = threading.Thread(target=watch, name="dpsvi-progress", daemon=True)
        watcher.start()
        try:
            yield on_start
        finally:
            ended.set()
            watcher.join()
            tasks.clear()
            done = count()
            if bar:
                bar.update(max(0, done - bar.n))
                bar.close()
            elif done < total or last >= whole:
                show()
            boundaries.clear()

    def _show(self, name: str, passes: float, whole: float, seconds: float, rate: float) -> None:
        self._shown_at = time.monotonic()
        at = f"{_number(passes)} of {_number(whole)} passes"
        line = f"{name}: {at}, {seconds:.1f} s of {self._clock}"
        if rate:
            line += f", {rate:,.0f} {self.items}/s"
        known = [entry for entry in list(self.history()) if "score" in entry]
        for measure in ("perplexity", "score"):
            if known and measure in known[-1]:
                line += f", {measure} {known[-1][measure]:.6g}"
                break
        if log.isEnabledFor(logging.INFO) and log.hasHandlers():
            log.info("%s", line)
        elif sys.stderr is not None:
            sys.stderr.write(f"dpsvi: {line}\n")
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
