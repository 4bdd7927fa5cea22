"""Compiled loops over the rows of a message; each costs by the rows, never by the matrix."""

from __future__ import annotations

import numba
import numpy as np

from dpsvi.jit import (
    EXACT_FLAGS,
    bits_from_float,
    float_from_bits,
    inline_kernel,
    kernel,
    prefetch,
)

_AHEAD = 8  # rows: touched ones lie anywhere, the next must be on their way


@kernel
def mark_rows(offsets, index, items, mark):
    """Set ``mark[index]`` to 1 for all values of `items`."""
    for i in range(items.shape[0]):
        item = items[i]
        for j in range(offsets[item], offsets[item + 1]):
            mark[index[j]] = 1


@inline_kernel
def ask_ahead(rows, touched, i):
    """Ask for the row that is wanted some rows after ``touched[i]``."""
    if i + _AHEAD < touched.shape[0]:
        prefetch(rows, np.int64(touched[i + _AHEAD]))


@kernel
def gather(rows, touched, values):
    """``values = rows[touched]``."""
    for i in range(touched.shape[0]):
        ask_ahead(rows, touched, i)
        row, value = rows[touched[i]], values[i]
        for k in range(row.shape[0]):
            value[k] = row[k]


@kernel
def scatter(rows, touched, values):
    """``rows[touched] = values``."""
    for i in range(touched.shape[0]):
        ask_ahead(rows, touched, i)
        row, value = rows[touched[i]], values[i]
        for k in range(row.shape[0]):
            row[k] = value[k]


@kernel
def changes(rows, touched, base, change):
    """``change = rows[touched] - base``."""
    for i in range(touched.shape[0]):
        ask_ahead(rows, touched, i)
        row, w, out = rows[touched[i]], base[i], change[i]
        for k in range(row.shape[0]):
            out[k] = row[k] - w[k]


@numba.njit(**EXACT_FLAGS)
def merge(rows, touched, end, base, factor):
    """``rows[touched] += factor * (end - base)``.

    With factor 1, rows that are still `base` become `end` exactly: floating-point addition would
    not get there.
    """
    one = rows.dtype.type(1)
    f = rows.dtype.type(factor)
    for i in range(touched.shape[0]):
        ask_ahead(rows, touched, i)
        row, u, w = rows[touched[i]], end[i], base[i]
        if f == one:
            for k in range(row.shape[0]):
                row[k] = u[k] + (row[k] - w[k])
        else:
            for k in range(row.shape[0]):
                row[k] += f * (u[k] - w[k])


@kernel
def add_scaled(rows, touched, delta, factor):
    """``rows[touched] += factor * delta``."""
    f = rows.dtype.type(factor)
    for i in range(touched.shape[0]):
        ask_ahead(rows, touched, i)
        row, d = rows[touched[i]], delta[i]
        for k in range(row.shape[0]):
            row[k] += f * d[k]


@kernel
def merge_bfloat16(rows, touched, change, factor):
    """``rows[touched] += factor * change``, with `change` in the upper halves of float32."""
    f = rows.dtype.type(factor)
    for i in range(touched.shape[0]):
        ask_ahead(rows, touched, i)
        row, bits = rows[touched[i]], change[i]
        for k in range(row.shape[0]):
            row[k] += f * float_from_bits(np.int32(bits[k]) << np.int32(16))


@kernel
def pack_bfloat16(rows, base, touched, residual, change):
    """``change = bfloat16(rows[touched] - base + residual)``; rounding errors are kept.

    Parameters
    ----------
    rows : float32, (n_rows, n_columns)
    base : float32, (n, n_columns)
    touched : int32, (n,)
    residual : float32, (n_rows, n_columns)
        What earlier roundings left out, in the units of the rows, which decay; updated.
    change : uint16, (n, n_columns)
        Result.
    """
    for i in range(touched.shape[0]):
        u, w, left, out = rows[touched[i]], base[i], residual[touched[i]], change[i]
        for k in range(u.shape[0]):
            x = u[k] - w[k] + left[k]
            bits = bits_from_float(x)
            # To nearest; a carry out of the mantissa is the right next exponent.
            odd = (bits >> np.int32(16)) & np.int32(1)
            rounded = (bits + np.int32(0x7FFF) + odd) >> np.int32(16)
            out[k] = np.uint16(rounded & np.int32(0xFFFF))
            left[k] = x - float_from_bits(rounded << np.int32(16))
