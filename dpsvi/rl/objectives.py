"""What is learned, compiled: a policy and a value of states, or values of actions.

``"actor_critic"``
    The outputs of the network are logits of the policy and the value of the state.
``"q"``
    n-step Q-learning: the outputs are values of the actions, and the last one is not used.  The
    value of a state is that of its best action, by the parameters that played: there is no copy of
    older ones to look back with (the target network of Mnih et al.).  Each game tries random
    actions with a probability of its own, that of Mnih et al. once they have fallen.

References
----------
V. Mnih et al., Asynchronous methods for deep reinforcement learning, ICML 2016, arXiv:1602.01783,
Alg. S2 and S3.
"""

from __future__ import annotations

import math

from dpsvi.kernels.jit import inline_kernel, kernel
from dpsvi.rl import generator
from dpsvi.rl.layers import forward, sizes

NAMES = ("actor_critic", "q")
ACTOR_CRITIC, Q = range(2)


@inline_kernel
def best(out, first, n_actions):
    """The action with the largest logit or value."""
    found = 0
    for a in range(1, n_actions):
        if out[first + a] > out[first + found]:
            found = a
    return found


@inline_kernel
def exploration(game):
    """Probability of a random action in a game: 0.1, 0.01 or 0.5, of ten games in 4, 3 and 3."""
    if game % 10 == 9 or game % 10 % 3 == 0:
        return 0.1
    return 0.01 if game % 10 % 3 == 1 else 0.5


@inline_kernel
def choose(objective, out, first, n_actions, game, random):
    """An action of the policy with the outputs ``out[first : first + n_actions]``, drawn."""
    if objective == Q:
        if generator.uniform(random) < exploration(game):
            return int(generator.below(random, n_actions))
        return best(out, first, n_actions)
    most = out[first + best(out, first, n_actions)]
    total = 0.0
    for a in range(n_actions):
        total += math.exp(out[first + a] - most)
    left = generator.uniform(random) * total
    for a in range(n_actions):
        left -= math.exp(out[first + a] - most)
        if left < 0:
            return a
    return n_actions - 1


@kernel
def assess(objective, theta, net, x, hidden, out, n, lo, hi):
    """As :func:`dpsvi.rl.layers.forward`; the last output is the value of the state."""
    forward(theta, net, x, hidden, out, n, lo, hi)
    if objective == Q:
        n_actions = sizes(net)[1]
        for first in range(lo * (n_actions + 1), hi * (n_actions + 1), n_actions + 1):
            out[first + n_actions] = out[first + best(out, first, n_actions)]


@kernel
def derive(out, n, n_actions, actions, returns, entropy, value):
    """Replace logits and values by the derivatives of the loss, a mean over n moves.

    -log pi(a) A - entropy H + value (R - V)^2, with A = R - V as a constant.
    """
    n_outputs = n_actions + 1
    share = out.dtype.type(1.0 / n)
    for m in range(n):
        first = m * n_outputs
        critic = out[first + n_actions]
        advantage = returns[m] - critic
        most = out[first + best(out, first, n_actions)]
        total, mean = 0.0, 0.0
        for a in range(n_actions):
            logit = out[first + a] - most
            odds = math.exp(logit)
            total += odds
            mean += odds * logit
        log_total = math.log(total)
        policy_entropy = log_total - mean / total
        for a in range(n_actions):
            log_p = out[first + a] - most - log_total
            p = math.exp(log_p)
            chosen = 1.0 if a == int(actions[m]) else 0.0
            out[first + a] = share * (
                advantage * (p - chosen) + entropy * p * (log_p + policy_entropy)
            )
        out[first + n_actions] = share * 2.0 * value * (critic - returns[m])


@kernel
def derive_q(out, n, n_actions, actions, returns, value):
    """Replace values of actions by the derivatives of the mean of value (R - Q(a))^2."""
    share = out.dtype.type(2.0 * value / n)
    for m in range(n):
        first = m * (n_actions + 1)
        chosen = first + int(actions[m])
        wrong = out[chosen] - returns[m]
        out[first : first + n_actions + 1] = 0
        out[chosen] = share * wrong
