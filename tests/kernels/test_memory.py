"""Where arrays begin, and that they hold what they should."""

import numpy as np
import pytest

from dpsvi.kernels.memory import aligned, as_aligned


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 5), (7, 16), (1000, 112)])
def test_aligned_arrays_are_zero_and_begin_on_a_line(shape, real):
    for array in [aligned(shape, real) for _ in range(5)]:
        assert array.shape == shape and array.dtype == real and array.flags.c_contiguous
        assert array.ctypes.data % 64 == 0 and not array.any()


def test_what_is_aligned_is_not_copied():
    array = aligned((3, 4), np.float32)
    assert as_aligned(array) is array
    odd = np.arange(13, dtype=np.float32)[1:].reshape(3, 4)
    copy = as_aligned(odd if odd.ctypes.data % 64 else array[:, 1:])
    assert copy.ctypes.data % 64 == 0
    assert as_aligned(np.asfortranarray(array)).flags.c_contiguous
