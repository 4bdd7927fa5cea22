"""What the tests of DPSVILDA share: options, forms of the same documents, small measures."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from reference.lda import documents_of
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix

from dpsvi import DPSVILDA, as_corpus

OPTIONS = {
    "fixed priors": {"doc_topic_prior": None, "topic_word_prior": None},
    "learned priors": {"doc_topic_prior": "auto", "topic_word_prior": "auto", "max_iter": 4},
    "mean_field": {"local_step": "mean_field"},
    "sparse": {"local_step": "sparse"},
    "kept": {"keep_responsibilities": True, "max_iter": 6},
    "warm": {"warm_documents": True, "engine": "serial"},
    "validated": {"early_stopping": True, "validation_size": 0.25, "max_iter": 4},
}


def make(**options):
    defaults = dict(
        n_components=5, doc_topic_prior=None, topic_word_prior=None, batch_size=32, max_iter=3,
        random_state=0,
    )  # fmt: skip
    return DPSVILDA(**(defaults | options))


def found_statistics(work, n, shape):
    """What a local step has left in `work`, as an array of all rows and columns."""
    stats = np.zeros(shape)
    columns = work.columns[:n] if len(work.columns) else np.arange(shape[1])
    np.add.at(stats, (work.touched[:n, None], columns), work.stats[:n])
    return stats


def same(a, b):
    return np.array_equal(a.components_, b.components_)


def mass(model):
    """Tokens that the topics hold, the prior taken out."""
    prior = model.topic_word_prior_ * model.components_.size
    return model.components_.sum(dtype=np.float64) - prior


def wide(matrix):
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


def pairs(X):
    """The documents as gensim has them."""
    rows = documents_of(as_corpus(X))
    return [[(int(w), int(c)) for w, c in zip(*row, strict=True)] for row in rows]


def write_uci(X, path):
    rows, columns = X.nonzero()
    lines = [*map(str, (*X.shape, X.nnz))]
    lines += [f"{r + 1} {c + 1} {int(X[r, c])}" for r, c in zip(rows, columns, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


def mm_corpus(X, folder):
    corpora = pytest.importorskip("gensim.corpora")
    path = folder / "corpus.mm"
    corpora.MmCorpus.serialize(str(path), pairs(X))
    return corpora.MmCorpus(str(path))


FORMS = {
    "csr_matrix": lambda X, folder: csr_matrix(X),
    "csc": lambda X, folder: csc_array(X),
    "coo": lambda X, folder: coo_array(X),
    "float32": lambda X, folder: X.astype(np.float32),
    "int64": lambda X, folder: X.astype(np.int64),
    "int32": lambda X, folder: X.astype(np.int32),
    "uint8": lambda X, folder: X.astype(np.uint8),
    "64-bit indices": lambda X, folder: wide(csr_matrix(X)),
    "explicit zeros": lambda X, folder: with_zeros(X),
    "dense": lambda X, folder: X.toarray(),
    "dense Fortran float32": lambda X, folder: np.asfortranarray(X.toarray(), np.float32),
    "dense int": lambda X, folder: X.toarray().astype(int),
    "lists": lambda X, folder: X.toarray().tolist(),
    "DataFrame": lambda X, folder: pd.DataFrame(X.toarray()),
    "named DataFrame": lambda X, folder: frame(X),
    "polars": lambda X, folder: pl.DataFrame(X.toarray(), [f"w{i}" for i in range(X.shape[1])]),
    "Corpus": lambda X, folder: as_corpus(X),
    "gensim list": lambda X, folder: pairs(X),
    "gensim generator": lambda X, folder: (document for document in pairs(X)),
    "gensim file": mm_corpus,
    "path": lambda X, folder: write_uci(X, folder / "docword.x.txt"),
    "str": lambda X, folder: str(write_uci(X, folder / "docword.x.txt")),
}


def frame(X):
    return pd.DataFrame(X.toarray(), columns=[f"w{i}" for i in range(X.shape[1])])


def with_zeros(X):
    row, column = [0, 0], np.flatnonzero(X.toarray()[0] == 0)[:2]
    return csr_array(X + coo_array(([0.0, 0.0], (row, column)), X.shape))
