"""Logistic regression on sparse features: a row of x is a feature or, the last, the bias.

Columns are classes:

    scores_k = c b_k + sum_w x_w W_wk,      v = (W; b), (n_features + 1, n_classes)
    multinomial:  f_i = ln sum_k exp(scores_k) - scores_{y_i}
    ovr:          f_i = sum_k ln(1 + exp(scores_k)) - scores_{y_i},  one classifier for each class

A step reads and changes the rows of its items' features only, and the bias, which is not
penalised: it is that of a feature which is c for all items.  An item's last value is its class, at
the row of the bias.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Literal

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit, logsumexp, softmax

from dpsvi.errors import check_choice, check_number
from dpsvi.kernels.jit import as_items
from dpsvi.optimize.classifier import DPSGDClassifier, as_classes
from dpsvi.optimize.dpsgd import DPSGD
from dpsvi.optimize.objective import Objective

LOSSES = ("multinomial", "ovr")
_OVR, _CONSTANT = 1, 2  # places in hyper


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.optimize.objective.Objective`."""
    rows, stats, score = shared.rows, work.stats, work.scratch
    n_columns, bias = rows.shape[1], rows.shape[0] - 1
    one = rows.dtype.type(1)
    s = rows.dtype.type(scale)
    constant = rows.dtype.type(hyper[_CONSTANT])
    work.touched[0] = bias
    n = 1
    for d in batch:
        first, last = items.offsets[d], items.offsets[d + 1] - 1
        for k in range(n_columns):
            score[k] = constant * rows[bias, k]
        for j in range(first, last):
            x, row = items.value[j], rows[items.index[j]]
            for k in range(n_columns):
                score[k] += x * row[k]
        # Scores become the gradient by the scores: probabilities, less 1 for the true class.
        if hyper[_OVR] > 0:
            for k in range(n_columns):
                score[k] = one / (one + math.exp(-s * score[k]))
        else:
            most = score[0]
            for k in range(1, n_columns):
                most = max(most, score[k])
            total = rows.dtype.type(0)
            for k in range(n_columns):
                score[k] = math.exp(s * (score[k] - most))
                total += score[k]
            for k in range(n_columns):
                score[k] /= total
        score[int(items.value[last])] -= one
        for k in range(n_columns):
            stats[0, k] -= constant * score[k]
        for j in range(first, last):
            w = items.index[j]
            if work.slot[w] < 0:
                work.slot[w] = n
                work.touched[n] = w
                n += 1
            x, stat = items.value[j], stats[work.slot[w]]
            for k in range(n_columns):
                stat[k] -= x * score[k]
    unpenalised = rows.dtype.type(hyper[0] * len(batch)) * s
    for k in range(n_columns):
        stats[0, k] += unpenalised * rows[bias, k]
    for i in range(1, n):
        work.slot[work.touched[i]] = -1
    return n


def _scratch(n_classes, longest):
    return n_classes


def objective(
    X, y, n_classes: int, loss: str = "multinomial", intercept_scaling: float = 1.0
) -> Objective:
    """Mean loss of logistic regression, compiled.

    Parameters
    ----------
    X : sparse matrix or array-like of shape (n_samples, n_features)
        Features; float32 stays, all else becomes float64.
    y : int array of shape (n_samples,)
        Classes, 0 to n_classes - 1.
    n_classes : int
    loss : {"multinomial", "ovr"}, default="multinomial"
        ``"ovr"`` is what scikit-learn's ``SGDClassifier(loss="log_loss")`` minimises.
    intercept_scaling : float, > 0, default=1.0
        c.  The bias learns at c^2 times the rate of a feature that is always 1: below 1 where
        features are rare and small, so that the rate which suits them is too large for a bias.

    Returns
    -------
    Objective
        Of x with shape (n_features + 1, n_classes), the last row of which is the bias / c.
    """
    check_choice("loss", loss, LOSSES)
    check_number("intercept_scaling", intercept_scaling, low=0, open_low=True)
    X = csr_array(X)
    if X.dtype != np.float32:
        X = X.astype(np.float64)
    y = as_classes(y, X.shape[0], n_classes)
    bias, ends = X.shape[1], X.indptr[1:]
    items = as_items(
        X.indptr + np.arange(X.shape[0] + 1), np.insert(X.indices, ends, bias),
        np.insert(X.data, ends, y), X.dtype,
    )  # fmt: skip
    return Objective(
        f"{loss} logistic regression", (bias + 1, n_classes), items, local,
        hyper=(float(loss == "ovr"), float(intercept_scaling)),
        scratch=partial(_scratch, n_classes), common_rows=1,
    )  # fmt: skip


