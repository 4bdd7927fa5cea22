"""
How does a model follow a stream that changes?
==============================================

``partial_fit`` learns from data as they come, each once. A model that believes the past as much
as the present grows ever surer of a mean that is no longer true. With ``forgetting=500`` a point
counts 1/e after 500 others have come, so that the model follows, and stays open to change.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpsvi import DPSVIGaussianMixture

# %%
# A sensor is read 40 times a day for 100 days. Its level drifts, and jumps when it is knocked.
rng = np.random.default_rng(0)
days = np.arange(100)
level = np.sin(days / 12) + 2.0 * (days >= 60)
stream = level[:, None] + rng.normal(0, 0.7, size=(100, 40))

# %%
# One component is a normal distribution whose mean is to be learned. After each day we ask each
# model for the interval in which it believes the mean to be, with 95 per cent.
intervals = {}
for memory in (None, 500, 100):
    model = DPSVIGaussianMixture(1, batch_size=20, forgetting=memory, random_state=0)
    intervals[memory] = np.array([
        model.partial_fit(readings[:, None]).credible_intervals(0.95)["means"].ravel()
        for readings in stream
    ])

# %%
# Without forgetting the model lags behind and is sure of itself. A memory of 500 readings, some 12
# days, is still long for this stream. One of 100 follows, with a wider interval, and needs a few
# days after the jump.
figure, panels = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True, layout="constrained")
for panel, (memory, ends) in zip(panels, intervals.items(), strict=True):
    panel.scatter(np.repeat(days, 40), stream, s=1, color="#cccccc")
    panel.plot(days, level, color="black", linewidth=1, label="true level")
    panel.fill_between(days, *ends.T, color="#d55e00", alpha=0.8, label="95 % interval")
    panel.set(title=f"forgetting={memory}", xlabel="day")
panels[0].set_ylabel("reading")
panels[0].legend(loc="upper left", frameon=False)
plt.show()
