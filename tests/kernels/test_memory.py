"""Where arrays begin, and that they hold what they should."""

import re
from pathlib import Path

import numpy as np
import pytest

from dpsvi.kernels.memory import aligned, as_aligned, untouched


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


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="only Linux tells")
def test_what_is_not_written_to_takes_no_memory():
    """Every eighth item of 16 KiB: less than a fifth of 256 MiB, where large pages would be all."""

    def resident():
        text = Path("/proc/self/smaps_rollup").read_text()
        return 1024 * int(re.search(r"Rss:\s+(\d+)", text)[1])

    before = resident()
    array = untouched((2**20, 128), np.uint16)
    assert array.flags.writeable and array.flags.c_contiguous and array.ctypes.data % 64 == 0
    for first in range(0, 2**20, 8 * 64):
        array[first : first + 64] = 1
    assert resident() - before < array.nbytes / 5
    assert array.sum(dtype=np.int64) == array.size / 8
    assert untouched((0, 4), np.uint16).shape == (0, 4)
