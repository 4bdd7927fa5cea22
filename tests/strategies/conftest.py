"""A corpus for the dense replays."""

import pytest
from reference.lda import TopicCorpus
from reference.strategies import K


@pytest.fixture(scope="session")
def corpus():
    return TopicCorpus(K, n_words=90, n_documents=200, n_tokens=40, alpha=0.1, seed=1).corpus()
