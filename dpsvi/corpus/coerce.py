"""Whatever holds counts in memory becomes a corpus, with as few copies as its type allows."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from os import PathLike

import numpy as np

from dpsvi.corpus.container import Corpus
from dpsvi.corpus.entries import MAX_VALUE, merge_repeated, warn, warn_empty
from dpsvi.corpus.vocabulary import as_vocabulary
from dpsvi.errors import CorpusFormatError

_REAL = "biuf"  # kinds of dtype: bool, int, uint, float
_CHECKED_AT_ONCE = 1 << 20  # entries; keeps the temporaries of a check small


def as_corpus(
    X,
    vocabulary=None,
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
        * an iterable of documents, read once: each a list of ``(word id, count)`` pairs (as in
          gensim) or a mapping with the columns ``ids`` and ``counts`` (as in Hugging Face
          datasets).
    vocabulary : path, sequence of str, mapping, or None
        The words in order of id, or anything else `as_vocabulary` takes.
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
        There are no rows or no columns; a count is negative, NaN, infinite, fractional or above
        2**31 - 1; a word id is out of range.

    Warns
    -----
    CorpusWarning
        Rows held a word more than once (summed), or are empty (kept).

    Examples
    --------
    >>> as_corpus([[(0, 1), (2, 3)], [(1, 2)]], vocabulary=["a", "b", "c"])
    Corpus(n_items=2, n_features=3, nnz=3)
    """
    if isinstance(X, (str, PathLike)):
        from dpsvi.corpus.load import load_corpus

        return load_corpus(X, vocabulary, allow_fractional=allow_fractional, n_features=n_features)
    words = as_vocabulary(vocabulary)
    expected = n_features if words is None else len(words)
    if isinstance(X, Corpus):
        corpus = X
        words = X.vocabulary if words is None else words
    elif _is_sparse(X):
        corpus = from_sparse(X, allow_fractional)
    elif hasattr(X, "columns"):
        corpus = from_sparse(_from_frame(X), allow_fractional)
        if words is None and all(isinstance(name, str) for name in X.columns):
            words = as_vocabulary(X.columns)
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
        warn_empty(corpus, "X")
    if words is corpus.vocabulary:
        return corpus
    return Corpus(corpus.offsets, corpus.index, corpus.value, corpus.n_features, words)


def from_sparse(matrix, allow_fractional: bool, source: str | PathLike = "X") -> Corpus:
    """Check a SciPy matrix of shape (documents, words) and wrap it; ``source`` names it."""
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise CorpusFormatError(f"{source}: expected rows and columns, got shape {matrix.shape}")
    if matrix.format != "coo":
        matrix = matrix.tocsr()
    _check_values(matrix, allow_fractional, source)
    n_entries = matrix.nnz
    if matrix.format == "coo":
        # Repeated entries are summed here: as float32, which cannot wrap around like uint8.
        matrix = matrix.astype(np.float32, copy=False).tocsr()
    try:
        corpus = Corpus.from_csr(matrix)
    except CorpusFormatError as error:
        raise CorpusFormatError(f"{source}: {error}") from error
    shared = corpus.to_csr()
    if not shared.has_canonical_format:
        # Sorting is no news: the order within a row means nothing, and vectorizers leave any.
        corpus = merge_repeated(shared.copy(), source)
    if corpus.nnz < n_entries:
        warn(source, f"{n_entries - corpus.nnz} repeated entries were summed")
    if np.count_nonzero(corpus.value) < corpus.nnz:
        positive = corpus.to_csr().copy()
        positive.eliminate_zeros()
        corpus = Corpus.from_csr(positive)
    return corpus


def _check_values(matrix, allow_fractional, source):
    """Refuse the first value that is no count, naming its row and column."""
    values = matrix.data[: matrix.nnz]
    if values.dtype.kind not in _REAL:
        raise CorpusFormatError(f"{source}: counts must be real numbers, got {values.dtype}")
    most = MAX_VALUE
    if values.dtype.kind == "f":  # as that type rounds it: numpy 1 would compare as float64
        most = np.promote_types(values.dtype, np.float32).type(MAX_VALUE)
    for start in range(0, len(values), _CHECKED_AT_ONCE):
        part = values[start : start + _CHECKED_AT_ONCE]
        good = (part >= 0) & (part <= most)  # False for NaN
        if part.dtype.kind == "f" and not allow_fractional:
            good &= part == np.trunc(part)
        if not good.all():
            entry = start + int(np.argmin(good))
            row, column = _place(matrix, entry)
            # Estimators do not have the option; they take the corpus that these give.
            fraction = " (load_corpus and as_corpus take fractions with allow_fractional=True)"
            raise CorpusFormatError(
                f"{source}: row {row}, column {column}: count {values[entry]} is not a whole "
                f"number in 0..{MAX_VALUE}{fraction * bool(0 <= values[entry] <= MAX_VALUE)}"
            )


def _place(matrix, entry):
    if matrix.format == "coo":
        return int(matrix.row[entry]), int(matrix.col[entry])
    row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
    return row, int(matrix.indices[entry])


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
                f"X: document {row}: expected (word id, count) pairs, or a mapping with 'ids' "
                f"and 'counts': {error!r}"
            ) from error
        offsets.append(len(index))
    index = np.asarray(index)
    if n_features is None:
        n_features = int(index.max(initial=-1)) + 1
    shape = (len(offsets) - 1, n_features)
    matrix = csr_array((np.asarray(value), index, np.asarray(offsets)), shape)
    return from_sparse(matrix, allow_fractional)
