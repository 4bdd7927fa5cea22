"""The documents of a run: all of a corpus, or those that its labels file splits.

``NAME`` stands for all documents of ``docword.NAME.txt[.gz]``, ``NAME.split`` for those that
``labels.NAME.txt[.gz]`` divides into training and test documents.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from dpsvi.corpus import Corpus, load_corpus
from experiments.panel import corpora

SPLIT = ".split"
WORDS = 5000  # of a split corpus, as in TopMost's data: those in most training documents


def has_labels(path: Path) -> bool:
    """Whether a file of labels lies beside the corpus `path`."""
    return _labels_of(path).is_file()


def prepare(path: Path, folder: Path, split: bool) -> dict:
    """Load a corpus, write its parts into `folder` and describe it.

    Parameters
    ----------
    path : Path
    folder : Path
        Made.
    split : bool
        Train on the documents whose label begins with ``train`` or ``val``, with 5,000 words.

    Raises
    ------
    ValueError, CorpusFormatError, OSError
        The corpus or its labels cannot be read, or do not fit each other.
    """
    corpus = load_corpus(path, "auto", cache=False)
    if corpus.vocabulary is None:
        raise ValueError(f"{path.name} has no vocab file: its topics could not be read")
    folder.mkdir()
    if not split:
        corpora.save(folder, "train", corpus)
        _save_words(folder, corpus.vocabulary)
        return _described(corpus)
    labels, is_test = read_labels(_labels_of(path), corpus.n_items)
    train, test = (np.flatnonzero(part) for part in (~is_test, is_test))
    holds = np.bincount(corpus.select(train).index, minlength=corpus.n_features)
    words = np.sort(np.argsort(-holds, kind="stable")[: min(WORDS, (holds > 0).sum())])
    for part, ids in (("train", train), ("test", test)):
        X = corpus.select(ids).to_csr()[:, words]
        filled = np.flatnonzero(np.diff(X.indptr))  # a document may lose all of its words
        X = X[filled]
        X.sort_indices()
        corpora.save(folder, part, Corpus.from_csr(X))
        np.save(folder / f"{part}.labels.npy", labels[ids[filled]])
    _save_words(folder, [corpus.vocabulary[i] for i in words])
    described = _described(corpora.load(folder, "train"))
    return described | {"test_documents": corpora.load(folder, "test").n_items}


def read_labels(path: Path, n_items: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each document's label, and whether it is a test document.

    A line begins with ``train``, ``val`` or ``test`` and the label.

    Raises
    ------
    ValueError
        A line begins otherwise, or there are more or fewer lines than documents.
    """
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt") as file:
        lines = [line.split()[:2] for line in file]
    for number, line in enumerate(lines, 1):
        if len(line) < 2 or line[0] not in ("train", "val", "test"):
            raise ValueError(
                f"{path.name}:{number}: must begin with train, val or test and a label"
            )
    if len(lines) != n_items:
        raise ValueError(f"{path.name}: {len(lines)} lines for {n_items} documents")
    parts, names = np.array(lines).T
    return np.unique(names, return_inverse=True)[1], parts == "test"


def load_labels(folder: Path, part: str) -> np.ndarray | None:
    """Labels of one part; None if the corpus was not split."""
    path = folder / f"{part}.labels.npy"
    return np.load(path) if path.is_file() else None


def load_words(folder: Path) -> list[str]:
    """Words of the corpus, by their number."""
    return (folder / "words.txt").read_text("utf-8").split("\n")


def _save_words(folder, words):
    (folder / "words.txt").write_text("\n".join(words), "utf-8")


def _labels_of(path):
    return path.with_name(path.name.replace("docword.", "labels.", 1))


def _described(corpus):
    return {
        "words": corpus.n_features, "documents": corpus.n_items, "tokens": float(corpus.n_tokens),
    }  # fmt: skip
