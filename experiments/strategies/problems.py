"""What is fitted: topics of 20news, a mixture and a chain of handwritten digits; all is small.

Every problem of items has those of 20 groups: the i-th training item is of group ``i % 20``, so
that with ``sharding="shard"`` each of 20 workers has one group, which nobody else has.  A group is
a newsgroup, or about half of the images of a digit.  An actor-critic, which has no items, is in
:mod:`experiments.strategies.agent`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from dpsvi import DPSVIHMM, DPSVILDA, DPSVIGaussianMixture
from dpsvi.corpus import Corpus, load_corpus
from experiments.quality.documents import read_labels
from experiments.strategies import domain
from experiments.strategies.agent import Agent, agent
from experiments.strategies.measures import NATS

GROUPS = 20
DOCUMENTS, WORDS = 60, 2000  # of a newsgroup; the most frequent ones
HELD_OUT = 300  # items to choose with, and as many to score
PASSES, BATCH = 3, 8
OFFSETS = (10.0, 100.0, 1000.0)  # of the rates, (t + offset)^-decay; serial SVI chooses for all
FEATURES = 8  # of a digit as a point: principal components; and of a row of its image
COMPONENTS = 10  # and states


class Watch:
    """A callback: held-out score, and whether parameters are valid, at every evaluation."""

    def __init__(self, data: dict, outside):
        self.data, self.model, self._items, self._outside = data, None, None, outside
        # The score of sequences is a sum over their steps, that of other items a mean.
        self._parts = len(data["X"]) if "lengths" in data else 1
        self.scores: list[tuple[float, float]] = []
        self.outside = 0.0

    def __call__(self, event) -> None:
        """Score the parameters of the event, and how far they are outside of the domain."""
        if self._items is None:
            self._items = self.model._read(y=None, reset=False, **self.data)
        score = self.model._held_out_score(event.state, self._items)["score"] / self._parts
        self.scores.append((round(event.seconds, 6), round(score, 6)))
        self.outside = max(self.outside, self._outside(event.state))


class Problem(NamedTuple):
    """Data, and how a fit is begun.

    Parameters
    ----------
    estimator : callable(**params) -> estimator
    train, tuning, test : dict
        Arguments of `fit`, and of the held-out score: for choosing, and for the table.
    unit : str
        What the score, a held-out log-likelihood in nats, is the mean of.
    incremental : dict
        Parameters with which statistics of items are replaced, at last, instead of mixed in.
    outside : callable(state) -> float
        How far parameters are outside of their domain; see :mod:`experiments.strategies.domain`.
    """

    estimator: Callable
    train: dict
    tuning: dict
    test: dict
    unit: str
    incremental: dict
    outside: Callable

    measure, rates, length, has_groups, choices = NATS, OFFSETS, PASSES, True, MappingProxyType({})

    def fit(
        self, seed: int, parameters: dict, tuning: bool, passes: int, offset: float, every: float,
        **where,
    ) -> dict:  # fmt: skip
        """What came of a fit; nothing on a rank that is not the first.

        Parameters
        ----------
        seed : int
        parameters : dict
            Of the estimator.
        tuning : bool
            Whether the score is that of the items to choose with.
        passes : int
        offset : float
            ``learning_offset`` of the estimator.
        every : float
            Passes between two looks at the score.
        **where
            ``engine``, and ``cluster``.

        Returns
        -------
        dict
            As :meth:`experiments.strategies.trial.Trials.fit`.
        """
        watch = Watch(self.tuning if tuning else self.test, self.outside)
        if parameters.pop("incremental", False):
            parameters |= self.incremental
        watch.model = model = self.estimator(
            max_iter=passes, learning_offset=offset, random_state=seed, callbacks=[watch],
            evaluate_every=every, **parameters, **where,
        )  # fmt: skip
        model.fit(**self.train)
        report = model.exchanges_
        if not report:
            return {}
        return {
            "scores": watch.scores, "score": watch.scores[-1][1], "seconds": report["seconds"],
            "bytes": report["bytes"] / model._state.items, "outside": watch.outside,
        }  # fmt: skip


def topics(folder: Path, local_step: str) -> Problem:
    """LDA on a part of 20news: 1,200 documents, 2,000 words, 20 topics."""
    train, rest = load(folder, DOCUMENTS)
    counts = np.bincount(train.index, train.value, train.n_features)
    words = np.sort(np.argsort(-counts, kind="stable")[:WORDS])
    X, rest = train.to_csr()[:, words], rest.to_csr()[:, words]
    return Problem(
        partial(
            DPSVILDA, 20, local_step=local_step, batch_size=BATCH, doc_topic_prior=0.1,
            topic_word_prior=0.03,
        ),
        {"X": X}, {"X": rest[:HELD_OUT]}, {"X": rest[HELD_OUT : 2 * HELD_OUT]}, "token",
        {"keep_responsibilities": True}, domain.counts,
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
    """Gaussian mixture: 1,180 digits, 8 principal components, 10 components."""
    from sklearn.decomposition import PCA

    train, tuning, test = digits()
    components = PCA(FEATURES, random_state=0).fit(train)
    return Problem(
        partial(DPSVIGaussianMixture, COMPONENTS, batch_size=BATCH),
        *({"X": components.transform(X)} for X in (train, tuning, test)), "point",
        {"incremental": True}, partial(domain.components, n_features=FEATURES),
    )  # fmt: skip


def chain(folder: Path) -> Problem:
    """Hidden Markov model: 1,180 digits as sequences of the 8 rows of their image, 10 states."""
    return Problem(
        partial(DPSVIHMM, COMPONENTS, batch_size=BATCH), *(_sequences(X) for X in digits()),
        "step", {"incremental": True},
        partial(domain.chain, n_states=COMPONENTS, n_features=FEATURES),
    )  # fmt: skip


def _sequences(X) -> dict:
    rows = X.reshape(-1, FEATURES)
    return {"X": rows, "lengths": np.full(len(X), len(rows) // len(X))}


def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images, (n, 64), of scikit-learn's handwritten digits: by group, to choose with, to score."""
    from sklearn.datasets import load_digits

    X, digit = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    tuning, test, rest = np.split(order, [HELD_OUT, 2 * HELD_OUT])
    return X[rest[by_group(digit[rest])]], X[tuning], X[test]


def by_group(labels: np.ndarray) -> np.ndarray:
    """An order of items in which the i-th is of group ``i % 20``: labels in order, cut in 20."""
    places = np.argsort(labels, kind="stable")
    return places[: len(places) // GROUPS * GROUPS].reshape(GROUPS, -1).T.ravel()


PROBLEMS: dict[str, Callable[[Path], Problem | Agent]] = {
    "lda": partial(topics, local_step="collapsed"),
    "gaussian-mixture": mixture,
    "hmm": chain,
    "lda-mean-field": partial(topics, local_step="mean_field"),
    "actor-critic": agent,
}
