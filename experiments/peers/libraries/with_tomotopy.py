"""tomotopy's LDAModel: collapsed Gibbs sampling with vector instructions and threads."""

from __future__ import annotations

from itertools import count

import numpy as np

from experiments.peers.problem import Settings
from experiments.peers.recorder import Recorder

PACKAGE = "tomotopy"
COMPETITORS = {"tomotopy": {}}


def train(corpus, settings: Settings, recorder: Recorder) -> None:
    """Sweep over all tokens until time is up.

    Alpha stays as given, as for everybody else: ``optim_interval`` 0 stops its optimisation.
    """
    import tomotopy

    with recorder.stage("convert"):
        model = tomotopy.LDAModel(
            k=settings.topics, alpha=settings.alpha, eta=settings.eta, seed=settings.seed
        )
        words = np.array([str(i) for i in range(corpus.n_features)], dtype=object)
        for start, stop in zip(corpus.offsets, corpus.offsets[1:], strict=False):
            tokens = np.repeat(corpus.index[start:stop], corpus.value[start:stop].astype(int))
            if len(tokens):
                model.add_doc(words[tokens].tolist())
        model.optim_interval = 0
    recorder.start()
    for sweep in count(1):
        model.train(1, workers=settings.threads)
        if recorder(sweep, lambda: _pseudo_counts(model, corpus.n_features, settings)):
            return


def _pseudo_counts(model, n_words, settings):
    """Return counts plus eta for every word: tomotopy leaves out those it never saw."""
    seen = [int(word) for word in model.used_vocabs]
    counts = np.full((n_words, settings.topics), settings.eta, np.float32)
    for k in range(settings.topics):
        counts[seen, k] = model.get_topic_word_dist(k, normalize=False)
    return counts
