"""dpsvi's own LDA: one competitor for each kind of local step."""

from __future__ import annotations

from experiments.peers.problem import Settings
from experiments.peers.recorder import Recorder

PACKAGE = "dpsvi"
# Everything that is not named here is at its default.
COMPETITORS = {
    "dpsvi-mean_field": {"local_step": "mean_field"},
    "dpsvi-collapsed": {"local_step": "collapsed"},
    "dpsvi-warm": {"local_step": "collapsed", "warm_documents": True},
    "dpsvi-kept": {"local_step": "collapsed", "keep_responsibilities": True},
}
_PASSES = 1_000_000  # more than time allows
_DOCUMENTS_A_LOOK = 8192  # about 0.1 s on a large corpus


def train(corpus, settings: Settings, recorder: Recorder) -> None:
    """Fit `corpus` until time is up.  It is taken as it is; compiling is a stage of its own."""
    from sklearn.base import clone

    from dpsvi import DPSVILDA

    model = DPSVILDA(
        n_components=settings.topics,
        doc_topic_prior=settings.alpha,
        topic_word_prior=settings.eta,
        engine="threads" if settings.threads > 1 else "serial",
        n_jobs=settings.threads,
        random_state=settings.seed,
        **settings.options,
    )
    with recorder.stage("compile"):
        # More passes than the stochastic ones that come before responsibilities are kept.
        few = corpus.select(slice(0, 1024))
        clone(model).set_params(max_iter=5).fit(few)

    def observe(event):
        # A lost write may leave an entry short of the prior that it includes.
        return recorder(
            event.items / corpus.n_items,
            lambda: event.state.natural()[:, : settings.topics].clip(min=settings.eta),
        )

    model.set_params(
        max_iter=_PASSES,
        evaluate_every=min(1.0, _DOCUMENTS_A_LOOK / corpus.n_items),
        callbacks=[observe],
    )
    recorder.start()
    model.fit(corpus)
