"""Leaves out two packages that scikit-learn loads and no fit of LDA or of a Gaussian mixture needs.

They are half of the processor time before a rank begins: 1.3 of 2.7 s.  Hundreds of ranks begin in
the tests, most of them only to be killed or frozen.  To be imported before ``dpsvi``.
"""

import sys
from types import ModuleType

sys.modules["pandas"] = None  # as if it were not installed
sys.modules["scipy.stats"] = ModuleType("scipy.stats")  # for `mode` alone, which nobody calls
