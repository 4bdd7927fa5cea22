"""What a fitted topic model answers: topics, proportions, perplexity and top words."""

from __future__ import annotations

from functools import wraps

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dpsvi.corpus import Corpus
from dpsvi.errors import check_choice, check_number
from dpsvi.estimators.items import count
from dpsvi.evaluation import completion
from dpsvi.families.topics.matrix import document_bounds
from dpsvi.kernels.special import exp_expected_log

_INFER = dict(tol=1e-3, n_sweeps=100)


def fitted_property(method):
    """A property that raises NotFittedError, which is an AttributeError, before the first fit."""

    @wraps(method)
    def checked(self):
        check_is_fitted(self, "_state")
        return method(self)

    return property(checked)


class Answers(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """The part of a topic model's estimator that uses what it has learned.

    That is ``self._state`` (rows are words, columns topics) and ``self._word_counts``.  An
    estimator defines ``_alpha(state)``, the Dirichlet prior of the topic proportions, (K,).
    """

    def _natural(self, state) -> np.ndarray:
        """Return lam without padding, (V, K); a lost write may leave an entry short of eta."""
        words = state.natural()[: self._n_words(state), : self._n_topics(state)]
        return np.maximum(words, state.model.prior[0])

    @staticmethod
    def _n_words(state) -> int:
        """V; the rows behind are those that every step changes."""
        return state.model.shape[0] - state.model.common_rows

    @staticmethod
    def _n_topics(state) -> int:
        """K; the columns behind are padding, with a prior of 0."""
        return state.model.used_columns

    @fitted_property
    def components_(self):
        """Dirichlet parameters of the topics, (K, V)."""
        if "_components" not in self.__dict__:
            self._components = np.ascontiguousarray(self._natural(self._state).T)
        return self._components

    @fitted_property
    def exp_dirichlet_component_(self):
        """exp(E[log beta]), (K, V)."""
        basis, shift = self._basis(self._state, mean_field=True)
        return np.ascontiguousarray(basis.T) * np.exp(shift).astype(np.float32)

    @fitted_property
    def doc_topic_prior_(self):
        """Alpha in use, (K,)."""
        return self._alpha(self._state).copy()

    @fitted_property
    def topic_word_prior_(self) -> float:
        """Eta in use."""
        return float(self._state.model.prior.flat[0])

    def _basis(self, state, mean_field: bool):
        """Weight of each word in each topic, (V, K) float32, and the logarithm of its unit, (V,).

        exp(E[log beta]) for mean field, E[beta] otherwise.
        """
        lam = self._natural(state)
        size = lam.sum(axis=0, dtype=np.float64).astype(np.float32)
        shift = np.zeros(len(lam))
        if mean_field:
            exp_expected_log(lam, size, shift)
        else:
            lam /= size
        return lam, shift

    def _complete(self, state, items, seed=0) -> completion.Completion:
        topics, _ = self._basis(state, mean_field=False)
        return completion.completion_perplexity(
            topics, Corpus(*items, len(topics)), self._alpha(state),
            word_counts=self._word_counts, seed=seed, n_jobs=self._n_threads,
        )  # fmt: skip

    @property
    def _n_features_out(self):
        return self._n_topics(self._state)

    def transform(self, X):
        """Topic proportions of documents, topics held fixed.

        Each document is inferred on its own: the result does not depend on the other rows.

        Parameters
        ----------
        X : corpus
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_documents, n_components)
            Rows sum to 1; a document without known words gets the prior mean.
        """
        check_is_fitted(self, "_state")
        gamma, _ = self._infer(self._read(X, reset=False))
        theta = gamma / gamma.sum(axis=1, keepdims=True)
        return theta if getattr(X, "dtype", None) == np.float32 else theta.astype(np.float64)

    def _infer(self, items, mean_field=None):
        if mean_field is None:
            mean_field = self._started["local_step"] == "mean_field"
        basis, shift = self._basis(self._state, mean_field)
        gamma, log_norm = completion.infer_documents(
            basis, self._alpha(self._state).astype(np.float32), items, digamma=mean_field,
            n_jobs=self._n_threads, **_INFER,
        )  # fmt: skip
        item = np.repeat(np.arange(count(items)), np.diff(items.offsets))
        return gamma, log_norm + np.bincount(item, items.value * shift[items.index], count(items))

    def perplexity(self, X, kind="completion") -> float:
        """Perplexity of documents; lower is better.

        Parameters
        ----------
        X : corpus
        kind : {"completion", "bound"}
            ``"completion"``: half of each document's tokens is predicted from the other half
            (:mod:`dpsvi.evaluation.completion`).  ``"bound"``: exp of minus the variational bound
            per token, topics fixed (perplexity A, Hoffman et al. 2010); an upper bound.
        """
        check_choice("kind", kind, ["completion", "bound"])
        if kind == "completion":
            return float(np.exp(-self.score(X)))
        check_is_fitted(self, "_state")
        return float(np.exp(-self._bound_per_token(self._read(X, reset=False))))

    def score(self, X, y=None) -> float:
        """Held-out log-likelihood per token in nats, by document completion; higher is better."""
        return self.evaluate(X).log_likelihood

    def evaluate(self, X, seed=0) -> completion.Completion:
        """Document completion of X beside the unigram baseline of the training corpus.

        Parameters
        ----------
        X : corpus
        seed : int
            Of the split of every document in two halves.

        Returns
        -------
        Completion
        """
        check_is_fitted(self, "_state")
        return self._complete(self._state, self._read(X, reset=False), seed)

    def _bound_per_token(self, items) -> float:
        gamma, log_norm = self._infer(items, mean_field=True)
        lengths = np.add.reduceat(np.append(items.value, 0.0), items.offsets[:-1])
        lengths[np.diff(items.offsets) == 0] = 0
        bounds = document_bounds(self.doc_topic_prior_, gamma, log_norm, lengths)
        return float(bounds.sum() / max(1.0, lengths.sum()))

    def top_words(self, n_words=10) -> list[list]:
        """The likeliest words of every topic; word numbers where no vocabulary is known.

        Parameters
        ----------
        n_words : int, >= 1
            How many; all, if there are no more.

        Returns
        -------
        list of n_components lists
            Likeliest first.

        Examples
        --------
        >>> import pandas as pd
        >>> X = pd.DataFrame({"sun": [5, 0, 4], "rain": [0, 6, 0]})
        >>> DPSVILDA(n_components=1, random_state=0).fit(X).top_words(2)
        [['sun', 'rain']]
        """
        check_is_fitted(self, "_state")
        check_number("n_words", n_words, low=1, integer=True)
        order = np.argsort(-self.components_, axis=1, kind="stable")[:, :n_words]
        words = self.vocabulary_
        return [[int(w) if words is None else words[w] for w in row] for row in order]

    def to_gensim(self):
        """The same model as a ``gensim.models.LdaModel``; see `dpsvi.interop.gensim`."""
        check_is_fitted(self, "_state")
        from dpsvi.interop.gensim import to_gensim

        return to_gensim(self)

    def coherence(self, X, measure="u_mass", n_words=10) -> float:
        """Mean topic coherence in the documents X, by gensim's CoherenceModel.

        Parameters
        ----------
        X : corpus
        measure : {"u_mass", "c_v", "c_uci", "c_npmi"}
        n_words : int, >= 1
            Top words of each topic.
        """
        check_is_fitted(self, "_state")
        from dpsvi.interop.gensim import coherence

        return coherence(self, self._read(X, reset=False), measure=measure, n_words=n_words)
