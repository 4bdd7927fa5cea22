"""How many topics does a corpus have, if nobody says so?

Documents made from twelve topics of very different size.  Two models may use up to forty: LDA with
one and the same prior for all topics spreads over them, the hierarchical Dirichlet process gives
the twelve their sizes and leaves the rest empty.
"""

import numpy as np
from matplotlib.figure import Figure

from dpsvi import DPSVIHDP, DPSVILDA


def picture(small=False):
    """Share of the tokens of every topic, largest first."""
    rng = np.random.default_rng(0)
    sizes = 0.8 ** np.arange(12)
    topics = rng.dirichlet(np.full(600, 0.03), size=12)
    theta = rng.dirichlet(sizes / sizes.sum() * 2.0, size=600 if small else 3000)
    X = rng.poisson(80 * theta @ topics)
    settings = dict(n_components=40, max_iter=3 if small else 30, random_state=0)
    found = {
        "LDA": DPSVILDA(doc_topic_prior=0.1, **settings),
        "HDP": DPSVIHDP(local_step="mean_field", **settings),
    }
    figure = Figure(figsize=(7.5, 4), layout="constrained")
    axes = figure.subplots()
    share = np.sort(theta.mean(axis=0))[::-1]
    axes.step(np.arange(13) + 0.5, [*share, 0], where="post", color="#999999", label="truth")
    answer = {}
    for (name, model), colour in zip(found.items(), ("#D55E00", "#0072B2"), strict=True):
        share = np.sort(model.fit(X).transform(X).mean(axis=0))[::-1]
        axes.plot(np.arange(40) + 1, share, "o-", markersize=3, color=colour, label=name)
        answer[f"topics with more than 0.5 % ({name})"] = int((share > 0.005).sum())
    axes.set(xlabel="topic, largest first", ylabel="share of the tokens", ylim=(0, None))
    axes.legend(frameon=False)
    return figure, answer
