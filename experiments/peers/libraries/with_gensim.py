"""gensim's LdaModel, and LdaMulticore on several threads: online variational Bayes.

``gensim`` does at most 10 inner iterations, ``gensim-converged`` at most 50, its default.
"""

from __future__ import annotations

import multiprocessing

from experiments.peers.problem import Settings
from experiments.peers.recorder import Recorder

PACKAGE = "gensim"
_COMMON = {"chunksize": 2000, "decay": 0.7, "offset": 10.0}
COMPETITORS = {
    "gensim": {**_COMMON, "iterations": 10},
    "gensim-converged": {**_COMMON, "iterations": 50},
}
_PASSES = 1_000_000  # more than time allows


class _TimeIsUp(Exception):
    """Leaves gensim's loop, which offers no other way out."""


def train(corpus, settings: Settings, recorder: Recorder) -> None:
    """Train by one call over many passes, as users do, and watch gensim's own M-steps."""
    from gensim.models import LdaModel, LdaMulticore

    class Watched(LdaMulticore if settings.threads > 1 else LdaModel):
        documents = 0

        def do_mstep(self, rho, other, extra_pass=False):
            super().do_mstep(rho, other, extra_pass)
            self.documents += other.numdocs
            if recorder(self.documents / corpus.n_items, lambda: self.state.get_lambda().T):
                raise _TimeIsUp

    with recorder.stage("convert"):
        documents = _as_pairs(corpus)
        id2word = {i: str(i) for i in range(corpus.n_features)}
    recorder.start()
    try:
        Watched(
            documents,
            id2word=id2word,
            num_topics=settings.topics,
            alpha=settings.alpha,
            eta=settings.eta,
            passes=_PASSES,
            eval_every=None,
            random_state=settings.seed,
            **({"workers": settings.threads} if settings.threads > 1 else {}),
            **settings.options,
        )
    except _TimeIsUp:
        for worker in multiprocessing.active_children():
            worker.terminate()


def _as_pairs(corpus):
    """Return lists of (id, count), gensim's fastest input; equal numbers share an object."""
    ids = list(range(corpus.n_features))
    words = corpus.index.tolist()
    counts = corpus.value.astype(int).tolist()
    bounds = corpus.offsets.tolist()
    return [
        [(ids[words[j]], counts[j]) for j in range(start, stop)]
        for start, stop in zip(bounds, bounds[1:], strict=False)
    ]
