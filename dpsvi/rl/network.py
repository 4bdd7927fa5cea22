"""The networks of an actor-critic: rectified layers, with logits and a value on top.

The first layer may be a convolution, as in Young and Tian (2019), all others are dense::

    h_0 = observation,    h_l = max(0, h_{l-1} W_l + b_l),    (logits | value) = h_L U^T + c

All parameters are one vector, layer by layer: ``W_l`` as (inputs, outputs), then ``b_l``; at the
end ``U`` as (actions + 1, inputs) and c.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpsvi.errors import check_number
from dpsvi.rl.layers import forward


class Network(NamedTuple):
    """The sizes of a network.

    Parameters
    ----------
    shape : tuple of int
        Of an observation: any, or (height, width, channels) before a convolution.
    hidden : tuple of int
        Units of the dense layers; none is a linear model.
    n_actions : int
    convolution : (int, int) or None
        Filters and the length of their sides; they move by one cell and stay inside the picture.
    """

    shape: tuple[int, ...]
    hidden: tuple[int, ...]
    n_actions: int
    convolution: tuple[int, int] | None = None

    def check(self) -> None:
        """Raise ValueError or TypeError if there is no such network."""
        for units in self.hidden:
            check_number("units of a hidden layer", units, low=1, integer=True)
        if self.convolution is None:
            return
        filters, size = self.convolution
        check_number("filters of the convolution", filters, low=1, integer=True)
        if len(self.shape) != 3:
            raise ValueError(
                "convolution needs observations of shape (height, width, channels), got "
                f"{self.shape}"
            )
        check_number("size of the convolution", size, low=1, high=min(self.shape[:2]), integer=True)

    @property
    def widths(self) -> tuple[int, ...]:
        """Units of all layers below the top."""
        if self.convolution is None:
            return tuple(self.hidden)
        filters, size = self.convolution
        height, width, _ = self.shape
        return ((height - size + 1) * (width - size + 1) * filters, *self.hidden)

    @property
    def n_inputs(self) -> int:
        """Numbers of an observation."""
        return math.prod(self.shape)

    @property
    def parts(self) -> list[tuple[tuple[int, int], int]]:
        """Shape of the weights, and number of biases, of each layer; those of the top are last."""
        found, width = [], self.n_inputs
        for layer, units in enumerate(self.widths):
            if layer == 0 and self.convolution is not None:
                filters, size = self.convolution
                found.append(((size * size * self.shape[2], filters), filters))
            else:
                found.append(((width, units), units))
            width = units
        return [*found, ((self.n_actions + 1, width), self.n_actions + 1)]

    @property
    def n_parameters(self) -> int:
        """Length of the vector of parameters."""
        return sum(rows * columns + biases for (rows, columns), biases in self.parts)

    @property
    def largest(self) -> int:
        """Weights of the largest layer above the first and below the top."""
        return max([i * o for i, o in zip(self.widths, self.widths[1:], strict=False)], default=0)

    def numbers(self) -> np.ndarray:
        """The description that the kernels take: float64."""
        filters, size = self.convolution or (0, 0)
        picture = self.shape if self.convolution else (0, 0, 0)
        numbers = [len(self.widths), self.n_inputs, filters, size, *picture]
        return np.array([*numbers, *self.widths, self.n_actions], np.float64)

    def start(self, rng) -> np.ndarray:
        """Random first parameters, float32: orthogonal weights (Saxe et al. 2014), biases 0.

        The logits are all but 0, so that the first policy takes all actions alike.
        """
        pieces = []
        for number, (shape, biases) in enumerate(self.parts):
            top = number == len(self.parts) - 1
            weights = _orthogonal(rng, shape) * (1.0 if top else math.sqrt(2.0))
            if top:
                weights[:-1] *= 0.01
            pieces += [weights.ravel(), np.zeros(biases)]
        return np.concatenate(pieces).astype(np.float32)

    def apply(self, theta: np.ndarray, observation: np.ndarray) -> np.ndarray:
        """Logits and, last, the value of one observation: float32, (n_actions + 1,)."""
        hidden = np.zeros(sum(self.widths), np.float32)
        out = np.zeros(self.n_actions + 1, np.float32)
        x = np.ascontiguousarray(observation, np.float32).reshape(-1)
        forward(theta, self.numbers(), x, hidden, out, 1, 0, 1)
        return out


def _orthogonal(rng, shape) -> np.ndarray:
    """Weights whose rows, or columns if these are fewer, are orthogonal and of length 1."""
    drawn = rng.standard_normal(shape)
    q, r = np.linalg.qr(drawn if shape[0] >= shape[1] else drawn.T)
    q = q * np.sign(np.diag(r))
    return q if shape[0] >= shape[1] else q.T
