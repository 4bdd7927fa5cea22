"""The local step of LDA that keeps every token's responsibilities.

:mod:`dpsvi.kernels.responsibilities` has the equations.
"""

from __future__ import annotations

from dpsvi.kernels.fold import list_words, options_of
from dpsvi.kernels.responsibilities import explain_all


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`; incremental, with ``value_memory`` = columns."""
    n = list_words(items, batch, work)
    n_words, n_columns = shared.rows.shape
    options = options_of(hyper, n_columns)
    explain_all(shared, scale, options, n_words, items, batch, work, False)
    for i in range(n):
        work.slot[work.touched[i]] = -1
    return n
