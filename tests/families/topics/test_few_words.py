"""Documents of few different words: each fills much of its document, and topics are there."""

import numpy as np
import pytest
from reference.lda import TopicCorpus

from dpsvi import DPSVIHDP, DPSVILDA, as_corpus
from dpsvi.evaluation.completion import completion_perplexity

ALPHA = 0.3
MODELS = [
    (DPSVILDA, {"local_step": "collapsed"}),
    (DPSVILDA, {"local_step": "sparse"}),
    (DPSVILDA, {"local_step": "mean_field"}),
    (DPSVILDA, {"keep_responsibilities": True}),
    (DPSVIHDP, {"local_step": "collapsed"}),
]


def share_found(estimator, settings, n_words, n_tokens):
    """How much of what topics explain of new documents a model explains: 0 for word counts."""
    n_topics = 3 if n_words == 10 else 5
    drawn = TopicCorpus(n_topics, n_words, 2500, n_tokens, ALPHA, seed=2)
    train, test = drawn.counts[:2000], as_corpus(drawn.counts[2000:])
    most = {DPSVILDA: n_topics, DPSVIHDP: 15}[estimator]
    model = estimator(most, max_iter=20, random_state=0, **settings).fit(train)
    truth = completion_perplexity(np.ascontiguousarray(drawn.topics.T), test, ALPHA).perplexity
    found = model.evaluate(test)
    gain = np.log(found.unigram_perplexity / found.perplexity)
    return gain / np.log(found.unigram_perplexity / truth)


@pytest.mark.parametrize("n_words, n_tokens", [(10, 30), (30, 60), (30, 500), (200, 20)])
@pytest.mark.parametrize("estimator, settings", MODELS)
def test_topics_of_few_words_are_found(estimator, settings, n_words, n_tokens):
    """New documents are explained nearly as well as by the topics that they were drawn from."""
    assert share_found(estimator, settings, n_words, n_tokens) > 0.6
