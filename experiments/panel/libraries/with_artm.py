"""bigartm's LDA: smoothed maximum likelihood (EM), in passes over batches of 1,000 documents."""

from __future__ import annotations

import tempfile
from itertools import count
from pathlib import Path

import numpy as np

from experiments.panel.cells import FIXED_ALPHA, FIXED_ETA
from experiments.panel.recorder import Recorder, Topics
from experiments.panel.settings import Settings

PACKAGE = "bigartm"
ENTRANTS = {"bigartm": {}, "bigartm-fixed-pair": {"alpha": FIXED_ALPHA, "beta": FIXED_ETA}}


def train(corpus, settings: Settings, recorder: Recorder) -> None:
    """Pass over all documents; the pseudo-counts alpha and beta, .01 by default, are never learned.

    bigartm adds them to expected counts where variational Bayes has its digamma functions.
    """
    import artm

    with tempfile.TemporaryDirectory() as folder:
        logging = artm.messages.ConfigureLoggingArgs()
        logging.log_dir, logging.minloglevel = folder, 3  # else it writes where it was called
        artm.wrapper.LibArtm(logging_config=logging)
        batches = artm.BatchVectorizer(
            data_path=_written(corpus, Path(folder)), data_format="vowpal_wabbit",
            target_folder=str(Path(folder) / "batches"),
        )  # fmt: skip
        recorder.start()
        model = artm.LDA(
            settings.topics, num_processors=settings.threads, seed=settings.seed,
            dictionary=batches.dictionary, **settings.options,
        )  # fmt: skip
        for passes in count(1):
            model.fit_offline(batches)
            if recorder(passes, lambda: _topics(model, corpus.n_features)):
                return


def _written(corpus, folder):
    """Write one line a document: a name, then words and counts."""
    path = folder / "documents.vw"
    pairs = [
        f"{word}:{number}"
        for word, number in zip(corpus.index, corpus.value.astype(int), strict=True)
    ]
    bounds = corpus.offsets
    with path.open("w") as file:
        for start, stop in zip(bounds, bounds[1:], strict=False):
            file.write(" ".join(["document", *pairs[start:stop]]) + "\n")
    return str(path)


def _topics(model, n_words):
    """Return probabilities; a word that was never seen has those of a word without any count."""
    found = model.phi_
    probabilities = np.tile(found.to_numpy().min(axis=0), (n_words, 1))
    probabilities[found.index.astype(int)] = found.to_numpy()
    return Topics(probabilities, model.alpha, model.beta)
