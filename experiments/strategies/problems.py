"""What is fitted: topics of 20news, a mixture and a chain drawn from such models.

Every problem has items of 20 groups: the i-th training item is of group ``i % 20``, so that with
``sharding="shard"`` each of 20 workers has one group, which nobody else has.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dpsvi import DPSVIHMM, DPSVILDA, DPSVIGaussianMixture
from dpsvi.corpus import Corpus, load_corpus
from experiments.family import gaussian_mixture, hmm
from experiments.quality.documents import read_labels

GROUPS = 20
STEPS = 20  # of a sequence


class Problem(NamedTuple):
    """Data, and how a fit of so many passes is begun.

    Parameters
    ----------
    estimator : callable(**params) -> estimator
    train, tuning, test : dict
        Arguments of `fit`, and of the held-out score: for choosing, and for the table.
    passes : int
    unit : str
        What the score, a held-out log-likelihood in nats, is the mean of.
    """

    estimator: Callable
    train: dict
    tuning: dict
    test: dict
    passes: int
    unit: str


def topics(folder: Path, local_step: str) -> Problem:
    """LDA on 20news: 50 topics, 1,000 documents to choose with, 1,000 to score."""
    train, rest = load(folder)
    return Problem(
        partial(
            DPSVILDA, 50, local_step=local_step, batch_size=16, doc_topic_prior=0.1,
            topic_word_prior=0.03,
        ),
        {"X": train}, {"X": rest.select(np.arange(500))},
        {"X": rest.select(np.arange(500, rest.n_items))}, 5, "token",
    )  # fmt: skip


def load(folder: Path, documents: int | None = None) -> tuple[Corpus, Corpus]:
    """Training documents, of which the i-th is of group ``i % 20``, and 1,500 others.

    Parameters
    ----------
    folder : Path
        It holds docword.20news.txt.gz and labels.20news.txt.gz.
    documents : int or None
        Of a group, at most.
    """
    corpus = load_corpus(folder / "docword.20news.txt.gz")
    labels, _ = read_labels(folder / "labels.20news.txt.gz", corpus.n_items)
    order = np.random.default_rng(0).permutation(corpus.n_items)
    others, rest = order[:1500], order[1500:]
    members = [rest[labels[rest] == group] for group in range(GROUPS)]
    each = min(documents or len(rest), *(len(found) for found in members))
    train = np.stack([found[:each] for found in members], axis=1).ravel()
    return corpus.select(train), corpus.select(others)


def mixture(folder: Path) -> Problem:
    """Gaussian mixture: 20,000 points of 16 features, 20 overlapping components."""
    X = gaussian_mixture.draw(np.random.default_rng(0), 24_000)
    train, others = X[4000:], X[:4000]
    return Problem(
        partial(DPSVIGaussianMixture, 20, batch_size=32, init_params="kmeans"),
        {"X": train[by_group(train)]}, {"X": others[:2000]}, {"X": others[2000:]}, 4, "point",
    )  # fmt: skip


def chain(folder: Path) -> Problem:
    """Hidden Markov model: 4,000 sequences of 20 steps, 10 states, 8 features."""
    rng = np.random.default_rng(0)
    truth = hmm.Truth(rng)
    X = truth.draw(rng, 4000, STEPS).reshape(4000, STEPS, -1)
    order = by_group(X.mean(axis=1))
    tuning, test = (truth.draw(rng, 200, STEPS) for _ in range(2))
    return Problem(
        partial(DPSVIHMM, hmm.K, batch_size=32),
        _sequences(X[order].reshape(-1, hmm.D)), _sequences(tuning), _sequences(test), 8, "step",
    )  # fmt: skip


def _sequences(X) -> dict:
    return {"X": X, "lengths": np.full(len(X) // STEPS, STEPS)}


def by_group(features: np.ndarray) -> np.ndarray:
    """An order of the rows in which the i-th is of group ``i % 20``.

    The groups are slices along the first principal component, equal in size.
    """
    centred = features - features.mean(axis=0)
    first = np.linalg.svd(centred, full_matrices=False)[2][0]
    places = np.argsort(centred @ first)
    return places[: len(places) // GROUPS * GROUPS].reshape(GROUPS, -1).T.ravel()


PROBLEMS: dict[str, Callable[[Path], Problem]] = {
    "lda": partial(topics, local_step="collapsed"),
    "lda-mean-field": partial(topics, local_step="mean_field"),
    "gaussian-mixture": mixture,
    "hmm": chain,
}
