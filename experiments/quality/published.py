"""Rows that others printed, as they printed them: other documents, other machines."""

from __future__ import annotations

from typing import NamedTuple

BERTOPIC = (
    'M. Grootendorst, "BERTopic: Neural topic modeling with a class-based TF-IDF procedure", '
    "arXiv:2203.05794, 2022: K = 10 to 50, 3 runs, OCTIS's preprocessing (our bbc, but another "
    "20news: 16,309 posts, 1,612 words), NPMI over windows of 10 words in the order of the text; "
    '"LDA" is gensim\'s'
)
TOPMOST = (
    "the tutorial of TopMost, https://github.com/BobXWu/TopMost: 20 Newsgroups, 11,314 training "
    "and 7,532 test posts, 5,000 words, K = 50, theta as the model infers it"
)


class Coherence(NamedTuple):
    """A row of BERTopic's protocol; seconds where they were printed."""

    model: str
    npmi: float
    diversity: float
    seconds: float | None = None


COHERENCE = {
    "20news": (
        Coherence("LDA", 0.058, 0.749, 22),
        Coherence("NMF", 0.089, 0.663),
        Coherence("CTM", 0.096, 0.886, 585),
        Coherence("BERTopic", 0.166, 0.851),
    ),
    "bbc": (
        Coherence("LDA", 0.014, 0.577),
        Coherence("CTM", 0.094, 0.819, 97),
        Coherence("BERTopic", 0.167, 0.794),
    ),
}
LABELS = {
    "20news.split": {
        "ETM": {"once_only": 0.731, "purity": 0.384, "nmi": 0.348, "accuracy": 0.533},
    },
}
