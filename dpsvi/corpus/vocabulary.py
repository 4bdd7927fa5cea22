"""The words behind the columns: from a file, a list, or a dictionary of ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from os import PathLike
from pathlib import Path

from dpsvi.corpus.stream import read_lines
from dpsvi.errors import CorpusFormatError


def as_vocabulary(words, encoding: str = "utf-8") -> tuple[str, ...] | None:
    """Return the words in the order of their ids.

    Parameters
    ----------
    words : None, str, Path, sequence of str, or mapping
        A path is read by `read_vocabulary`. A mapping may go from word to id, from id to
        word, or be a gensim ``Dictionary``; its ids must be 0 .. n-1.
    encoding : str
        Encoding of the file.

    Raises
    ------
    CorpusFormatError
        Repeated or empty words, ids with gaps, or words in no order, as in a set.
    """
    if words is None:
        return None
    if isinstance(words, (str, PathLike)):
        return read_vocabulary(words, encoding)
    # A gensim Dictionary is a mapping too, but one that is empty until its first look-up by id.
    mapping = getattr(words, "token2id", words)
    if isinstance(mapping, Mapping):
        words = _in_order_of_id(mapping)
    if isinstance(words, Set):
        raise CorpusFormatError(f"the vocabulary must have an order, got a {type(words).__name__}")
    return _distinct(words, lambda i: f"vocabulary word {i}")


def read_vocabulary(path: str | PathLike, encoding: str = "utf-8") -> tuple[str, ...]:
    """Read one word per line; line k names column k, counted from 1.

    White space around a word is dropped, a byte-order mark too; the file may be gzip.

    Raises
    ------
    CorpusFormatError
        ``file:line: reason`` for bytes not in ``encoding``, empty and repeated words.
    """
    lines = read_lines(path, encoding)
    return _distinct((line.strip() for line in lines), lambda i: f"{path}:{i + 1}")


def sibling_vocabulary(path: str | PathLike) -> Path | None:
    """Return ``vocab.NAME.txt`` next to ``docword.NAME.txt[.gz]``, or None where absent."""
    path = Path(path)
    stem = path.name.removesuffix(".gz")
    if not stem.startswith("docword."):
        return None
    vocabulary = path.with_name("vocab." + stem.removeprefix("docword."))
    return vocabulary if vocabulary.is_file() else None


def _distinct(words: Iterable[str], place: Callable[[int], str]) -> tuple[str, ...]:
    """Return ``words`` as a tuple, refusing at ``place(i)`` whatever cannot name a column."""
    first = {}
    for i, word in enumerate(words):
        if not isinstance(word, str):
            raise CorpusFormatError(f"{place(i)}: {word!r} is not a string")
        if not word.strip():
            raise CorpusFormatError(f"{place(i)}: empty word")
        if first.setdefault(word, i) != i:
            raise CorpusFormatError(f"{place(i)}: {word!r} repeats {place(first[word])}")
    return tuple(first)


def _in_order_of_id(mapping: Mapping) -> list[str]:
    pairs = ((k, w) if isinstance(w, str) else (w, k) for k, w in mapping.items())
    by_id = dict(pairs)
    missing = next((i for i in range(len(mapping)) if i not in by_id), None)
    if missing is not None:
        raise CorpusFormatError(
            f"the vocabulary has {len(mapping)} words but none with id {missing}: ids must be "
            f"0..{len(mapping) - 1} (a gensim Dictionary: call compactify())"
        )
    return [by_id[i] for i in range(len(mapping))]
