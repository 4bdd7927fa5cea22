"""Real corpora by name; and ``python -m dpsvi.datasets`` to fetch one, or to convert a file.

References
----------
.. [1] D. Newman, "Bag of Words", UCI Machine Learning Repository, 2008,
   https://doi.org/10.24432/C5ZG6P
.. [2] M. D. Lee, B. Pincombe and M. Welsh, "An empirical evaluation of models of text document
   similarity", Proceedings of the Cognitive Science Society 27, 2005.
"""

from __future__ import annotations

import argparse
import logging
from importlib.util import find_spec
from os import PathLike
from pathlib import Path

from dpsvi.corpus import Corpus, as_corpus, load_corpus
from dpsvi.corpus.cache import cache_folder
from dpsvi.corpus.stream import LineReader
from dpsvi.errors import CorpusFormatError

__all__ = ["as_corpus", "fetch_nytimes", "load_corpus", "load_lee"]

logger = logging.getLogger(__name__)

UCI_URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/bag-of-words/"
NYTIMES_FILES = ("docword.nytimes.txt.gz", "vocab.nytimes.txt")
NYTIMES_HEADER = (300_000, 102_660, 69_679_427)  # D, W, NNZ


def fetch_nytimes(folder: str | PathLike | None = None) -> Corpus:
    """Load the New York Times articles of the UCI bag-of-words collection [1]_.

    The first call downloads 223 MB and parses them, later ones map the parsed arrays. Documents
    without words, of which the collection has a few hundred, are left out and their number is
    logged.

    Parameters
    ----------
    folder : str, Path or None
        Where the two files are, or will be put; default ``downloads`` in the cache folder.

    Raises
    ------
    CorpusFormatError
        The first lines of the file are not the D, W and NNZ that the collection documents.
    OSError
        The files are neither in ``folder`` nor to be had from the archive.
    """
    folder = Path(folder) if folder else cache_folder(True) / "downloads"
    docword, vocabulary = (_fetch(name, folder) for name in NYTIMES_FILES)
    lines = LineReader(docword)
    for name, size in zip(("D", "W", "NNZ"), NYTIMES_HEADER, strict=True):
        line = lines.readline().strip()
        if line != str(size).encode():
            raise CorpusFormatError.at(
                docword,
                lines.line,
                f"header {name} of the UCI NYTimes corpus is {size}, got {line[:40]!r}; "
                "delete the file to have it fetched again",
            )
    return load_corpus(docword, vocabulary, format="uci", drop_empty=True)


def load_lee(n_min: int = 2) -> Corpus:
    """Load 300 short Australian news texts [2]_, as shipped with gensim's tests.

    Words are runs of three or more letters, in lower case, that are not in scikit-learn's list
    of English stop words.

    Parameters
    ----------
    n_min : int, at least 1
        Leave out words found in fewer documents; those found in over a quarter of them
        ("said", "australian") are always left out, since they would head every topic.

    Raises
    ------
    ImportError
        gensim, which holds the texts, is not installed.

    Examples
    --------
    >>> corpus = load_lee()
    >>> corpus.n_items
    300
    """
    gensim = find_spec("gensim")  # found, not imported: only a text file is wanted
    if gensim is None:
        raise ImportError("load_lee() reads a text file that comes with gensim: pip install gensim")
    from sklearn.feature_extraction.text import CountVectorizer

    package = Path(gensim.submodule_search_locations[0])
    text = (package / "test" / "test_data" / "lee_background.cor").read_text("utf-8")
    vectorizer = CountVectorizer(
        strip_accents="unicode",
        stop_words="english",
        token_pattern=r"\b[a-z]{3,}\b",
        min_df=n_min,
        max_df=0.25,
    )
    counts = vectorizer.fit_transform(text.splitlines())
    return as_corpus(counts, vocabulary=vectorizer.get_feature_names_out())


def main(argv: list[str] | None = None) -> None:
    """Bring a corpus into the cache and say what it holds."""
    parser = argparse.ArgumentParser(prog="python -m dpsvi.datasets", description=main.__doc__)
    parser.add_argument("corpus", help="nytimes (fetched), lee, or the path of a corpus file")
    parser.add_argument(
        "--vocabulary", default="auto", help="file of words; default: vocab.NAME.txt if there"
    )
    arguments = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    named = {"nytimes": fetch_nytimes, "lee": load_lee}
    if arguments.corpus in named:
        corpus = named[arguments.corpus]()
    else:
        corpus = load_corpus(arguments.corpus, arguments.vocabulary)
    print(f"{corpus.n_items} documents, {corpus.n_features} words, {corpus.nnz} entries, "
          f"{corpus.n_tokens:.0f} tokens")  # fmt: skip


def _fetch(name, folder):
    """Return the path of a file of the archive, downloading it if it is not in ``folder``."""
    import pooch

    try:
        # The archive publishes no checksums; the header is checked instead.
        return pooch.retrieve(UCI_URL + name, known_hash=None, fname=name, path=folder)
    except OSError as error:
        raise OSError(
            f"could not fetch {UCI_URL}{name}: {error}. Without a network, download "
            f"{' and '.join(NYTIMES_FILES)} elsewhere and put them into {folder}"
        ) from error


if __name__ == "__main__":
    main()
