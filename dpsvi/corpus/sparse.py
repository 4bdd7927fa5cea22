"""A SciPy matrix as a corpus: its values are checked, repeated entries summed."""

from __future__ import annotations

from os import PathLike

import numpy as np

from dpsvi.corpus.container import Corpus
from dpsvi.corpus.entries import MAX_VALUE, merge_repeated, warn
from dpsvi.errors import CorpusFormatError

_REAL = "biuf"  # kinds of dtype: bool, int, uint, float
_CHECKED_AT_ONCE = 1 << 20  # entries; keeps the temporaries of a check small


def from_sparse(matrix, allow_fractional: bool, source: str | PathLike = "X") -> Corpus:
    """Check a SciPy matrix of shape (documents, words) and wrap it; ``source`` names it."""
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise CorpusFormatError(f"{source}: expected rows and columns, got shape {matrix.shape}")
    if matrix.format != "coo":
        matrix = matrix.tocsr()
    check_values(matrix, allow_fractional, source)
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


def check_values(matrix, allow_fractional: bool, source: str | PathLike = "X") -> None:
    """Refuse the first value that is no count, naming its place; `matrix` is CSR or COO."""
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
