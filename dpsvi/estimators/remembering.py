"""Passes whose parameters are a sum over what is remembered of all items, from part to part.

Where the engine runs workers each remembers its own items.  What a lost one remembered is lost, and
its items would be counted twice at others.  Then, and where a fit is resumed on a cluster or from
one, all begin anew: they forget, and go on from the parameters that are there.
"""

from __future__ import annotations

from typing import NamedTuple

from dpsvi.errors import LostMemoryError, ModelFormatError
from dpsvi.training.items import count

_ANY = 1 << 62  # passes: those of a checkpoint, however many had begun


class Place(NamedTuple):
    """Where a fit is, between two calls of the engine."""

    done: int  # passes
    draws: int  # seeds that passes have had
    summed: bool = False  # whether all items have been visited by passes that remember them


class Remembering:
    """The part of an estimator that makes the passes which remember.

    A subclass defines

    * ``_remember(items)``: set `_state` to one with a model that remembers, and empty memories;
    * ``_part(place) -> int``: passes of the next call of the engine;
    * ``_end_part(items, place, ended, monitor) -> bool``: what follows them; whether the fit ends,
      which `ended` says of the call;
    * ``_stand_for_all(items)``: see that parameters stand for all items after `_remember`, and
      where the fit ends in the middle.
    """

    def _train_kept(self, items, place: Place, rng, monitor) -> None:
        """Make all passes that are left; what interrupts them leaves a model of all items."""
        try:
            self._make_passes(items, place, rng, monitor)
        except KeyboardInterrupt as interrupt:  # between two calls of the engine
            self._interrupt(interrupt, self._state)
        if self.interrupted_:
            self._stand_for_all(items)

    def _make_passes(self, items, place, rng, monitor) -> None:
        self._remember(items)
        if self._checkpoint is not None:
            place = self._resume_kept(items, place, rng, monitor)
        while place.done < self.max_iter:
            few, first = self._part(place), self._state.items
            try:
                ended = self._train(
                    self._state, items, few, rng, monitor, phase=place._asdict()
                )  # fmt: skip
                if self.interrupted_ or self._end_part(items, place, ended, monitor):
                    return
            except LostMemoryError:
                done = place.done + (self._state.items - first) // count(items)
                place = self._begin_anew(items, Place(done, place.draws + 1), monitor)
                continue
            place = Place(place.done + few, place.draws + 1, summed=True)

    def _resume_kept(self, items, place, rng, monitor) -> Place:
        """Where the fit goes on from a checkpoint of these passes."""
        checkpoint, n_values = self._checkpoint, len(items.index)
        arrays, following = checkpoint.arrays, checkpoint.meta["passes"]["next"]
        begun = place.done + max(1, *(epoch + (first > 0) for epoch, first in following))
        if begun > self.max_iter:
            raise ModelFormatError(
                f"{checkpoint.path}: pass {begun} had begun, max_iter is {self.max_iter} now"
            )
        values = arrays.get("value_memory")
        if values is not None and len(values) != n_values:
            raise ModelFormatError(
                f"{checkpoint.path}: is of {self._items} with {len(values)} values, in this fit "
                f"these are {n_values}"
            )
        if (values is not None or len(arrays["item_memory"])) and not self._engine().options:
            for _ in range(place.draws):
                self._seed_of_passes(rng)
            return place
        passes = self._restore_checkpoint(self._state, count(items), _ANY, monitor).passes
        done = place.done + passes.n_done // passes.steps_a_pass
        return self._begin_anew(items, Place(done, place.draws), monitor)

    def _begin_anew(self, items, place, monitor) -> Place:
        """Forget what is kept; a pass at least is left to remember all items again."""
        place = place._replace(done=min(place.done, self.max_iter - 1))
        self._remember(items)
        self._stand_for_all(items)
        monitor.epoch = float(place.done)
        monitor.start_phase()
        return place
