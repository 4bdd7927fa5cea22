"""CartPole: push a cart to the left or to the right so that the pole on it does not fall.

The state is the cart's position x and speed, the pole's angle theta from upright and its speed
(metres, radians, seconds); so is an observation.  With the force F = +-10 N, the masses of cart
and pole M = 1 and m = 0.1 kg, half the pole's length l = 0.5 m and g = 9.8::

    a       = (F + m l theta'^2 sin theta) / (M + m)
    theta'' = (g sin theta - a cos theta) / (l (4/3 - m cos^2 theta / (M + m)))
    x''     = a - m l theta'' cos theta / (M + m)

and a move is an Euler step of 0.02 s.  Every move has reward 1; an episode ends with the cart
further than 2.4 m from the middle, or the pole further than 12 degrees from upright.

References
----------
A. G. Barto, R. S. Sutton, C. W. Anderson, Neuronlike adaptive elements that can solve difficult
learning control problems, IEEE Transactions on Systems, Man, and Cybernetics 13, 1983.
"""

from __future__ import annotations

import math

from dpsvi.kernels.jit import inline_kernel
from dpsvi.rl.generator import uniform

SHAPE = (4,)
N_ACTIONS = 2
N_STATE = 4
LIMIT = 500

_MASS, _POLE_MASS, _HALF_POLE, _GRAVITY = 1.1, 0.1, 0.5, 9.8  # _MASS: cart and pole
_FORCE, _SECONDS = 10.0, 0.02
_FURTHEST, _STEEPEST = 2.4, math.radians(12)


@inline_kernel
def reset(state, random):
    """All four numbers between -0.05 and 0.05."""
    for k in range(N_STATE):
        state[k] = 0.1 * uniform(random) - 0.05


@inline_kernel
def step(state, action, random):
    """Push to the left (0) or to the right (1)."""
    x, speed, theta, turning = state[0], state[1], state[2], state[3]
    force = _FORCE if action == 1 else -_FORCE
    cos, sin = math.cos(theta), math.sin(theta)
    a = (force + _POLE_MASS * _HALF_POLE * turning * turning * sin) * (1 / _MASS)
    falling = (_GRAVITY * sin - a * cos) / (_HALF_POLE * (4 / 3 - (_POLE_MASS / _MASS) * cos * cos))
    state[0] = x = x + _SECONDS * speed
    state[1] = speed + _SECONDS * (a - (_POLE_MASS * _HALF_POLE / _MASS) * falling * cos)
    state[2] = theta = theta + _SECONDS * turning
    state[3] = turning + _SECONDS * falling
    return 1.0, abs(x) > _FURTHEST or abs(theta) > _STEEPEST


@inline_kernel
def observe(state, observation):
    """The state as it is."""
    for k in range(N_STATE):
        observation[k] = state[k]


def draw(state) -> list[tuple]:
    """The track, the cart and the pole."""
    at = 0.5 + 0.4 * min(1.0, max(-1.0, state[0] / _FURTHEST))
    top = (at + 0.3 * math.sin(state[2]), 0.7 - 0.3 * math.cos(state[2]))
    return [
        ("line", 0.0, 0.75, 1.0, 0.75, 0.005, "#888888"),
        ("rect", at - 0.08, 0.7, 0.16, 0.08, "#335577"),
        ("line", at, 0.7, *top, 0.02, "#cc8844"),
        ("circle", at, 0.7, 0.012, "#222222"),
    ]
