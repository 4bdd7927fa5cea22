"""The collapsed local step of the HDP that keeps every token's responsibilities.

:mod:`dpsvi.kernels.responsibilities` has the equations, with the alpha that the sticks say now.
Tables change by what a document has now less what it had before, both at this alpha.
"""

from __future__ import annotations

from dpsvi.kernels.responsibilities import explain_all
from dpsvi.models.hdp.collapsed import begin, end


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`; incremental, with ``value_memory`` = columns."""
    n_words = shared.rows.shape[0] - 1
    n, options = begin(shared, scale, hyper, items, batch, work)
    explain_all(shared, scale, options, n_words, items, batch, work, True)
    return end(n, n_words, options.alpha, work)
