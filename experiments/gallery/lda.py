"""What do three hundred news articles talk about?

Ten topics of the Lee corpus (Australian news of 2001-02): the words that a topic makes most likely,
and its share of all tokens.
"""

import numpy as np
from matplotlib.figure import Figure

from dpsvi import DPSVILDA
from dpsvi.datasets import load_lee


def picture(small=False):
    """Top words of all topics."""
    corpus = load_lee()
    lda = DPSVILDA(
        10, keep_responsibilities=True, max_iter=5 if small else 60, batch_size=16,
        validation_size=50, random_state=0,
    ).fit(corpus)  # fmt: skip
    topics = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    share = lda.components_.sum(axis=1) / lda.components_.sum()
    figure = Figure(figsize=(9, 5), layout="constrained")
    figure.get_layout_engine().set(hspace=0.08)  # else a title touches the axes above it
    for axes, k in zip(figure.subplots(2, 5).flat, np.argsort(-share), strict=True):
        top = np.argsort(-topics[k])[:8]
        axes.barh(range(8), topics[k][top], color="#0072B2")
        axes.set_yticks(range(8), [corpus.vocabulary[w] for w in top], fontsize=8)
        axes.invert_yaxis()
        axes.set_xticks([])
        axes.set_title(f"{share[k]:.0%} of tokens", fontsize=9)
    last = lda.history_[-1]
    return figure, {
        "perplexity of held-out articles": last["perplexity"],
        "of word frequencies": last["unigram_perplexity"],
    }
