"""How large the steps of a topic model are: documents of a batch, step sizes, sweeps, parts.

The numbers are those of a local step (:mod:`dpsvi.families.topics.defaults`), for the corpus that
is fitted; what a user gives stands.
"""

from __future__ import annotations

import numpy as np

from dpsvi.families.topics.defaults import DECAY, FEWEST, MOST_PARTS, Defaults
from dpsvi.training import schedules


class StepSizes:
    """The part of a topic model's estimator that knows how large its steps are."""

    _defaults: dict[str, Defaults]  # of each local step
    _streaming = False  # whether the fit is one pass over a stream

    def _default(self) -> Defaults:
        return self._defaults[self.local_step]

    def _resolve_batch_size(self, n_items, stream=False) -> int:
        if self.batch_size is not None:
            return self.batch_size
        if stream:
            tokens = max(1.0, self._document_tokens())
            return self._default().stream_batch_size(n_items, self._n_seen, tokens)
        whole = self._default().batch_size(n_items)
        return -(-whole // self._n_parts(whole))

    def _n_parts(self, whole: int) -> int:
        """In how many parts workers share a batch of so many documents."""
        n_sharing, given = self._engine().n_sharing, (self.local_steps, self.max_batch_size)
        if n_sharing is None or given != (None, None) or not self._free_schedule():
            return 1
        return max(1, min(MOST_PARTS, n_sharing(self.cluster), whole // FEWEST))

    def _parts(self, n_items, batch_size, stream=False) -> float:
        if stream or self.batch_size is not None or not self._free_schedule():
            return 1.0
        return max(1.0, self._default().batch_size(n_items) / batch_size)

    def _stream_total(self, items, going_on) -> float:
        most = self.total_samples
        if not (self._free_schedule() and self._default().stream_memory):
            return super()._stream_total(items, going_on)
        tokens = items.value.sum(dtype=np.float64) + (self._word_counts.sum() if going_on else 0)
        total = self._default().stream_total(
            self._n_seen, max(1.0, tokens / max(1, self._n_seen)), self.n_features_in_
        )
        return total if most is None else min(most, total)

    def _free_schedule(self) -> bool:
        """Whether the step sizes are left to the fit."""
        return self.learning_rate is None and self.learning_decay is None

    def _schedule(self, passes=None, stream=False):
        if not self._free_schedule():
            return super()._schedule()
        rate = self._scaled_rate(1.0)
        falling = self.early_stopping and not self._default().big_start
        parts = 1.0
        if passes is not None:
            parts = self._parts(passes.n_items, passes.batch_size, stream)
        if passes is None or (falling and not stream):  # who knows when the last third begins?
            usual = schedules.robbins_monro(self.learning_offset, DECAY, rate)
            return schedules.of_parts(usual, parts)
        first = passes.clock - passes.n_done
        if stream:
            return self._default().stream_schedule(
                self.learning_offset, rate, first, passes.batch_size, self._n_seen - passes.n_items
            )
        usual = self._default().schedule(
            self.learning_offset, rate, first / parts, passes.steps_a_pass / parts,
            passes.n_passes, self._document_tokens(),
        )  # fmt: skip
        return schedules.of_parts(usual, parts)

    def _document_tokens(self) -> float:
        """Tokens of a document that was seen, on average."""
        return self._word_counts.sum() / max(1, self._n_seen)

    def _n_sweeps(self) -> int:
        if self.max_doc_update_iter is not None:
            return self.max_doc_update_iter
        default = self._default()
        if self._streaming and self._free_schedule() and default.stream_sweeps:
            return default.stream_sweeps
        # How many tokens of the data there are for each word of each topic.
        n_words = max(1, np.count_nonzero(self._word_counts)) * self.n_components
        return default.most_sweeps(self._document_tokens(), self._word_counts.sum() / n_words)
