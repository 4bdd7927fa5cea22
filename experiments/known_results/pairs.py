"""Small adversarial pairs: a generator and a discriminator of points in the plane.

Both are networks with one hidden layer of rectified units.  The first row of the parameters is the
generator, ``W | b | U | c`` from two numbers of noise to a point, the second one the discriminator,
from a point to a score; the rest of its row stays 0.  Each row follows its own loss (Goodfellow et
al. 2014), both at once::

    discriminator:  mean softplus(-score(point)) + mean softplus(score(generated))
    generator:      mean softplus(-score(generated))

So :class:`dpsvi.DPSGD` makes the steps, but there is nothing that both of them minimise.  Each
gradient is divided by the root of a running mean of its squares (RMSprop, with 0.9), which a node
keeps where it is.  Items are points; noise is drawn anew for each batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import expit

from dpsvi.kernels.jit import as_items
from dpsvi.optimize.objective import Objective

HIDDEN, POINTS, BATCH = 64, 4096, 64
WIDTH = 5 * HIDDEN + 2
DEVIATION = 0.1
SAMPLES = 2000  # of a generator, to judge it by


@cache
def modes(form: str) -> np.ndarray:
    """Centres, (n, 2): 8 on a ring of radius 2, or 25 on a grid from -2 to 2."""
    if form == "ring":
        angles = 2 * np.pi * np.arange(8) / 8
        return 2 * np.column_stack([np.cos(angles), np.sin(angles)])
    sides = np.linspace(-2, 2, 5)
    return np.array([(x, y) for x in sides for y in sides])


def points(form: str, rng) -> np.ndarray:
    """As many around each centre, up to one, (POINTS, 2)."""
    centres = modes(form)
    return centres[np.arange(POINTS) % len(centres)] + DEVIATION * rng.normal(size=(POINTS, 2))


def start(rng) -> np.ndarray:
    """First parameters of a pair (Glorot and Bengio 2010), biases 0."""
    x = np.zeros((2, WIDTH))
    for row, outputs in zip(x, (2, 1), strict=True):
        W, _, U, _ = layers(row, outputs)
        for part in (W, U):
            most = np.sqrt(6 / sum(part.shape))
            part[...] = rng.uniform(-most, most, part.shape)
    return x


def layers(row, outputs: int):
    """Weights and biases of both layers, views of a row."""
    W, b, U, c = np.split(row[: (3 + outputs) * HIDDEN + outputs], np.cumsum(
        [2 * HIDDEN, HIDDEN, outputs * HIDDEN]
    ))  # fmt: skip
    return W.reshape(2, HIDDEN), b, U.reshape(HIDDEN, outputs), c


def apply(row, outputs: int, X):
    """Values of the hidden layer, and outputs."""
    W, b, U, c = layers(row, outputs)
    hidden = np.maximum(X @ W + b, 0)
    return hidden, hidden @ U + c


def generated(x, noise) -> np.ndarray:
    """Points that the generator makes of noise, (n, 2)."""
    return apply(x[0], 2, noise)[1]


def gradient(x, real, noise) -> np.ndarray:
    """Gradients of the two losses, each in its own row."""
    found = np.zeros_like(x)
    hidden, fake = apply(x[0], 2, noise)
    both = np.concatenate([real, fake])
    inner, score = apply(x[1], 1, both)
    is_real = np.arange(len(both)) < len(real)
    n = len(real)
    slope = (expit(score[:, 0]) - is_real)[:, None] / n
    _back(found[1], 1, x[1], both, inner, slope)
    # The generator would have its points taken for real ones.
    slope = -expit(-score[n:]) / n
    toward = _back(None, 1, x[1], fake, inner[n:], slope)
    _back(found[0], 2, x[0], noise, hidden, toward)
    return found


def _back(found, outputs, row, X, hidden, slope):
    """Fill in the gradient of a row, unless it is None; returns that of the inputs."""
    W, _, U, _ = layers(row, outputs)
    back = (slope @ U.T) * (hidden > 0)
    if found is not None:
        parts = X.T @ back, back.sum(axis=0), hidden.T @ slope, slope.sum(axis=0)
        for part, value in zip(layers(found, outputs), parts, strict=True):
            part[...] = value
    return back @ W.T


@dataclass(frozen=True)
class _Pair(Objective):
    """One whose optimiser keeps mean squares."""

    def model(self, weight_decay: float):
        return super().model(weight_decay)._replace(optimizer=1)


def objective(real, rng) -> Objective:
    """The steps of pairs on points, with noise from `rng`."""

    def local(shared, scale, hyper, items, batch, work):
        noise, squares = rng.normal(size=(len(batch), 2)), shared.optimizer
        found = gradient(scale * shared.rows, real[batch], noise)
        squares += 0.1 * (found**2 - squares)
        work.stats[:2] = -len(batch) * found / np.sqrt(squares + 1e-8)
        work.touched[:2] = 0, 1
        return 2

    items = as_items(np.arange(len(real) + 1) * 2, [], real.ravel(), real.dtype)
    return _Pair("adversarial pair", (2, WIDTH), items, local, compiled=False)


def judged(samples, form: str) -> tuple[int, float]:
    """Modes that points cover, and the share of points that are near one.

    Near is within three standard deviations of the next centre, as Srivastava et al. (2017) have
    it.  A mode is covered if a quarter as many points are near it as should be.
    """
    apart = np.linalg.norm(samples[:, None] - modes(form), axis=2)
    near = apart.min(axis=1) < 3 * DEVIATION
    counts = np.bincount(apart.argmin(axis=1)[near], minlength=len(modes(form)))
    least = 0.25 * len(samples) / len(modes(form))
    return int(np.sum(counts >= least)), float(near.mean())
