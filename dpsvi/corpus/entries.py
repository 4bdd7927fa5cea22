"""From entries in the order of a file to rows in order: growing arrays, then one corpus."""

from __future__ import annotations

import warnings
from os import PathLike

import numpy as np

from dpsvi.corpus.container import Corpus
from dpsvi.errors import CorpusFormatError, CorpusWarning

MAX_VALUE = 2**31 - 1
_ENTRY_BYTES = 4  # the shortest entry a parser accepts is " 1:1"


class Entries:
    """Row, column and value of each entry, in arrays that double as they fill up.

    Growing, and not trusting the size that a header declares, keeps the memory in proportion to
    what has been read; pages not yet written cost nothing.
    """

    def __init__(self):
        self.rows = np.empty(0, np.int32)
        self.columns = np.empty(0, np.int32)
        self.values = np.empty(0, np.float32)

    def reserve(self, n: int, text_bytes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the three arrays, with room after entry ``n`` for ``text_bytes`` of text."""
        needed = n + text_bytes // _ENTRY_BYTES + 1
        for name in ("rows", "columns", "values"):
            old = getattr(self, name)
            if len(old) < needed:
                grown = np.empty(max(needed, 2 * len(old)), old.dtype)
                grown[:n] = old[:n]
                setattr(self, name, grown)
        return self.rows, self.columns, self.values

    def to_corpus(
        self,
        n: int,
        shape: tuple[int, int],
        rows_in_order: bool,
        canonical: bool,
        source: str | PathLike,
    ) -> Corpus:
        """Return the first ``n`` entries as a corpus; the arrays are given away.

        Parameters
        ----------
        shape : (n_items, n_features)
        rows_in_order : bool
            Row numbers never fall.
        canonical : bool
            Besides, columns rise strictly within each row.
        source : str or Path
            Named in the warning that entries were moved or merged.
        """
        rows, columns, values = self.rows[:n], self.columns[:n], self.values[:n]
        self.__init__()
        if not rows_in_order:
            from scipy.sparse import coo_array

            matrix = coo_array((values, (rows, columns)), shape).tocsr()
            return tidy(matrix, n, source)
        offsets = np.searchsorted(rows, np.arange(shape[0] + 1, dtype=np.int32))
        del rows
        corpus = Corpus(offsets, columns, values, shape[1])
        if canonical:
            return corpus
        from scipy.sparse import csr_array

        return tidy(csr_array((values, columns, offsets), shape), n, source)


def tidy(matrix, n_entries: int, source: str | PathLike) -> Corpus:
    """Sort the rows of a CSR matrix in place and sum repeated entries, with one warning."""
    matrix.sum_duplicates()
    if matrix.nnz and matrix.data.max() > MAX_VALUE:
        raise CorpusFormatError(f"{source}: the counts of a repeated entry sum to over 2**31 - 1")
    warnings.warn(
        f"{source}: entries were not sorted by document and word: sorted, "
        f"{n_entries - matrix.nnz} repeated ones summed",
        CorpusWarning,
        stacklevel=2,
    )
    return Corpus.from_csr(matrix)


def warn_empty(corpus: Corpus, source: str | PathLike) -> None:
    """Say how many rows hold nothing; they are kept, so that row numbers stay as they were."""
    empty = int(np.count_nonzero(corpus.offsets[1:] == corpus.offsets[:-1]))
    if empty:
        warnings.warn(
            f"{source}: {empty} of {corpus.n_items} documents are empty (kept)",
            CorpusWarning,
            stacklevel=3,
        )
