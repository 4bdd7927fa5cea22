"""Guided topics: words that are known to belong to a topic get a larger prior there.

A seed word's prior in its topic is ``eta + c_w``, where c_w are its tokens in the documents: as if
it had been seen in this topic as often as it was seen at all.  Its prior in other topics stays eta,
so what surrounds it in documents follows it, and documents may still put it elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def by_topic(seed_words, n_topics: int) -> dict[int, list]:
    """Seed words of each topic that has some, from a mapping or a list of lists.

    Raises
    ------
    ValueError, TypeError
        There is no such topic, or words are not in a list.
    """
    if isinstance(seed_words, Mapping):
        found = {_number(topic): words for topic, words in seed_words.items()}
    elif isinstance(seed_words, (list, tuple)):
        found = dict(enumerate(seed_words))
    else:
        raise TypeError(
            f"seed_words must be {{topic: [words]}}, a list of lists or None, got {seed_words!r}"
        )
    for topic, words in found.items():
        if not 0 <= topic < n_topics:
            raise ValueError(f"seed_words has topic {topic}, but topics are 0 to {n_topics - 1}")
        if isinstance(words, str) or not isinstance(words, (list, tuple, set, np.ndarray)):
            raise TypeError(f"seed_words of topic {topic} must be a list of words, got {words!r}")
    return {topic: list(words) for topic, words in found.items() if len(words)}


def _number(topic) -> int:
    if isinstance(topic, str) and topic.isdecimal():  # JSON makes keys text
        return int(topic)
    if isinstance(topic, bool) or not isinstance(topic, (int, np.integer)):
        raise TypeError(f"seed_words: a topic must be a number from 0, got {topic!r}")
    return int(topic)


def seeded_prior(eta, seeds: dict[int, list], n_topics: int, vocabulary, counts) -> np.ndarray:
    """Prior of the words of guided topics, float64, (n_topics, n_words).

    Parameters
    ----------
    eta : float or array, (n_words,) or (n_topics, n_words)
        What it would be without seeds.
    seeds : dict
        As :func:`by_topic` gives it.
    n_topics : int
    vocabulary : sequence of str or None
        None: seeds are word numbers.
    counts : array, (n_words,)
        Tokens of each word in the documents.

    Raises
    ------
    ValueError
        A seed is no word of the documents.

    Examples
    --------
    >>> seeded_prior(0.1, {1: ["sun"]}, 2, ["rain", "sun"], [7, 5])
    array([[0.1, 0.1],
           [0.1, 5.1]])
    """
    n_words = len(counts)
    known = range(n_words) if vocabulary is None else vocabulary
    number = {word: i for i, word in enumerate(known)}
    prior = np.array(np.broadcast_to(eta, (n_topics, n_words)), np.float64)
    for topic, words in seeds.items():
        missing = [word for word in words if word not in number]
        if missing:
            raise ValueError(f"seed_words of topic {topic} are not in the documents: {missing}")
        places = np.unique([number[word] for word in words])
        prior[topic, places] += np.asarray(counts, np.float64)[places]
    return prior
