"""Reader of CSR matrices saved by `scipy.sparse.save_npz`; nothing is unpickled.

An npz file is a zip archive with one ``.npy`` member for each array. The sizes that both of them
state are compared with each other, and with a limit, before an array is allocated.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from os import PathLike
from pathlib import Path

import numpy as np

from dpsvi.corpus.container import Corpus
from dpsvi.corpus.readers import ReadOptions, check_columns, check_not_empty
from dpsvi.corpus.sparse import from_sparse
from dpsvi.corpus.stream import expansion_limit
from dpsvi.errors import CorpusFormatError

_READ_HEADER = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
# What a damaged archive, or one of something else, makes its readers raise.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,
    OSError,  # it points to a place before the start of the file
    RuntimeError,  # a member is encrypted, or its compression unknown
    TypeError,
    ValueError,
)


def read_npz(path: str | PathLike, options: ReadOptions) -> Corpus:
    """Read a CSR matrix of shape (documents, words)."""
    if options.index_base:
        raise ValueError(f"index_base={options.index_base}: an npz file always counts from 0")
    limit = expansion_limit(Path(path).stat().st_size, options.max_bytes)
    with open(path, "rb") as file:
        try:
            matrix = _read_csr(file, limit)
        except _DAMAGE as error:
            raise CorpusFormatError(f"{path}: {error}") from error
    check_columns(path, matrix.shape[1], path, options)
    corpus = from_sparse(matrix, options.allow_fractional, path)
    check_not_empty(corpus.nnz, path)
    return corpus


def _read_csr(file, limit):
    from scipy.sparse import csr_array

    with zipfile.ZipFile(file) as archive:
        form = _member(archive, "format", "SU", limit).item()
        if form not in (b"csr", "csr"):
            raise ValueError(f"the matrix is stored as {form!r}, expected 'csr'")
        shape = tuple(_member(archive, "shape", "i", limit).tolist())
        data = _member(archive, "data", "iuf", limit)
        indices = _member(archive, "indices", "i", limit)
        indptr = _member(archive, "indptr", "i", limit)
    return csr_array((data, indices, indptr), shape)


def _member(archive, name, kinds, limit):
    """Return one array, after checking its dtype and that its size is what both headers say."""
    try:
        info = archive.getinfo(f"{name}.npy")
    except KeyError:
        raise ValueError(
            f"is not what scipy.sparse.save_npz writes: it holds no array {name!r}"
        ) from None
    with archive.open(info) as file:
        version = np.lib.format.read_magic(file)
        if version not in _READ_HEADER:
            raise ValueError(f"{name}: unknown npy version {version}")
        shape, _, dtype = _READ_HEADER[version](file)
        size = file.tell() + math.prod(shape) * dtype.itemsize
    if dtype.kind not in kinds:
        raise ValueError(f"{name}: dtype {dtype} is not of kind {kinds!r}")
    if size != info.file_size:
        raise ValueError(f"{name}: the header says {size} bytes, the archive {info.file_size}")
    if size > limit:
        raise ValueError(f"{name}: {size} bytes are above the limit {limit}; raise max_bytes")
    with archive.open(info) as file:
        return np.lib.format.read_array(file, allow_pickle=False)
