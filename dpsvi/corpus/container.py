"""The container: rows of (index, value) pairs, laid end to end.

A row is an item: a document, the ratings of a user, a sequence. The layout is that of a
compressed sparse row matrix, whose arrays it shares with `scipy.sparse` without a copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dpsvi.errors import CorpusFormatError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_DTYPES = {"offsets": np.int64, "index": np.int32, "value": np.float32}


@dataclass(frozen=True, eq=False, repr=False)
class Corpus:
    """Items as ragged rows of (feature index, value); a bag-of-words corpus by default.

    The arrays are held as read-only views of what was passed, memory maps included, so that
    threads and processes can share them. That every index lies in ``[0, n_features)`` is
    checked once, here, and compiled code relies on it.

    Parameters
    ----------
    offsets : int64 array of shape (n_items + 1,)
        Item ``i`` owns the entries ``offsets[i]:offsets[i + 1]``; starts at 0, never falls.
    index : int32 array of shape (nnz,)
        Feature (word id, counted from 0) of each entry.
    value : float32 array of shape (nnz,)
        Value (count) of each entry. Integers above 2**24 are rounded to 24 bits.
    n_features : int
        Number of distinct features, at least 1 and at most 2**31 - 1.
    vocabulary : tuple of str or None
        Name of each feature; `as_corpus` and `load_corpus` see to it that they are distinct.

    Raises
    ------
    TypeError
        An array is not a contiguous one-dimensional array of its dtype.
    CorpusFormatError
        Offsets or indices are out of range, or the vocabulary has another length.

    Examples
    --------
    >>> import numpy as np
    >>> corpus = Corpus(np.array([0, 2, 2, 3]), np.array([0, 4, 1], np.int32),
    ...                 np.array([1, 2, 5], np.float32), n_features=5)
    >>> corpus
    Corpus(n_items=3, n_features=5, nnz=3)
    >>> corpus.n_tokens
    8.0
    >>> len(corpus), corpus.shape, corpus[1:]
    (3, (3, 5), Corpus(n_items=2, n_features=5, nnz=1))
    """

    offsets: np.ndarray
    index: np.ndarray
    value: np.ndarray
    n_features: int
    vocabulary: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Check the arrays and replace them by read-only views."""
        for name, dtype in _DTYPES.items():
            object.__setattr__(self, name, _read_only(name, getattr(self, name), dtype))
        _check_rows(self.offsets, self.index, self.value)
        _check_columns(self.offsets, self.index, self.n_features)
        if self.vocabulary is not None and len(self.vocabulary) != self.n_features:
            raise CorpusFormatError(
                f"the vocabulary has {len(self.vocabulary)} words, "
                f"the corpus {self.n_features} columns"
            )

    @classmethod
    def from_csr(cls, matrix: Any, vocabulary: tuple[str, ...] | None = None) -> Corpus:
        """Wrap a CSR matrix of shape (n_items, n_features), sharing arrays of the right dtype.

        Values are taken as they are: use `as_corpus` for data of unknown origin.

        Examples
        --------
        >>> from scipy.sparse import csr_array
        >>> Corpus.from_csr(csr_array([[1.0, 0.0], [0.0, 2.0]]), ("cat", "dog"))
        Corpus(n_items=2, n_features=2, nnz=2)
        """
        nnz = int(matrix.indptr[-1])  # the arrays may be longer
        return cls(
            np.ascontiguousarray(matrix.indptr, np.int64),
            _narrow(matrix.indices[:nnz]),
            np.ascontiguousarray(matrix.data[:nnz], np.float32),
            int(matrix.shape[1]),
            vocabulary,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features, as of a matrix."""
        return self.n_items, self.n_features

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.n_items

    def __getitem__(self, rows: Any) -> Corpus:
        """Return a corpus of some of the rows: a number, a slice, or an array as in `select`.

        A tuple of such and ``...`` means the same: scikit-learn's splitters ask like this.
        """
        if isinstance(rows, tuple):
            if len(rows) != 2 or rows[1] is not Ellipsis:
                raise IndexError(f"a corpus is indexed by its rows only, got {rows!r}")
            rows = rows[0]
        if isinstance(rows, (int, np.integer)):
            if not -self.n_items <= rows < self.n_items:
                raise IndexError(f"row {rows} of a corpus of {self.n_items}")
            rows = [rows % self.n_items]
        return self.select(rows)

    @property
    def n_items(self) -> int:
        """Number of rows, empty ones included."""
        return len(self.offsets) - 1

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return len(self.index)

    @property
    def n_tokens(self) -> float:
        """Sum of all values: the number of tokens of a corpus of counts."""
        return float(self.value.sum(dtype=np.float64))

    def to_csr(self) -> csr_array:
        """Return the rows as a `scipy.sparse.csr_array` over the same, read-only, memory.

        Only the row pointers are copied, to int32, the index type of the columns. From 2**31
        entries on they need int64, and scipy then copies the column indices as well.

        Examples
        --------
        >>> from dpsvi import as_corpus
        >>> as_corpus([[(0, 1), (2, 3)], [(1, 2)]]).to_csr().toarray()
        array([[1., 0., 3.],
               [0., 2., 0.]], dtype=float32)
        """
        from scipy.sparse import csr_array

        narrow = self.nnz <= np.iinfo(np.int32).max
        offsets = self.offsets.astype(np.int32) if narrow else self.offsets
        return csr_array((self.value, self.index, offsets), (self.n_items, self.n_features))

    def select(self, ids: ArrayLike) -> Corpus:
        """Return some of the rows, in the order given, over the same features.

        Parameters
        ----------
        ids : slice, int array or bool array of shape (n_items,)
            A slice of step 1 shares the memory; anything else copies the rows.

        Raises
        ------
        IndexError
            A row does not exist, or the numbers are not whole.

        Examples
        --------
        >>> from dpsvi import as_corpus
        >>> as_corpus([[1, 0], [0, 2], [3, 0]]).select([2, 0]).to_csr().toarray()
        array([[3., 0.],
               [1., 0.]], dtype=float32)
        """
        if isinstance(ids, slice):
            start, stop, step = ids.indices(self.n_items)
            if step == 1:
                offsets = self.offsets[start : max(start, stop) + 1]
                entries = slice(offsets[0], offsets[-1])
                return Corpus(
                    offsets - offsets[0],
                    self.index[entries],
                    self.value[entries],
                    self.n_features,
                    self.vocabulary,
                )
        else:
            ids = np.asarray(ids)
            if not ids.size:
                ids = ids.astype(np.intp)  # NumPy takes no numbers for fractional ones
            if ids.dtype.kind not in "iub":
                raise IndexError(f"rows of a corpus have whole numbers, got {ids.ravel()[0]!r}")
        return Corpus.from_csr(self.to_csr()[ids], self.vocabulary)

    def __repr__(self) -> str:
        """Return the sizes."""
        return f"Corpus(n_items={self.n_items}, n_features={self.n_features}, nnz={self.nnz})"


def _read_only(name, array, dtype):
    """Return a read-only base-class view, so that compiled code meets one array type only."""
    array = np.asarray(array)
    if array.ndim != 1 or array.dtype != dtype or not array.flags.c_contiguous:
        raise TypeError(
            f"{name} must be a contiguous array of shape (n,) and dtype {np.dtype(dtype)}, "
            f"got shape {array.shape} and dtype {array.dtype}"
        )
    view = array.view()
    view.flags.writeable = False
    return view


def _narrow(index):
    """Cast column indices to int32, refusing (not wrapping) those that do not fit."""
    if index.dtype != np.int32 and index.size and index.max() > np.iinfo(np.int32).max:
        raise CorpusFormatError(f"column {index.max()} is above the largest index, 2**31 - 1")
    return np.ascontiguousarray(index, np.int32)


def _check_rows(offsets, index, value):
    if not len(offsets) or offsets[0] != 0 or np.any(offsets[1:] < offsets[:-1]):
        raise CorpusFormatError("offsets must start at 0 and never fall")
    if not offsets[-1] == len(index) == len(value):
        raise CorpusFormatError(
            f"offsets end at {offsets[-1]}, but there are {len(index)} indices "
            f"and {len(value)} values"
        )


def _check_columns(offsets, index, n_features):
    if not 0 < n_features <= np.iinfo(np.int32).max:
        raise CorpusFormatError(f"a corpus needs 1 to 2**31 - 1 columns, got {n_features}")
    if index.size and not 0 <= index.min() <= index.max() < n_features:
        entry = int(np.argmax((index < 0) | (index >= n_features)))
        row = int(np.searchsorted(offsets, entry, side="right")) - 1
        raise CorpusFormatError(f"row {row}: column {index[entry]} is outside 0..{n_features - 1}")
