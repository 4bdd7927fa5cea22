"""Labelled data: the digits of scikit-learn, a corpus with a file of labels, sparse or dense."""

from __future__ import annotations

import gzip

import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, normalize

COLUMNS = 200  # of documents made dense


def digits():
    """X, y, test X, test y: pixels from 0 to 1, float32, a quarter of the images for tests."""
    X, y = load_digits(return_X_y=True)
    X, test_X, y, test_y = train_test_split(
        (X / 16).astype(np.float32), y, test_size=0.25, random_state=0, stratify=y
    )
    return X, y, test_X, test_y


def corpus(path, labels):
    """The same of a UCI bag of words: ln(1 + count), rows of length 1, float32.

    A line of the file `labels`, gzipped or not, begins with ``train`` or ``test`` and, behind a
    tab, the class of the document.
    """
    from dpsvi import load_corpus

    words = load_corpus(path)
    X = csr_array(
        (np.log1p(words.value.astype(np.float32)), words.index, words.offsets.astype(np.int32)),
        (words.n_items, words.n_features),
    )
    X = normalize(X)
    with (gzip.open if str(labels).endswith(".gz") else open)(labels, "rt") as file:
        parts = [line.rstrip("\n").split("\t")[:2] for line in file]
    if len(parts) != words.n_items:
        raise ValueError(f"{labels}: {len(parts)} lines for {words.n_items} documents")
    train = np.array([part == "train" for part, _ in parts])
    y = np.unique([name for _, name in parts], return_inverse=True)[1]
    return csr_array(X[train]), y[train], csr_array(X[~train]), y[~train]


def dense(documents):
    """The same documents for a network: :data:`COLUMNS` directions of tf-idf, deviation 1, float32.

    Weights, directions and deviations are those of the training documents.
    """
    X, y, test_X, test_y = documents
    reduce = make_pipeline(
        TfidfTransformer(), TruncatedSVD(COLUMNS, random_state=0), StandardScaler()
    )
    reduced = reduce.fit_transform(X).astype(np.float32)
    return reduced, y, reduce.transform(test_X).astype(np.float32), test_y
