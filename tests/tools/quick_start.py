"""Leaves out packages that are loaded on the way and that no fit of LDA or of a mixture needs.

They are more than half of the processor time before a rank begins.  Hundreds of ranks begin in the
tests, most of them only to be killed or frozen.  To be imported before ``dpsvi``.
"""

import sys
from types import ModuleType

import numpy

for name in ("pandas", "rich"):  # which scikit-learn loads
    sys.modules[name] = None  # as if they were not installed
sys.modules["scipy.stats"] = ModuleType("scipy.stats")  # for `mode` alone, which nobody calls
# scipy takes all of numpy's names, and this one is loaded when it is asked for.
sys.modules["numpy.f2py"] = numpy.f2py = ModuleType("numpy.f2py")
