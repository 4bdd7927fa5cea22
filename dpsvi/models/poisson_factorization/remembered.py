"""The local step of incremental passes: what changed of the users' statistics since the last visit.

Of each count the shares ``phi_uik`` are kept, in 16-bit fixed point, of each user s and E[theta]:
so s_i and t (:mod:`dpsvi.models.poisson_factorization.estimator`) are sums of what is kept.  Users
who were not visited yet stand for their share of the rows that these passes began with
(:mod:`dpsvi.estimators.incremental`), so that in the first pass all rows change.
"""

from __future__ import annotations

import numpy as np

from dpsvi.base import Model
from dpsvi.kernels.jit import copy, inline_kernel
from dpsvi.kernels.poisson import explain, options_of, start_even
from dpsvi.models.poisson_factorization.local import set_up

UNIT = 65535.0  # a kept share of 1


def remembering(model: Model) -> Model:
    """The same model with this local step; it keeps s and E[theta] of users, phi of counts."""
    columns = model.shape[1]
    return model._replace(local=local, item_memory=2 * columns, value_memory=columns)


@inline_kernel
def replace(basis, ids, counts, ratio, weight, kept, stats):
    """Add ``y phi`` of one user's counts, less that of the last visit, and keep it."""
    for i in range(ids.shape[0]):
        here, row, old = basis[ids[i]], stats[ids[i]], kept[i]
        unit, part = UNIT * ratio[i] / counts[i], counts[i] / UNIT
        for k in range(row.shape[0]):
            new = np.int32(unit * weight[k] * here[k] + 0.5)
            row[k] += part * np.float64(new - np.int32(old[k]))
            old[k] = np.uint16(new)


@inline_kernel
def withdraw(share, times, n, work):
    """Take `times` a user's share of the first rows away; returns the rows touched, all of them.

    The first `n` of these are touched already, the last row is the one after them.
    """
    last, n_columns = work.slot.shape[0] - 1, work.stats.shape[1]
    n_touched = n + 1
    for i in range(last + 1):
        place = work.slot[i] if i < last else n
        if place < 0:
            place = n_touched
            work.touched[place] = i
            n_touched += 1
        row = work.stats[place]
        for k in range(n_columns):
            row[k] -= times * share[i * n_columns + k]
    return n_touched


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`; items are users."""
    options, n_columns = options_of(hyper), shared.rows.shape[1]
    n_users, n_new = items.offsets.shape[0] - 1, 0
    n, shape, size, weight, total, ratios = set_up(shared, scale, options, items, batch, work)
    for u in batch:
        start, stop = items.offsets[u], items.offsets[u + 1]
        ids, counts = work.ids[: stop - start], items.value[start:stop]
        ratio, kept = ratios[: stop - start], shared.value_memory[start:stop]
        for i in range(stop - start):
            ids[i] = work.slot[items.index[start + i]]
        last_shape = shared.item_memory[u, :n_columns]
        mean = shared.item_memory[u, n_columns:]
        n_new += mean[0] == 0
        if last_shape[0] > 0:
            copy(last_shape, shape)
        else:
            start_even(counts, options, shape)
        e = explain(work.expected, ids, counts, size, options, shape, weight, total, ratio)
        copy(shape, last_shape)
        replace(work.expected, ids, counts, ratio, weight, kept, work.stats)
        for k in range(options.n_components):
            new = shape[k] / (e + size[k])
            work.stats[n, k] += new - mean[k]
            mean[k] = new
    n_touched = n + 1
    if n_new > 0:
        n_touched = withdraw(shared.item_memory[n_users:].reshape(-1), n_new, n, work)
    for i in range(n):
        work.slot[work.touched[i]] = -1
    return n_touched
