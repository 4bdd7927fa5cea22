"""What a fitted topic model answers: topics, proportions of documents, perplexity."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpsvi.corpus import Corpus
from dpsvi.errors import DivergedError, check_choice, check_flag, resolve_jobs
from dpsvi.estimators.scikit_learn import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from dpsvi.evaluation import completion
from dpsvi.families.topics.matrix import FLOAT, column_sums, document_bounds
from dpsvi.kernels.jit import as_items
from dpsvi.kernels.memory import aligned
from dpsvi.kernels.special import exp_expected_log
from dpsvi.training.items import count

_INFER = dict(tol=1e-3, n_sweeps=100)


if TYPE_CHECKING:
    fitted_property = property
else:

    def fitted_property(method):
        """A property that raises NotFittedError, an AttributeError, before the first fit."""

        @wraps(method)
        def checked(self):
            check_is_fitted(self, "_state")
            return method(self)

        return property(checked)


def _weights(lam, sizes, mean_field: bool):
    """See :meth:`Inference._basis`; `lam`, (n, K), is overwritten."""
    lam = np.ascontiguousarray(lam)
    size, shift = sizes.astype(np.float32), np.zeros(len(lam))
    if mean_field:
        exp_expected_log(lam, size, shift)
    else:
        lam /= size
    return lam, shift


class Inference(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """The part of a topic model's estimator that uses what it has learned.

    That is ``self._state`` (rows are words, columns topics) and ``self._word_counts``.  An
    estimator defines ``_alpha(state)``, the Dirichlet prior of the topic proportions, (K,).
    """

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of what :meth:`transform` returns: the class in small letters, and the topic.

        Parameters
        ----------
        input_features : array of str or None
            Of a model that was fitted to columns of numbers their names, or None.  A model of texts
            does not look at them: they came in a column that is no word.

        Returns
        -------
        object array, (n_components,)

        Examples
        --------
        >>> from dpsvi import DPSVILDA
        >>> lda = DPSVILDA(n_components=2).fit(["a cat and a dog", "one two three"])
        >>> lda.get_feature_names_out().tolist()
        ['dpsvilda0', 'dpsvilda1']
        """
        texts = getattr(self, "vocabulary_", None) and not hasattr(self, "feature_names_in_")
        return super().get_feature_names_out(None if texts else input_features)

    def _natural(self, state, words=None) -> np.ndarray:
        """Return lam without padding, (V, K), or its rows of some `words`.

        A lost write may leave an entry short of eta.
        """
        chosen = slice(self._n_words(state)) if words is None else words
        prior = np.broadcast_to(state.model.prior, state.model.shape)[chosen]
        lam = prior + state.model.real.type(state.scale) * state.shared.rows[chosen]
        return np.maximum(lam, prior)[:, : self._n_topics(state)]

    @staticmethod
    def _n_words(state) -> int:
        """V; the rows behind are those that every step changes."""
        return state.model.shape[0] - state.model.common_rows

    @staticmethod
    def _n_topics(state) -> int:
        """K; the columns behind are padding, with a prior of 0."""
        return state.model.used_columns

    @fitted_property
    def components_(self) -> np.ndarray:
        """Dirichlet parameters of the topics, (K, V)."""
        if "_components" in vars(self):
            return self._components
        components = np.ascontiguousarray(self._natural(self._state).T)
        if "_learned" not in vars(self):  # no callback asks while a fit goes on
            self._components = components
        return components

    @fitted_property
    def exp_dirichlet_component_(self) -> np.ndarray:
        """exp(E[log beta]), (K, V); 0 where it is far below the largest of the same word."""
        basis, shift = self._basis(self._state, mean_field=True)
        return np.ascontiguousarray(basis.T) * np.exp(shift).astype(np.float32)

    @fitted_property
    def doc_topic_prior_(self) -> np.ndarray:
        """Alpha in use, (K,)."""
        return self._alpha(self._state).copy()

    @fitted_property
    def topic_word_prior_(self) -> float | np.ndarray:
        """Eta in use: one number, or (K, V)."""
        model = self._state.model
        if model.prior.shape != model.shape:
            return float(model.prior.flat[0])
        return np.ascontiguousarray(model.prior[:, : self._n_topics(self._state)].T)

    def _basis(self, state, mean_field: bool):
        """Weight of each word in each topic, (V, K) float32, and the logarithm of its unit, (V,).

        exp(E[log beta]) for mean field, E[beta] otherwise.
        """
        lam = self._natural(state)
        return _weights(lam, column_sums(lam), mean_field)

    def _basis_of(self, items, mean_field: bool):
        """The same of the fitted model for the words of `items`, and these items with it.

        Rows are padded like those of a fit.
        """
        state = self._state
        size = self._sizes if "_sizes" in vars(self) else column_sums(self._natural(state))
        used = np.zeros(self._n_words(state), bool)
        used[items.index] = True
        index = items.index
        if 2 * np.count_nonzero(used) < len(used):  # else renaming costs more than it spares
            index = (np.cumsum(used, dtype=np.int32) - 1)[index]
        else:
            used[:] = True
        words = np.flatnonzero(used)
        weights, shift = _weights(self._natural(state, words), size, mean_field)
        basis = aligned((len(words), state.model.shape[1]), FLOAT)
        basis[:, : len(size)] = weights
        return basis, shift, as_items(items.offsets, index, items.value, FLOAT)

    def _complete(self, state, items, seed=0) -> completion.Completion:
        topics, _ = self._basis(state, mean_field=False)
        if not np.isfinite(topics).all():
            raise DivergedError("topics became NaN or infinite")
        return completion.completion_perplexity(
            topics, Corpus(*items, len(topics)), self._alpha(state),
            word_counts=self._word_counts, seed=seed, n_jobs=resolve_jobs(self.n_jobs),
        )  # fmt: skip

    @property
    def _n_features_out(self):
        return self._n_topics(self._state)

    def transform(self, X: Any, *, normalize: bool = True) -> np.ndarray:
        """Topic proportions of documents, topics held fixed.

        Each document is inferred on its own: the result does not depend on the other rows.

        Parameters
        ----------
        X : corpus
            As in `fit`.
        normalize : bool, default=True
            False: the parameters of the Dirichlet distributions that have these means, prior
            included, as in scikit-learn.  A document of more tokens has a larger sum.

        Returns
        -------
        ndarray of shape (n_documents, n_components)
            Rows sum to 1; a document without known words gets the prior mean.

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVILDA
        >>> X = np.kron(np.eye(2, dtype=int), np.ones((20, 6), dtype=int))  # two subjects
        >>> lda = DPSVILDA(n_components=2, random_state=0).fit(X)
        >>> theta = lda.transform(X)
        >>> theta.shape, bool(theta[0].argmax() != theta[-1].argmax())
        ((40, 2), True)
        """
        check_is_fitted(self, "_state")
        check_flag("normalize", normalize)
        mean_field = self._started["local_step"] == "mean_field"
        basis, _, items = self._basis_of(self._read(X, reset=False), mean_field)
        real = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
        theta = np.empty((count(items), self._n_topics(self._state)), real)
        completion.infer_proportions(
            basis, self._padded_alpha(basis), items, theta, normalize=normalize,
            digamma=mean_field, n_jobs=resolve_jobs(self.n_jobs), **_INFER,
        )  # fmt: skip
        return theta

    def _padded_alpha(self, basis):
        """Alpha of every column of `basis`."""
        alpha = np.zeros(basis.shape[1], np.float32)
        alpha[: self._n_topics(self._state)] = self._alpha(self._state)
        return alpha

    def perplexity(self, X: Any, kind: Literal["completion", "bound"] = "completion") -> float:
        """Perplexity of documents; lower is better.

        Parameters
        ----------
        X : corpus
        kind : {"completion", "bound"}
            ``"completion"``: half of each document's tokens is predicted from the other half
            (:mod:`dpsvi.evaluation.completion`).  ``"bound"``: exp of minus the variational bound
            per token, topics fixed (perplexity A, Hoffman et al. 2010); an upper bound.

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVILDA
        >>> X = np.kron(np.eye(2, dtype=int), np.ones((20, 6), dtype=int))  # two subjects
        >>> lda = DPSVILDA(n_components=2, random_state=0).fit(X)
        >>> bool(6 < lda.perplexity(X) < 12)  # a topic has 6 words, both together 12
        True
        """
        check_choice("kind", kind, ["completion", "bound"])
        if kind == "completion":
            return float(np.exp(-self.score(X)))
        check_is_fitted(self, "_state")
        items = self._read(X, reset=False)
        if not len(items.index):
            raise ValueError("no tokens to predict: the documents have no word of the model")
        return float(np.exp(-self._bound_per_token(items)))

    def score(self, X: Any, y: Any = None) -> float:
        """Held-out log-likelihood per token in nats, by document completion; higher is better.

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVILDA
        >>> X = np.kron(np.eye(2, dtype=int), np.ones((20, 6), dtype=int))  # two subjects
        >>> lda = DPSVILDA(n_components=2, random_state=0).fit(X)
        >>> bool(np.isclose(np.exp(-lda.score(X)), lda.perplexity(X)))
        True
        """
        return self.evaluate(X).log_likelihood

    def evaluate(self, X: Any, seed: int = 0) -> completion.Completion:
        """Document completion of X beside the unigram baseline of the training corpus.

        Parameters
        ----------
        X : corpus
        seed : int
            Of the split of every document in two halves.

        Returns
        -------
        Completion

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVILDA
        >>> X = np.kron(np.eye(2, dtype=int), np.ones((20, 6), dtype=int))  # two subjects
        >>> lda = DPSVILDA(n_components=2, random_state=0).fit(X)
        >>> found = lda.evaluate(X)
        >>> found.perplexity < found.unigram_perplexity
        True
        """
        check_is_fitted(self, "_state")
        return self._complete(self._state, self._read(X, reset=False), seed)

    def _bound_per_token(self, items) -> float:
        basis, shift, items = self._basis_of(items, mean_field=True)
        gamma = completion.infer_documents(
            basis, self._padded_alpha(basis), items, digamma=True,
            n_jobs=resolve_jobs(self.n_jobs), **_INFER,
        )  # fmt: skip
        log_norm = completion.explain_documents(basis, gamma, items)
        gamma = gamma[:, : self._n_topics(self._state)]
        item = np.repeat(np.arange(count(items)), np.diff(items.offsets))
        log_norm += np.bincount(item, items.value * shift[items.index], count(items))
        lengths = np.add.reduceat(np.append(items.value, 0.0), items.offsets[:-1])
        lengths[np.diff(items.offsets) == 0] = 0
        bounds = document_bounds(self.doc_topic_prior_, gamma, log_norm, lengths)
        return float(bounds.sum() / max(1.0, lengths.sum()))
