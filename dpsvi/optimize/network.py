"""A network with one hidden layer and a softmax: not convex, dense.

    h_j = act(b_j + sum_d W_jd x_d),    scores_k = c_k + sum_j h_j U_jk
    f_i = ln sum_k exp(scores_k) - scores_{y_i}

A row of the parameters is a hidden unit, ``W_j | b_j | U_j``, and the last row holds ``c`` in its
last columns; the rest of it stays 0.  Biases are not penalised.  An item is the features of a
sample, and its class.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Literal

import numpy as np
from scipy.special import logsumexp, softmax

from dpsvi.errors import check_choice, check_number
from dpsvi.kernels.jit import as_items, copy, inline_kernel
from dpsvi.optimize.classifier import DPSGDClassifier, as_classes
from dpsvi.optimize.dpsgd import DPSGD
from dpsvi.optimize.objective import Objective

ACTIVATIONS = ("tanh", "relu")
_RELU, _CLASSES = 1, 2  # places in hyper
_GROUP = 4  # items of which the gradient is computed together


@inline_kernel
def _activation(relu, total, zero):
    return max(total, zero) if relu else math.tanh(total)


@inline_kernel
def _slope(relu, h, zero, one):
    """Derivative of the activation where it is h."""
    if relu:
        return one if h > zero else zero
    return one - h * h


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.optimize.objective.Objective`.

    Four items at a time: what is read of the parameters, and written of the gradient, is read and
    written once for them.  Where fewer are left the others' derivatives are 0.
    """
    rows, stats, relu = shared.rows, work.stats, hyper[_RELU] > 0
    n_hidden, n_classes = rows.shape[0] - 1, int(hyper[_CLASSES])
    out = rows.shape[1] - n_classes  # where the weights of the classes begin
    bias = out - 1
    s = rows.dtype.type(scale)
    score, more = work.scratch[: _GROUP * n_classes], work.scratch[_GROUP * n_classes :]
    hidden, seen = more[: _GROUP * n_hidden], more[_GROUP * n_hidden :]
    seen[: _GROUP * out] = 0
    for lo in range(0, batch.shape[0], _GROUP):
        size = min(_GROUP, batch.shape[0] - lo)
        for e in range(size):
            first = items.offsets[batch[lo + e]]
            copy(items.value[first : first + bias], seen[e * out :])
            seen[e * out + bias] = 1
        _forward(rows, s, relu, seen, out, size, hidden)
        score[:] = 0
        for e in range(size):
            label = int(items.value[items.offsets[batch[lo + e]] + bias])
            _derive(rows, s, hidden[e:], label, score[e * n_classes : (e + 1) * n_classes], stats)
        _backward(rows, s, relu, seen, out, size, hidden, score, stats)
    unpenalised = rows.dtype.type(hyper[0] * len(batch)) * s
    for j in range(n_hidden):
        stats[j, bias] += unpenalised * rows[j, bias]
    for k in range(n_classes):
        stats[n_hidden, out + k] += unpenalised * rows[n_hidden, out + k]
    for j in range(n_hidden + 1):
        work.touched[j] = j
    return n_hidden + 1


@inline_kernel
def _of_each(numbers, width):
    """The numbers of the four items, so many of each."""
    return (
        numbers[:width], numbers[width : 2 * width], numbers[2 * width : 3 * width],
        numbers[3 * width : 4 * width],
    )  # fmt: skip


@inline_kernel
def _forward(rows, s, relu, seen, out, size, hidden):
    """Hidden units of four items, those of a unit next to each other."""
    zero = rows.dtype.type(0)
    x0, x1, x2, x3 = _of_each(seen, out)
    for j in range(rows.shape[0] - 1):
        row, h = rows[j], hidden[_GROUP * j :]
        a = b = c = d = zero
        if size == 1:
            for i in range(out):
                a += row[i] * x0[i]
        else:
            for i in range(out):
                w = row[i]
                a += w * x0[i]
                b += w * x1[i]
                c += w * x2[i]
                d += w * x3[i]
        h[0], h[1] = _activation(relu, s * a, zero), _activation(relu, s * b, zero)
        h[2], h[3] = _activation(relu, s * c, zero), _activation(relu, s * d, zero)


