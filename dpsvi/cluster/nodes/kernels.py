"""Compiled loops over the rows of a message; each costs by the rows, never by the matrix.

Rows of a message have the columns in use alone, those of the matrix may have padding behind them.
"""

from __future__ import annotations

import numpy as np

from dpsvi.kernels.bfloat16 import rounded
from dpsvi.kernels.jit import (
    bits_from_float,
    float_from_bits,
    inline_kernel,
    kernel,
    prefetch,
)

_AHEAD = 8  # rows or items: they lie anywhere, the next ones must be on their way
_LINE, _MOST = 16, 256  # numbers in a cache line; those of an item that are asked for ahead


def load(real, items, statistics) -> None:
    """Compile the kernels, or load them, for parameters of this type: before the clock starts."""
    rows, none = np.zeros((1, 1), real), np.zeros(0, np.int32)
    values = rows[:0]
    mark_rows(items.offsets, items.index, none, np.zeros(0, np.uint8))
    for copy in (gather, scatter):
        copy(rows, none, values)
    fetch(rows, none, rows, values)
    changes(rows, none, values, values)
    add_scaled(rows, none, values, 1.0)
    any_below_zero(rows, none)
    if statistics == "bfloat16":
        short = np.zeros((0, 1), np.uint16)
        pack_bfloat16(rows, values, none, rows, short)
        merge_bfloat16(rows, none, short, 1.0)


@kernel
def mark_rows(offsets, index, items, mark):
    """Set ``mark[index]`` to 1 for all values of `items`."""
    cells = index.reshape(-1, 1)
    for i in range(items.shape[0]):
        if i + _AHEAD < items.shape[0]:
            ahead = items[i + _AHEAD]
            for j in range(offsets[ahead], min(offsets[ahead + 1], offsets[ahead] + _MOST), _LINE):
                prefetch(cells, j)
        item = items[i]
        for j in range(offsets[item], offsets[item + 1]):
            mark[index[j]] = 1


@inline_kernel
def prefetch_row(rows, touched, i):
    """Ask for the row that is wanted some rows after ``touched[i]``."""
    if i + _AHEAD < touched.shape[0]:
        prefetch(rows, np.int64(touched[i + _AHEAD]))


@kernel
def gather(rows, touched, values):
    """``values = rows[touched]``."""
    for i in range(touched.shape[0]):
        prefetch_row(rows, touched, i)
        row, value = rows[touched[i]], values[i]
        for k in range(value.shape[0]):
            value[k] = row[k]


@kernel
def scatter(rows, touched, values):
    """``rows[touched] = values``."""
    for i in range(touched.shape[0]):
        prefetch_row(rows, touched, i)
        row, value = rows[touched[i]], values[i]
        for k in range(value.shape[0]):
            row[k] = value[k]


@kernel
def fetch(source, touched, rows, values):
    """``rows[touched] = values = source[touched]``."""
    for i in range(touched.shape[0]):
        prefetch_row(source, touched, i)
        row, out, value = source[touched[i]], rows[touched[i]], values[i]
        for k in range(value.shape[0]):
            x = row[k]
            out[k] = x
            value[k] = x


@kernel
def changes(rows, touched, base, change):
    """``change = rows[touched] - base``."""
    for i in range(touched.shape[0]):
        prefetch_row(rows, touched, i)
        row, w, out = rows[touched[i]], base[i], change[i]
        for k in range(out.shape[0]):
            out[k] = row[k] - w[k]


@kernel
def add_scaled(rows, touched, delta, factor):
    """``rows[touched] += factor * delta``."""
    f = rows.dtype.type(factor)
    for i in range(touched.shape[0]):
        prefetch_row(rows, touched, i)
        row, d = rows[touched[i]], delta[i]
        for k in range(d.shape[0]):
            row[k] += f * d[k]


@kernel
def any_below_zero(rows, touched):
    """Whether a number in each of these rows is negative: bool, (n,)."""
    found = np.zeros(touched.shape[0], np.bool_)
    for i in range(touched.shape[0]):
        prefetch_row(rows, touched, i)
        row, below = rows[touched[i]], False
        for k in range(row.shape[0]):
            below |= row[k] < 0
        found[i] = below
    return found


@kernel
def merge_bfloat16(rows, touched, change, factor):
    """``rows[touched] += factor * change``, with `change` in the upper halves of float32."""
    f = rows.dtype.type(factor)
    for i in range(touched.shape[0]):
        prefetch_row(rows, touched, i)
        row, bits = rows[touched[i]], change[i]
        for k in range(bits.shape[0]):
            row[k] += f * float_from_bits(np.int32(bits[k]) << np.int32(16))


@kernel
def pack_bfloat16(rows, base, touched, residual, change):
    """``change = bfloat16(rows[touched] - base + residual)``; rounding errors are kept.

    Parameters
    ----------
    rows : float32, (n_rows, n_columns)
    base : float32, (n, columns in use)
    touched : int32, (n,)
    residual : float32, (n_rows, n_columns)
        What earlier roundings left out, in the units of the rows, which decay; updated.
    change : uint16, (n, columns in use)
        Result.
    """
    for i in range(touched.shape[0]):
        u, w, left, out = rows[touched[i]], base[i], residual[touched[i]], change[i]
        for k in range(out.shape[0]):
            x = u[k] - w[k] + left[k]
            short = rounded(bits_from_float(x))
            out[k] = np.uint16(short & np.int32(0xFFFF))
            left[k] = x - float_from_bits(short << np.int32(16))
