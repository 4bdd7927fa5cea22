"""The face of models of users and items: ratings in, user factors, predictions and lists out.

The engine's items are users, its data their ratings; rows of the parameter matrix are the items
that are rated.  A subclass says how a user's factors follow from ratings.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from dpsvi.base import Items
from dpsvi.errors import check_number
from dpsvi.estimators.arrays import ArrayEstimator
from dpsvi.estimators.scikit_learn import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from dpsvi.files import io
from dpsvi.kernels import jit
from dpsvi.kernels.jit import kernel

_SCORES_AT_ONCE = 1 << 22  # (user, item) pairs whose scores are in memory at a time


class Recommender(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ArrayEstimator):
    """Base of matrix factorisations.

    A subclass defines, besides what :class:`~dpsvi.estimators.arrays.ArrayEstimator` wants,

    * ``_ratings(X, reset) -> csr_array``: validated ratings, users x items, what is not stored
      having not been rated or counted;
    * ``_users(state, items) -> array``: factors of these users, (n_users, K);
    * ``_split(ratings) -> (first, second)``: ratings of the same users, to infer from and to
      predict;
    * ``_log_likelihood(state, first, second) -> float``: of all that is predicted, in nats;
    * ``components_``, the item factors, (K, n_items), and ``_offset``, what is added to products.
    """

    components_: np.ndarray
    _offset = 0.0

    def _check_read(self, model) -> None:
        io.check_equal("n_features", self.n_features_in_, model.shape[0] - 1)

    def _read(self, X, y=None, *, reset):
        return as_items(self._ratings(X, reset))

    @property
    def _n_features_out(self):
        return len(self.components_)

    def transform(self, X: Any) -> np.ndarray:
        """Expected factors of users, who need not have been there when the model was fitted.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_users, n_features_in_)
            Their ratings, as in `fit`.

        Returns
        -------
        ndarray of shape (n_users, n_components)

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIPoissonFactorization
        >>> X = np.kron(np.eye(2, dtype=int), np.ones((20, 6), dtype=int))  # two kinds of users
        >>> X[0, 5] = 0
        >>> model = DPSVIPoissonFactorization(n_components=2, random_state=0).fit(X)
        >>> model.transform(X[:3]).shape
        (3, 2)
        """
        check_is_fitted(self, "_state")
        items = self._read(X, reset=False)
        return self._users(self._state, items).astype(self._dtype, copy=False)

    def predict_ratings(
        self, X: Any, users: ArrayLike | None = None, items: ArrayLike | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Expected ratings (what scikit-learn calls `predict` gives one number a row).

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_users, n_features_in_)
            Ratings of the users, as in `fit`.
        users, items : int arrays of shape (n,), or None
            Rows and columns of X, pairs of which to predict.  None: all pairs.

        Returns
        -------
        ndarray of shape (n,), or (n_users, n_features_in_)

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIPoissonFactorization
        >>> X = np.kron(np.eye(2, dtype=int), np.ones((20, 6), dtype=int))  # two kinds of users
        >>> X[0, 5] = 0
        >>> model = DPSVIPoissonFactorization(n_components=2, random_state=0).fit(X)
        >>> rates = model.predict_ratings(X[:1])[0]
        >>> bool(rates[:6].min() > 5 * rates[6:].max())
        True
        """
        factors = self.transform(X)
        if users is None and items is None:
            return factors @ self.components_ + factors.dtype.type(self._offset)
        users = _positions("users", users, len(factors))
        items = _positions("items", items, self.n_features_in_)
        if len(users) != len(items):
            raise ValueError(f"users and items are pairs, got {len(users)} and {len(items)}")
        products = np.einsum("nk,nk->n", factors[users], self.components_.T[items])
        return products + factors.dtype.type(self._offset)

    def recommend(
        self, X: Any, n: int = 10, *, exclude_seen: bool = True,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """The items with the highest expected ratings for each user.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_users, n_features_in_)
            Ratings of the users, as in `fit`.
        n : int, 1 to n_features_in_
        exclude_seen : bool, default=True
            Leave out items that the user has rated.

        Returns
        -------
        items : int array of shape (n_users, n)
            Best first; -1 where a user has seen too many to leave n.
        scores : float array of shape (n_users, n)
            Their expected ratings; -inf there.

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIPoissonFactorization
        >>> X = np.kron(np.eye(2, dtype=int), np.ones((20, 6), dtype=int))  # two kinds of users
        >>> X[0, 5] = 0
        >>> model = DPSVIPoissonFactorization(n_components=2, random_state=0).fit(X)
        >>> items, rates = model.recommend(X[:1], n=1)
        >>> items
        array([[5]])
        """
        check_is_fitted(self, "_state")
        check_number("n", n, low=1, high=self.n_features_in_, integer=True)
        seen = self._ratings(X, reset=False)
        factors = self._users(self._state, as_items(seen)).astype(self._dtype, copy=False)
        chosen = np.empty((len(factors), n), dtype=np.int64)
        best = np.empty((len(factors), n), dtype=factors.dtype)
        for some in gen_batches(len(factors), max(1, _SCORES_AT_ONCE // self.n_features_in_)):
            scores = factors[some] @ self.components_ + factors.dtype.type(self._offset)
            if exclude_seen:
                part = seen[some]
                rows = np.repeat(np.arange(scores.shape[0]), np.diff(part.indptr))
                scores[rows, part.indices] = -np.inf
            top = np.argpartition(-scores, n - 1, axis=1)[:, :n]
            values = np.take_along_axis(scores, top, axis=1)
            order = np.argsort(-values, axis=1, kind="stable")
            chosen[some] = np.take_along_axis(top, order, axis=1)
            best[some] = np.take_along_axis(values, order, axis=1)
        chosen[best == -np.inf] = -1
        return chosen, best

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of held-out ratings in nats, by completion.

        Half of each user's ratings, chosen at random with a fixed seed, gives the user's factors;
        the other half is predicted from these.  See the notes of the class.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_users, n_features_in_)
            Ratings of users who were not fitted to, or of other ratings of those who were.
        y : ignored

        Raises
        ------
        ValueError
            No rating is left to predict.

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIPoissonFactorization
        >>> X = np.kron(np.eye(2, dtype=int), np.ones((20, 6), dtype=int))  # two kinds of users
        >>> X[0, 5] = 0
        >>> model = DPSVIPoissonFactorization(n_components=2, random_state=0).fit(X)
        >>> bool(-3 < model.score(X) < 0)
        True
        """
        check_is_fitted(self, "_state")
        return self._score(self._state, self._read(X, reset=False))

    def _score(self, state, items) -> float:
        first, second = self._split(items)
        n = len(second.value)
        if n == 0:
            raise ValueError(f"no rating is left to predict in {len(items.value)} ratings")
        return self._log_likelihood(state, first, second) / n

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def as_items(ratings) -> Items:
    """Users as items, from ratings as csr_array."""
    return jit.as_items(ratings.indptr, ratings.indices, ratings.data, np.dtype(np.float64))


def as_csr(X):
    """A validated matrix as csr_array with sorted rows; what is 0 in a dense one is not stored.

    Raises
    ------
    ValueError
        Its index arrays point out of it.
    """
    matrix = scipy.sparse.csr_array(X)
    try:
        matrix.check_format()
    except ValueError as error:
        raise ValueError(f"X is no sparse matrix of shape {matrix.shape}: {error}") from None
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def entries(items: Items, chosen, value) -> Items:
    """The `chosen` of all ratings, a bool array, with `value` instead of what they were."""
    offsets = np.concatenate([[0], np.cumsum(chosen)])[items.offsets]
    return jit.as_items(offsets, items.index[chosen], value[chosen], items.value.dtype)


@kernel
def _products(items, users, rated, out):
    for u in range(users.shape[0]):
        for j in range(items.offsets[u], items.offsets[u + 1]):
            row = rated[items.index[j]]
            product = 0.0
            for k in range(row.shape[0]):
                product += users[u, k] * row[k]
            out[j] = product


def products(items: Items, users, rated):
    """``users[u] @ rated[i]`` of every rating: float64, (n_ratings,)."""
    out = np.empty(len(items.index))
    _products(items, np.ascontiguousarray(users), np.ascontiguousarray(rated), out)
    return out


def _positions(name, values, n):
    """Row or column numbers, checked."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a vector of whole numbers, got {values!r}")
    if len(array) and not (0 <= array.min() and array.max() < n):
        raise ValueError(f"{name} must be in 0..{n - 1}, got {array.min()}..{array.max()}")
    return array
