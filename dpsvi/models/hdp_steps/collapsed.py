"""The collapsed local step: theta and beta integrated out, tables counted by their expectation.

Given the sticks, topic proportions over the T topics are a Dirichlet process on a finite set,
``theta_d ~ Dir(alpha_0 sigma(V))`` (Teh, Jordan, Beal, Blei 2006): the document's own sticks and
their truncation fall away.  With the mean of sigma(V) in its place, as in the practical collapsed
bound of Sato, Kurihara, Nakagawa (2012), a document is explained as in LDA (`dpsvi.kernels
.collapsed`), and what it tells about the sticks is its expected number of tables (Teh, Kurihara,
Welling 2008)::

    m_di = a_i E[psi(a_i + n_di) - psi(a_i)],        a_i = alpha_0 E sigma_i(V)
"""

from __future__ import annotations

from dpsvi.base import Shared
from dpsvi.jit import kernel
from dpsvi.kernels import collapsed
from dpsvi.kernels.fold import LEARN_ALPHA
from dpsvi.models.hdp_steps.sticks import ALPHA, OMEGA, count_tables, expected_weights

explain_batch = kernel(collapsed.local)


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`; the last row holds the tables."""
    rows = shared.rows
    n_words, n_columns = rows.shape[0] - 1, rows.shape[1]
    n_topics = int(hyper[:n_columns].sum())
    weights = expected_weights(
        count_tables(rows[n_words], scale, n_topics), hyper[n_columns + OMEGA]
    )
    # LDA with these alphas, whose matrix has the rows of the words only.
    own = hyper.copy()
    own[:n_topics] = hyper[n_columns + ALPHA] * weights
    own[n_columns + LEARN_ALPHA] = 1  # counts, for every topic, psi(a + n) - psi(a)
    for k in range(n_topics):
        work.totals[k] -= rows[n_words, k]
    words = Shared(rows[:n_words], shared.totals, shared.item_memory, shared.value_memory)
    before = work.tally[:n_topics].copy()
    n = explain_batch(words, scale, own, items, batch, work)
    work.touched[n] = n_words
    for k in range(n_topics):
        tables = own[k] * (work.tally[k] - before[k])
        work.stats[n, k] = tables
        work.tally[k] = before[k] + tables
    return n + 1
