"""Documents of few topics, fitted with many more than there are: these must not stay mixtures."""

import numpy as np
import pytest
from reference.lda import TopicCorpus

from dpsvi import DPSVIHDP, DPSVILDA, as_corpus
from dpsvi.evaluation.completion import completion_perplexity


def above_truth(estimator, n_words, **settings):
    """Perplexity of new documents over that of the ten topics that they were drawn from."""
    drawn = TopicCorpus(10, n_words, 3000, 100, alpha=0.1, seed=0)
    train, test = drawn.counts[:2700], as_corpus(drawn.counts[2700:])
    model = estimator(100, max_iter=15, random_state=0, **settings).fit(train)
    truth = completion_perplexity(np.ascontiguousarray(drawn.topics.T), test, 0.1).perplexity
    return model.perplexity(test) / truth


@pytest.mark.parametrize("n_words, most", [(200, 1.1), (500, 1.135)])
@pytest.mark.parametrize("estimator", [DPSVILDA, DPSVIHDP])
def test_ten_times_as_many_topics_as_there_are(estimator, n_words, most):
    assert above_truth(estimator, n_words) < most


def test_sparse_step():
    assert above_truth(DPSVILDA, 500, local_step="sparse") < 1.11
