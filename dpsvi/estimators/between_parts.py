"""Moves of components between the parts of a fit.

Steps of inference move components a little at a time, and never one from where two of them do the
work of one to where one does the work of two.  A fit with ``restructure=True`` makes parts of 1, 1,
2, 4, 8, ... passes, or those of ``max_iter="auto"``.  Between two, while as many passes are left as
have been made, its model looks for moves that pay:

* *merge*: a component gets all that another one explains, as well as its own;
* *delete*: what a component explains is shared by the others as they fit;
* *birth*: a component that explains nothing gets a part of what another one does.

What a model proposes, and how it finds out what pays, is its own.
"""

from __future__ import annotations

import time

from dpsvi.errors import check_flag

KINDS = "merge", "delete", "birth"


class BetweenParts:
    """The part of an estimator that moves components between the parts of a fit.

    It has a parameter `restructure` and defines ``_restructure(items)``: make the moves that pay,
    and count them in `moves_`.
    """

    moves_: dict[str, int]

    def _check_restructure(self) -> None:
        check_flag("restructure", self.restructure)

    def _train_to_end(self, items, rng, monitor) -> None:
        if not self.restructure:
            super()._train_to_end(items, rng, monitor)
            return
        none = dict.fromkeys(KINDS, 0)
        self.moves_ = none | (self._resumed_phase() or {}).get("moves", {})
        try:
            if self.max_iter == "auto":
                super()._train_to_end(items, rng, monitor)
            else:
                self._train_parts(items, rng, monitor)
        except KeyboardInterrupt as interrupt:  # between two calls of the engine
            self._interrupt(interrupt, self._state)

    def _train_parts(self, items, rng, monitor) -> None:
        phase = self._resumed_phase() or {"done": 0, "parts": 0}
        for _ in range(phase["parts"]):  # as before the fit was interrupted
            self._seed_of_passes(rng)
        while True:
            done = phase["done"]
            n_passes = min(max(done, 1), self.max_iter - done)
            ended = self._train(self._state, items, n_passes, rng, monitor, phase=phase)
            phase = {"done": done + n_passes, "parts": phase["parts"] + 1}
            if ended or phase["done"] >= self.max_iter:
                return

    def _train(self, state, items, n_passes, rng, monitor, total=None, phase=None) -> bool:
        done = 0 if phase is None else phase["done"]
        enough = self.max_iter == "auto" or 2 * done <= self.max_iter
        if self.restructure and done and enough and self._checkpoint is None:
            began = time.perf_counter()
            self._restructure(items)
            monitor.add_seconds(time.perf_counter() - began)
            state = self._state
        if self.restructure and phase is not None:
            phase = {**phase, "moves": dict(self.moves_)}
        return super()._train(state, items, n_passes, rng, monitor, total, phase)
