"""From a file to a corpus: format, vocabulary, cache and reader put together."""

from __future__ import annotations

import logging
from os import PathLike
from typing import Any

import numpy as np

from dpsvi.corpus import cache as disk
from dpsvi.corpus.container import Corpus
from dpsvi.corpus.entries import warn_empty
from dpsvi.corpus.npz import read_npz
from dpsvi.corpus.readers import (
    ReadOptions,
    detect_format,
    read_ldac,
    read_matrix_market,
    read_uci,
)
from dpsvi.corpus.vocabulary import as_vocabulary, sibling_vocabulary
from dpsvi.errors import CorpusFormatError

logger = logging.getLogger(__name__)

READERS = {"uci": read_uci, "mm": read_matrix_market, "ldac": read_ldac, "npz": read_npz}


def load_corpus(
    path: str | PathLike[str],
    vocabulary: Any = None,
    *,
    format: str = "auto",
    index_base: int | None = None,
    allow_fractional: bool = False,
    max_bytes: int | None = None,
    encoding: str = "utf-8",
    cache: bool | str | PathLike[str] = True,
    n_features: int | None = None,
    drop_empty: bool = False,
) -> Corpus:
    r"""Load a bag-of-words corpus from a file.

    The first time the text is parsed (some 10 million entries a second) and the arrays are kept
    in a cache; from then on they are mapped into memory from there. Text files may be gzip.

    Parameters
    ----------
    path : str or Path
    vocabulary : path, sequence of str, mapping, "auto" or None
        The words; see `dpsvi.corpus.vocabulary.as_vocabulary`. "auto" takes ``vocab.NAME.txt``
        beside ``docword.NAME.txt[.gz]`` where that exists.
    format : {"auto", "uci", "mm", "ldac", "npz"}
        UCI docword, Matrix Market, Blei's LDA-C, or a CSR matrix saved by
        `scipy.sparse.save_npz`; rows are documents. "auto" goes by the suffix (``.mtx``,
        ``.mm``, ``.dat``, ``.ldac``, ``.blei``, ``.npz``), else by the first line.
    index_base : {None, 0, 1}
        What the first word id (and document number) of a text file is. None: 1 for "uci" and
        "mm", 0 for "ldac".
    allow_fractional : bool
        Take counts that are not whole numbers.
    max_bytes : int or None
        Largest size, in bytes, to which compressed data may expand; default 200 times their
        size and at most 64 GiB.
    encoding : str
        Encoding of the vocabulary file.
    cache : bool, str or Path
        True for the folder named by ``DPSVI_CACHE_DIR``, else the platform's cache folder;
        False to parse each time.
    n_features : int or None
        Number of distinct words, where neither file nor vocabulary says it ("ldac"); otherwise
        it must agree with them.
    drop_empty : bool
        Leave out documents without words (their number is logged); changes row numbers.

    Returns
    -------
    Corpus

    Raises
    ------
    CorpusFormatError
        ``file:line: reason``: the file is damaged, cut short, not of this format, holds a count
        that is negative, NaN, infinite, fractional or above 2**31 - 1 or an id out of range,
        states sizes it cannot hold, or does not fit the vocabulary.
    OSError
        The file cannot be read.

    Warns
    -----
    CorpusWarning
        Documents were out of order or words repeated (sorted and summed), or documents are
        empty (kept).

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("docword.x.txt").write_text("2\n3\n3\n1 1 2\n1 3 1\n2 2 4\n")
    >>> _ = Path("vocab.x.txt").write_text("cat\ndog\ncow\n")
    >>> corpus = load_corpus("docword.x.txt", "auto", cache=False)
    >>> corpus, corpus.vocabulary
    (Corpus(n_items=2, n_features=3, nnz=3), ('cat', 'dog', 'cow'))
    """
    if index_base not in (None, 0, 1):
        raise ValueError(f"index_base must be None, 0 or 1, got {index_base!r}")
    if format not in ("auto", *READERS):
        raise ValueError(f"format must be 'auto' or one of {list(READERS)}, got {format!r}")
    if isinstance(vocabulary, str) and vocabulary == "auto":
        vocabulary = sibling_vocabulary(path)
    words = as_vocabulary(vocabulary, encoding)
    if words is not None:
        if n_features not in (None, len(words)):
            raise CorpusFormatError(
                f"the vocabulary has {len(words)} words, n_features is {n_features}"
            )
        n_features = len(words)
    options = ReadOptions(index_base, allow_fractional, max_bytes, n_features)
    kind = detect_format(path, max_bytes) if format == "auto" else format
    corpus = _read(path, kind, options, cache)
    if drop_empty:
        corpus = _without_empty(corpus, path)
    warn_empty(corpus, path)
    return Corpus(corpus.offsets, corpus.index, corpus.value, corpus.n_features, words)


def _read(path, kind, options, cache):
    """Map the corpus from the cache, or parse the file and put it there."""
    folder = disk.cache_folder(cache)
    if folder is None:
        return READERS[kind](path, options)
    how = {
        "format": kind,
        "index_base": options.index_base,
        "allow_fractional": options.allow_fractional,
        "n_features": options.n_features if kind == "ldac" else None,  # others hold their own
    }
    key = disk.content_key(path, how)
    corpus = disk.load(folder, key)
    if corpus is None or corpus.n_features != (options.n_features or corpus.n_features):
        corpus = READERS[kind](path, options)  # which also words the error of a wrong n_features
        if disk.content_key(path, how) == key:  # else the file was written to meanwhile
            corpus = disk.store(folder, key, corpus, path)
    return corpus


def _without_empty(corpus, path):
    """Leave out the rows without entries; the entries themselves stay where they are."""
    ends = corpus.offsets[1:]
    kept = ends[ends > corpus.offsets[:-1]]
    logger.info("%s: %d empty documents left out", path, corpus.n_items - len(kept))
    offsets = np.concatenate([corpus.offsets[:1], kept])
    return Corpus(offsets, corpus.index, corpus.value, corpus.n_features)
