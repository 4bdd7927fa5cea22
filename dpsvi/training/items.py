"""Items handled as a whole: counted, chosen from, made of dense rows."""

from __future__ import annotations

import hashlib

import numpy as np

from dpsvi.base import Items
from dpsvi.kernels.jit import as_items, kernel

_BLOCKS, _BLOCK = 64, 4096  # of numbers that tell arrays apart


def count(items: Items) -> int:
    """Number of items."""
    return len(items.offsets) - 1


def take(items: Items, chosen) -> Items:
    """The items with these numbers, in this order."""
    chosen = np.asarray(chosen, np.int64)  # one type: a kernel is compiled for each
    offsets = np.concatenate([[0], np.cumsum(np.diff(items.offsets)[chosen])])
    value = np.empty(offsets[-1], items.value.dtype)
    index = np.empty(offsets[-1] if len(items.index) else 0, np.int32)
    _copy(items.offsets, items.value, chosen, offsets, value)
    if len(index):
        _copy(items.offsets, items.index, chosen, offsets, index)
    return as_items(offsets, index, value, value.dtype)


def fingerprint(items: Items) -> str:
    """A SHA-256 that tells these items from others, also from others of the same sizes.

    Of large arrays it is of 64 blocks that are spread over all: they may lie on a disk.
    """
    digest = hashlib.sha256()
    for array in items:
        digest.update(f"{array.dtype} {len(array)} ".encode())
        if len(array) <= _BLOCKS * _BLOCK:
            digest.update(array.tobytes())
            continue
        for first in np.linspace(0, len(array) - _BLOCK, _BLOCKS).astype(int):
            digest.update(array[first : first + _BLOCK].tobytes())
    return digest.hexdigest()


def points_and_weights(items: Items, n: int):
    """Points, (n_items, n), and weights, (n_items,), of items of n numbers or one more.

    What comes behind a point is its weight; None: nothing does, and each counts once.
    """
    rows = items.value.reshape(count(items), -1)
    return rows[:, :n], rows[:, n] if rows.shape[1] > n else None


@kernel
def _copy(offsets, source, chosen, places, target):
    for i in range(chosen.shape[0]):
        shift = offsets[chosen[i]] - places[i]
        for j in range(places[i], places[i + 1]):
            target[j] = source[j + shift]


def dense_items(X, offsets=None) -> Items:
    """Rows of X as items of dense values, one each, or ``offsets[i]:offsets[i + 1]`` to item i.

    A float64 array in C order is not copied.
    """
    offsets = np.arange(len(X) + 1) if offsets is None else np.asarray(offsets)
    flat = np.ravel(X)
    return as_items(offsets.astype(np.int64) * X.shape[1], [], flat, np.dtype(np.float64))
