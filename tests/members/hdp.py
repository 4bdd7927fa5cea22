"""Hierarchical Dirichlet process."""

from functools import partial

from dpsvi import DPSVIHDP
from members import Member
from members.lda import data, degenerate

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
        (dict(max_doc_update_iter=0), "max_doc_update_iter must be an integer >= 1, got 0"),
    ],
    others=dict(n_components=5),
    monotone=False,
)
