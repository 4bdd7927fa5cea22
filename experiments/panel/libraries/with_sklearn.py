"""scikit-learn's LatentDirichletAllocation: variational Bayes, in batch, its default, or online."""

from __future__ import annotations

from experiments.panel.cells import FIXED_ALPHA, FIXED_ETA
from experiments.panel.recorder import Recorder, Topics
from experiments.panel.settings import Settings

PACKAGE = "scikit-learn"
_FIXED = {"doc_topic_prior": FIXED_ALPHA, "topic_word_prior": FIXED_ETA}
ENTRANTS = {
    "sklearn": {},
    "sklearn-fixed-pair": _FIXED,
    "sklearn-online-fixed-pair": {"learning_method": "online", **_FIXED},
}


class _Ended(Exception):
    """Leaves the loop of ``fit``, which offers no other way out."""


def train(corpus, settings: Settings, recorder: Recorder) -> None:
    """Call ``fit`` and watch its steps: one over all documents, or one for each batch."""
    from sklearn.decomposition import LatentDirichletAllocation

    class Watched(LatentDirichletAllocation):
        documents = 0

        def _em_step(self, X, **how):
            super()._em_step(X, **how)
            self.documents += X.shape[0]
            if recorder(self.documents / corpus.n_items, self._topics):
                raise _Ended

        def _topics(self):
            return Topics(self.components_.T, self.doc_topic_prior_, self.topic_word_prior_)

    X = corpus.to_csr()  # float32, with which it is fastest
    recorder.start()
    try:
        Watched(
            settings.topics, max_iter=settings.passes, random_state=settings.seed,
            **settings.options,
        ).fit(X)  # fmt: skip
    except _Ended:
        pass
