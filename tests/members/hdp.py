"""Hierarchical Dirichlet process."""

from functools import partial

import numpy as np
from reference import laws as known
from scipy import stats

from dpsvi import DPSVIHDP
from members import Member, lda
from members.lda import data, degenerate


def sticks(model):
    """Order and parameters of the sticks, from the tables of the topics."""
    order = np.argsort(-model.tables_, kind="stable")
    tables = model.tables_[order]
    behind = tables.sum() - np.cumsum(tables)
    return order, 1 + tables, model.topic_concentration + behind


def laws(model, data):
    order, a, b = sticks(model)
    weights = stats.beta(a, b)
    return lda.laws(model, data) | {
        "topic_weights": (lambda draws: known.sticks(draws["topic_weights"], order), weights)
    }


def means(model):
    _, a, b = sticks(model)
    within = 1 - np.prod(b / (a + b))  # weight of the topics up to the truncation
    weights = within * model.topic_weights_
    return lda.means(model) | {"topic_weights": (lambda draws: draws["topic_weights"], weights)}


MEMBER = Member(
    estimator=partial(DPSVIHDP, n_components=6, random_state=0, batch_size=32, max_iter=20),
    data=data,
    degenerate=degenerate,
    answer=lambda model, data: model.transform(data["X"]),
    bad=[
        (dict(n_components=0), "n_components must be an integer >= 1"),
        (dict(doc_truncation=0), "doc_truncation must be an integer >= 1, got 0"),
        (dict(doc_truncation=2.5), "doc_truncation must be an integer >= 1, got 2.5"),
        (dict(doc_concentration=0.0), "doc_concentration must be a number > 0, got 0.0"),
        (dict(doc_concentration="learned"), "doc_concentration must be > 0 or 'auto'"),
        (dict(doc_concentration=None), "doc_concentration must be a number > 0, got None"),
        (dict(doc_concentration=float("inf")), "doc_concentration must be a number > 0, got inf"),
        (dict(topic_concentration=-1.0), "topic_concentration must be a number > 0, got -1.0"),
        (dict(topic_concentration="auto"), "topic_concentration must be a number"),
        (dict(topic_word_prior=0), "topic_word_prior must be > 0, 'auto' or None, got 0"),
        (dict(local_step="gibbs"), "local_step must be one of"),
        (
            dict(local_step="mean_field", keep_responsibilities=True),
            "keep_responsibilities needs local_step='collapsed', got 'mean_field'",
        ),
        (dict(restructure=True), "restructure=True needs local_step=.mean_field., got .collapsed."),
        (dict(local_step="mean_field", restructure="birth"), "restructure must be .* got .birth."),
        (dict(max_doc_update_iter=0), "max_doc_update_iter must be an integer >= 1, got 0"),
    ],
    others=dict(n_components=5),
    phases=(
        dict(keep_responsibilities=True), dict(local_step="mean_field", restructure=True),
    ),  # fmt: skip
    laws=laws,
    means=means,
    monotone=False,
)
