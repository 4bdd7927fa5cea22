"""Documents in: how topic models take what users have, and what words they know."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from dpsvi.base import Items
from dpsvi.corpus import Corpus, as_corpus
from dpsvi.corpus.texts import count_words, peek, texts_of
from dpsvi.families.topics.matrix import FLOAT
from dpsvi.kernels.jit import as_items


class Documents:
    """The part of a topic model's estimator that reads documents and knows their vocabulary."""

    n_features_in_: int
    vectorizer_: Any

    def _read(self, X, y=None, *, reset, grow=False) -> Items:
        """Validate X as scikit-learn or `as_corpus` does; `grow` admits new words at the end."""
        if isinstance(X, Iterator):
            X = peek(X)
        texts = None if isinstance(X, Corpus) else texts_of(X)
        if reset:
            self._own_words = texts is not None and self.vectorizer is not None
        if texts is not None:
            corpus = self._count_words(texts, reset, grow)
        elif _is_array_like(X):
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
            self.n_features_in_, self.vocabulary_ = corpus.n_features, corpus.vocabulary
        elif not grow and corpus.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {corpus.n_features} words, but {type(self).__name__} was fitted with "
                f"{self.n_features_in_}; grow_vocabulary=True lets partial_fit add words"
            )
        elif corpus.n_features >= self.n_features_in_:  # a stream need not hold the last word
            self._check_words(corpus.vocabulary)
            if grow:
                self.n_features_in_ = corpus.n_features
                self.vocabulary_ = corpus.vocabulary or self.vocabulary_
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
            counts = self.vectorizer_.fit_transform(texts)
        elif hasattr(self, "vectorizer_"):
            counts = self.vectorizer_.transform(texts)
        else:
            raise ValueError(
                "the model was fitted with a vectorizer of the user, which its file does not "
                "hold: pass vectorizer.transform(texts) instead of texts"
            )
        return counts, tuple(map(str, self.vectorizer_.get_feature_names_out()))

    def _readable(self, X, items):
        return Corpus(*items, self.n_features_in_, self.vocabulary_)

    def _check_words(self, words) -> None:
        words, known = (() if w is None else w for w in (words, self.vocabulary_))
        if isinstance(words, tuple) and words[: len(known)] == known[: len(words)]:
            return  # a loop takes milliseconds over 100,000 words
        for i, (new, old) in enumerate(zip(words, known, strict=False)):
            if isinstance(new, str) and new != old:
                raise ValueError(
                    f"the vocabulary of X has {new!r} as word {i}, that of the fit {old!r}; "
                    "new words must follow the known ones"
                )

    def __sklearn_tags__(self) -> Any:
        """Tags of scikit-learn: sparse input, counts, dtype kept."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float32", "float64"]
        return tags


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
