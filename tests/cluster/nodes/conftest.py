"""The documents that master and workers of these tests share."""

import pytest
from reference.lda import TopicCorpus
from tools.node_jobs import K


@pytest.fixture(scope="module")
def corpus():
    return TopicCorpus(K, n_words=90, n_documents=200, n_tokens=40, alpha=0.1, seed=1).corpus()
