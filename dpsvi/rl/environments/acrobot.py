"""Acrobot: two links hang from a joint; torque between them swings the lower end up.

The state is the angle theta1 of the upper link from straight down, the angle theta2 of the lower
link from the upper one, and their speeds.  Both links have length 1 m, mass 1 kg with its centre in
the middle, and moment of inertia 1 kg m^2; with torque tau = -1, 0 or 1 N m and g = 9.8::

    d1      = 3.5 + cos theta2
    d2      = 1.25 + 0.5 cos theta2
    phi2    = 0.5 g sin(theta1 + theta2)
    phi1    = -0.5 theta2' (theta2' + 2 theta1') sin theta2 + 1.5 g sin theta1 + phi2
    theta2" = (tau + phi1 d2 / d1 - 0.5 theta1'^2 sin theta2 - phi2) / (1.25 - d2^2 / d1)
    theta1" = -(d2 theta2" + phi1) / d1

as in the book, where the first paper leaves out the term with theta1'^2.  A move is one Runge-Kutta
step of 0.2 s; speeds are kept within 4 pi and 9 pi.  An episode ends when the lower end is more
than a link's length above the joint; every move before has reward -1.  An observation is cosine and
sine of both angles, and both speeds.

References
----------
R. S. Sutton, Generalization in reinforcement learning: successful examples using sparse coarse
coding, NIPS 1996; R. S. Sutton, A. G. Barto, Reinforcement Learning: An Introduction, 2018.
"""

from __future__ import annotations

import math

from dpsvi.kernels.jit import inline_kernel
from dpsvi.rl.generator import uniform

SHAPE = (6,)
N_ACTIONS = 3
N_STATE = 4
LIMIT = 500

_GRAVITY, _SECONDS = 9.8, 0.2
_FASTEST = 4 * math.pi, 9 * math.pi


@inline_kernel
def reset(state, random):
    """All four numbers between -0.1 and 0.1: it hangs down."""
    for k in range(N_STATE):
        state[k] = 0.2 * uniform(random) - 0.1


@inline_kernel
def _accelerations(theta1, theta2, speed1, speed2, torque):
    """theta1" and theta2"."""
    cos, sin = math.cos(theta2), math.sin(theta2)
    d1, d2 = 3.5 + cos, 1.25 + 0.5 * cos
    phi2 = 0.5 * _GRAVITY * math.sin(theta1 + theta2)
    phi1 = -0.5 * speed2 * (speed2 + 2 * speed1) * sin + 1.5 * _GRAVITY * math.sin(theta1) + phi2
    second = (torque + phi1 * d2 / d1 - 0.5 * speed1 * speed1 * sin - phi2) / (1.25 - d2 * d2 / d1)
    return -(d2 * second + phi1) / d1, second


@inline_kernel
def _slope(a, b, v, w, slope, seconds, torque):
    """Derivative of (a, b, v, w), which first goes along another `slope` for some seconds."""
    a, b = a + seconds * slope[0], b + seconds * slope[1]
    v, w = v + seconds * slope[2], w + seconds * slope[3]
    first, second = _accelerations(a, b, v, w, torque)
    return v, w, first, second


@inline_kernel
def _wrapped(angle):
    """The angle in -pi .. pi."""
    if abs(angle) <= math.pi:
        return angle
    return angle - 2 * math.pi * math.floor((angle + math.pi) / (2 * math.pi))


@inline_kernel
def step(state, action, random):
    """Torque -1 (0), none (1) or 1 (2)."""
    a, b, v, w = state[0], state[1], state[2], state[3]
    torque = action - 1.0
    k1 = _slope(a, b, v, w, (0.0, 0.0, 0.0, 0.0), 0.0, torque)
    k2 = _slope(a, b, v, w, k1, _SECONDS / 2, torque)
    k3 = _slope(a, b, v, w, k2, _SECONDS / 2, torque)
    k4 = _slope(a, b, v, w, k3, _SECONDS, torque)
    for k in range(N_STATE):
        state[k] += _SECONDS / 6 * (k1[k] + 2 * (k2[k] + k3[k]) + k4[k])
    state[0], state[1] = _wrapped(state[0]), _wrapped(state[1])
    for k in range(2):
        state[2 + k] = min(_FASTEST[k], max(-_FASTEST[k], state[2 + k]))
    ended = -math.cos(state[0]) - math.cos(state[0] + state[1]) > 1
    return 0.0 if ended else -1.0, ended


@inline_kernel
def observe(state, observation):
    """Cosine and sine of both angles, and both speeds."""
    for k in range(2):
        observation[2 * k] = math.cos(state[k])
        observation[2 * k + 1] = math.sin(state[k])
        observation[4 + k] = state[2 + k]


def draw(state) -> list[tuple]:
    """Both links, and the height to reach."""
    length = 0.22
    x = 0.5 + length * math.sin(state[0])
    y = 0.5 + length * math.cos(state[0])
    end = (x + length * math.sin(state[0] + state[1]), y + length * math.cos(state[0] + state[1]))
    return [
        ("line", 0.0, 0.5 - length, 1.0, 0.5 - length, 0.004, "#2a9d8f"),
        ("line", 0.5, 0.5, x, y, 0.03, "#335577"),
        ("line", x, y, *end, 0.03, "#cc8844"),
        ("circle", 0.5, 0.5, 0.02, "#222222"),
        ("circle", x, y, 0.02, "#222222"),
    ]
