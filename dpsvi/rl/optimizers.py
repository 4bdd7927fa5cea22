"""Optimisers of gradients, compiled: they turn a gradient into the direction of a step.

The learning rate is the schedule's.  What they keep is `dpsvi.base.Shared.optimizer`, which all
threads of a worker share without locks, as Mnih et al. (2016) share the statistics of RMSProp.
"""

from __future__ import annotations

import math

from dpsvi.kernels.jit import inline_kernel, kernel

NAMES = ("sgd", "rmsprop", "adam", "sgd_momentum")  # a checkpoint holds the place of a name
# Matrices as large as the parameters; the last one of `rmsprop` and `adam` is for a count of steps.
KEPT = {"sgd": 1, "rmsprop": 2, "adam": 3, "sgd_momentum": 1}
LINEAR = ("sgd", "sgd_momentum")  # steps grow with the gradient
SGD, RMSPROP, ADAM, MOMENTUM = range(4)
# What is kept of weights without gradients decays, until it is subnormal: numbers that have fewer
# digits than others, and with which some processors compute much more slowly.
_TINY = 1e-30


@inline_kernel
def _normal(x, tiny):
    """`x`, or 0 where it is that small; NaN stays."""
    return x - x if abs(x) < tiny else x


@kernel
def direct(kind, gradient, scale, kept, first, second, epsilon):
    """Replace `gradient` by where a step of gradient descent on `scale` times it goes.

    Parameters
    ----------
    kind : int
        Place of the optimiser in `NAMES`.
    gradient : float32, (n,)
    scale : float
        Here, so that a long gradient is read and written once.
    kept : float32, (m * n,)
        What the optimiser keeps, 0 at first; updated.
    first : float, in [0, 1)
        Polyak's momentum of ``sgd`` and ``sgd_momentum``, which differ in this number only; decay
        of the mean gradient of ``adam``.
    second : float, in [0, 1)
        Decay of the mean square of gradients of ``rmsprop`` and ``adam``.
    epsilon : float, > 0
        Added to the root of the mean square; inside of the root by ``rmsprop``.
    """
    n, real = gradient.shape[0], gradient.dtype.type
    s, a, b, e = real(scale), real(first), real(second), real(epsilon)
    rest_a, rest_b, one = real(1.0 - first), real(1.0 - second), real(1.0)
    tiny = real(_TINY)
    mean = kept[:n]
    # RACE: other threads of the worker update what is kept meanwhile; some updates are lost.
    if kind == SGD or kind == MOMENTUM:
        for k in range(n):
            mean[k] = _normal(a * mean[k] + s * gradient[k], tiny)
            gradient[k] = -mean[k]
    elif kind == RMSPROP:
        kept[n] += one
        # As if the mean square had been 1 at first: the first steps are not larger than others.
        e += real(second ** float(kept[n]))
        for k in range(n):
            g = s * gradient[k]
            mean[k] = _normal(b * mean[k] + rest_b * g * g, tiny)
            gradient[k] = -g / math.sqrt(mean[k] + e)
    else:
        squares = kept[n : 2 * n]
        kept[2 * n] += one
        # Exact in float32 to 2^24 steps, where both corrections have long been 1.
        steps = float(kept[2 * n])
        root = real(math.sqrt(1.0 - second**steps))
        rate = root / real(1.0 - first**steps)
        e *= root
        for k in range(n):
            g = s * gradient[k]
            mean[k] = _normal(a * mean[k] + rest_a * g, tiny)
            squares[k] = _normal(b * squares[k] + rest_b * g * g, tiny)
            gradient[k] = -rate * mean[k] / (math.sqrt(squares[k]) + e)
