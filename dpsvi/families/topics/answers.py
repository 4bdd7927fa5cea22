"""The face that topic models share: documents in, proportions, perplexity and top words out."""

from __future__ import annotations

import dataclasses
import os
from functools import wraps

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dpsvi.corpus import Corpus, as_corpus
from dpsvi.errors import check_choice, check_number
from dpsvi.estimators.base import SVIEstimator
from dpsvi.evaluation import completion
from dpsvi.families.topics.matrix import FLOAT, document_bounds
from dpsvi.kernels.jit import as_items
from dpsvi.kernels.special import exp_expected_log

_INFER = dict(tol=1e-3, n_sweeps=100)


def fitted_property(method):
    """A property that raises NotFittedError, which is an AttributeError, before the first fit."""

    @wraps(method)
    def checked(self):
        check_is_fitted(self, "_state")
        return method(self)

    return property(checked)


class TopicModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SVIEstimator):
    """Base of estimators whose parameters are word distributions of topics.

    A subclass fits ``self._state`` (rows are words, columns topics) and ``self._word_counts``.
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
        return np.count_nonzero(state.model.hyper[: state.model.shape[1]])

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

    def _alpha(self, state) -> np.ndarray:
        """Dirichlet prior of the topic proportions, (K,)."""
        return state.model.hyper[: self._n_topics(state)]

    def _complete(self, state, corpus, seed=0) -> completion.Completion:
        topics, _ = self._basis(state, mean_field=False)
        return completion.completion_perplexity(
            topics, corpus, self._alpha(state), word_counts=self._word_counts, seed=seed,
            n_jobs=self._n_threads,
        )  # fmt: skip

    def _held_out_score(self, state, corpus) -> dict:
        result = self._complete(state, corpus)
        return {**result._asdict(), "score": result.log_likelihood}

    def _attributes(self, state) -> dict:
        kept = (
            "n_features_in_", "feature_names_in_", "vocabulary_", "_word_counts", "_n_threads",
            "_n_seen", "_started",
        )  # fmt: skip
        return {"_state": state} | {k: self.__dict__[k] for k in kept if k in self.__dict__}

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
        corpus = self._as_corpus(X, reset=False)
        gamma, _ = self._infer(corpus)
        theta = gamma / gamma.sum(axis=1, keepdims=True)
        return theta if getattr(X, "dtype", None) == np.float32 else theta.astype(np.float64)

    def _infer(self, corpus, mean_field=None):
        if mean_field is None:
            mean_field = self._started["local_step"] == "mean_field"
        basis, shift = self._basis(self._state, mean_field)
        items = as_items(corpus.offsets, corpus.index, corpus.value, FLOAT)
        gamma, log_norm = completion.infer_documents(
            basis, self._alpha(self._state).astype(np.float32), items, digamma=mean_field,
            n_jobs=self._n_threads, **_INFER,
        )  # fmt: skip
        item = np.repeat(np.arange(corpus.n_items), np.diff(corpus.offsets))
        return gamma, log_norm + np.bincount(
            item, corpus.value * shift[corpus.index], corpus.n_items
        )

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
        return float(np.exp(-self._bound_per_token(self._as_corpus(X, reset=False))))

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
        return self._complete(self._state, self._as_corpus(X, reset=False), seed)

    def _bound_per_token(self, corpus) -> float:
        gamma, log_norm = self._infer(corpus, mean_field=True)
        lengths = np.add.reduceat(np.append(corpus.value, 0.0), corpus.offsets[:-1])
        lengths[np.diff(corpus.offsets) == 0] = 0
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

        return coherence(self, self._as_corpus(X, reset=False), measure=measure, n_words=n_words)

    def _as_corpus(self, X, reset: bool, grow: bool = False) -> Corpus:
        """Validate X as scikit-learn or `as_corpus` does; `grow` admits new words at the end."""
        if is_array_like(X):
            if not reset and "feature_names_in_" not in self.__dict__:  # else validate_data looks
                self._check_words(getattr(X, "columns", None))
            wider = grow and not reset and np.shape(X)[1:] > (self.n_features_in_,)
            X = validate_data(
                self, X, reset=reset or wider, accept_sparse="csr", ensure_non_negative=True,
                dtype=[np.float64, np.float32, np.int64, np.int32],
            )  # fmt: skip
            names = getattr(self, "feature_names_in_", None)
            corpus = as_corpus(X, vocabulary=names, allow_fractional=True)
        else:
            known = reset or grow or isinstance(X, (str, os.PathLike, Corpus))
            corpus = as_corpus(X, n_features=None if known else self.n_features_in_)
            if reset:
                self.__dict__.pop("feature_names_in_", None)
        if reset:
            self.n_features_in_, self.vocabulary_ = corpus.n_features, corpus.vocabulary
        elif grow and corpus.n_features >= self.n_features_in_:
            self._grow(corpus)
        elif grow:
            corpus = dataclasses.replace(
                corpus, n_features=self.n_features_in_, vocabulary=self.vocabulary_
            )
        elif corpus.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {corpus.n_features} words, but {type(self).__name__} was fitted with "
                f"{self.n_features_in_}; grow_vocabulary=True lets partial_fit add words"
            )
        else:
            self._check_words(corpus.vocabulary)
        return corpus

    def _grow(self, corpus) -> None:
        self._check_words(corpus.vocabulary)
        self.n_features_in_ = corpus.n_features
        self.vocabulary_ = corpus.vocabulary or self.vocabulary_

    def _check_words(self, words) -> None:
        words, known = (() if w is None else w for w in (words, self.vocabulary_))
        for i, (new, old) in enumerate(zip(words, known, strict=False)):
            if isinstance(new, str) and new != old:
                raise ValueError(
                    f"the vocabulary of X has {new!r} as word {i}, that of the fit {old!r}; "
                    "new words must follow the known ones"
                )

    def __sklearn_tags__(self):
        """Tags of scikit-learn: sparse input, counts, dtype kept."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float32", "float64"]
        return tags


def is_array_like(X) -> bool:
    """Tell what scikit-learn validates from paths, corpora and streams of (id, count) pairs."""
    if isinstance(X, (str, os.PathLike, Corpus)):
        return False
    if isinstance(X, (list, tuple)):
        rows = [row for row in X if isinstance(row, (list, tuple))]
        pairs = [row[0] for row in rows if len(row)]
        empty = len(rows) == len(X) > 0 and not pairs
        return not (empty or (pairs and isinstance(pairs[0], (list, tuple))))
    return hasattr(X, "__array__") or hasattr(X, "tocsr") or np.isscalar(X)
