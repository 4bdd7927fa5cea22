"""The collapsed local step: theta, beta and the assignments of tables integrated out.

Given the sticks, topic proportions over the T topics are a Dirichlet process on a finite set,
``theta_d ~ Dir(a)`` with ``a_i = alpha_0 E sigma_i(V)`` (Teh, Jordan, Beal, Blei 2006; the mean of
sigma as in Sato, Kurihara, Nakagawa 2012): the document's own sticks and their truncation fall
away, and documents are explained as LDA's are (`dpsvi.kernels.collapsed`), without their own
counts.  The sticks learn from ``m_di = a_i E[psi(a_i + n_di) - psi(a_i)]`` expected tables, where
n_di = 0, of probability ``exp(-E n_di)``, stands apart (Teh, Kurihara, Welling 2008).
"""

from __future__ import annotations

from dpsvi.kernels.collapsed import explain_all
from dpsvi.kernels.fold import Options, list_words
from dpsvi.kernels.jit import inline_kernel
from dpsvi.models.hdp.options import options_of
from dpsvi.models.hdp.sticks import count_tables, expected_weights, leave_tables_out


@inline_kernel
def begin(shared, scale, hyper, items, batch, work):
    """Give words their slots; returns their number and what documents have to know, as LDA has it.

    ``work.totals`` are then those of the words alone, and ``work.tally`` is 0.
    """
    tables_row = shared.rows[-1]
    n_columns = shared.rows.shape[1]
    options = options_of(hyper, n_columns)
    alpha = options.marks.copy()
    n = list_words(items, batch, work)
    n_topics = 0
    leave_tables_out(work.totals, tables_row)
    for k in range(n_columns):
        n_topics += alpha[k] > 0
    tables = count_tables(tables_row, scale, n_topics)
    weights = expected_weights(tables, options.omega)
    for k in range(n_topics):
        alpha[k] *= options.alpha * weights[k]
    work.tally[:] = 0
    own = Options(
        alpha, options.eta, options.tol, options.n_sweeps, alpha[:0],
        alpha[:0].reshape((0, n_columns)),
    )  # fmt: skip
    return n, own


@inline_kernel
def end(n, n_words, alpha, work):
    """Take the slots back and write the tables; returns how many rows were touched."""
    for i in range(n):
        work.slot[work.touched[i]] = -1
    work.touched[n] = n_words
    for k in range(alpha.shape[0]):
        work.stats[n, k] = alpha[k] * work.tally[k]
    return n + 1


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`; the last row holds the tables."""
    n_words = shared.rows.shape[0] - 1
    n, options = begin(shared, scale, hyper, items, batch, work)
    explain_all(shared, scale, options, n_words, items, batch, work, True)
    return end(n, n_words, options.alpha, work)
