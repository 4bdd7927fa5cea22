"""dpsvi's own LDA: one entrant for each kind of local step, with its own and with fixed priors."""

from __future__ import annotations

from experiments.panel.cells import FIXED_ALPHA, FIXED_ETA
from experiments.panel.recorder import Recorder, Topics
from experiments.panel.settings import Settings

PACKAGE = "dpsvi"
# Everything that is not named here is at its default.
_FIXED = {"doc_topic_prior": FIXED_ALPHA, "topic_word_prior": FIXED_ETA}
_MEAN_FIELD, _KEPT = {"local_step": "mean_field"}, {"keep_responsibilities": True}
ENTRANTS = {
    "defaults": {},
    "fixed-pair": _FIXED,
    "mean-field": _MEAN_FIELD,
    "mean-field-fixed-pair": {**_MEAN_FIELD, **_FIXED},
    "kept": _KEPT,
    "kept-fixed-pair": {**_KEPT, **_FIXED},
}
GRID_BATCHES, GRID_DECAYS = (64, 256, 1024), (0.5, 0.7, 0.9)


def grid() -> dict[str, dict]:
    """Settings of plain Robbins-Monro rates, which a `learning_decay` asks for."""
    return {
        f"{prefix}grid-{batch}-{decay}": {
            **step, "batch_size": batch, "learning_decay": decay, "learning_offset": 10.0,
        }
        for prefix, step in (("", {}), ("mean-field-", _MEAN_FIELD))
        for batch in GRID_BATCHES
        for decay in GRID_DECAYS
    }  # fmt: skip


def train(corpus, settings: Settings, recorder: Recorder) -> None:
    """Fit over the passes asked for; a fit that time cuts ends after the pass it is in.

    The whole of ``fit`` counts, but nothing is compiled in it: a small fit comes before.
    """
    from sklearn.base import clone

    from dpsvi import DPSVILDA

    model = DPSVILDA(
        n_components=settings.topics, max_iter=settings.passes, n_jobs=settings.threads,
        random_state=settings.seed, **settings.options,
    )  # fmt: skip
    # More passes than the stochastic ones that come before responsibilities are kept.
    clone(model).set_params(max_iter=5).fit(corpus.select(slice(0, 1024)))
    last = 0.0

    def observe(event):
        nonlocal last
        last = event.epoch
        return recorder.time_is_up() and event.epoch < settings.passes - 1e-6

    model.set_params(callbacks=[observe])
    recorder.start()
    model.fit(corpus)
    recorder.take(
        round(last, 6),
        lambda: Topics(model.components_.T, model.doc_topic_prior_, model.topic_word_prior_),
    )
