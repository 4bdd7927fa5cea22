"""Kernels see contiguous arrays: with others the compiler makes scalar loops, two times slower."""

import os
import subprocess
import sys
from pathlib import Path

import dpsvi

_COMPILE_ALL = """
import sys, warnings

import numpy as np
from numba.core import types
from numba.core.dispatcher import Dispatcher

sys.path.insert(0, sys.argv[1])
import dpsvi, members

warnings.simplefilter("ignore")  # of fits of one pass
for name in members.names():
    member = members.get(name)
    data = member.data(np.random.default_rng(0), 40)
    member.answer(member.estimator(max_iter=1).fit(**data), data)
X = np.random.default_rng(0).poisson(1.0, (40, 20))
for topics in (dpsvi.DPSVILDA, dpsvi.DPSVIHDP):
    for step in ("collapsed", "mean_field"):
        topics(3, local_step=step, max_iter=1).fit(X).transform(X)


def arrays(kind):
    if isinstance(kind, types.Array):
        yield kind
    elif isinstance(kind, types.BaseTuple):
        for part in kind:
            yield from arrays(part)


modules = [module for name, module in sys.modules.items() if name.startswith("dpsvi")]
kernels = {k for module in modules for k in vars(module).values() if isinstance(k, Dispatcher)}
compiled = 0
for kernel in kernels:
    names = kernel.py_func.__code__.co_varnames
    for signature in kernel.signatures:
        compiled += 1
        for name, kind in zip(names, signature):
            if any(array.layout != "C" for array in arrays(kind)):
                print(f"{kernel.py_func.__module__}.{kernel.__name__}: {name} is {kind}")
print(compiled, "signatures")
"""


def test_every_kernel_is_compiled_for_contiguous_arrays(tmp_path):
    """All anew, in an empty cache: what is loaded does not tell how the kernels it calls were."""
    found = subprocess.run(
        [sys.executable, "-c", _COMPILE_ALL, str(Path(__file__).parents[1])],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}, cwd=Path(dpsvi.__file__).parents[1],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    *strided, last = found.stdout.splitlines()
    assert int(last.split()[0]) > 100
    assert strided == []
