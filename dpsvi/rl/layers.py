"""The layers of a network, forwards, compiled.

Rows of ``U`` and columns of ``W`` (:mod:`dpsvi.rl.network`) lie next to each other in memory, so
every loop below adds multiples of short vectors to another.  Inputs of a dense first layer that are
0, as most of a small game's picture is, cost little.
"""

from __future__ import annotations

from dpsvi.kernels.jit import copy, inline_kernel, kernel
from dpsvi.kernels.tiles import add_product
from dpsvi.rl.convolution import NUMBERS, convolve

# Places in the numbers that describe a network; the units of each layer and the number of actions
# follow, then the numbers of each convolution.
LAYERS, INPUTS, CONVOLUTIONS, FIRST = range(4)


@inline_kernel
def sizes(net):
    """Inputs and actions of a network, units of all layers below the top, widest of all layers."""
    n_layers, inputs = int(net[LAYERS]), int(net[INPUTS])
    units, widest = 0, inputs
    for layer in range(n_layers):
        width = int(net[FIRST + layer])
        units += width
        widest = max(widest, width)
    return inputs, int(net[FIRST + n_layers]), units, widest


@inline_kernel
def convolution(net, layer):
    """The numbers that describe a layer that is a convolution."""
    first = FIRST + int(net[LAYERS]) + 1 + layer * NUMBERS
    return net[first : first + NUMBERS]


@kernel
def forward(theta, net, x, hidden, out, n, lo, hi):
    """Logits and values of the observations lo to hi - 1 of n.

    Parameters
    ----------
    theta : float32 array
        All parameters.
    net : float64 array
        What :meth:`Network.numbers` gave.
    x : float32, (n * inputs,)
    hidden : float32, (n * sum of the widths,)
        Result: units, layer by layer; those of a layer are (n, width).
    out : float32, (n * (actions + 1),)
        Result.
    """
    n_layers, inputs = int(net[LAYERS]), int(net[INPUTS])
    source, at, before = x, 0, 0
    for layer in range(n_layers):
        width = int(net[FIRST + layer])
        target = hidden[n * before : n * (before + width)]
        if layer < net[CONVOLUTIONS]:
            at += convolve(theta[at:], convolution(net, layer), source, inputs, target, lo, hi)
        else:
            at = _dense(theta, at, source, target, inputs, width, lo, hi)
        zero = target.dtype.type(0)
        for k in range(lo * width, hi * width):
            target[k] = max(target[k], zero)
        source, inputs = target, width
        before += width
    n_outputs = int(net[FIRST + n_layers]) + 1
    for e in range(lo, hi):
        h = source[e * inputs : (e + 1) * inputs]
        for a in range(n_outputs):
            out[e * n_outputs + a] = theta[at + n_outputs * inputs + a] + _dot(
                theta, at + a * inputs, h
            )


@inline_kernel
def _dot(theta, at, h):
    total = h.dtype.type(0)
    row = theta[at : at + h.shape[0]]
    for k in range(h.shape[0]):
        total += row[k] * h[k]
    return total


@kernel
def _dense(theta, at, x, y, inputs, width, lo, hi):
    """``y = x W + b``; returns where the next layer's parameters begin."""
    bias = theta[at + inputs * width : at + (inputs + 1) * width]
    for e in range(lo, hi):
        copy(bias, y[e * width :])
    w = theta[at : at + inputs * width]
    if at == 0:
        _multiply(x, w, y, inputs, width, lo, hi)
    else:
        x, y = x[lo * inputs : hi * inputs], y[lo * width : hi * width]
        add_product(x, inputs, 1, w, y, hi - lo, width, inputs)
    return at + (inputs + 1) * width


@kernel
def _multiply(x, w, y, inputs, width, lo, hi):
    """``y += x w`` for the rows lo to hi - 1 of x, (n, inputs), much of which is 0, and y.

    Four rows of `w` at a time: they stay in the cache while all rows of `y` take from them, and a
    row of `y` is loaded and stored once for the four.
    """
    whole, zero = inputs - inputs % 4, x.dtype.type(0)
    for i in range(0, whole, 4):
        w0, w1 = w[i * width : (i + 1) * width], w[(i + 1) * width : (i + 2) * width]
        w2, w3 = w[(i + 2) * width : (i + 3) * width], w[(i + 3) * width : (i + 4) * width]
        for e in range(lo, hi):
            first = e * inputs + i
            x0, x1, x2, x3 = x[first], x[first + 1], x[first + 2], x[first + 3]
            if x0 != zero or x1 != zero or x2 != zero or x3 != zero:
                target = y[e * width : (e + 1) * width]
                for k in range(width):
                    target[k] += x0 * w0[k] + x1 * w1[k] + x2 * w2[k] + x3 * w3[k]
    for i in range(whole, inputs):
        row = w[i * width : (i + 1) * width]
        for e in range(lo, hi):
            value = x[e * inputs + i]
            if value != zero:
                target = y[e * width : (e + 1) * width]
                for k in range(width):
                    target[k] += value * row[k]
