"""HDP topic models beside gensim's and tomotopy's.

One thread each.  The score is the log-likelihood of a token in document completion, in nats.  Every
tool gets the same documents; one evaluator judges E[beta] of its topics, with the tool's own corpus
weights and concentration as the prior of a document's proportions.  The peers' concentrations suit
their own way to explain a document; others are tried on the test documents, and the best is theirs.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import numpy as np

from dpsvi import DPSVIHDP
from dpsvi.evaluation.completion import completion_perplexity
from experiments.family.recorder import point
from experiments.held_out import load_split

SECONDS, QUICK_SECONDS = 60.0, 10.0
CONCENTRATIONS = 0.5, 1.0, 2.0, 5.0, 10.0
TRUNCATION = 150  # gensim's default
# Its defaults leave 5 to 18 topics on nyt; these did better in a short run.
TOMOTOPY = {"initial_k": 100, "alpha": 1.0, "gamma": 1.0, "eta": 0.05}


def bags(corpus):
    """The documents as gensim has them."""
    offsets, index, value = corpus.offsets, corpus.index.tolist(), corpus.value.astype(int).tolist()
    return [
        list(zip(index[a:b], value[a:b], strict=True))
        for a, b in zip(offsets[:-1], offsets[1:], strict=True)
    ]


def with_dpsvi(train, seed, seconds, local_step):
    """Our model; passes until more do not pay, or the time is over."""
    DPSVIHDP(TRUNCATION, local_step=local_step, max_iter=1).fit(train.select(slice(0, 64)))
    started = time.perf_counter()
    model = DPSVIHDP(
        TRUNCATION, local_step=local_step, max_iter="auto", random_state=seed,
        callbacks=[lambda event: event.seconds > seconds],
    ).fit(train)  # fmt: skip
    taken = time.perf_counter() - started
    topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
    settings = f"{local_step}, {model.n_iter_} passes, {model.n_topics_active_} topics"
    prior = model.topic_weights_, [model.doc_concentration_]
    return topics.T, *prior, taken, settings


def with_gensim(train, seed, seconds):
    """Online VI of Wang, Paisley, Blei (2011); goes over the documents until the time is over."""
    from gensim.models import HdpModel

    words = {i: str(i) for i in range(train.n_features)}
    documents, started = bags(train), time.perf_counter()
    model = HdpModel(
        documents, words, max_time=seconds, T=TRUNCATION, random_state=seed, outputdir=None
    )
    model.update_expectations()
    taken = time.perf_counter() - started
    alpha, beta = model.hdp_to_lda()
    settings = f"T = {TRUNCATION}, {model.m_num_docs_processed:,} documents"
    weights = np.maximum(alpha / alpha.sum(), 1e-8)
    return beta.T, weights, [alpha.sum(), *CONCENTRATIONS], taken, settings


def with_tomotopy(train, seed, seconds, **options):
    """Gibbs sampling; a topic's weight is the number of documents that have it."""
    import tomotopy

    model = tomotopy.HDPModel(seed=seed, **options)
    if options:
        model.optim_interval = 0  # it makes alpha so small that few topics are left
    for bag in bags(train):
        if bag:
            model.add_doc([str(word) for word, count in bag for _ in range(count)])
    started, iterations = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        model.train(5, workers=1)
        iterations += 5
    taken = time.perf_counter() - started
    live = [k for k in range(model.k) if model.is_live_topic(k)]
    place = np.array([int(word) for word in model.used_vocabs])
    seen = np.array([model.get_topic_word_dist(k) for k in live], np.float64)
    topics = np.empty((train.n_features, len(live)))
    topics[:] = seen.min(axis=1)  # words without any count in the training documents
    topics[place] = seen.T
    tables = np.zeros(model.k)
    for document in model.docs:
        tables[np.unique(document.topics)] += 1
    weights = np.maximum(tables[live], 1e-3) / tables[live].sum()
    chosen = "better settings" if options else "defaults"
    settings = f"{chosen}, {iterations} iterations, {len(live)} topics"
    topics /= topics.sum(axis=0)
    return topics, weights, [model.alpha, *CONCENTRATIONS], taken, settings


TOOLS = (
    ("dpsvi", partial(with_dpsvi, local_step="collapsed")),
    ("dpsvi", partial(with_dpsvi, local_step="mean_field")),
    ("gensim", with_gensim),
    ("tomotopy", with_tomotopy),
    ("tomotopy", partial(with_tomotopy, **TOMOTOPY)),
)


def run(seed: int, quick: bool, corpus=None) -> list[dict]:
    """One point a tool, after the same time of training."""
    if corpus is None:
        return []
    train, test = load_split(corpus, 2000 if quick else None)
    counts = np.bincount(train.index, train.value, train.n_features)
    problem = f"{Path(corpus).name}, {train.n_items:,} documents"
    rows = []
    for tool, fit in TOOLS:
        seconds = QUICK_SECONDS if quick else SECONDS
        topics, weights, concentrations, taken, settings = fit(train, seed, seconds)
        score = max(
            completion_perplexity(topics, test, c * weights, word_counts=counts).log_likelihood
            for c in concentrations
        )
        rows.append(point(problem, tool, settings, taken, score))
    return rows