def scores(x, X, intercept_scaling: float = 1.0) -> np.ndarray:
    """Scores of the classes, (n_samples, n_classes)."""
    return X @ x[:-1] + intercept_scaling * x[-1]


def mean_loss(x, X, y, loss: str = "multinomial", intercept_scaling: float = 1.0) -> float:
    """Mean loss in nats, without a penalty; see :func:`objective`."""
    found = scores(x, X, intercept_scaling)
    true = found[np.arange(len(y)), y]
    if loss == "ovr":
        return float(np.mean(np.logaddexp(0, found).sum(axis=1) - true))
    return float(np.mean(logsumexp(found, axis=1) - true))


class DPSGDLogisticRegression(DPSGDClassifier):
    """Logistic regression by (asynchronous) stochastic gradient descent.

    Parameters
    ----------
    alpha : float, >= 0, default=1e-4
        L2 penalty ``alpha / 2 * sum(coef_ ** 2)`` on top of the mean loss, as that of
        scikit-learn's ``SGDClassifier``; the intercept has none.
    loss : {"multinomial", "ovr"}, default="multinomial"
        One softmax over all classes, or one classifier for each class against the rest.
    intercept_scaling : float, > 0, default=1.0
        The intercept is the weight of a feature that is always this number; below 1 it learns
        more slowly than the others, which helps where features are rare and small.
    optimizer : DPSGD or None, default=None
        How to minimise; its `weight_decay` is `alpha`.  None: ``DPSGD(learning_rate=1.0,
        learning_decay=0.5, learning_offset=1000.0, batch_size=8)``, for rows of length 1 or so.
    {random_state}

    Attributes
    ----------
    {attributes}
    coef_ : ndarray of shape (n_classes, n_features)
    intercept_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> import numpy as np
    >>> from dpsvi import DPSGDLogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> y = X[:, 0] > X[:, 1]
    >>> DPSGDLogisticRegression(random_state=0).fit(X, y).score(X, y) > 0.98
    True
    """

    coef_: np.ndarray
    intercept_: np.ndarray
    _default = DPSGD(learning_rate=1.0, learning_decay=0.5, learning_offset=1000.0, batch_size=8)
    _sparse = "csr"

    def __init__(
        self, *, alpha: float = 1e-4, loss: Literal["multinomial", "ovr"] = "multinomial",
        intercept_scaling: float = 1.0, optimizer: DPSGD | None = None,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
    ) -> None:  # fmt: skip
        self.alpha = alpha
        self.loss = loss
        self.intercept_scaling = intercept_scaling
        self.optimizer = optimizer
        self.random_state = random_state

    def _problem(self, X, y, n_classes, rng):
        made = objective(X, y, n_classes, self.loss, self.intercept_scaling)
        return made, np.zeros(made.shape, made.items.value.dtype)

    def _take(self, x):
        self.coef_ = x[:-1].T.copy()
        self.intercept_ = x.dtype.type(self.intercept_scaling) * x[-1]

    def _scores(self, X):
        return X @ self.coef_.T + self.intercept_

    def _probabilities(self, found):
        if self.loss == "multinomial":
            return softmax(found, axis=1)
        each = expit(found)
        return each / each.sum(axis=1, keepdims=True)
