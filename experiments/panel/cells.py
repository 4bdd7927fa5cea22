"""Which cells, a corpus and a number of topics, matter most."""

from __future__ import annotations

from collections.abc import Mapping

TOPICS = (20, 50, 100, 400)
PASSES = (3, 10, 30, 100)
PEER_PASSES = 10**6  # of a peer that can be watched: more than it has time for
SECONDS = (1, 3, 10, 30, 60)
READ_AT = 30  # passes of our fits in the table
FIXED_ALPHA = 0.1  # of the second perplexity, and with FIXED_ETA the fixed pair of priors
FIXED_ETA = 0.03

# Corpus and K that must be won, with five seeds: these fits are done before all others.
MUST_REACH = (
    ("m10", 50),
    ("bbc", 50),
    ("reuters21578", 100),
    ("20news", 100),
    ("nyt", 100),
    ("wiki", 100),
)
MUST_REACH_ENTRANTS = ("defaults", "kept")
MUST_REACH_SECONDS = 600.0  # such a fit may take
SEEDS = (0, 1, 2, 3, 4)


def main_topics(corpus: Mapping) -> int:
    """K at which a corpus is drawn: 50 for one that is small or of short documents, else 100."""
    short, small = corpus["median_tokens"] < 20, corpus["documents"] < 3000
    return 50 if short or small else 100
