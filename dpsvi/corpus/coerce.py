"""Whatever holds counts in memory becomes a corpus, with as few copies as its type allows."""

from __future__ import annotations

import errno
import os
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from numbers import Real
from os import PathLike
from typing import Any

import numpy as np

from dpsvi.corpus.container import Corpus
from dpsvi.corpus.entries import warn_empty
from dpsvi.corpus.sparse import check_values, from_sparse
from dpsvi.corpus.texts import count_words, peek, texts_of
from dpsvi.corpus.vocabulary import as_vocabulary
from dpsvi.errors import CorpusFormatError, shortened

_REAL = "biuf"  # kinds of dtype: bool, int, uint, float


def as_corpus(
    X: Any,
    vocabulary: Any = None,
    allow_fractional: bool = False,
    *,
    n_features: int | None = None,
) -> Corpus:
    """Turn ``X`` into a `Corpus`; nothing is ever made dense.

    Parameters
    ----------
    X : one of
        * a `Corpus`, or the path of a file (see `load_corpus`);
        * a SciPy sparse array or matrix of shape (documents, words). CSR with float32 values
          and sorted int32 indices is wrapped without a copy;
        * an array, a list of lists of numbers, or a pandas or polars data frame of that shape;
          the column names of a frame become the vocabulary;
        * texts: a list, an array or a pandas or polars column of strings, or lists of words.
          Their words are counted as `dpsvi.corpus.texts` says and become the vocabulary; with
          one given, only its words are counted;
        * an iterable of documents, read once: each a text as above, a list of ``(word id, count)``
          pairs (as in gensim) or a mapping with the columns ``ids`` and ``counts`` (as in Hugging
          Face datasets).
    vocabulary : path, sequence of str, mapping, or None
        The words in order of id, or anything else `as_vocabulary` takes. None: those of texts
        and frames, and of a file those that lie beside it.
    allow_fractional : bool
        Take counts that are not whole numbers.
    n_features : int or None
        Number of columns, for iterables; default the length of the vocabulary, else the largest
        word id plus one. For everything else it must agree with the data.

    Returns
    -------
    Corpus
        Without zeros, each row sorted by column. Rows without entries are kept, even if that is
        all of them: a model answers them with its prior.

    Raises
    ------
    CorpusFormatError
        There are no rows or no columns; X is a mapping or a set; a count is negative, NaN,
        infinite, fractional or above 2**31 - 1; a word id is out of range; X names its words, as
        a data frame does, and `vocabulary` has some of them in other columns.
    FileNotFoundError
        X is a string, and no file has this name.

    Warns
    -----
    CorpusWarning
        Rows held a word more than once (summed), or are empty (kept).

    Examples
    --------
    >>> as_corpus([[(0, 1), (2, 3)], [(1, 2)]], vocabulary=["a", "b", "c"])
    Corpus(n_items=2, n_features=3, nnz=3)
    >>> as_corpus(["a cat and a dog", "The dog barks."]).vocabulary
    ('and', 'barks', 'cat', 'dog', 'the')
    """
    if isinstance(X, (str, PathLike)):
        from dpsvi.corpus.load import load_corpus

        if isinstance(X, str) and not os.path.exists(X):
            raise FileNotFoundError(
                errno.ENOENT, "A string is the path of a corpus, and a text goes into a list. "
                "There is no such file", shortened(X),
            )  # fmt: skip
        words = "auto" if vocabulary is None else vocabulary
        return load_corpus(X, words, allow_fractional=allow_fractional, n_features=n_features)
    words = as_vocabulary(vocabulary)
    expected = n_features if words is None else len(words)
    if isinstance(X, (Mapping, Set)):
        raise CorpusFormatError(
            f"X must have documents in an order, as a list has, got a {type(X).__name__}"
            + "; pass list(X.values())" * isinstance(X, Mapping)
        )
    if hasattr(X, "collect"):
        kind = type(X).__name__
        raise CorpusFormatError(f"X is a {kind}, which is not evaluated yet: pass X.collect()")
    if isinstance(X, Iterator):
        X = peek(X)
    texts = None if isinstance(X, Corpus) else texts_of(X)
    if isinstance(X, Corpus):
        check_values(X.to_csr(), allow_fractional=True)  # its arrays may be anybody's
        corpus = X
        words = _named(words, X.vocabulary)
    elif texts is not None:
        counts, words = count_words(texts, words)
        corpus = from_sparse(counts, allow_fractional)
    elif _is_sparse(X):
        corpus = from_sparse(X, allow_fractional)
    elif hasattr(X, "columns"):
        corpus = from_sparse(_from_frame(X), allow_fractional)
        if all(isinstance(name, str) for name in X.columns):
            words = _named(words, as_vocabulary(X.columns))
    elif hasattr(X, "__array__") or _is_table(X):
        corpus = from_sparse(_from_dense(X), allow_fractional)
    elif isinstance(X, Iterable):
        corpus = _from_documents(X, allow_fractional, expected)
    else:
        raise TypeError(f"a corpus cannot be made from {type(X).__name__}")
    for known in (expected, n_features):
        if known not in (None, corpus.n_features):
            raise CorpusFormatError(f"X has {corpus.n_features} columns, expected {known}")
    if corpus is not X:
        warn_empty(corpus, "X", left_out=words is not None)
    if words is corpus.vocabulary:
        return corpus
    return Corpus(corpus.offsets, corpus.index, corpus.value, corpus.n_features, words)


