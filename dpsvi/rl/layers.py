"""The layers of a network, forwards and backwards, compiled.

Rows of ``U`` and columns of ``W`` (:mod:`dpsvi.rl.network`) lie next to each other in memory, so
every loop below adds multiples of short vectors to another.  Inputs of the first layer that are 0,
as most of a game's picture is, cost little.
"""

from __future__ import annotations

from dpsvi.kernels.jit import copy, inline_kernel, kernel
from dpsvi.kernels.tiles import add_product

# Places in the numbers that describe a network.
_LAYERS, _INPUTS, _FILTERS, _SIZE, _HEIGHT, _WIDTH, _CHANNELS, _FIRST = range(8)


@inline_kernel
def sizes(net):
    """Inputs and actions of a network, units of all layers below the top, widest of all layers."""
    n_layers, inputs = int(net[_LAYERS]), int(net[_INPUTS])
    units, widest = 0, inputs
    for layer in range(n_layers):
        width = int(net[_FIRST + layer])
        units += width
        widest = max(widest, width)
    return inputs, int(net[_FIRST + n_layers]), units, widest


@inline_kernel
def _picture(net):
    """Of a convolution: filters, their size, columns, channels, rows and columns of its result."""
    filters, size = int(net[_FILTERS]), int(net[_SIZE])
    height, across, channels = int(net[_HEIGHT]), int(net[_WIDTH]), int(net[_CHANNELS])
    return filters, size, across, channels, height - size + 1, across - size + 1


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
    n_layers, inputs = int(net[_LAYERS]), int(net[_INPUTS])
    source, at, before = x, 0, 0
    for layer in range(n_layers):
        width = int(net[_FIRST + layer])
        target = hidden[n * before : n * (before + width)]
        if layer == 0 and net[_FILTERS] > 0:
            at = _convolve(theta, net, source, target, lo, hi)
        else:
            at = _dense(theta, at, source, target, inputs, width, lo, hi)
        zero = target.dtype.type(0)
        for k in range(lo * width, hi * width):
            target[k] = max(target[k], zero)
        source, inputs = target, width
        before += width
    n_outputs = int(net[_FIRST + n_layers]) + 1
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
    whole = inputs - inputs % 4
    for i in range(0, whole, 4):
        w0, w1 = w[i * width : (i + 1) * width], w[(i + 1) * width : (i + 2) * width]
        w2, w3 = w[(i + 2) * width : (i + 3) * width], w[(i + 3) * width : (i + 4) * width]
        for e in range(lo, hi):
            first = e * inputs + i
            x0, x1, x2, x3 = x[first], x[first + 1], x[first + 2], x[first + 3]
            if x0 != 0 or x1 != 0 or x2 != 0 or x3 != 0:
                target = y[e * width : (e + 1) * width]
                for k in range(width):
                    target[k] += x0 * w0[k] + x1 * w1[k] + x2 * w2[k] + x3 * w3[k]
    for i in range(whole, inputs):
        row = w[i * width : (i + 1) * width]
        for e in range(lo, hi):
            value = x[e * inputs + i]
            if value != 0:
                target = y[e * width : (e + 1) * width]
                for k in range(width):
                    target[k] += value * row[k]


@kernel
def _convolve(theta, net, x, y, lo, hi):
    """The same for a convolution, the first layer."""
    filters, size, across, channels, down, right = _picture(net)
    inputs, width = int(net[_INPUTS]), down * right * filters
    weights = size * size * channels * filters
    bias = theta[weights : weights + filters]
    for e in range(lo, hi):
        for cell in range(down * right):
            first = e * width + cell * filters
            copy(bias, y[first:])
        for i in range(inputs):
            value = x[e * inputs + i]
            if value != 0:
                r, c, channel = i // (across * channels), (i // channels) % across, i % channels
                for p in range(max(0, r - down + 1), min(size, r + 1)):
                    for q in range(max(0, c - right + 1), min(size, c + 1)):
                        w = ((p * size + q) * channels + channel) * filters
                        first = e * width + ((r - p) * right + c - q) * filters
                        target, row = y[first : first + filters], theta[w : w + filters]
                        for k in range(filters):
                            target[k] += value * row[k]
    return weights + filters


