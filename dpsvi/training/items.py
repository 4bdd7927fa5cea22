"""Items handled as a whole: counted, chosen from, made of dense rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from dpsvi.base import Items
from dpsvi.kernels.jit import as_items, kernel

_BLOCKS, _BLOCK = 64, 4096  # of numbers that tell arrays apart
# Each number counts by its place, between 1 and 2, so that another order is noticed.
_BY_PLACE = 1 + np.arange(_BLOCK) * (np.sqrt(5) - 1) / 2 % 1
_NUMBERS = int, float, np.number, np.bool_
_ROUNDING = 1e-6  # of a sum of absolute values: another type, or processor, of the same data


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


def fingerprint(items: Items) -> dict[str, Any]:
    """What tells these items from others, also from others of the same sizes, as JSON can hold it.

    Of large arrays it is made of 64 blocks that are spread over all: they may lie on a disk.
    """
    digest = hashlib.sha256()
    for array in (items.offsets, items.index):
        digest.update(f"{len(array)} ".encode())
        for block in _blocks(array):
            digest.update(block.tobytes())
    blocks = [_numbers(block) for block in _blocks(items.value)]
    return {
        "n_items": count(items), "n_values": len(items.value), "structure": digest.hexdigest(),
        "sums": [float(block @ _BY_PLACE[: len(block)]) for block in blocks],
        "sizes": [float(np.abs(block).sum()) for block in blocks],
    }  # fmt: skip


def are_equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two of :func:`fingerprint` are of the same items, but for rounding."""
    if any(one[key] != other[key] for key in ("n_items", "n_values", "structure")):
        return False
    apart = np.abs(np.subtract(one["sums"], other["sums"]))
    return bool((apart <= _ROUNDING * np.array(one["sizes"])).all())


def digest_names(*several: Iterable) -> str | None:
    """What tells names from others, or labels, also in another order; None where there are none.

    Numbers are the same of whatever type they are, and so are their hashes.
    """
    names = [
        f"number {hash(name)}" if isinstance(name, _NUMBERS) else str(name)
        for names in several for name in names
    ]  # fmt: skip
    listed = "\n".join(names).encode("utf-8", "replace")
    return hashlib.sha256(listed).hexdigest() if names else None


def _blocks(array: np.ndarray) -> list[np.ndarray]:
    """Parts of an array, of all of it where it is small."""
    size = min(len(array), _BLOCK)
    n = min(_BLOCKS, -(-len(array) // max(1, size)))
    return [array[i : i + size] for i in np.linspace(0, len(array) - size, n).astype(int)]


def _numbers(block: np.ndarray) -> np.ndarray:
    """Values that can be summed; a missing one, NaN, is a number that others hardly are."""
    return np.nan_to_num(block.astype(np.float64), nan=np.pi)


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
