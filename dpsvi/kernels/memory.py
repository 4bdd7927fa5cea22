"""Arrays that start on a cache line, and arrays of which little is used."""

from __future__ import annotations

import mmap

import numpy as np

_LINE = 64  # bytes


def aligned(shape: tuple[int, int], real) -> np.ndarray:
    """Matrix of zeros that starts on a cache line.

    Then a row of 16 numbers, or a multiple of it, lies in as few lines as it can, and no vector
    load straddles two.  It is written here, because numpy asks for large pages only for what it
    does not get zeroed from the system.
    """
    n_bytes = shape[0] * shape[1] * np.dtype(real).itemsize
    raw = np.empty(n_bytes + _LINE, np.uint8)
    start = -raw.ctypes.data % _LINE
    array = raw[start : start + n_bytes].view(real).reshape(shape)
    array.fill(0)
    return array


def as_aligned(array: np.ndarray) -> np.ndarray:
    """`array`, or a copy of it that starts on a cache line."""
    if array.ctypes.data % _LINE == 0 and array.flags.c_contiguous:
        return array
    copy = aligned(array.shape, array.dtype)
    copy[...] = array
    return copy


def untouched(shape: tuple[int, int], dtype) -> np.ndarray:
    """Matrix of zeros that takes memory where it is written to, a small page at a time.

    NumPy asks for large pages, of which a process that uses one item in ten would use all.
    """
    if not hasattr(mmap, "MADV_NOHUGEPAGE") or not min(shape):
        return np.zeros(shape, dtype)
    n_bytes = shape[0] * shape[1] * np.dtype(dtype).itemsize
    pages = mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, dtype).reshape(shape)
