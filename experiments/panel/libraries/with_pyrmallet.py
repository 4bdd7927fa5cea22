"""pyrmallet: RustMallet's sparse Gibbs sampling, on one core."""

from __future__ import annotations

import numpy as np

from experiments.panel.cells import FIXED_ALPHA, FIXED_ETA
from experiments.panel.libraries import mallet_sweeps
from experiments.panel.recorder import Recorder, Topics
from experiments.panel.settings import Settings

PACKAGE = "pyrmallet"
PASSES = mallet_sweeps.PASSES
ENTRANTS = {"pyrmallet": {}, "pyrmallet-fixed-pair": {"alpha": FIXED_ALPHA, "eta": FIXED_ETA}}


def train(corpus, settings: Settings, recorder: Recorder) -> None:
    """Train by one call, whose end is all that can be seen.

    By default alpha, begun at 1 a topic, and beta are learned after 200 passes.
    """
    from pyrmallet import _rust_mallet as mallet  # `LatentDirichletAllocation` splits texts anew

    words = np.array([str(i) for i in range(corpus.n_features)], dtype=object)
    texts = []
    for start, stop in zip(corpus.offsets, corpus.offsets[1:], strict=False):
        counts = corpus.value[start:stop].astype(int)
        texts.append(" ".join(words[np.repeat(corpus.index[start:stop], counts)]))
    documents = mallet.Corpus.from_strings(texts, token_regex=r"\S+")
    given = {}
    if settings.options:
        given = {
            "alpha_sum": settings.options["alpha"] * settings.topics,
            "beta": settings.options["eta"], "optimize_interval": 0,
        }  # fmt: skip
    recorder.start()
    model = mallet.train(
        documents, num_topics=settings.topics, seed=settings.seed,
        iterations=mallet_sweeps.before_samples(settings.passes),
        **mallet_sweeps.shared_out(settings.passes), **given,
    )  # fmt: skip
    recorder.take(settings.passes, lambda: _topics(model, corpus.n_features))


def _topics(model, n_words):
    """Return probabilities; a word that was never seen has those of a word without any count."""
    found = np.array(model.topic_word_matrix()).T
    probabilities = np.tile(found.min(axis=0), (n_words, 1))
    probabilities[[int(word) for word in model.vocabulary]] = found
    return Topics(probabilities, model.alpha, model.beta)
