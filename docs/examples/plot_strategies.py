"""
What would a cluster with two slow machines bring?
==================================================

``engine="simulated"`` answers before you rent one. Every step, message and merge of the algorithm
is really carried out, in the order in which it would happen on the cluster that you describe; only
the time is computed. So all seconds on this page are simulated ones, of an imagined cluster.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpsvi import DPSVILDA, VirtualCluster
from dpsvi.cluster.virtual import TEN_GIGABIT, Timing
from dpsvi.datasets import load_lee

# %%
# 300 news articles, 50 of which are held out; and eight workers, of which two are four times slower
# than the others. ``timing`` says how long a step takes: so many seconds, and so many more for each
# count that it reads. Leave it out to have it measured on your machine.
corpus = load_lee()
machines = dict(network=TEN_GIGABIT, timing=Timing(step=2e-3, value=1e-5))
eight = dict(n_workers=8, stragglers=(0.25, 4.0), **machines)
clusters = {
    "one worker": VirtualCluster(n_workers=1, **machines),
    "decay, the default": VirtualCluster(strategy="decay", **eight),
    "local_sgd, in rounds": VirtualCluster(strategy="local_sgd", **eight),
    "push_sum, no master": VirtualCluster(strategy="push_sum", **eight),
}

# %%
# All make ten passes, and their articles are scored after each.
looks = {}
for name, cluster in clusters.items():
    lda = DPSVILDA(10, engine="simulated", cluster=cluster, validation_size=50, random_state=0)
    history = lda.fit(corpus).history_
    looks[name] = np.array([(entry["seconds"], entry["perplexity"]) for entry in history])
    print("{}: {:.1f} s, perplexity {:.0f}".format(name, *looks[name][-1]))

# %%
# With the default fast workers take over steps of the slow ones, so it is the first to end; in
# rounds all wait for the slowest. Where these two and the single worker end differs as much from
# seed to seed. Without a master each node makes steps of its own, so that the slow ones are late,
# and this fit ends higher: many nodes agree slowly, and ten passes of 250 articles are few.
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for name, points in looks.items():
    axes.plot(*points.T, ".-", label=name)
axes.set(xlabel="seconds of the cluster, simulated", ylabel="perplexity of held-out articles")
axes.legend(frameon=False)
plt.show()
