"""Random numbers for compiled environments and agents: SplitMix64, whose state is one number.

A stream is a uint64 array of shape (1,).  Each thread, and each environment, has its own, so a
run is repeated by its seeds alone, whatever else draws at the same time.

References
----------
G. L. Steele, D. Lea, C. H. Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
"""

from __future__ import annotations

import numpy as np

from dpsvi.kernels.jit import inline_kernel, kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_11, _27, _30, _31, _32 = (np.uint64(bits) for bits in (11, 27, 30, 31, 32))


@inline_kernel
def _mixed(number):
    """The number with its bits mixed, one to one."""
    number = (number ^ (number >> _30)) * _FIRST
    number = (number ^ (number >> _27)) * _SECOND
    return number ^ (number >> _31)


@inline_kernel
def _next(random):
    """The next 64 bits of the stream."""
    random[0] += _GOLDEN
    return _mixed(random[0])


@kernel
def seed(random, number):
    """Begin the stream of seed `number`, an int; streams of neighbouring seeds share no numbers."""
    random[0] = _mixed(np.uint64(number) + _GOLDEN)


@inline_kernel
def uniform(random):
    """A float64 in [0, 1), a multiple of 2**-53."""
    return np.float64(_next(random) >> _11) * 2.0**-53


@inline_kernel
def below(random, n):
    """An int64 in 0 .. n - 1, for 0 < n < 2**32; no number is likelier by more than n / 2**32."""
    return np.int64(((_next(random) >> _32) * np.uint64(n)) >> _32)
