"""The gradient of a network (:mod:`dpsvi.rl.layers`) by back-propagation, compiled."""

from __future__ import annotations

from dpsvi.kernels.jit import inline_kernel, kernel
from dpsvi.kernels.tiles import add_product
from dpsvi.rl.convolution import add_gradient, send_back
from dpsvi.rl.layers import CONVOLUTIONS, FIRST, INPUTS, LAYERS, convolution


@kernel
def backward(theta, net, x, hidden, out, n, gradient, above, below, transposed):
    """Add the gradient with respect to all parameters.

    Parameters
    ----------
    theta, net, x, hidden : as in :func:`dpsvi.rl.layers.forward`
    out : float32, (n * (actions + 1),)
        Derivatives of the loss by logits and values.
    gradient : float32, as long as theta
        Result, added to what is there.
    above, below : float32, (n * widest layer,)
        Scratch.
    transposed : float32, (as long as :attr:`Network.n_transposed` says,)
        Scratch.
    """
    n_layers = int(net[LAYERS])
    n_outputs = int(net[FIRST + n_layers]) + 1
    before, at = 0, theta.shape[0]
    for layer in range(n_layers):
        before += int(net[FIRST + layer])
    inputs = int(net[FIRST + n_layers - 1]) if n_layers else int(net[INPUTS])
    source = hidden[n * (before - inputs) : n * before] if n_layers else x
    at -= n_outputs * (inputs + 1)
    add_product(out, 1, n_outputs, source, gradient[at:], n_outputs, inputs, n)
    _add_rows(out, gradient[at + n_outputs * inputs :], n, n_outputs)
    above[: n * inputs] = 0
    add_product(out, n_outputs, 1, theta[at:], above, n, inputs, n_outputs)
    for below_top in range(n_layers):
        layer = n_layers - 1 - below_top
        width = int(net[FIRST + layer])
        target = hidden[n * (before - width) : n * before]
        zero = target.dtype.type(0)
        for k in range(n * width):
            above[k] = above[k] if target[k] > 0 else zero
        before -= width
        inputs = int(net[FIRST + layer - 1]) if layer else int(net[INPUTS])
        source = hidden[n * (before - inputs) : n * before] if layer else x
        if layer < net[CONVOLUTIONS]:
            described = convolution(net, layer)
            filters, patch = int(described[0]), int(described[1] * described[1] * described[5])
            at -= (patch + 1) * filters
            add_gradient(described, source, inputs, above, n, gradient[at:])
            if layer > 0:
                _transpose(theta[at : at + patch * filters], patch, filters, transposed)
                patches = transposed[patch * filters :]
                send_back(transposed, described, inputs, above, n, below, patches)
                above, below = below, above
            continue
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
    whole, zero = n - n % 4, x.dtype.type(0)
    for e in range(0, whole, 4):  # a row of the gradient is loaded and stored once for four
        d0, d1 = delta[e * width : (e + 1) * width], delta[(e + 1) * width : (e + 2) * width]
        d2, d3 = delta[(e + 2) * width : (e + 3) * width], delta[(e + 3) * width : (e + 4) * width]
        for i in range(inputs):
            first = e * inputs + i
            x0, x1 = x[first], x[first + inputs]
            x2, x3 = x[first + 2 * inputs], x[first + 3 * inputs]
            if x0 != zero or x1 != zero or x2 != zero or x3 != zero:
                into = gradient[i * width : (i + 1) * width]
                for k in range(width):
                    into[k] += x0 * d0[k] + x1 * d1[k] + x2 * d2[k] + x3 * d3[k]
    for e in range(whole, n):
        d = delta[e * width : (e + 1) * width]
        for i in range(inputs):
            value = x[e * inputs + i]
            if value != zero:
                into = gradient[i * width : (i + 1) * width]
                for k in range(width):
                    into[k] += value * d[k]


@inline_kernel
def _transpose(w, rows, columns, out):
    """``out = w^T`` for w of shape (rows, columns)."""
    for i in range(rows):
        for k in range(columns):
            out[k * rows + i] = w[i * columns + k]