def _named(words, own):
    """The `words` of a vocabulary, or X's `own` ones; both may be None.

    Other names are fine, but not the same ones at other places: they would trade their counts.
    """
    if words is None or own is None:
        return own if words is None else words
    number = {word: i for i, word in enumerate(words)}
    for i, word in enumerate(own):
        if number.get(word, i) != i:
            raise CorpusFormatError(
                f"X has the word {word!r} in column {i}, vocabulary has it in column "
                f"{number[word]}; give X alone, a fitted model reads it by its words"
            )
    return words


def _is_sparse(X):
    """Whether X comes from scipy.sparse, told without importing it."""
    return hasattr(X, "tocsr") and hasattr(X, "format")


def _is_table(X):
    """Whether X is a list of rows of numbers, and not of documents of pairs."""
    if not isinstance(X, (list, tuple)):
        return False
    rows = (row for row in X if isinstance(row, (Sequence, np.ndarray)) and len(row))
    return isinstance(next(rows, [None])[0], Real)


def _from_frame(X):
    """Return the values of a pandas or polars frame, sparse where the columns are."""
    if hasattr(X, "sparse"):  # a pandas frame has this accessor only if all columns are sparse
        try:
            return X.sparse.to_coo()
        except ValueError as error:  # what is not stored is not zero
            raise CorpusFormatError(f"X: {error}") from error
    return _from_dense(X.to_numpy())


def _from_dense(X):
    from scipy.sparse import coo_array

    try:
        X = np.asarray(X)
        if X.dtype.kind == "O":
            X = X.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise CorpusFormatError(f"X is no table of numbers: {error}") from error
    if X.ndim != 2 or X.dtype.kind not in _REAL:
        raise CorpusFormatError(
            f"X: expected real numbers in two dimensions, got {X.dtype} of shape {X.shape}"
        )
    return coo_array(X)


def _from_documents(documents, allow_fractional, n_features):
    """Read an iterable of documents once, straight into flat arrays."""
    from scipy.sparse import csr_array

    index, value, offsets = array("i"), array("d"), array("q", [0])
    for row, document in enumerate(documents):
        try:
            if isinstance(document, Mapping):
                document = zip(document["ids"], document["counts"], strict=True)
            for word, count in document:
                index.append(word)
                value.append(count)
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise CorpusFormatError(
                f"X: document {row}: expected (word id, count) pairs, a text, or a mapping with "
                f"'ids' and 'counts': {error!r}"
            ) from error
        offsets.append(len(index))
    index = np.asarray(index)
    if n_features is None:
        n_features = int(index.max(initial=-1)) + 1
    shape = (len(offsets) - 1, n_features)
    matrix = csr_array((np.asarray(value), index, np.asarray(offsets)), shape)
    return from_sparse(matrix, allow_fractional)
