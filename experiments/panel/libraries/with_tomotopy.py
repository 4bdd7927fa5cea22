"""tomotopy's LDAModel: collapsed Gibbs sampling with vector instructions and threads."""

from __future__ import annotations

from itertools import count

import numpy as np

from experiments.panel.cells import FIXED_ALPHA, FIXED_ETA
from experiments.panel.recorder import Recorder, Topics
from experiments.panel.settings import Settings

PACKAGE = "tomotopy"
ENTRANTS = {"tomotopy": {}, "tomotopy-fixed-pair": {"alpha": FIXED_ALPHA, "eta": FIXED_ETA}}


def train(corpus, settings: Settings, recorder: Recorder) -> None:
    """Sweep over all tokens.

    By default alpha is optimised after every tenth sweep; priors that are given stay as they are.
    """
    import tomotopy

    model = tomotopy.LDAModel(k=settings.topics, seed=settings.seed, **settings.options)
    words = np.array([str(i) for i in range(corpus.n_features)], dtype=object)
    for start, stop in zip(corpus.offsets, corpus.offsets[1:], strict=False):
        tokens = np.repeat(corpus.index[start:stop], corpus.value[start:stop].astype(int))
        model.add_doc(words[tokens].tolist())
    if settings.options:
        model.optim_interval = 0
    recorder.start()
    for sweep in count(1):
        model.train(1, workers=settings.threads)
        if recorder(sweep, lambda: _topics(model, corpus.n_features, settings.topics)):
            return


def _topics(model, n_words, n_topics):
    """Return counts plus eta for every word: tomotopy leaves out those it never saw."""
    seen = [int(word) for word in model.used_vocabs]
    counts = np.full((n_words, n_topics), model.eta, np.float32)
    for k in range(n_topics):
        counts[seen, k] = model.get_topic_word_dist(k, normalize=False)
    return Topics(counts, model.alpha, model.eta)
