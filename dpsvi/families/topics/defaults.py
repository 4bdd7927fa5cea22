"""What a topic model's fit takes where the user does not say: priors, batches, step sizes.

All of it follows from the size of the corpus and the number of topics, by rules that were chosen on
a panel of corpora (`python -m experiments.panel`) of 5 to 3,000 tokens a document.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpsvi.training import schedules

FEWEST = 4  # documents in a step, unless the corpus has fewer
MOST_RATE = 0.3  # of the rates that do not fall: with more, the last few documents have all the say
DECAY = 0.7  # of the first rates
SHORT = 30  # tokens a document, below which more passes are remembered
MOST_LONGER = 3.0  # times as many, at most


class Defaults(NamedTuple):
    """What a local step wants.

    Parameters
    ----------
    word_tokens : float
        eta times the number of topics: what the prior of a word counts for in all topics together.
        So the prior weighs the same share of the data whatever the number of topics is.
    sweeps : int
        Most inner iterations on a document in one visit.
    steps : int
        Steps of a pass, at least, as long as there are documents for them.
    most : int
        Documents in a step, at most: their statistics fit into a core's cache.
    memory : float
        Passes that the parameters remember while a fit looks for topics.  Less than one, and a
        document meets little of itself in the topics that explain it; the mean over the last
        passes then takes the noise out.
    memory_share : float
        The same as a share of all passes, where that is more.  Short documents say little, and
        topics need more of them: the share is up to `MOST_LONGER` times as large for documents
        of fewer than `SHORT` tokens.
    big_start : int
        Documents of one big step that makes the first topics; 0: they are split documents.
    """

    word_tokens: float
    sweeps: int
    steps: int
    most: int
    memory: float
    memory_share: float = 0.0
    big_start: int = 0

    def eta(self, n_topics: int) -> float:
        """Dirichlet prior of the words of a topic."""
        return self.word_tokens / n_topics

    def batch_size(self, n_items: float) -> int:
        """Documents in a step of a corpus of so many."""
        return int(np.clip(n_items // self.steps, FEWEST, self.most))

    def schedule(
        self, offset: float, rate: float, first: int, steps_a_pass: int, n_passes: int,
        document_tokens: float,
    ):  # fmt: skip
        """Step sizes of a fit whose first step has the number `first`.

        They fall as usual, but not below the rate that forgets a pass in `memory` passes; over the
        last third of the passes they average.
        """
        longer = np.clip(SHORT / document_tokens, 1.0, MOST_LONGER)
        memory = max(self.memory, longer * self.memory_share * n_passes)
        least = min(MOST_RATE, rate / (memory * steps_a_pass))
        if self.big_start:
            falling = schedules.constant(least)
        else:
            falling = schedules.robbins_monro(offset, DECAY, rate, least)
        return schedules.averaged_from(falling, first + (2 * n_passes * steps_a_pass) // 3)


def default_alpha(n_topics: int) -> float:
    """Dirichlet prior of the topic proportions: five tokens in all, half a token each at most."""
    return min(0.5, 5.0 / n_topics)
