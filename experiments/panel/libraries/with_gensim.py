"""gensim's LdaModel: online variational Bayes in chunks of 2,000 documents, on one core."""

from __future__ import annotations

from experiments.panel.cells import FIXED_ALPHA, FIXED_ETA
from experiments.panel.recorder import Recorder, Topics
from experiments.panel.settings import Settings

PACKAGE = "gensim"
ENTRANTS = {"gensim": {}, "gensim-fixed-pair": {"alpha": FIXED_ALPHA, "eta": FIXED_ETA}}


class _Ended(Exception):
    """Leaves gensim's loop, which offers no other way out."""


def train(corpus, settings: Settings, recorder: Recorder) -> None:
    """Train by one call over many passes, as users do, and watch gensim's own M-steps.

    Its estimates of the bound, every ten chunks by default, are switched off: they cost time.
    """
    from gensim.models import LdaModel

    class Watched(LdaModel):
        documents = 0

        def do_mstep(self, rho, other, extra_pass=False):
            super().do_mstep(rho, other, extra_pass)
            self.documents += other.numdocs
            if recorder(self.documents / corpus.n_items, self._topics):
                raise _Ended

        def _topics(self):
            return Topics(self.state.get_lambda().T, self.alpha, self.eta)

    documents = _as_pairs(corpus)
    id2word = {i: str(i) for i in range(corpus.n_features)}
    recorder.start()
    try:
        Watched(
            documents, id2word=id2word, num_topics=settings.topics, passes=settings.passes,
            eval_every=None, random_state=settings.seed, **settings.options,
        )  # fmt: skip
    except _Ended:
        pass


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
