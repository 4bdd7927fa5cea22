"""Numbers as bfloat16, the upper half of a float32."""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from dpsvi.kernels.jit import FLAGS


@register_jitable(**FLAGS, no_cfunc_wrapper=True, forceinline=True)
def rounded(bits):
    """The upper halves of the nearest bfloat16 numbers, as int32, of float32's bits, int32.

    In kernels of one number, else of an array.  A carry out of the mantissa is the right next
    exponent.
    """
    odd = (bits >> np.int32(16)) & np.int32(1)
    return (bits + np.int32(0x7FFF) + odd) >> np.int32(16)
