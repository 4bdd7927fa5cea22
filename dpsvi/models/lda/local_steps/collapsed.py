"""The collapsed local step of LDA: stochastic CVB0 (Foulds et al. 2013) in a memory-free form.

`dpsvi.kernels.collapsed` has the equations.  There is no digamma, and word rows are read in place:
nothing is computed for each word first.
"""

from __future__ import annotations

from dpsvi.families.topics.defaults import Defaults
from dpsvi.kernels.collapsed import explain_all
from dpsvi.kernels.fold import list_words, options_of

DEFAULTS = Defaults(
    word_tokens=2.0, sweeps=7, steps=256, most=64, memory=0.2, more_sweeps=2.0,
    stream_memory=1 / 3, stream_sweeps=14,
)  # fmt: skip


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`; columns beyond the topics must hold rows of 0."""
    n = list_words(items, batch, work)
    n_words, n_columns = shared.rows.shape
    options = options_of(hyper, n_columns)
    explain_all(shared, scale, options, n_words, items, batch, work, False)
    for i in range(n):
        work.slot[work.touched[i]] = -1
    return n
