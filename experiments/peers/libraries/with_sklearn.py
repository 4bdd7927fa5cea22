"""scikit-learn's LatentDirichletAllocation: online variational Bayes (Hoffman et al. 2010).

``sklearn`` is the fastest setting found: float32, at most 10 inner iterations.
``sklearn-converged`` iterates every document to the library's tolerance, as its default does.
``sklearn-jobs`` uses all threads; larger batches repay joblib's cost of handing them out.
"""

from __future__ import annotations

from itertools import count

from experiments.peers.problem import Settings
from experiments.peers.recorder import Recorder

PACKAGE = "scikit-learn"
_COMMON = {"learning_decay": 0.7, "learning_offset": 10.0}
COMPETITORS = {
    "sklearn": {**_COMMON, "max_doc_update_iter": 10, "batch_size": 1024, "n_jobs": 1},
    "sklearn-converged": {**_COMMON, "max_doc_update_iter": 100, "batch_size": 1024, "n_jobs": 1},
    "sklearn-jobs": {**_COMMON, "max_doc_update_iter": 10, "batch_size": 4096},
}


def train(corpus, settings: Settings, recorder: Recorder) -> None:
    """Call ``partial_fit`` on one batch after the other, as its ``fit`` does, until time is up."""
    from sklearn.decomposition import LatentDirichletAllocation

    with recorder.stage("convert"):
        X = corpus.to_csr()
    recorder.start()
    model = LatentDirichletAllocation(
        n_components=settings.topics,
        doc_topic_prior=settings.alpha,
        topic_word_prior=settings.eta,
        learning_method="online",
        total_samples=corpus.n_items,
        random_state=settings.seed,
        **{"n_jobs": settings.threads, **settings.options},
    )
    size = settings.options["batch_size"]
    for passes in count():
        for first in range(0, corpus.n_items, size):
            last = min(first + size, corpus.n_items)
            model.partial_fit(X[first:last])
            if recorder(passes + last / corpus.n_items, lambda: model.components_.T):
                return