@inline_kernel
def _backward(rows, s, relu, seen, out, size, hidden, score, stats):
    """Add minus the gradients by the weights of the hidden units, to which `score` is sent back."""
    zero, one = rows.dtype.type(0), rows.dtype.type(1)
    n_classes = rows.shape[1] - out
    x0, x1, x2, x3 = _of_each(seen, out)
    s0, s1, s2, s3 = _of_each(score, n_classes)
    for j in range(rows.shape[0] - 1):
        stat, h, u, v = stats[j], hidden[_GROUP * j :], rows[j, out:], stats[j, out:]
        h0, h1, h2, h3 = h[0], h[1], h[2], h[3]
        a = b = c = d = zero
        for k in range(n_classes):
            a += s0[k] * u[k]
            b += s1[k] * u[k]
            c += s2[k] * u[k]
            d += s3[k] * u[k]
        for k in range(n_classes):
            v[k] -= s0[k] * h0 + s1[k] * h1 + s2[k] * h2 + s3[k] * h3
        a, b = s * a * _slope(relu, h0, zero, one), s * b * _slope(relu, h1, zero, one)
        c, d = s * c * _slope(relu, h2, zero, one), s * d * _slope(relu, h3, zero, one)
        if size == 1:
            for i in range(out):
                stat[i] -= a * x0[i]
        else:
            for i in range(out):
                stat[i] -= a * x0[i] + b * x1[i] + c * x2[i] + d * x3[i]


@inline_kernel
def _derive(rows, s, hidden, label, score, stats):
    """Put into `score` the derivatives of an item's loss by the scores of the classes."""
    n_hidden, n_classes = rows.shape[0] - 1, score.shape[0]
    out = rows.shape[1] - n_classes
    copy(rows[n_hidden, out:], score)
    for j in range(n_hidden):
        h, u = hidden[_GROUP * j], rows[j, out:]
        for k in range(n_classes):
            score[k] += h * u[k]
    most = score[0]
    for k in range(1, n_classes):
        most = max(most, score[k])
    total = score.dtype.type(0)
    for k in range(n_classes):
        score[k] = math.exp(s * (score[k] - most))
        total += score[k]
    for k in range(n_classes):
        score[k] /= total
    score[label] -= 1
    last = stats[n_hidden, out:]
    for k in range(n_classes):
        last[k] -= score[k]


def _scratch(n_hidden, n_classes, longest):
    # An item is its features and its class; the bias takes the place of the class.
    return _GROUP * (n_hidden + n_classes + longest)


def objective(X, y, n_classes: int, n_hidden: int, activation: str = "tanh") -> Objective:
    """Mean loss of the network, compiled.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        float32 stays, all else becomes float64.
    y : int array of shape (n_samples,)
        Classes, 0 to n_classes - 1.
    n_classes, n_hidden : int
    activation : {"tanh", "relu"}, default="tanh"

    Returns
    -------
    Objective
        Of x with shape (n_hidden + 1, n_features + 1 + n_classes); :func:`layers` reads it.
    """
    check_choice("activation", activation, ACTIVATIONS)
    check_number("n_hidden", n_hidden, low=1, integer=True)
    X = np.asarray(X)
    if X.dtype != np.float32:
        X = X.astype(np.float64)
    n, n_features = X.shape
    values = np.column_stack([X, as_classes(y, n, n_classes).astype(X.dtype)])
    items = as_items(np.arange(n + 1) * values.shape[1], [], values.ravel(), X.dtype)
    return Objective(
        f"{activation} network", (n_hidden + 1, n_features + 1 + n_classes), items, local,
        hyper=(float(activation == "relu"), float(n_classes)),
        scratch=partial(_scratch, n_hidden, n_classes),
    )  # fmt: skip


