"""The face that topic models share: documents in, proportions, perplexity and top words out."""

from __future__ import annotations

import os

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dpsvi import evaluate
from dpsvi.checks import check_choice
from dpsvi.corpus import Corpus, as_corpus
from dpsvi.estimator import SVIEstimator
from dpsvi.jit import as_items
from dpsvi.kernels.special import exp_digamma_rows
from dpsvi.models.lda_steps.model import FLOAT, document_bounds

_INFER = dict(tol=1e-3, n_sweeps=100)


class TopicModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SVIEstimator):
    """Base of estimators whose parameters are word distributions of topics.

    A subclass fits ``self._state`` (rows are words, columns topics) and ``self._word_counts``.
    """

    def _natural(self, state) -> np.ndarray:
        """Return lam without padding, (V, K); a lost write may leave an entry short of eta."""
        return np.maximum(state.natural()[:, : self.n_components], state.model.prior[0])

    @property
    def components_(self):
        """Dirichlet parameters of the topics, (K, V)."""
        if "_state" not in self.__dict__:
            raise AttributeError("components_: this DPSVILDA is not fitted yet")
        if "_components" not in self.__dict__:
            self._components = np.ascontiguousarray(self._natural(self._state).T)
        return self._components

    @property
    def exp_dirichlet_component_(self):
        """exp(E[log beta]), (K, V)."""
        basis, _ = self._basis(self._state, mean_field=True)
        return np.ascontiguousarray(basis.T)

    @property
    def doc_topic_prior_(self):
        """Alpha in use, (K,)."""
        return self._state.model.hyper[: self.n_components].copy()

    @property
    def topic_word_prior_(self) -> float:
        """Eta in use."""
        return float(self._state.model.prior[0])

    def _basis(self, state, mean_field: bool):
        """Weight of each word in each topic, (V, K) float32, and alpha."""
        lam = self._natural(state)
        size = lam.sum(axis=0, dtype=np.float64).astype(np.float32)
        if mean_field:
            exp_digamma_rows(lam)
            exp_digamma_rows(size[None])
        lam /= size
        return lam, state.model.hyper[: self.n_components].astype(np.float32)

    def _held_out_score(self, state, corpus) -> dict:
        topics, alpha = self._basis(state, mean_field=False)
        result = evaluate.completion_perplexity(
            topics, corpus, alpha, word_counts=self._word_counts, n_jobs=self._n_threads
        )
        return {**result._asdict(), "score": result.log_likelihood}

    def _attributes(self, state) -> dict:
        kept = ("n_features_in_", "feature_names_in_", "vocabulary_", "_word_counts", "_n_threads")
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
        mean_field = self.local_step == "mean_field" if mean_field is None else mean_field
        basis, alpha = self._basis(self._state, mean_field)
        items = as_items(corpus.offsets, corpus.index, corpus.value, FLOAT)
        return evaluate.infer_documents(
            basis, alpha, items, digamma=mean_field, n_jobs=self._n_threads, **_INFER
        )

    def perplexity(self, X, kind="completion") -> float:
        """Perplexity of documents; lower is better.

        Parameters
        ----------
        X : corpus
        kind : {"completion", "bound"}
            ``"completion"``: half of each document's tokens is predicted from the other half
            (:mod:`dpsvi.evaluate`).  ``"bound"``: exp of minus the variational bound per token,
            topics fixed (perplexity A, Hoffman et al. 2010); an upper bound.
        """
        check_choice("kind", kind, ["completion", "bound"])
        if kind == "completion":
            return float(np.exp(-self.score(X)))
        check_is_fitted(self, "_state")
        return float(np.exp(-self._bound_per_token(self._as_corpus(X, reset=False))))

    def score(self, X, y=None) -> float:
        """Held-out log-likelihood per token in nats, by document completion; higher is better."""
        return self.evaluate(X).log_likelihood

    def evaluate(self, X, seed=0) -> evaluate.Completion:
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
        topics, alpha = self._basis(self._state, mean_field=False)
        return evaluate.completion_perplexity(
            topics, self._as_corpus(X, reset=False), alpha, word_counts=self._word_counts,
            seed=seed, n_jobs=self._n_threads,
        )  # fmt: skip

    def _bound_per_token(self, corpus) -> float:
        gamma, log_norm = self._infer(corpus, mean_field=True)
        lengths = np.add.reduceat(np.append(corpus.value, 0.0), corpus.offsets[:-1])
        lengths[np.diff(corpus.offsets) == 0] = 0
        bounds = document_bounds(self.doc_topic_prior_, gamma, log_norm, lengths)
        return float(bounds.sum() / max(1.0, lengths.sum()))

    def top_words(self, n_words=10) -> list[list]:
        """The likeliest words of every topic; word numbers where no vocabulary is known.

        Examples
        --------
        >>> import pandas as pd
        >>> X = pd.DataFrame({"sun": [5, 0, 4], "rain": [0, 6, 0]})
        >>> DPSVILDA(n_components=1, random_state=0).fit(X).top_words(2)
        [['sun', 'rain']]
        """
        check_is_fitted(self, "_state")
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
        n_words : int
            Top words of each topic.
        """
        check_is_fitted(self, "_state")
        from dpsvi.interop.gensim import coherence

        return coherence(self, self._as_corpus(X, reset=False), measure=measure, n_words=n_words)

    def _as_corpus(self, X, reset: bool) -> Corpus:
        if is_array_like(X):
            X = validate_data(
                self, X, reset=reset, accept_sparse="csr", ensure_non_negative=True,
                dtype=[np.float64, np.float32, np.int64, np.int32],
            )  # fmt: skip
            names = getattr(self, "feature_names_in_", None)
            corpus = as_corpus(X, vocabulary=names, allow_fractional=True)
        else:
            fixed = isinstance(X, (str, os.PathLike, Corpus)) or reset or self.grow_vocabulary
            corpus = as_corpus(X, n_features=None if fixed else self.n_features_in_)
        if reset:
            self.n_features_in_ = corpus.n_features
            self.vocabulary_ = corpus.vocabulary
        elif corpus.n_features != self.n_features_in_:
            if not (self.grow_vocabulary and corpus.n_features > self.n_features_in_):
                raise ValueError(
                    f"X has {corpus.n_features} words, but DPSVILDA was fitted with "
                    f"{self.n_features_in_}; grow_vocabulary=True lets partial_fit add words"
                )
            self.n_features_in_, self.vocabulary_ = corpus.n_features, corpus.vocabulary
        return corpus

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
        rows = [row for row in X if isinstance(row, (list, tuple)) and len(row)]
        return not (rows and isinstance(rows[0][0], (list, tuple)))
    return hasattr(X, "__array__") or hasattr(X, "tocsr") or np.isscalar(X)
