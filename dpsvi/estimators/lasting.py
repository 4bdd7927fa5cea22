"""How long a fit lasts: as many passes as asked for, or, with ``max_iter="auto"``, as many as pay.

Step sizes of a fit are laid over all its passes, and parameters are good when the last one has been
made, not before.  So a fit that is to find its end makes a part of `FIRST` passes, with steps as in
a fit of so many, and goes on with parts that are each as long as all passes so far.  After a part
it looks at the score: where it is no better than before, by `tol`, another part would not pay.
What is scored is held out, or else a sample of what is fitted; topic models leave a document's own
counts out of the topics then.
"""

from __future__ import annotations

import numpy as np

from dpsvi.base import Items
from dpsvi.errors import ModelFormatError
from dpsvi.estimators.training import Training
from dpsvi.training.items import count, take

FIRST = 5  # passes
SAMPLE = 1000  # items of the fit that are scored where none are held out


class Lasting(Training):
    """The part of an estimator that knows when a fit ends.

    A subclass may define

    * ``_begin_part(done, n_passes)``, called before `n_passes` passes that follow `done` ones;
    * ``_score_of_part(items, held_out) -> float``: a score after them, the higher the better, of
      what is held out if anything is, else of `items`, those of the fit.
    """

    def _begin_part(self, done: int, n_passes: int) -> None:
        """Nothing is to be done."""

    def _score_of_part(self, items: Items, held_out) -> float:
        if held_out is None:
            chosen = np.random.default_rng(self._seed).permutation(count(items))[:SAMPLE]
            held_out = take(items, np.sort(chosen))
        return float(self._held_out_score(self._state, held_out)["score"])

    def _check_knows_end(self, what: str) -> None:
        """Refuse to find the end of a fit of which `what` are the last passes."""
        if self.max_iter == "auto":
            raise ValueError(f"max_iter must be a number: {what} are a share of it, got 'auto'")

    def _train_to_end(self, items: Items, rng, monitor) -> None:
        """Make all passes of a fit."""
        if self.max_iter == "auto":
            self._train_while_it_pays(items, rng, monitor)
        else:
            self._begin_part(0, self.max_iter)
            self._train(self._state, items, self.max_iter, rng, monitor)

    def _train_while_it_pays(self, items, rng, monitor) -> None:
        phase = self._resumed_phase() or {"done": 0, "parts": 0, "best": None}
        for _ in range(phase["parts"]):  # as before the fit was interrupted
            self._seed_of_passes(rng)
        while True:
            done, best = phase["done"], phase["best"]
            n_passes = max(done, FIRST)
            monitor.whole = done + n_passes
            self._begin_part(done, n_passes)
            if self._train(self._state, items, n_passes, rng, monitor, phase=phase):
                return
            score = self._score_of_part(items, monitor.held_out)
            pays = best is None or score > best + self.tol * abs(best)
            if not self._agree(pays):
                return
            phase = {"done": done + n_passes, "parts": phase["parts"] + 1, "best": score}

    def _check_resumed(self, checkpoint) -> None:
        super()._check_resumed(checkpoint)
        found = "best" in (checkpoint.meta["fit"].get("phase") or {})
        if found != (self.max_iter == "auto"):
            was = "'auto'" if found else "a number"
            raise ModelFormatError(
                f"{checkpoint.path}: max_iter was {was} when the fit began, now it is "
                f"{self.max_iter!r}: their steps differ"
            )
