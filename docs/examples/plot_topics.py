"""
What are three hundred news articles about?
===========================================

Latent Dirichlet allocation finds topics in texts. Ranked by how likely they are, the words of a
topic are often words that every topic has. *Relevance* (Sievert and Shirley 2014) also asks how
much likelier a word is in this topic than in all texts, and ranks first what is special to it.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpsvi import DPSVILDA
from dpsvi.datasets import load_lee

# %%
# The Lee corpus comes with gensim: 300 articles of 2001 and 2002, counted word by word. A list of
# your own texts can take its place.
corpus = load_lee()
lda = DPSVILDA(8, max_iter=30, random_state=0).fit(corpus)

# %%
# The rows of ``components_``, scaled to sum to 1, are the words of the topics.
topics = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
share = lda.transform(corpus).mean(axis=0)
lift = topics / (share @ topics)
relevance = 0.4 * np.log(topics) + 0.6 * np.log(lift)

# %%
# Each panel is a topic, with its share of the average article, the largest first. The bars say how
# likely the seven most relevant words are in it, the dark part how likely they are in all texts.
figure, panels = plt.subplots(2, 4, figsize=(9, 4.6), layout="constrained")
for panel, k in zip(panels.flat, np.argsort(-share), strict=True):
    top = np.argsort(-relevance[k])[:7]
    panel.barh(range(7), topics[k][top], color="#8fbbda")
    panel.barh(range(7), (share @ topics)[top], color="#1f4e79")
    panel.set_yticks(range(7), [corpus.vocabulary[w] for w in top], fontsize=8)
    panel.invert_yaxis()
    panel.set_xticks([])
    panel.set_title(f"{share[k]:.0%}", fontsize=9)
plt.show()

# %%
# ``lda.report("news.html", texts)`` writes a page with the same ranking, a slider for its weight,
# and the articles that are most about each topic.
