"""How Python meets numba: the flags, the kernel signature and some missing instructions.

`model.local` is compiled once per number type to a *typed function pointer*.  The engine's loop
receives it as an argument, so the loop is compiled and disk-cached once for all models, and the
call costs nanoseconds once per batch.  Nothing is compiled at import.
"""

from __future__ import annotations

import gc
from functools import cache

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, event
from numba.extending import intrinsic, register_jitable

from dpsvi.base import Items, Shared, ThreadMemory
from dpsvi.kernels.code_cache import can_be_kept

# 'reassoc' lets sums over topics use vector instructions, 'contract' fuses multiply and add.
# 'nnan' and 'ninf' stay out: with them the compiler may delete the checks for NaN.
# error_model='numpy': a division must not branch to raise, which would stop vectorisation.
FLAGS = {
    "nogil": True,
    "cache": can_be_kept(),
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc", "nsz", "arcp"},
}
# Nobody takes the address of these for C: without that entry point they compile faster.
kernel = numba.njit(**FLAGS, no_cfunc_wrapper=True)
inline_kernel = numba.njit(**FLAGS, no_cfunc_wrapper=True, forceinline=True)
# What several local steps are but for an argument: a part of their code, never compiled by itself.
# LLVM optimises a kernel once alone and once more in each function that it is a part of, which for
# the largest takes seconds.
template = numba.njit(**FLAGS, inline="always")


class _Uncollected(event.Listener):
    """No garbage collection while numba compiles.

    What the compiler makes lives until it is done: to look through that again and again takes an
    eighth of its time and finds nothing.
    """

    def __init__(self):
        self.depth, self.enabled = 0, False

    def on_start(self, event):
        """See the class; a function that is compiled may have others compiled."""
        if self.depth == 0:
            self.enabled = gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, event):
        """Collect again, if that was so before; also after an error of the compiler."""
        self.depth -= 1
        if self.depth == 0 and self.enabled:
            gc.enable()


event.register("numba:compile", _Uncollected())


def naming_kernel(function):
    """Decorate a function that gives values their names: compiled in kernels, else plain Python.

    Numba makes a NamedTuple for Python by running Python code, and if a signal raises there, that
    is a segmentation fault (`box_namedtuple` of numba 0.68 calls the class without a look whether
    it is there).  So no compiled function that Python calls may return one.
    """
    return register_jitable(**FLAGS, no_cfunc_wrapper=True, forceinline=True)(function)


@inline_kernel
def copy(source, target):
    """``target[:] = source``: numba would compile an error's text with that, for seconds."""
    for i in range(source.shape[0]):
        target[i] = source[i]


def _readonly(array):
    view = array.view()
    view.flags.writeable = False
    return view


def as_items(offsets, index, value, real) -> Items:
    """Wrap arrays as :class:`Items` of the one type that kernels are compiled for."""
    return Items(
        _readonly(np.ascontiguousarray(offsets, dtype=np.int64)),
        _readonly(np.ascontiguousarray(index, dtype=np.int32)),
        _readonly(np.ascontiguousarray(value, dtype=real)),
    )


def empty_arguments(real: np.dtype) -> tuple[Shared, Items, ThreadMemory]:
    """Empty arguments of a local step, of the types that it is compiled for."""
    matrix, vector = np.empty((0, 0), real), np.empty(0, real)
    vector64, ints = np.empty(0), np.empty(0, np.int32)
    matrix64, table = np.empty((0, 0)), np.empty((0, 0), np.int32)
    shared = Shared(matrix, matrix64, matrix, np.empty((0, 0), np.uint16), matrix64, matrix)
    items = as_items(np.empty(0, np.int64), ints, vector, real)
    work = ThreadMemory(
        vector64, ints, ints, matrix, matrix, vector, ints, vector64, table, vector64
    )
    return shared, items, work


@cache
def abi(real: np.dtype):
    """Numba types of (Shared, Items, ThreadMemory) and of the local step, for one number type."""
    shared_t, items_t, work_t = (numba.typeof(x) for x in empty_arguments(real))
    local_t = types.int64(
        shared_t, types.float64, types.float64[::1], items_t, types.int32[::1], work_t
    )
    return shared_t, items_t, work_t, local_t


@cache
def compile_local(function, real: np.dtype):
    """Compile a model's local step for numbers of type `real`."""
    return numba.njit(abi(real)[3], **FLAGS)(function)


@intrinsic
def fetch_add(typingctx, array, amount):
    """``old = array[0]; array[0] += amount; return old`` as one atomic instruction."""

    def codegen(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("add", data, args[1], "seq_cst")

    return types.int64(array, types.int64), codegen


@intrinsic
def float_from_bits(typingctx, bits):
    """Reinterpret an int32 as a float32."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), codegen


@intrinsic
def double_from_bits(typingctx, bits):
    """Reinterpret an int64 as a float64."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@intrinsic
def bits_from_float(typingctx, number):
    """Reinterpret a float32 as an int32."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), codegen


@intrinsic
def lowest_bit(typingctx, number):
    """Place of the lowest bit that is 1 in an int64 other than 0; the last place has number 0."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen


@intrinsic
def prefetch(typingctx, matrix, row):
    """Ask for every cache line of ``matrix[row]`` ahead of its use; no other effect."""

    def codegen(context, builder, signature, args):
        array_t = signature.args[0]
        array = context.make_array(array_t)(context, builder, args[0])
        columns = cgutils.unpack_tuple(builder, array.shape)[1]
        size = array_t.dtype.bitwidth // 8
        step = ir.Constant(columns.type, 64 // size)
        start = builder.mul(args[1], columns)
        pointer_t, i32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [pointer_t, i32, i32, i32]),
            "llvm.prefetch.p0i8",
        )
        zero = ir.Constant(columns.type, 0)
        with cgutils.for_range_slice(builder, zero, columns, step) as (k, _):
            address = builder.gep(array.data, [builder.add(start, k)])
            # 0: for reading, 3: keep in all cache levels, 1: data
            builder.call(function, [builder.bitcast(address, pointer_t), i32(0), i32(3), i32(1)])
        return context.get_dummy_value()

    return types.void(matrix, types.int64), codegen
