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
from dpsvi.kernels.jit import as_items
from dpsvi.optimize.classifier import DPSGDClassifier, as_classes
from dpsvi.optimize.dpsgd import DPSGD
from dpsvi.optimize.objective import Objective

ACTIVATIONS = ("tanh", "relu")
_RELU, _CLASSES = 1, 2  # places in hyper


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.optimize.objective.Objective`."""
    rows, stats = shared.rows, work.stats
    n_hidden, n_classes = rows.shape[0] - 1, int(hyper[_CLASSES])
    out = rows.shape[1] - n_classes  # where the weights of the classes begin
    bias = out - 1
    s, zero = rows.dtype.type(scale), rows.dtype.type(0)
    one = rows.dtype.type(1)
    score, hidden = work.scratch[:n_classes], work.scratch[n_classes:]
    for d in batch:
        first = items.offsets[d]
        x = items.value[first : first + bias]
        for k in range(n_classes):
            score[k] = rows[n_hidden, out + k]
        for j in range(n_hidden):
            row = rows[j]
            total = row[bias]
            for i in range(bias):
                total += row[i] * x[i]
            total *= s
            total = max(total, zero) if hyper[_RELU] > 0 else math.tanh(total)
            hidden[j] = total
            for k in range(n_classes):
                score[k] += total * row[out + k]
        most = score[0]
        for k in range(1, n_classes):
            most = max(most, score[k])
        total = zero
        for k in range(n_classes):
            score[k] = math.exp(s * (score[k] - most))
            total += score[k]
        for k in range(n_classes):
            score[k] /= total
        score[int(items.value[first + bias])] -= one
        for k in range(n_classes):
            stats[n_hidden, out + k] -= score[k]
        for j in range(n_hidden):
            row, stat, h = rows[j], stats[j], hidden[j]
            back = zero
            for k in range(n_classes):
                back += score[k] * row[out + k]
                stat[out + k] -= score[k] * h
            back *= s
            if hyper[_RELU] > 0:
                back = back if h > 0 else zero
            else:
                back *= one - h * h
            for i in range(bias):
                stat[i] -= back * x[i]
            stat[bias] -= back
    unpenalised = rows.dtype.type(hyper[0] * len(batch)) * s
    for j in range(n_hidden):
        stats[j, bias] += unpenalised * rows[j, bias]
    for k in range(n_classes):
        stats[n_hidden, out + k] += unpenalised * rows[n_hidden, out + k]
    for j in range(n_hidden + 1):
        work.touched[j] = j
    return n_hidden + 1


def _scratch(n_hidden, n_classes, longest):
    return n_hidden + n_classes


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
