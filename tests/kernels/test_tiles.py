"""Products of small matrices."""

import numpy as np
import pytest

from dpsvi.kernels.tiles import add_product


@pytest.mark.parametrize("rows, columns, inner", [(1, 16, 1), (4, 32, 7), (7, 19, 5), (9, 3, 4)])
@pytest.mark.parametrize("turned", [False, True])
def test_products_are_those_of_numpy(rows, columns, inner, turned):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(rows, inner)), rng.normal(size=(inner, columns))
    y = rng.normal(size=(rows, columns)).astype(np.float32)
    want = y + a @ b
    given = np.ascontiguousarray(a.T if turned else a, np.float32).ravel()
    steps = (1, rows) if turned else (inner, 1)
    add_product(given, *steps, b.astype(np.float32).ravel(), y.reshape(-1), rows, columns, inner)
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)
