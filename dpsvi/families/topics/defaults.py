"""What a topic model's fit takes where the user does not say: priors, batches, step sizes.

All of it follows from the size of the corpus and the number of topics, by rules that were chosen on
a panel of corpora (`python -m experiments.panel`) of 6 to 1,250 tokens a document.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpsvi.training import schedules

FEWEST = 4  # documents in a step, unless the corpus has fewer
MOST_RATE = 0.3  # of the rates that do not fall: with more, the last few documents have all the say
MOST_PARTS = 8  # of a batch that workers share
DECAY = 0.7  # of the first rates
SHORT = 30  # tokens a document, below which more passes are remembered
LONG = 150  # and above which a document is explained by more iterations
MUCH = 0.5  # tokens for each word and topic, above which all documents are
MOST_LONGER = 3.0  # times as many, at most
FEWEST_IN_STREAM = 8, 150  # documents and tokens in a step of a stream, unless a call has fewer
LEAST_DATA = 2.0  # times the tokens that the priors of the words stand for: N of a stream, at least


class Defaults(NamedTuple):
    """What a local step wants.

    Parameters
    ----------
    word_tokens : float
        eta times the number of topics: what the prior of a word counts for in all topics together.
        So the prior weighs the same share of the data whatever the number of topics is.
    sweeps : int
        Most inner iterations on a document in one visit.
    more_sweeps : float
        How many times as many there are where documents have more than `LONG` tokens, or topics
        rest on more than `MUCH` tokens a word, at most.  Else more iterations would find in short
        documents what is chance in the topics (`python -m experiments.sweeps`).
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
    stream_memory : float
        Share of all documents of a stream so far that the parameters remember, at least, while
        nobody knows how many will follow; 0: the stream's steps and N do not depend on that.
    stream_sweeps : int
        Most inner iterations on a document of a stream, which is met once and by topics that are
        young; 0: `sweeps`.
    word_prior : float
        eta itself, where a model empties the topics that it does not need, so that their number
        says nothing of how many tokens a topic will have; 0: it follows from `word_tokens`.
    """

    word_tokens: float
    sweeps: int
    steps: int
    most: int
    memory: float
    memory_share: float = 0.0
    more_sweeps: float = 1.0
    big_start: int = 0
    stream_memory: float = 0.0
    stream_sweeps: int = 0
    word_prior: float = 0.0

    def eta(self, n_topics: int) -> float:
        """Dirichlet prior of the words of a topic."""
        return self.word_prior or self.word_tokens / n_topics

    def most_sweeps(self, document_tokens: float, topic_tokens: float) -> int:
        """Most inner iterations where documents, and words of topics, have so many tokens."""
        longer = max(document_tokens / LONG, topic_tokens / MUCH)
        return round(self.sweeps * float(np.clip(longer, 1.0, self.more_sweeps)))

    def batch_size(self, n_items: float) -> int:
        """Documents in a step of a corpus of so many."""
        return int(np.clip(n_items // self.steps, FEWEST, self.most))

    def schedule(
        self, offset: float, rate: float, first: float, steps_a_pass: float, n_passes: int,
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
        return schedules.averaged_from(falling, first + 2 * n_passes * steps_a_pass // 3)

    def stream_batch_size(self, n_items: int, n_seen: int, document_tokens: float) -> int:
        """Documents in a step over the next `n_items` of a stream, the last of `n_seen`.

        As many as in a fit to those seen, but never a handful of titles.  A call's steps are of
        about the same size: a short one at the end would give its documents more weight.
        """
        documents, tokens = FEWEST_IN_STREAM
        least = min(self.most, max(documents, tokens / document_tokens))
        size = np.clip(n_seen // self.steps, least, self.most) if self.stream_memory else self.most
        return max(1, -(-n_items // math.ceil(n_items / int(size))))

    def stream_total(self, n_seen: int, document_tokens: float, n_words: int) -> float:
        """N for the steps over a stream of which `n_seen` documents are known.

        So many, not those to come: topics that stand for more documents than have been seen are
        sure of what the first few said.  But while priors outweigh documents all topics are alike.
        """
        prior = self.word_tokens * n_words
        return max(n_seen, LEAST_DATA * prior / document_tokens)

    def stream_schedule(self, offset: float, rate: float, first: int, batch_size: int, before: int):
        """Step sizes over the next documents of a stream, `before` of which came earlier.

        They fall as usual, and further: the parameters are to remember `stream_memory` of all.
        """
        falling = schedules.robbins_monro(offset, DECAY, rate)
        if not self.stream_memory:
            return falling

        def schedule(t):
            seen = before + (np.asarray(t) - first + 1) * batch_size
            return np.minimum(falling(t), rate * batch_size / (self.stream_memory * seen))

        return schedule


def default_alpha(n_topics: int) -> float:
    """Dirichlet prior of the topic proportions: five tokens in all, half a token each at most."""
    return min(0.5, 5.0 / n_topics)
