"""Documents in: how topic models take what users have, and what words they know."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from dpsvi.base import Items
from dpsvi.corpus import Corpus, as_corpus
from dpsvi.corpus.texts import count_words, peek, texts_of
from dpsvi.families.topics.matrix import FLOAT
from dpsvi.kernels.jit import as_items

NO_DOCUMENTS = "X must hold at least one document, got none"


class Documents:
    """The part of a topic model's estimator that reads documents and knows their vocabulary."""

    n_features_in_: int
    feature_names_in_: np.ndarray
    vectorizer_: Any

    def _read(self, X, y=None, *, reset, grow=False) -> Items:
        """Validate X as scikit-learn or `as_corpus` does; `grow` admits new words at the end."""
        if isinstance(X, Iterator):
            X = peek(X)
        if (isinstance(X, (list, tuple)) and not X) or getattr(X, "shape", None) == (0,):
            raise ValueError(NO_DOCUMENTS)
        texts = None if isinstance(X, Corpus) else texts_of(X)
        if reset:
            self._own_words = texts is not None and self.vectorizer is not None
        if texts is not None:
            corpus = self._count_words(texts, reset, grow)
        elif _is_array_like(X):
            columns = _names_of_columns(X)
            wider = grow and not reset and np.shape(X)[1:] > (self.n_features_in_,)
            X = validate_data(
                self, X, reset=reset or wider, accept_sparse="csr", ensure_non_negative=True,
                dtype=[np.float64, np.float32, np.int64, np.int32],
            )  # fmt: skip
            names = getattr(self, "feature_names_in_", columns)
            corpus = as_corpus(X, vocabulary=names, allow_fractional=True)
        else:
            known = reset or grow or isinstance(X, (str, os.PathLike, Corpus))
            corpus = as_corpus(X, n_features=None if known else self.n_features_in_)
        if not corpus.n_items:
            raise ValueError(NO_DOCUMENTS)
        if reset:
            self.n_features_in_, self.vocabulary_ = corpus.n_features, corpus.vocabulary
        else:
            corpus = self._with_known_words(corpus, grow)
            if not grow and corpus.n_features != self.n_features_in_:
                raise ValueError(
                    f"X has {corpus.n_features} words, but {type(self).__name__} was fitted with "
                    f"{self.n_features_in_}; grow_vocabulary=True lets partial_fit add words"
                )
            if grow and corpus.n_features >= self.n_features_in_:  # it need not hold the last word
                self.n_features_in_ = corpus.n_features
                self.vocabulary_ = corpus.vocabulary or self.vocabulary_
                if "feature_names_in_" in vars(self):
                    self.feature_names_in_ = np.array(self.vocabulary_, object)
        return as_items(corpus.offsets, corpus.index, corpus.value, FLOAT)

    def _count_words(self, texts, reset, grow) -> Corpus:
        if self._own_words:
            counts, words = self._count_own_words(texts, reset)
        elif reset:
            counts, words = count_words(texts)
        elif self.vocabulary_ is None:
            raise ValueError(
                "texts need a model that knows its words, and this one was fitted to numbers"
            )
        else:
            known = self.vocabulary_
            if grow:
                known += tuple(sorted({*count_words(texts)[1]} - {*known}))
            counts, words = count_words(texts, known)
        return as_corpus(counts, words, allow_fractional=True)

    def _count_own_words(self, texts, reset):
        if reset:
            self.vectorizer_ = clone(self.vectorizer)
        elif not hasattr(self, "vectorizer_"):
            raise ValueError(
                "the model was fitted with a vectorizer of the user, which its file does not "
                "hold: pass vectorizer.transform(texts) instead of texts"
            )
        count = self.vectorizer_.fit_transform if reset else self.vectorizer_.transform
        try:
            counts = count(texts)
        except AttributeError:  # of a list of words, say, where it takes strings
            raise TypeError(f"the vectorizer cannot read texts such as {texts[0]!r:.60}") from None
        return counts, tuple(map(str, self.vectorizer_.get_feature_names_out()))

    def _readable(self, X, items):
        return Corpus(*items, self.n_features_in_, self.vocabulary_)

    def _with_known_words(self, corpus, grow) -> Corpus:
        """`corpus` with its words numbered as in the fit, by their names, and new ones behind."""
        words, known = corpus.vocabulary, self.vocabulary_
        if words is None or known is None or words == known:
            return corpus
        number = {word: i for i, word in enumerate(known)}
        for word in words:
            if number.setdefault(word, len(number)) >= len(known) and not grow:
                raise ValueError(
                    f"X has the word {word!r}, which {type(self).__name__} was not fitted with; "
                    "grow_vocabulary=True lets partial_fit add words"
                )
        numbers = np.array([number[word] for word in words], np.int32)
        entries = corpus.value.copy(), numbers[corpus.index], corpus.offsets.copy()
        matrix = csr_array(entries, (corpus.n_items, len(number)))
        matrix.sort_indices()
        return Corpus.from_csr(matrix, tuple(number))

    def __sklearn_tags__(self) -> Any:
        """Tags of scikit-learn: sparse input, counts, dtype kept."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float32", "float64"]
        return tags


def _names_of_columns(X) -> tuple[str, ...] | None:
    """The words that the columns of a data frame are named by."""
    columns = tuple(getattr(X, "columns", ()))
    return columns if columns and all(isinstance(name, str) for name in columns) else None


def _is_array_like(X) -> bool:
    """Tell what scikit-learn validates from paths, corpora and documents of (id, count) pairs."""
    if isinstance(X, (str, os.PathLike, Corpus)):
        return False
    if isinstance(X, (list, tuple)):
        if len(X) and isinstance(X[0], Mapping):
            return False
        rows = [row for row in X if isinstance(row, (list, tuple))]
        pairs = [row[0] for row in rows if len(row)]
        empty = len(rows) == len(X) > 0 and not pairs
        return not (empty or (pairs and isinstance(pairs[0], (list, tuple))))
    return hasattr(X, "__array__") or hasattr(X, "tocsr") or np.isscalar(X)
