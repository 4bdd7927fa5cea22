"""One run, alone in a process: ``python -m experiments.quality.run_one SETTINGS DATA RESULT``."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from experiments.panel import corpora, libraries
from experiments.panel.recorder import Recorder
from experiments.panel.run_one import main
from experiments.panel.settings import Settings
from experiments.quality import documents, measures
from experiments.quality.theta import classified, proportions

TOP, TOP_OF_SPLIT = 10, 15  # words a topic, in BERTopic's and in TopMost's protocol


def run(settings: Settings, folder: Path) -> dict:
    """Train, then judge the topics at the end.

    Returns
    -------
    dict
        ``settings``; training ``seconds`` and ``passes`` in all, ``cut``: whether time ended it
        before its passes; ``top_words`` of each topic; ``scores``: ``npmi`` and ``diversity`` of
        the first 10, and if the corpus was split ``once_only`` of the first 15, and of the test
        documents ``purity``, ``nmi`` and what :func:`.theta.classified` returns.
    """
    train = corpora.load(folder, "train")
    recorder = Recorder(settings.seconds, settings.passes)
    libraries.get(settings.library).train(train, settings, recorder)
    end = recorder.snapshots[-1]
    top = measures.top_words(end.topics.counts, TOP_OF_SPLIT)
    scores = {
        "npmi": measures.npmi(top[:, :TOP], train), "diversity": measures.diversity(top[:, :TOP]),
    }  # fmt: skip
    labels = documents.load_labels(folder, "train")
    if labels is not None:
        test, test_labels = corpora.load(folder, "test"), documents.load_labels(folder, "test")
        theta, test_theta = (
            proportions(end.topics, part, settings.threads) for part in (train, test)
        )
        clusters = test_theta.argmax(axis=1)
        scores |= {
            "once_only": measures.once_only(top),
            "purity": measures.purity(test_labels, clusters),
            "nmi": measures.mutual_information(test_labels, clusters),
            **classified(theta, labels, test_theta, test_labels),
        }
    words = documents.load_words(folder)
    return {
        "settings": dataclasses.asdict(settings),
        "seconds": end.seconds,
        "passes": end.passes,
        "cut": end.passes < settings.passes - 1e-6,
        "scores": scores,
        "top_words": [[words[i] for i in topic[:TOP]] for topic in top],
    }


if __name__ == "__main__":
    main(*sys.argv[1:], run=run)
