"""What the page of a topic model shows: words for every relevance, documents, how the fit went.

The relevance of a word w in topic k is ``r log p(w | k) + (1 - r) log p(w | k) / p(w)``: at r = 1
the likeliest words come first, the smaller r is the more those that are rare in other topics.

References
----------
Sievert, Shirley (2014), LDAvis: a method for visualizing and interpreting topics, ACL workshop on
interactive language learning, visualization, and interfaces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dpsvi.corpus import Corpus
from dpsvi.files import io
from dpsvi.files.environment import environment, now
from dpsvi.report import MOST_TOPICS, topic_map
from dpsvi.report.run_files import Metric, Run, Topic

WORDS = 20  # shown of each topic
RELEVANCES = np.linspace(0, 1, 11)  # that a reader can choose
_DOCUMENTS = 2000  # among which examples are looked for
_EXAMPLES = 3  # of each topic
_CHARACTERS = 240  # of a text
_FREQUENT = 12  # words of a document without a text


def shares(components) -> np.ndarray:
    """Share of the tokens of every topic, (K,)."""
    sizes = np.asarray(components, np.float64).sum(axis=1)
    return sizes / sizes.sum()


def ranked_words(components, names: Sequence) -> list[list[tuple]]:
    """The words among which are the WORDS most relevant ones of each topic, for every relevance.

    Parameters
    ----------
    components : array, (n_topics, n_words)
        Dirichlet parameters of the topics.
    names : sequence, (n_words,)

    Returns
    -------
    list of n_topics lists of (name, p(w | k), p(w)), likeliest first
    """
    overall = np.asarray(components, np.float64).sum(axis=0)
    overall /= overall.sum()
    topics = []
    for row in components:
        p = np.asarray(row, np.float64) / row.sum(dtype=np.float64)
        log_p, log_lift = np.log(p), np.log(p / overall)
        n = min(WORDS, len(p))
        found = {
            int(w)
            for r in RELEVANCES
            for w in np.argpartition(r * -log_p - (1 - r) * log_lift, n - 1)[:n]
        }
        order = sorted(found, key=lambda w: (-p[w], w))
        topics.append([(str(names[w]), float(p[w]), float(overall[w])) for w in order])
    return topics


def example_documents(estimator, corpus: Corpus, texts, names) -> list[list[tuple]]:
    """The documents that are most about each topic, of a sample.

    Parameters
    ----------
    estimator : fitted estimator
    corpus : Corpus
    texts : list of str, list of lists of str, or None
        Its texts; without them a document is shown by its most frequent words.
    names : sequence, (n_words,)

    Returns
    -------
    list of n_topics lists of (number of the document, share of the topic, text), largest first
    """
    n = corpus.n_items
    rows = np.unique(np.linspace(0, n - 1, min(n, _DOCUMENTS)).astype(np.int64))
    rows = rows[np.diff(corpus.offsets)[rows] > 0]
    theta = estimator.transform(corpus.select(rows))

    def text(d):
        if texts is not None:
            words = texts[d] if isinstance(texts[d], str) else " ".join(texts[d])
            words = " ".join(words.split())
            return words if len(words) <= _CHARACTERS else words[:_CHARACTERS].rstrip() + "…"
        entries = slice(corpus.offsets[d], corpus.offsets[d + 1])
        order = np.argsort(-corpus.value[entries], kind="stable")[:_FREQUENT]
        return ", ".join(str(names[w]) for w in corpus.index[entries][order])

    return [
        [(int(rows[i]), float(column[i]), text(int(rows[i]))) for i in order]
        for column in theta.T
        for order in [np.argsort(-column, kind="stable")[:_EXAMPLES]]
    ]


def measures(entry: dict, tokens_an_item: float, items_a_second: float) -> Iterator[tuple]:
    """Triples (name, value, split) of an entry of the history."""
    for name in ("perplexity", "log_likelihood", "unigram_perplexity"):
        if name in entry:
            yield name, entry[name], "heldout"
    yield "tokens_per_second", items_a_second * tokens_an_item, "train"


def details(estimator, corpus: Corpus) -> dict:
    """What ``topic_words.json`` of a run folder holds: the corpus, words and examples.

    Parameters
    ----------
    estimator : fitted estimator
    corpus : Corpus
        That of the fit.
    """
    names = names_of(estimator)
    words = ranked_words(estimator.components_, names)
    examples = example_documents(estimator, corpus, None, names)
    return {
        "corpus": corpus_facts(corpus.n_items, corpus.n_features, corpus.n_tokens),
        "topics": [
            {"topic": k, "words": words[k], "documents": examples[k]} for k in range(len(words))
        ],
    }


def names_of(estimator) -> Sequence:
    """The words, or their numbers where no vocabulary is known."""
    return estimator.vocabulary_ or range(estimator.n_features_in_)


def run_of(estimator, name: str, X: Corpus | None, texts, names) -> Run:
    """What the page shows of a fitted estimator, from memory.

    Parameters
    ----------
    estimator : fitted estimator
    name : str
        The title.
    X : Corpus or None
        Documents for examples.
    texts : list or None
        See :func:`example_documents`.
    names : sequence, (n_words,)
    """
    components = estimator.components_
    weights = shares(components)
    words = ranked_words(components, names)
    examples = [[]] * len(words) if X is None else example_documents(estimator, X, texts, names)
    topics = [
        Topic(k, float(weights[k]), [pair[:2] for pair in words[k][:WORDS]], words[k], examples[k])
        for k in np.argsort(-weights, kind="stable").tolist()
    ]
    documents, tokens = estimator._n_seen, float(estimator._word_counts.sum())
    few = len(components) <= MOST_TOPICS
    places = topic_map(components, weights).tolist() if few else []
    return Run(
        name=name,
        config={"model": type(estimator).__name__, **io.plain_params(estimator)},
        env={"date": now(), **environment()},
        metrics=_metrics(estimator.history_, tokens / max(1, documents)),
        topics=topics,
        positions=dict(enumerate(map(tuple, places))),
        notes=[],
        ended=True,
        corpus=corpus_facts(documents, estimator.n_features_in_, tokens),
    )


def corpus_facts(documents: float, words: int, tokens: float) -> dict:
    """The size of the corpus of a fit."""
    return {"documents": int(documents), "words": int(words), "tokens": round(tokens)}


def _metrics(history, tokens_an_item):
    lines, items, seconds = [], 0, 0.0
    for entry in history:
        rate = (entry["items"] - items) / max(1e-9, entry["seconds"] - seconds)
        items, seconds = entry["items"], entry["seconds"]
        at = entry["step"], items, seconds
        lines += [
            Metric(*at, measure, float(value), split, 0)
            for measure, value, split in measures(entry, tokens_an_item, rate)
        ]
    return lines
