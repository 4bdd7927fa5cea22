"""The New York Times articles of the UCI bag-of-words collection.

References
----------
.. [1] D. Newman, "Bag of Words", UCI Machine Learning Repository, 2008,
   https://doi.org/10.24432/C5ZG6P
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from dpsvi.corpus import Corpus, load_corpus
from dpsvi.corpus.cache import cache_folder
from dpsvi.corpus.stream import LineReader
from dpsvi.errors import CorpusFormatError

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