@kernel
def backward(theta, net, x, hidden, out, n, gradient, above, below, transposed):
    """Add the gradient with respect to all parameters.

    Parameters
    ----------
    theta, net, x, hidden : as in :func:`forward`
    out : float32, (n * (actions + 1),)
        Derivatives of the loss by logits and values.
    gradient : float32, as long as theta
        Result, added to what is there.
    above, below : float32, (n * widest layer,)
        Scratch.
    transposed : float32, (inputs * units of the largest layer above the first,)
        Scratch.
    """
    n_layers = int(net[_LAYERS])
    n_outputs = int(net[_FIRST + n_layers]) + 1
    before, at = 0, theta.shape[0]
    for layer in range(n_layers):
        before += int(net[_FIRST + layer])
    inputs = int(net[_FIRST + n_layers - 1]) if n_layers else int(net[_INPUTS])
    source = hidden[n * (before - inputs) : n * before] if n_layers else x
    at -= n_outputs * (inputs + 1)
    for e in range(n):
        h, d = source[e * inputs : (e + 1) * inputs], above[e * inputs : (e + 1) * inputs]
        d[:] = 0
        for a in range(n_outputs):
            delta = out[e * n_outputs + a]
            row = theta[at + a * inputs : at + (a + 1) * inputs]
            into = gradient[at + a * inputs : at + (a + 1) * inputs]
            for k in range(inputs):
                into[k] += delta * h[k]
                d[k] += delta * row[k]
            gradient[at + n_outputs * inputs + a] += delta
    for below_top in range(n_layers):
        layer = n_layers - 1 - below_top
        width = int(net[_FIRST + layer])
        target = hidden[n * (before - width) : n * before]
        zero = target.dtype.type(0)
        for k in range(n * width):
            above[k] = above[k] if target[k] > 0 else zero
        before -= width
        if layer == 0 and net[_FILTERS] > 0:
            _convolve_back(net, x, above, gradient, n)
            return
        inputs = int(net[_FIRST + layer - 1]) if layer else int(net[_INPUTS])
        source = hidden[n * (before - inputs) : n * before] if layer else x
        at -= (inputs + 1) * width
        into = gradient[at : at + (inputs + 1) * width]
        if layer == 0:
            _dense_back(source, above, inputs, width, n, into)
        else:
            add_product(source, 1, inputs, above, into, inputs, width, n)
            _add_rows(above, into[inputs * width :], n, width)
            _transpose(theta[at : at + inputs * width], inputs, width, transposed)
            below[: n * inputs] = 0
            add_product(above, width, 1, transposed, below, n, inputs, width)
            above, below = below, above


@inline_kernel
def _add_rows(delta, total, n, width):
    """``total += delta.sum(axis=0)``."""
    for e in range(n):
        d = delta[e * width : (e + 1) * width]
        for k in range(width):
            total[k] += d[k]


@kernel
def _dense_back(x, delta, inputs, width, n, gradient):
    """Add the gradient of the first layer: ``x^T delta``, and the sums of `delta` behind it."""
    _add_rows(delta, gradient[inputs * width :], n, width)
    whole = n - n % 4
    for e in range(0, whole, 4):  # four at a time, as in `_multiply`
        d0, d1 = delta[e * width : (e + 1) * width], delta[(e + 1) * width : (e + 2) * width]
        d2, d3 = delta[(e + 2) * width : (e + 3) * width], delta[(e + 3) * width : (e + 4) * width]
        for i in range(inputs):
            first = e * inputs + i
            x0, x1 = x[first], x[first + inputs]
            x2, x3 = x[first + 2 * inputs], x[first + 3 * inputs]
            if x0 != 0 or x1 != 0 or x2 != 0 or x3 != 0:
                into = gradient[i * width : (i + 1) * width]
                for k in range(width):
                    into[k] += x0 * d0[k] + x1 * d1[k] + x2 * d2[k] + x3 * d3[k]
    for e in range(whole, n):
        d = delta[e * width : (e + 1) * width]
        for i in range(inputs):
            value = x[e * inputs + i]
            if value != 0:
                into = gradient[i * width : (i + 1) * width]
                for k in range(width):
                    into[k] += value * d[k]


@inline_kernel
def _transpose(w, rows, columns, out):
    """``out = w^T`` for w of shape (rows, columns)."""
    for i in range(rows):
        for k in range(columns):
            out[k * rows + i] = w[i * columns + k]


@kernel
def _convolve_back(net, x, delta, gradient, n):
    """Gradient of the convolution."""
    filters, size, across, channels, down, right = _picture(net)
    inputs, width = int(net[_INPUTS]), down * right * filters
    weights = size * size * channels * filters
    bias = gradient[weights : weights + filters]
    for e in range(n):
        for cell in range(down * right):
            first = e * width + cell * filters
            d = delta[first : first + filters]
            for k in range(filters):
                bias[k] += d[k]
        for i in range(inputs):
            value = x[e * inputs + i]
            if value != 0:
                r, c, channel = i // (across * channels), (i // channels) % across, i % channels
                for p in range(max(0, r - down + 1), min(size, r + 1)):
                    for q in range(max(0, c - right + 1), min(size, c + 1)):
                        w = ((p * size + q) * channels + channel) * filters
                        first = e * width + ((r - p) * right + c - q) * filters
                        d, into = delta[first : first + filters], gradient[w : w + filters]
                        for k in range(filters):
                            into[k] += value * d[k]
