"""From entries in the order of a file to rows in order: growing arrays, then one corpus."""

from __future__ import annotations

import re
import sys
import warnings
from os import PathLike

import numpy as np

from dpsvi.corpus.container import Corpus
from dpsvi.errors import CorpusFormatError, CorpusWarning, RepeatedCorpusWarning

MAX_VALUE = 2**31 - 1
_GROWTH = 4
_ENTRY_BYTES = 4  # the shortest entry a parser accepts is " 1:1"
_PASSED_BY = {"dpsvi", "sklearn", "joblib"}  # between the data's owner and this module
_warned_of: set[tuple[str, str]] = set()  # sources, and what was said of them


class Entries:
    """Row, column and value of each entry, in arrays that grow as they fill up.

    Growing, and not trusting the size that a header declares, keeps the memory in proportion to
    what has been read. Pages not yet written cost nothing, hence the large factor.
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
                grown = np.empty(max(needed, _GROWTH * len(old)), old.dtype)
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
        """Return the first ``n`` entries as a corpus; no more can be added.

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
        del self.rows  # freed before sorting may need the room
        if rows_in_order:
            offsets = np.searchsorted(rows, np.arange(shape[0] + 1, dtype=np.int32))
            del rows
            if canonical:
                return Corpus(offsets, columns, values, shape[1])
            from scipy.sparse import csr_array

            matrix = csr_array((values, columns, offsets), shape)
        else:
            from scipy.sparse import coo_array

            matrix = coo_array((values, (rows, columns)), shape).tocsr()
        corpus = merge_repeated(matrix, source)
        # The order of words within a document means nothing, and lda-c's own files have any.
        if not rows_in_order or corpus.nnz < n:
            repeated = n - corpus.nnz
            warn(source, f"documents out of order or words repeated: sorted, {repeated} summed")
        return corpus


def merge_repeated(matrix, source: str | PathLike) -> Corpus:
    """Sort the rows of a CSR matrix and sum repeated entries, both in place."""
    matrix.sum_duplicates()
    if matrix.nnz and matrix.data.max() > np.float32(MAX_VALUE):
        raise CorpusFormatError(f"{source}: the counts of a repeated entry sum to over 2**31 - 1")
    return Corpus.from_csr(matrix)


def warn(source: str | PathLike, message: str) -> None:
    """Issue a `CorpusWarning` at the line, outside of dpsvi, that brought the data in.

    A process says the same of the same source once, counts aside.  The filters of Python cannot see
    to that: they forget what was shown whenever anybody uses `warnings.catch_warnings`.  Whatever
    comes again is therefore of a category that is hidden unless another filter is for it.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _PASSED_BY:
        frame, level = frame.f_back, level + 1
    matter = str(source), re.sub(r"\d+", "", message)
    category = RepeatedCorpusWarning if matter in _warned_of else CorpusWarning
    _warned_of.add(matter)
    # Each time: `catch_warnings` forgets filters, too.
    warnings.simplefilter("ignore", RepeatedCorpusWarning, append=True)
    warnings.warn(f"{source}: {message}", category, stacklevel=level)


def warn_empty(corpus: Corpus, source: str | PathLike, left_out: bool = False) -> None:
    """Say how many rows hold nothing; they are kept, so that row numbers stay as they were.

    It may be that words of theirs were `left_out`, since no vocabulary has them.
    """
    empty = int(np.count_nonzero(corpus.offsets[1:] == corpus.offsets[:-1]))
    if empty:
        why = " or have no word of the vocabulary" if left_out else ""
        warn(source, f"{empty} of {corpus.n_items} documents are empty{why} (kept)")
