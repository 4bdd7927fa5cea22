"""Products of small dense matrices, compiled: ``y += a b``, without a thread of their own.

A tile of the result, 8 rows by 16 columns, stays in registers while all of the inner dimension goes
by, which the compiler does not find by itself.  With 4 rows a step waits for loads that cross lines
of the cache, as those of most parts of a longer array do.  A library of linear algebra would bring
threads of its own, beside those that play.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dpsvi.kernels.jit import kernel

_COLUMNS = 16


def _tile(n_rows: int):
    """An intrinsic for a tile of so many rows."""

    @intrinsic
    def tile(typingctx, a, first_a, row_a, inner_a, b, first_b, inner_b, y, first_y, row_y, inner):
        signature = types.void(a, *[types.int64] * 3, b, *[types.int64] * 2, y, *[types.int64] * 3)

        def codegen(context, builder, signature, args):
            a, first_a, row_a, inner_a, b, first_b, inner_b, y, first_y, row_y, inner = args
            number = ir.FloatType()
            vector = ir.VectorType(number, _COLUMNS)

            def data(place, array):
                return context.make_array(signature.args[place])(context, builder, array).data

            data_a, data_b, data_y = data(0, a), data(4, b), data(7, y)
            places = [
                builder.bitcast(
                    builder.gep(
                        data_y, [builder.add(first_y, builder.mul(row_y, row_y.type(row)))]
                    ),
                    vector.as_pointer(),
                )
                for row in range(n_rows)
            ]
            sums = [cgutils.alloca_once(builder, vector) for _ in places]
            for total, place in zip(sums, places, strict=True):
                builder.store(builder.load(place, align=4), total)
            with cgutils.for_range(builder, inner) as loop:
                at_b = builder.add(first_b, builder.mul(loop.index, inner_b))
                pointer = builder.bitcast(builder.gep(data_b, [at_b]), vector.as_pointer())
                values = builder.load(pointer, align=4)
                at_a = builder.add(first_a, builder.mul(loop.index, inner_a))
                for row, total in enumerate(sums):
                    one = builder.add(at_a, builder.mul(row_a, row_a.type(row)))
                    factor = builder.load(builder.gep(data_a, [one]))
                    wide = builder.insert_element(
                        ir.Constant(vector, ir.Undefined), factor, ir.IntType(32)(0)
                    )
                    mask = ir.Constant(ir.VectorType(ir.IntType(32), _COLUMNS), [0] * _COLUMNS)
                    wide = builder.shuffle_vector(wide, ir.Constant(vector, ir.Undefined), mask)
                    product = builder.fmul(wide, values, flags=("contract",))
                    builder.store(
                        builder.fadd(builder.load(total), product, flags=("contract",)), total
                    )
            for total, place in zip(sums, places, strict=True):
                builder.store(builder.load(total), place, align=4)
            return context.get_dummy_value()

        return signature, codegen

    return tile


_eight, _four, _one = _tile(8), _tile(4), _tile(1)


@kernel
def add_product(a, row_a, inner_a, b, y, rows, columns, inner):
    """``y += a b``, float32.

    Parameters
    ----------
    a : array
        Number (i, j) is at ``i * row_a + j * inner_a``: a matrix by rows, or by columns.
    b, y : arrays
        Of shapes (inner, columns) and (rows, columns), by rows.
    """
    wide = columns - columns % _COLUMNS
    eights, fours = rows - rows % 8, rows - rows % 4
    for k in range(0, wide, _COLUMNS):
        for i in range(0, eights, 8):
            _eight(a, i * row_a, row_a, inner_a, b, k, columns, y, i * columns + k, columns, inner)
        for i in range(eights, fours, 4):
            _four(a, i * row_a, row_a, inner_a, b, k, columns, y, i * columns + k, columns, inner)
        for i in range(fours, rows):
            _one(a, i * row_a, row_a, inner_a, b, k, columns, y, i * columns + k, columns, inner)
    if wide == columns:
        return
    for i in range(rows):
        for j in range(inner):
            factor = a[i * row_a + j * inner_a]
            for k in range(wide, columns):
                y[i * columns + k] += factor * b[j * columns + k]
