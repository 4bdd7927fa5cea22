"""
How many topics should I ask for?
=================================

Ask the documents that a fit has not seen. ``select_components`` holds some of them out, fits
several numbers of topics, and scores each by how well it predicts the other half of a held-out
document from one half.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpsvi import DPSVILDA, select_components

# %%
# Here the truth is known: 600 documents of about 80 words are made from six topics. With texts of
# your own pass these, or counts.
rng = np.random.default_rng(0)
topics = rng.dirichlet(np.full(400, 0.05), size=6)
shares = rng.dirichlet(np.full(6, 0.3), size=600)
counts = rng.poisson(80 * shares @ topics)

# %%
# Another seed holds out other documents and begins elsewhere, so two of them show which differences
# mean something.
numbers = [1, 2, 3, 4, 5, 6, 7, 8, 12, 16]
perplexity = []
for seed in range(2):
    lda = DPSVILDA(max_iter=20, random_state=seed)
    found = select_components(lda, counts, numbers)
    perplexity.append([np.exp(-found.scores[number]) for number in numbers])

# %%
# Perplexity says among how many words the model still has to guess. It falls as long as a topic is
# missing; after that it hardly changes, since topics that nobody needs cost next to nothing. So
# take the smallest number that is about as good as the best one. Here that is the true number.
figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
axes.axvline(6, color="#bbbbbb", linestyle="--", label="truth")
for scores in perplexity:
    axes.plot(numbers, scores, "o-", color="#1f77b4", markersize=4, alpha=0.7)
axes.set(xlabel="number of topics", ylabel="perplexity of held-out documents", ylim=(0, None))
axes.legend(frameon=False)
plt.show()
