"""MountainCar: a car too weak for the hill must swing up between two of them.

The state is the position x and the speed v; so is an observation.  A move with the push
a = -1, 0 or 1 is ::

    v <- v + 0.001 a - 0.0025 cos(3 x),    |v| <= 0.07
    x <- x + v,                            -1.2 <= x <= 0.6

and the wall on the left stops the car.  Every move has reward -1; an episode ends at x = 0.5.

References
----------
A. W. Moore, Efficient memory-based learning for robot control, University of Cambridge, 1990.
"""

from __future__ import annotations

import math

from dpsvi.kernels.jit import inline_kernel
from dpsvi.rl.generator import uniform

SHAPE = (2,)
N_ACTIONS = 3
N_STATE = 2
LIMIT = 200

_LEFT, _RIGHT, _GOAL, _FASTEST = -1.2, 0.6, 0.5, 0.07
_PUSH, _SLOPE = 0.001, 0.0025


@inline_kernel
def reset(state, random):
    """Near the bottom of the valley, between -0.6 and -0.4, at rest."""
    state[0] = -0.6 + 0.2 * uniform(random)
    state[1] = 0


@inline_kernel
def step(state, action, random):
    """Push to the left (0), not at all (1) or to the right (2)."""
    x, speed = state[0], state[1]
    speed += (action - 1) * _PUSH - _SLOPE * math.cos(3 * x)
    speed = min(_FASTEST, max(-_FASTEST, speed))
    x = min(_RIGHT, max(_LEFT, x + speed))
    if x == _LEFT and speed < 0:
        speed = 0.0
    state[0], state[1] = x, speed
    return -1.0, x >= _GOAL and speed >= 0


@inline_kernel
def observe(state, observation):
    """The state as it is."""
    observation[0] = state[0]
    observation[1] = state[1]


def _place(x):
    """Where position x is in the picture."""
    return (x - _LEFT) / (_RIGHT - _LEFT), 0.6 - 0.3 * math.sin(3 * x)


def draw(state) -> list[tuple]:
    """The hills, the goal and the car."""
    n = 40
    hills = [_place(_LEFT + (_RIGHT - _LEFT) * k / n) for k in range(n + 1)]
    goal, top = _place(_GOAL)
    x, y = _place(state[0])
    return [
        *(("line", *hills[k], *hills[k + 1], 0.006, "#888888") for k in range(n)),
        ("line", goal, top, goal, top - 0.12, 0.008, "#2a9d8f"),
        ("circle", min(0.97, max(0.03, x)), y - 0.03, 0.03, "#335577"),
    ]
