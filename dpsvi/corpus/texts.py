"""Texts become counts: strings, which are cut into words here, or lists of words.

Strings are counted by scikit-learn's ``CountVectorizer``: words are runs of two or more letters
and digits in lower case.  From FEWEST documents on, words of one document only and words of more
than half of all are left out: the first name no topic, the second head every one.  Lists of words
are counted as they are.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, ValuesView
from itertools import chain
from os import PathLike

import numpy as np

from dpsvi.errors import CorpusFormatError
from dpsvi.files.notices import notice

log = logging.getLogger(__name__)

FEWEST = 100  # documents from which on rare and common words are left out
RARE, COMMON = 2, 0.5  # documents that a word is in: at least, and the share at most
_LISTS = (list, tuple, np.ndarray)
_KINDS_OF_STRINGS = ("object", "str", "cat", "list")  # how dtypes of pandas and polars begin


def texts_of(X) -> list | None:
    """The documents of X as a list, if they are strings or lists of strings; None if not.

    Parameters
    ----------
    X : object
        A list, a tuple, a one-dimensional array, a pandas or polars column, or a data frame of
        one column.  What can be read once only is not looked at: see :func:`peek`.

    Raises
    ------
    CorpusFormatError
        A document is neither, such as a missing value or bytes, or strings and lists are mixed; or
        a data frame has a column of strings beside others.
    """
    if isinstance(X, (str, PathLike, Mapping, Iterator)) or hasattr(X, "tocsr"):
        return None
    if isinstance(X, ValuesView):
        X = list(X)
    if hasattr(X, "columns"):
        X = _column_of_texts(X)
    if not isinstance(X, (list, tuple)):
        if not hasattr(X, "__array__"):
            return None
        X = np.asarray(X)
        if X.ndim != 1 or X.dtype.kind not in "OUT":
            return None
        X = X.tolist()
    first = next(filter(_shows_kind, X), X[0] if X else None)
    if isinstance(first, bytes):
        raise CorpusFormatError(f"X: texts must be strings, got {first[:20]!r}; decode them first")
    if not is_text(first):
        return None
    strings = isinstance(first, str)
    for row, document in enumerate(X):
        if not (is_text(document) or (isinstance(document, _LISTS) and not len(document))):
            advice = "; leave it out, or pass '' for it" * (not hasattr(document, "__len__"))
            raise CorpusFormatError(
                f"X: document {row}: expected a string or a list of words, got {document!r}{advice}"
            )
        if _shows_kind(document) and isinstance(document, str) != strings:
            raise CorpusFormatError(f"X: document {row}: strings and lists of words are mixed")
    return list(X)


def _column_of_texts(frame):
    """The only column of a data frame, if it holds texts; None where there are none."""
    for k, (name, kind) in enumerate(zip(frame.columns, frame.dtypes, strict=True)):
        if not str(kind).lower().startswith(_KINDS_OF_STRINGS):
            continue
        column = (frame.iloc[:, k] if hasattr(frame, "iloc") else frame[name]).to_list()
        if is_text(next(filter(_shows_kind, column), None)):
            if len(frame.columns) == 1:
                return column
            raise CorpusFormatError(
                f"X: the data frame has {len(frame.columns)} columns, and {name!r} holds texts; "
                f"pass this column alone, as X[{name!r}]"
            )
    return None


def peek(X: Iterator) -> Iterable:
    """Return what the iterator X yields: as a list, if that are texts."""
    begun = []
    for document in X:
        begun.append(document)
        if _shows_kind(document):
            break
    X = chain(begun, X)
    return list(X) if begun and is_text(begun[-1]) else X


def is_text(document) -> bool:
    """Whether `document` is a string or a list of strings."""
    if isinstance(document, _LISTS):
        return len(document) > 0 and isinstance(document[0], str)
    return isinstance(document, str)


def count_words(texts, vocabulary=None, stop_words=None):
    """Count the words of texts.

    Parameters
    ----------
    texts : list of str, or of lists of str
        As :func:`texts_of` returns it.
    vocabulary : sequence of str or None
        The words to be counted, all others being left out; None: those of the texts.
    stop_words : str or None
        As scikit-learn's CountVectorizer has it, for texts that are strings.

    Returns
    -------
    csr_matrix of shape (n_texts, n_words), tuple of str

    Raises
    ------
    CorpusFormatError
        There is no word.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    strings = isinstance(next(filter(_shows_kind, texts), ""), str)
    options = {"stop_words": stop_words} if strings else {"analyzer": list, "lowercase": False}
    if strings and vocabulary is None and len(texts) >= FEWEST:
        options |= {"min_df": RARE, "max_df": COMMON}
    counter = CountVectorizer(vocabulary=vocabulary, **options)
    try:
        counts = counter.fit_transform(texts)
    except ValueError as error:
        raise CorpusFormatError(f"X: no words in {len(texts)} texts: {error}") from error
    except (TypeError, AttributeError) as error:
        for row, words in enumerate(texts):
            if wrong := [word for word in words if not isinstance(word, str)]:
                raise CorpusFormatError(f"X: document {row}: {wrong[0]!r} is no word") from error
        raise
    words = tuple(counter.get_feature_names_out().tolist())
    if "min_df" in options:
        notice(
            log, "%d texts: %d words, each in at least %d documents and at most half of them; "
            "vectorizer=, or --stop-words and --vocab, choose others", len(texts), len(words), RARE,
        )  # fmt: skip
    return counts, words


def _shows_kind(document) -> bool:
    """Whether `document` shows what kind all are: one that is empty or missing does not."""
    if hasattr(document, "__len__"):
        return len(document) > 0
    missing = document is None or type(document).__name__ in ("NAType", "NaTType")  # of pandas
    return not missing and document == document
