"""topica's LDA, written in Rust: four ways to sample or to sum over topics.

``sparse`` is MALLET's Gibbs sampling, ``light`` and ``warp`` are Metropolis-Hastings sampling from
cheap proposals, ``cvb0`` is collapsed variational Bayes, which samples nothing.
"""

from __future__ import annotations

import numpy as np

from experiments.panel.cells import FIXED_ALPHA, FIXED_ETA
from experiments.panel.libraries import mallet_sweeps
from experiments.panel.recorder import Recorder, Topics
from experiments.panel.settings import Settings

PACKAGE = "topica"
PASSES = mallet_sweeps.PASSES
_FIXED = {"alpha": FIXED_ALPHA, "eta": FIXED_ETA}
_SAMPLERS = {"sparse": "sparse", "light": "lightlda", "warp": "warp", "cvb0": "cvb0"}
ENTRANTS = {
    f"topica-{name}{suffix}": {"sampler": sampler, **priors}
    for suffix, priors in (("", {}), ("-fixed-pair", _FIXED))
    for name, sampler in _SAMPLERS.items()
}


def train(corpus, settings: Settings, recorder: Recorder) -> None:
    """Train by one call, whose end is all that can be seen.

    By default alpha, begun at 1 a topic, and beta are learned after 200 passes.
    """
    import topica

    words = np.array([str(i) for i in range(corpus.n_features)], dtype=object)
    tokens = words[np.repeat(corpus.index, corpus.value.astype(int))]
    ends = np.concatenate([[0], np.cumsum(corpus.value, dtype=np.int64)])[corpus.offsets]
    documents = [tokens[i:j].tolist() for i, j in zip(ends, ends[1:], strict=False)]
    documents = topica.Corpus.from_documents(documents, vocabulary=words.tolist())
    given = {}
    if "alpha" in settings.options:
        given = {
            "alpha_sum": settings.options["alpha"] * settings.topics,
            "beta": settings.options["eta"], "optimize_interval": 0,
        }  # fmt: skip
    sampler = settings.options["sampler"]
    sweeps = {"iters": settings.passes}
    if sampler != "cvb0":  # which ignores what samples would be taken
        sweeps = {
            "iters": mallet_sweeps.before_samples(settings.passes),
            **mallet_sweeps.shared_out(settings.passes),
        }
    recorder.start()
    model = topica.LDA(
        settings.topics, sampler=sampler, seed=settings.seed, num_threads=settings.threads, **given
    )
    # Estimates of the likelihood and draws of theta, which are for other uses, would cost time.
    model.fit(documents, check_every=0, keep_theta_draws=False, **sweeps)
    recorder.take(
        settings.passes, lambda: Topics(np.asarray(model.topic_word).T, model.alpha, model.beta)
    )
