"""The corpora of a folder, and each one's split into training and test documents."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from dpsvi.corpus import Corpus, load_corpus

SPLIT_SEED = 8
MOST_TEST, MOST_TRAINING = 1000, 30_000  # documents; a tenth of a small corpus is tested on
FEWEST_TOKENS, FEWEST_IN_TITLES = 10, 4  # of a document; the second where the median has under 10
FEWEST_DOCUMENTS = 50
_ARRAYS = ("offsets", "index", "value")
_ENDS = (".txt", ".txt.gz")


def find(folder: Path, names: Iterable[str] | None = None) -> dict[str, Path]:
    """The ``docword.NAME.txt`` and ``docword.NAME.txt.gz`` of `folder` with these names, or all.

    Raises
    ------
    ValueError
        There is none, or not one of that name.
    """
    found: dict[str, Path] = {}
    for path in sorted(folder.glob("docword.*")):
        for end in _ENDS:
            if path.name.endswith(end):
                found.setdefault(path.name.removeprefix("docword.").removesuffix(end), path)
    if not found:
        raise ValueError(f"{folder} holds no docword.NAME.txt and no docword.NAME.txt.gz")
    names = found if names is None else list(names)
    for name in names:
        if name not in found:
            raise ValueError(f"--corpora must be any of {', '.join(found)}, got {name!r}")
    return {name: path for name, path in found.items() if name in names}


def split(corpus: Corpus, most_training: int = MOST_TRAINING) -> tuple[Corpus, Corpus, int]:
    """Training documents, test documents, and how many tokens a document must have had.

    Documents of at least 10 tokens are used; of at least 4 where the median of all documents that
    are not empty is below 10, as with titles.  They are shuffled with a fixed seed, a tenth, at
    most 1,000, are test documents, and of the others at most `most_training` are trained on: the
    test documents do not depend on that number.

    Raises
    ------
    ValueError
        Fewer than 50 documents are left.
    """
    lengths = document_lengths(corpus)
    words = lengths[lengths > 0]
    titles = len(words) and np.median(words) < FEWEST_TOKENS
    fewest = FEWEST_IN_TITLES if titles else FEWEST_TOKENS
    kept = np.flatnonzero(lengths >= fewest)
    if len(kept) < FEWEST_DOCUMENTS:
        raise ValueError(
            f"{len(kept)} documents have {fewest} tokens or more, the panel needs "
            f"{FEWEST_DOCUMENTS}"
        )
    order = kept[np.random.default_rng(SPLIT_SEED).permutation(len(kept))]
    n_test = min(MOST_TEST, len(kept) // 10)
    train = order[n_test : n_test + most_training]
    return corpus.select(train), corpus.select(order[:n_test]), fewest


def document_lengths(corpus: Corpus) -> np.ndarray:
    """Tokens of each document."""
    sums = np.concatenate([[0], np.cumsum(corpus.value, dtype=np.float64)])
    return np.diff(sums[corpus.offsets])


def prepare(path: Path, most_training: int, folder: Path) -> dict:
    """Load and split a corpus, write its parts into `folder` and describe it.

    Returns
    -------
    dict
        ``words``; of the training documents ``documents``, ``entries``, ``tokens`` and
        ``median_tokens``; ``fewest_tokens``; ``test_documents``; ``all_documents`` of the file.

    Raises
    ------
    ValueError, CorpusFormatError, OSError
        The corpus cannot be read or is too small.
    """
    corpus = load_corpus(path, cache=False)
    train, test, fewest = split(corpus, most_training)
    folder.mkdir()
    save(folder, "train", train)
    save(folder, "test", test)
    return {
        "words": corpus.n_features,
        "documents": train.n_items,
        "entries": train.nnz,
        "tokens": float(train.n_tokens),
        "median_tokens": float(np.median(document_lengths(train))),
        "fewest_tokens": fewest,
        "test_documents": test.n_items,
        "all_documents": corpus.n_items,
    }


def save(folder: Path, part: str, documents: Corpus) -> None:
    """Write one part, without the words: no library needs them."""
    for name in _ARRAYS:
        np.save(folder / f"{part}.{name}.npy", getattr(documents, name))
    np.save(folder / f"{part}.n_features.npy", documents.n_features)


def load(folder: Path, part: str) -> Corpus:
    """Read one part that :func:`save` wrote."""
    arrays = [np.load(folder / f"{part}.{name}.npy") for name in _ARRAYS]
    return Corpus(*arrays, n_features=int(np.load(folder / f"{part}.n_features.npy")))
