"""Convolutions, forwards and backwards, compiled.

A picture is (height, width, channels), so the part of a row that a filter sees is contiguous: a row
of results takes one product of small matrices (:mod:`dpsvi.kernels.tiles`) for each row of the
filters, and no patch is copied.  Filters move by `stride` cells and stay inside the picture.
"""

from __future__ import annotations

from dpsvi.kernels.jit import copy, inline_kernel, kernel
from dpsvi.kernels.tiles import add_product

NUMBERS = 6  # that describe a convolution, see :func:`picture`


@inline_kernel
def picture(described):
    """What a convolution is, from (filters, size, stride, height, width, channels) of its input.

    Filters, their size and stride, columns and channels of the input, rows and columns of the
    result.
    """
    filters, size, stride = int(described[0]), int(described[1]), int(described[2])
    height, across, channels = int(described[3]), int(described[4]), int(described[5])
    down, right = (height - size) // stride + 1, (across - size) // stride + 1
    return filters, size, stride, across, channels, down, right


@kernel
def convolve(theta, described, x, inputs, y, lo, hi):
    """Results for the pictures lo to hi - 1; returns how many parameters the convolution has.

    Parameters
    ----------
    theta : float32 array
        Weights, (size, size, channels, filters), and biases at its beginning.
    described : float64 array
        As :func:`picture` takes it.
    x : float32, (n * inputs,)
    y : float32, (n * rows * columns * filters,)
        Result.
    """
    filters, size, stride, across, channels, down, right = picture(described)
    line, seen, width = across * channels, size * channels, down * right * filters
    weights = size * seen * filters
    bias = theta[weights : weights + filters]
    for e in range(lo, hi):
        for cell in range(down * right):
            copy(bias, y[e * width + cell * filters :])
        for r in range(down):
            into = y[e * width + r * right * filters : e * width + (r + 1) * right * filters]
            for p in range(size):
                source = x[e * inputs + (r * stride + p) * line : (e + 1) * inputs]
                w = theta[p * seen * filters : (p + 1) * seen * filters]
                add_product(source, stride * channels, 1, w, into, right, filters, seen)
    return weights + filters


@kernel
def add_gradient(described, x, inputs, delta, n, gradient):
    """Add the gradient by weights and biases.

    Parameters
    ----------
    described, x, inputs : as in :func:`convolve`
    delta : float32, (n * rows * columns * filters,)
        Derivatives of the loss by the results.
    gradient : float32 array
        Begins with that of this layer.
    """
    filters, size, stride, across, channels, down, right = picture(described)
    line, seen, width = across * channels, size * channels, down * right * filters
    weights = size * seen * filters
    bias = gradient[weights : weights + filters]
    for e in range(n):
        for cell in range(down * right):
            first = e * width + cell * filters
            d = delta[first : first + filters]
            for k in range(filters):
                bias[k] += d[k]
        for r in range(down):
            d = delta[e * width + r * right * filters : e * width + (r + 1) * right * filters]
            for p in range(size):
                source = x[e * inputs + (r * stride + p) * line : (e + 1) * inputs]
                into = gradient[p * seen * filters : (p + 1) * seen * filters]
                add_product(source, 1, stride * channels, d, into, seen, filters, right)


@kernel
def send_back(transposed, described, inputs, delta, n, below, patches):
    """Derivatives of the loss by what the convolution has seen.

    Parameters
    ----------
    transposed : float32 array
        Weights as (filters, size * size * channels).
    described, inputs, delta : as in :func:`add_gradient`
    below : float32, (n * inputs,)
        Result.
    patches : float32, (columns * size * size * channels,)
        Scratch.
    """
    filters, size, stride, across, channels, down, right = picture(described)
    line, seen, width = across * channels, size * channels, down * right * filters
    patch = size * seen
    below[: n * inputs] = 0
    for e in range(n):
        for r in range(down):
            d = delta[e * width + r * right * filters : e * width + (r + 1) * right * filters]
            patches[: right * patch] = 0
            add_product(d, filters, 1, transposed, patches, right, patch, filters)
            for c in range(right):
                for p in range(size):
                    first = e * inputs + (r * stride + p) * line + c * stride * channels
                    into = below[first : first + seen]
                    source = patches[c * patch + p * seen : c * patch + (p + 1) * seen]
                    for k in range(seen):
                        into[k] += source[k]
