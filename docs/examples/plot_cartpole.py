"""
How soon does an agent learn to balance a pole?
===============================================

An actor-critic plays CartPole, a cart that is pushed left or right so that the pole on it stays up.
Each move that it stays up is worth 1, and an episode ends after 500 moves. The game is compiled, so
that a few hundred thousand moves take seconds.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpsvi.rl import ActorCritic

# %%
# Learning is a matter of luck, too, so five agents begin with different seeds. Each learns until
# the mean of 20 episodes reaches 475, where the game counts as solved.
agents = [
    ActorCritic("cartpole", target=475, n_jobs=1, random_state=seed).fit(500_000)
    for seed in range(5)
]

# %%
# Each is then asked to play 100 new episodes.
for seed, agent in enumerate(agents):
    print(f"seed {seed}: {agent.evaluate(100).mean():.0f} in the mean")

# %%
# The score of new episodes while they learned. The dashed line is the target.
figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for agent in agents:
    looks = [(entry["moves"], entry["score"]) for entry in agent.history_]
    axes.plot(*np.transpose(looks), ".-")
axes.axhline(475, color="#888888", linestyle="--")
axes.set(xlabel="moves played", ylabel="mean score of 20 episodes", ylim=(0, 510))
plt.show()
