"""The networks of an actor-critic: rectified layers, with logits and a value on top.

The first layers may be convolutions, as in Young and Tian (2019), all others are dense::

    h_0 = observation,    h_l = max(0, h_{l-1} W_l + b_l),    (logits | value) = h_L U^T + c

All parameters are one vector, layer by layer: ``W_l`` as (inputs, outputs), then ``b_l``; at the
end ``U`` as (actions + 1, inputs) and c.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

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
    convolutions : tuple of (int, int, int)
        Filters, the length of their sides, and the cells by which they move, of each layer; they
        stay inside the picture.
    """

    shape: tuple[int, ...]
    hidden: tuple[int, ...]
    n_actions: int
    convolutions: tuple[tuple[int, int, int], ...] = ()

    def check(self) -> None:
        """Raise ValueError or TypeError if there is no such network."""
        for units in self.hidden:
            check_number("units of a hidden layer", units, low=1, integer=True)
        if self.convolutions and len(self.shape) != 3:
            raise ValueError(
                "convolution needs observations of shape (height, width, channels), got "
                f"{self.shape}"
            )
        seen = self.shape
        for filters, size, stride in self.convolutions:
            check_number("filters of the convolution", filters, low=1, integer=True)
            most = min(seen[:2])
            check_number("size of the convolution", size, low=1, high=most, integer=True)
            check_number("stride of the convolution", stride, low=1, integer=True)
            seen = _result(seen, filters, size, stride)

    @property
    def pictures(self) -> list[tuple[int, int, int]]:
        """Rows, columns and channels of what each convolution sees, and of the last result."""
        found = [self.shape] if self.convolutions else []
        for convolution in self.convolutions:
            found.append(_result(found[-1], *convolution))
        return found

    @property
    def widths(self) -> tuple[int, ...]:
        """Units of all layers below the top."""
        return (*[math.prod(picture) for picture in self.pictures[1:]], *self.hidden)

    @property
    def n_inputs(self) -> int:
        """Numbers of an observation."""
        return math.prod(self.shape)

    @property
    def parts(self) -> list[tuple[tuple[int, int], int]]:
        """Shape of the weights, and number of biases, of each layer; those of the top are last."""
        found: list[tuple[tuple[int, int], int]] = []
        for (filters, size, _), seen in zip(self.convolutions, self.pictures, strict=False):
            found.append(((size * size * seen[2], filters), filters))
        width = math.prod(self.pictures[-1]) if self.convolutions else self.n_inputs
        for units in self.hidden:
            found.append(((width, units), units))
            width = units
        return [*found, ((self.n_actions + 1, width), self.n_actions + 1)]

    @property
    def n_parameters(self) -> int:
        """Length of the vector of parameters."""
        return sum(rows * columns + biases for (rows, columns), biases in self.parts)

    @property
    def n_transposed(self) -> int:
        """Most numbers that back-propagation needs for the transposed weights of a layer.

        Convolutions above the first layer need room for a row of patches, too.
        """
        found = [rows * columns for (rows, columns), _ in self.parts[1:-1]]
        for layer in range(1, len(self.convolutions)):
            (patch, filters), _ = self.parts[layer]
            found[layer - 1] = patch * (filters + self.pictures[layer + 1][1])
        return max(found, default=0)

    def numbers(self) -> np.ndarray:
        """The description that the kernels take: float64."""
        described = [
            number
            for convolution, seen in zip(self.convolutions, self.pictures, strict=False)
            for number in (*convolution, *seen)
        ]
        first = [len(self.widths), self.n_inputs, len(self.convolutions)]
        return np.array([*first, *self.widths, self.n_actions, *described], np.float64)

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


def _result(seen, filters, size, stride) -> tuple[int, int, int]:
    """Rows, columns and channels of what a convolution makes of a picture."""
    height, width, _ = seen
    return (height - size) // stride + 1, (width - size) // stride + 1, filters


def as_convolutions(given) -> tuple[tuple[int, int, int], ...]:
    """Convolutions as :class:`Network` has them, of one or several (filters, size[, stride]).

    Raises
    ------
    TypeError, ValueError
        They are none.
    """
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise TypeError(f"convolution must be (filters, size[, stride]) or several, got {given!r}")
    each = [given] if given and not isinstance(given[0], Sequence) else given
    if any(isinstance(one, str) or len(one) not in (2, 3) for one in each):
        raise ValueError(f"convolution must be (filters, size[, stride]) or several, got {given!r}")
    return tuple((*one, 1)[:3] for one in each)


def _orthogonal(rng, shape) -> np.ndarray:
    """Weights whose rows, or columns if these are fewer, are orthogonal and of length 1."""
    drawn = rng.standard_normal(shape)
    # Its threads spin where other processes keep the cores busy, and their number changes bits.
    with _blas().limit(limits=1):
        q, r = np.linalg.qr(drawn if shape[0] >= shape[1] else drawn.T)
    q = q * np.sign(np.diag(r))
    return q if shape[0] >= shape[1] else q.T


@cache
def _blas():
    """What NumPy calls, which it has loaded; to find it takes longer than most factorisations."""
    return ThreadpoolController().select(user_api="blas")