def start(n_features: int, n_classes: int, n_hidden: int, rng, dtype=np.float64) -> np.ndarray:
    """Random first parameters (Glorot and Bengio 2010): uniform weights, biases 0.

    Parameters
    ----------
    n_features, n_classes, n_hidden : int
    rng : numpy.random.Generator or RandomState
    dtype : numpy dtype
    """
    x = np.zeros((n_hidden + 1, n_features + 1 + n_classes), dtype)
    for part, width in ((x[:-1, :n_features], n_features), (x[:-1, n_features + 1 :], n_classes)):
        most = math.sqrt(6 / (n_hidden + width))
        part[...] = rng.uniform(-most, most, part.shape)
    return x


def layers(x, n_classes: int):
    """Weights and biases of the layers, views of x: (W, b, U, c) as in the equations above."""
    out = x.shape[1] - n_classes
    return x[:-1, : out - 1], x[:-1, out - 1], x[:-1, out:], x[-1, out:]


def scores(x, X, n_classes: int, activation: str = "tanh") -> np.ndarray:
    """Scores of the classes, (n_samples, n_classes)."""
    W, b, U, c = layers(x, n_classes)
    hidden = X @ W.T + b
    return (np.tanh(hidden) if activation == "tanh" else np.maximum(hidden, 0)) @ U + c


def mean_loss(x, X, y, n_classes: int, activation: str = "tanh") -> float:
    """Mean loss in nats, without a penalty."""
    found = scores(x, X, n_classes, activation)
    return float(np.mean(logsumexp(found, axis=1) - found[np.arange(len(y)), y]))


class DPSGDMLPClassifier(DPSGDClassifier):
    """A network with one hidden layer, fitted by (asynchronous) stochastic gradient descent.

    Parameters
    ----------
    hidden_layer_size : int, >= 1, default=100
    activation : {"tanh", "relu"}, default="relu"
    alpha : float, >= 0, default=1e-4
        L2 penalty ``alpha / 2 * |weights|^2`` on top of the mean loss; biases have none.
    optimizer : DPSGD or None, default=None
        How to minimise; its `weight_decay` is `alpha`.  None: ``DPSGD(learning_rate=0.1,
        batch_size=8, max_iter=50)``, for features with a deviation of 1 or so.
    {random_state}

    Attributes
    ----------
    {attributes}
    coefs_ : list of ndarray, (n_features, hidden_layer_size) and (hidden_layer_size, n_classes)
    intercepts_ : list of ndarray, (hidden_layer_size,) and (n_classes,)

    Examples
    --------
    >>> import numpy as np
    >>> from dpsvi import DPSGDMLPClassifier
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> y = X[:, 0] * X[:, 1] > 0  # no line tells these apart
    >>> DPSGDMLPClassifier(16, random_state=0).fit(X, y).score(X, y) > 0.95
    True
    """

    coefs_: list[np.ndarray]
    intercepts_: list[np.ndarray]
    _default = DPSGD(learning_rate=0.1, batch_size=8, max_iter=50)

    def __init__(
        self, hidden_layer_size: int = 100, *, activation: Literal["tanh", "relu"] = "relu",
        alpha: float = 1e-4, optimizer: DPSGD | None = None,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
    ) -> None:  # fmt: skip
        self.hidden_layer_size = hidden_layer_size
        self.activation = activation
        self.alpha = alpha
        self.optimizer = optimizer
        self.random_state = random_state

    def _problem(self, X, y, n_classes, rng):
        made = objective(X, y, n_classes, self.hidden_layer_size, self.activation)
        x0 = start(X.shape[1], n_classes, self.hidden_layer_size, rng, X.dtype)
        return made, x0

    def _take(self, x):
        W, b, U, c = layers(x, len(self.classes_))
        self.coefs_, self.intercepts_ = [W.T.copy(), U.copy()], [b.copy(), c.copy()]

    def _scores(self, X):
        (W, U), (b, c) = self.coefs_, self.intercepts_
        hidden = X @ W + b
        return (np.tanh(hidden) if self.activation == "tanh" else np.maximum(hidden, 0)) @ U + c

    def _probabilities(self, found):
        return softmax(found, axis=1)
