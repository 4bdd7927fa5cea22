"""Leaves out packages that are loaded on the way and that no fit of LDA needs.

They are more than half of the processor time before a rank begins.  Hundreds of ranks begin in the
tests, most of them only to be killed or frozen.  To be imported before ``dpsvi``.
"""

import sys
from types import ModuleType

import numpy


class _Hollow(ModuleType):
    """A module in which every name is an empty class, which nobody uses."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


for name in ("pandas", "rich", "yaml"):  # which scikit-learn and numba load
    sys.modules[name] = None  # as if they were not installed
# Which scikit-learn must have; of scipy.stats it takes `mode` alone.
for name in ("joblib", "scipy.stats"):
    sys.modules[name] = _Hollow(name)
# scipy takes all of numpy's names, and this one is loaded when it is asked for.
sys.modules["numpy.f2py"] = numpy.f2py = ModuleType("numpy.f2py")
