"""Topics that are cut in two: against slow numpy, and where the two are known."""

import warnings

import numpy as np
import pytest
from reference.lda import TopicCorpus, documents_of, infer, normalised
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from dpsvi.corpus import Corpus
from dpsvi.families.topics.matrix import FLOAT
from dpsvi.kernels.jit import as_items
from dpsvi.models.hdp.splits import FEWEST, LEAST, ROUNDS, splits

ETA = 0.3
ALPHA = np.array([0.3, 0.2, 0.2, 0.1])


def items_of(corpus):
    return as_items(corpus.offsets, corpus.index, corpus.value, FLOAT)


@pytest.fixture(scope="module")
def drawn():
    return TopicCorpus(4, n_words=60, n_documents=200, n_tokens=50, alpha=0.1, seed=1)


@pytest.fixture(scope="module")
def basis(drawn):
    """The first topic is two of the drawn ones; the last one is of no document."""
    first, second, *others = drawn.topics
    none = np.full(60, 1e-6)
    return np.array([(first + second) / 2, *others, none]).T.astype(FLOAT)


def cut(basis, items, topics, alpha=ALPHA, n_jobs=1):
    return splits(np.ascontiguousarray(basis), alpha.astype(FLOAT), items, topics, ETA, n_jobs)


# --- the reference -----------------------------------------------------------------------------


def points(corpus, basis, topic):
    """What each document that has this topic has of it, (n_documents, n_words)."""
    found, lam = [], 1e9 * basis.T.astype(float)  # so much that E log beta is log E beta
    for ids, counts in documents_of(corpus):
        gamma = infer("mean_field", ids, counts, lam, ALPHA, n_sweeps=50, tol=1e-3)
        if gamma[topic] - ALPHA[topic] >= LEAST:
            phi = normalised(gamma * basis[ids].astype(float))[:, topic]
            found.append(np.bincount(ids, counts * phi, len(basis)))
    return np.array(found)


def explained(counts):
    counts = counts[counts > 0]
    return counts @ np.log(counts / counts.sum())


def slow_cut(counts):
    """Share of each word and of all, and the gain: from correspondence analysis, then EM."""
    chance = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    axes, _, _ = np.linalg.svd((counts - chance) / np.sqrt(chance))
    share, total = (axes[:, 0] > 0).astype(float), counts.sum(axis=0)
    for _ in range(ROUNDS):
        new = sum(s * row for s, row in zip(share, counts, strict=True))
        words = [(part + ETA) / (part + ETA).sum() for part in (new, total - new)]
        odds = (new.sum() + 1) / ((total - new).sum() + 1)
        for d, row in enumerate(counts):
            likelier = odds * np.exp(row @ (np.log(words[0]) - np.log(words[1])))
            share[d] = likelier / (1 + likelier)
    new = sum(s * row for s, row in zip(share, counts, strict=True))
    rest = new.sum() / total.sum()
    gain = explained(new) + explained(total - new) - explained(total)
    return (new + ETA * rest) / (total + ETA), rest, gain


# --- splits ------------------------------------------------------------------------------------


def test_a_split_against_the_slow_reference(drawn, basis):
    corpus, topic = drawn.corpus(), 0
    (found,) = cut(basis, items_of(corpus), [topic])
    counts = points(corpus, basis, topic)
    words = np.flatnonzero(counts.sum(axis=0))
    share, rest, gain = slow_cut(counts[:, words])
    if abs(rest - found.rest) > abs(1 - rest - found.rest):  # no side of an axis is the first
        share, rest = 1 - share, 1 - rest
    assert found.topic == topic and np.array_equal(found.words, words)
    assert found.gain == pytest.approx(gain, rel=5e-3)
    assert found.rest == pytest.approx(rest, abs=5e-3)
    np.testing.assert_allclose(found.share, share, atol=0.02)


def test_the_topic_of_two_subjects_gains_most_and_is_cut_into_them(drawn, basis):
    first, *others = cut(basis, items_of(drawn.corpus()), np.arange(4))
    assert first.topic == 0 and all(first.gain > 2 * other.gain for other in others)
    share = np.full(60, first.rest)
    share[first.words] = first.share
    parts = normalised(np.array([share, 1 - share]) * basis[:, 0])
    distances = cdist(parts, drawn.topics[:2], "cityblock") / 2
    assert distances[linear_sum_assignment(distances)].max() < 0.15
    assert cdist(drawn.topics[:1], drawn.topics[1:2], "cityblock") / 2 > 0.5


def test_threads_change_nothing(drawn, basis):
    one, two = (cut(basis, items_of(drawn.corpus()), np.arange(4), n_jobs=n) for n in (1, 2))
    for a, b in zip(one, two, strict=True):
        assert a.gain == b.gain and np.array_equal(a.share, b.share)


def test_what_has_too_few_documents_is_not_cut(drawn, basis):
    few = items_of(drawn.corpus().select(slice(0, FEWEST - 1)))
    assert cut(basis, few, np.arange(4)) == []
    assert [split.topic for split in cut(basis, items_of(drawn.corpus()), [3])] == []
    one_word = Corpus(
        np.arange(21), np.zeros(20, np.int32), np.full(20, 3, np.float32), 60, None
    )
    assert cut(basis, items_of(one_word), np.arange(4)) == []


def test_documents_that_are_all_alike_are_not_worth_a_cut(basis):
    alike = Corpus(
        2 * np.arange(21), np.tile([0, 1], 20).astype(np.int32),
        np.tile([2, 3], 20).astype(np.float32), 60, None,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cut(basis, items_of(alike), np.arange(4))
    assert len(found) >= 1
    for split in found:
        assert abs(split.gain) < 1e-6 and 0 <= split.rest <= 1
        assert np.all((split.share >= 0) & (split.share <= 1))
