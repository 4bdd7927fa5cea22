"""Kernels see contiguous arrays: with others the compiler makes scalar loops, two times slower."""

import importlib
import pkgutil

from numba.core import types
from numba.core.caching import IndexDataCacheFile
from numba.core.dispatcher import Dispatcher

import dpsvi


def kernels():
    """All kernels of the package that numba may write to its cache."""
    names = [module.name for module in pkgutil.walk_packages(dpsvi.__path__, "dpsvi.")]
    modules = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    return {k for module in modules for k in vars(module).values() if isinstance(k, Dispatcher)}


def signatures(kernel):
    """Types of the arguments of each version of a kernel that lies in the cache.

    What is loaded does not tell how the kernels that it calls were compiled; their files do.
    """
    index = kernel._cache._cache_file
    assert isinstance(index, IndexDataCacheFile)
    for signature, *_ in index._load_index():
        yield getattr(signature, "args", signature)


def arrays(kind):
    if isinstance(kind, types.Array):
        yield kind
    elif isinstance(kind, types.BaseTuple):
        for part in kind:
            yield from arrays(part)


def test_every_kernel_is_compiled_for_contiguous_arrays(compiled):
    """As the models compile them, and all tests that have run with these sources."""
    found, strided = 0, []
    for kernel in kernels():
        names = kernel.py_func.__code__.co_varnames
        for signature in signatures(kernel):
            found += 1
            for name, kind in zip(names, signature, strict=False):
                if any(array.layout != "C" for array in arrays(kind)):
                    strided.append(f"{kernel.py_func.__module__}.{kernel.__name__}: {name}: {kind}")
    assert found > 100
    assert strided == []
