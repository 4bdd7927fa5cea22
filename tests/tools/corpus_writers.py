"""Write a matrix of counts in every file format that `load_corpus` reads."""

import gzip
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse

SUFFIX = {"uci": ".txt", "mm": ".mtx", "ldac": ".dat", "npz": ".npz"}
TEXT_FORMATS = ("uci", "mm", "ldac")


def number(value):
    """Shortest text that float32 reads back to the same value."""
    return str(int(value)) if value == int(value) else repr(float(np.float32(value)))


def write_text(matrix, fmt: str) -> bytes:
    """Return the text of a file, for a CSR matrix without empty rows at a format's mercy."""
    if fmt == "ldac":
        lines = []
        for row in range(matrix.shape[0]):
            part = slice(matrix.indptr[row], matrix.indptr[row + 1])
            pairs = zip(matrix.indices[part], matrix.data[part], strict=True)
            terms = [f"{word}:{number(count)}" for word, count in pairs]
            lines.append(" ".join([str(len(terms)), *terms]))
    else:
        coo = matrix.tocoo()
        sizes = [*matrix.shape, matrix.nnz]
        banner = ["%%MatrixMarket matrix coordinate real general", " ".join(map(str, sizes))]
        lines = banner if fmt == "mm" else [str(size) for size in sizes]
        triples = zip(coo.row, coo.col, coo.data, strict=True)
        lines += [f"{row + 1} {column + 1} {number(count)}" for row, column, count in triples]
    return "".join(f"{line}\n" for line in lines).encode()


def write(folder: Path, matrix, fmt: str, gz: bool = False) -> Path:
    """Write a CSR matrix to ``folder`` and return the path."""
    path = folder / f"corpus{SUFFIX[fmt]}{'.gz' if gz else ''}"
    if fmt == "npz":
        scipy.sparse.save_npz(path, matrix)
    else:
        text = write_text(matrix, fmt)
        path.write_bytes(gzip.compress(text, mtime=0) if gz else text)
    return path


def write_small(folder: Path, counts) -> Path:
    """Write an array of counts as the corpus *small* of a folder, and return the path."""
    path = folder / "docword.small.txt.gz"
    return write(folder, scipy.sparse.csr_array(counts), "uci", gz=True).rename(path)


def example():
    """Three documents, the second one empty, over four words, the last one unused."""
    rows = [[2, 0, 1, 0], [0, 0, 0, 0], [0, 4, 300, 0]]
    return scipy.sparse.csr_array(np.array(rows, np.float32))
