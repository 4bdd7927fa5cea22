"""Hyper-parameters of a model: values with names, in one vector.

Kernels take all of them as one float64 vector, ``Model.hyper``, of one type for all models.  Each
model says once what lies where in it: a NamedTuple names the values, :func:`pack` lays them out in
that order, and a function beside the tuple gives them their names back: compiled where kernels call
it (:func:`dpsvi.kernels.jit.naming_kernel`), else as Python, which knows where arrays end.
"""

from __future__ import annotations

import numpy as np


def pack(values) -> np.ndarray:
    """The vector of a tuple of numbers and arrays, one behind the other."""
    return np.concatenate([np.ravel(value) for value in values]).astype(np.float64)
