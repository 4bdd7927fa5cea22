"""The corpus's sticks V_i, read from the expected numbers of tables.

``V_i ~ Beta(1, omega)`` and ``sigma_i(V) = V_i prod_{j<i} (1 - V_j)``; given m_i expected tables of
topic i, ``q(V_i) = Beta(1 + m_i, omega + sum_{j>i} m_j)``.  The tables are the last row of the
matrix, one column a topic; they have no prior of their own, the 1 and the omega are it.

Topics are laid on the sticks by their number of tables, the largest first.  Of all orders that one
makes the bound largest (two neighbours with m and m' tables, and r behind them, add
``-ln(omega + m' + r)``), and it costs nothing to change it: topics are sorted where sticks are
read, and never moved.
"""

from __future__ import annotations

import numpy as np

from dpsvi.expfam.stick_breaking import by_size
from dpsvi.kernels.digamma import digamma
from dpsvi.kernels.jit import inline_kernel, kernel

LEAST = 1e-12  # share of a topic; below it the numbers of the kernels would leave their range


@kernel
def count_tables(row, scale, n_topics):
    """Expected tables of every topic, float64, (n_topics,)."""
    tables = np.empty(n_topics)
    for i in range(n_topics):
        # RACE: what other threads add meanwhile, and a merge of stale updates, may show in part.
        tables[i] = max(row.dtype.type(scale) * row[i], row.dtype.type(0))
    return tables


@inline_kernel
def leave_tables_out(totals, row):
    """Column sums of the words alone, from those of all rows.

    RACE: `row` may hold what the sums were read too early to know: the steps of many batches, if
    this thread was stopped in between.  A topic of negative size would never recover.
    """
    for k in range(totals.shape[0]):
        totals[k] = max(totals[k] - row[k], 0.0)


@kernel
def sticks(tables, omega):
    """Topics in the order of the sticks, and the parameters a and b of these: (n_topics,) each."""
    order = by_size(tables)
    a, b = np.empty_like(tables), np.empty_like(tables)
    behind = omega
    for i in range(len(order) - 1, -1, -1):
        a[i], b[i] = 1.0 + tables[order[i]], behind
        behind += tables[order[i]]
    return order, a, b


@kernel
def expected_weights(tables, omega):
    """E sigma_i(V) of every topic, (n_topics,); nothing is left for topics that are not there."""
    order, a, b = sticks(tables, omega)
    weights, left = np.empty_like(tables), 1.0
    for i in range(len(order)):
        weights[order[i]] = max(left * a[i] / (a[i] + b[i]), LEAST)
        left *= b[i] / (a[i] + b[i])
    return weights / weights.sum()


@kernel
def expected_log_weights(tables, omega):
    """E ln sigma_i(V) of every topic, (n_topics,)."""
    order, a, b = sticks(tables, omega)
    logs, left = np.empty_like(tables), 0.0
    for i in range(len(order)):
        both = digamma(a[i] + b[i])
        logs[order[i]] = left + digamma(a[i]) - both
        left += digamma(b[i]) - both
    return logs
