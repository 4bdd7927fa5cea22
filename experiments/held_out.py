"""One split of a corpus for the experiments that need no validation documents."""

from __future__ import annotations

import numpy as np

from dpsvi.corpus import Corpus, load_corpus


def load_split(path, documents: int | None) -> tuple[Corpus, Corpus]:
    """Training documents, at most `documents`, and 1,000 test documents or a tenth.

    The split is seeded with 0, and the test documents do not depend on `documents`.
    """
    corpus = load_corpus(path)
    order = np.random.default_rng(0).permutation(corpus.n_items)
    n_test = min(1000, corpus.n_items // 10)
    test = corpus.select(np.sort(order[:n_test]))
    return corpus.select(np.sort(order[n_test:][:documents])), test
