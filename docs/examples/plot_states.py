"""
In which state was a machine, and when did it change?
=====================================================

A hidden Markov model explains a sequence by states that last for a while. It finds what each state
looks like, and says for each step how likely each state is, even where nothing was measured.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpsvi import DPSVIHMM

# %%
# A made-up pump is idle, runs, or runs with a worn bearing, which shakes more. Each second has two
# numbers, power and vibration, and for a while the sensors are off: ``nan``.
rng = np.random.default_rng(3)
stay = np.array([[0.96, 0.04, 0.0], [0.02, 0.96, 0.02], [0.05, 0.0, 0.95]])
state = [0]
while len(state) < 1200:
    state.append(rng.choice(3, p=stay[state[-1]]))
state = np.array(state)
looks = np.array([[0.2, 0.1], [2.0, 0.5], [2.2, 1.5]])
X = looks[state] + rng.normal(0, [0.5, 0.4], size=(1200, 2))
X[300:325] = np.nan

# %%
# A window cuts one long sequence into pieces that steps of the fit look at.
hmm = DPSVIHMM(3, covariance_type="diag", window=100, max_iter=60, random_state=0).fit(X)
order = np.argsort(hmm.means_[:, 1])  # by vibration: states have no order of their own
likely = hmm.predict_proba(X)[:, order]
print(f"the likeliest state is the true one in {np.mean(likely.argmax(axis=1) == state):.0%}")

# %%
# Below, how likely each state is at each second, and the true state as a line on top. Where the
# sensors are off, the model goes by what was before and after.
shown = slice(150, 550)
figure, (above, below) = plt.subplots(
    2, 1, figsize=(9, 4.4), sharex=True, height_ratios=[3, 2], layout="constrained"
)
seconds = np.arange(1200)[shown]
above.plot(seconds, X[shown], linewidth=0.8)
above.legend(["power", "vibration"], frameon=False, loc="upper right", ncols=2)
above.set(ylabel="measured", ylim=(None, 5))
colours = ["#cccccc", "#009e73", "#d55e00"]
below.stackplot(seconds, likely[shown].T, colors=colours, labels=["idle", "running", "worn"])
for k, colour in enumerate(colours):
    below.plot(seconds, np.where(state[shown] == k, 1.08, np.nan), color=colour, linewidth=5)
below.set(xlabel="second", ylabel="probability", ylim=(0, 1.4), xlim=(150, 549))
below.legend(frameon=False, loc="upper right", ncols=3, fontsize=8)
plt.show()
