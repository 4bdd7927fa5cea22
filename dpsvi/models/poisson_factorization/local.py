"""The local step of Poisson factorisation: what users must know of all items, then each user."""

from __future__ import annotations

from dpsvi.kernels.digamma import exp_digamma
from dpsvi.kernels.fold import add_outer, list_words
from dpsvi.kernels.jit import copy, inline_kernel, kernel
from dpsvi.kernels.poisson import explain, options_of, solve_rate, start_even


@kernel
def read_items(rows, scale, options, slot, expected, rates, shape, exposure, size):
    """One pass over all items: what the users of a step need to know of them.

    Parameters
    ----------
    slot : int32 array, (n_rows,)
        Where in `expected` the item is wanted, or -1.
    expected : float64 array, (n_slots, n_columns)
        Written: exp(E log beta) of those items.
    rates : float64 array, (n_items,)
        Written: E[eta].
    shape : float64 array, (n_columns,)
        Scratch.
    exposure, size : float64 arrays, (n_columns,)
        Written: t, and b.  Of columns that are no components 1, so that one can divide by them.
    """
    n, n_columns, n_items = options.n_components, rows.shape[1], rows.shape[0] - 1
    prior, top, base = options.items
    for k in range(n_columns):
        exposure[k] = scale * rows[n_items, k] if k < n else 1.0
        size[k] = 0.0
        shape[k] = 0.0
    for i in range(n_items):
        row = rows[i]
        for k in range(n):
            # RACE: of changes (`remembered`) a lost one can leave less than nothing.
            shape[k] = prior + max(scale * row[k], 0.0)
        e = rates[i] = solve_rate(shape, exposure, top, base)
        for k in range(n_columns):
            size[k] += shape[k] / (e + exposure[k])
        if slot[i] >= 0:
            basis = expected[slot[i]]
            for k in range(n):
                basis[k] = exp_digamma(shape[k]) / (e + exposure[k])
            for k in range(n, n_columns):
                basis[k] = 0.0
    for k in range(n, n_columns):
        size[k] = 1.0


@inline_kernel
def set_up(shared, scale, options, items, batch, work):
    """List the items of a step and read all that its users need to know of them.

    Returns
    -------
    n : int
        The items are the first n rows of ``work.touched``; the last row follows them.
    shape, size, weight, total : float64 arrays, (n_columns,)
        s and w of a user, to be written, and b; w is 0 now, and `total` scratch.
    ratios : float64 array
        Room for a number for each count of a user.
    """
    n_columns, last = shared.rows.shape[1], shared.rows.shape[0] - 1
    vectors = work.scratch[: 5 * n_columns].reshape((5, n_columns))
    # Indexed, not unpacked: numba does not see that unpacked rows are contiguous.
    shape, exposure, size = vectors[0], vectors[1], vectors[2]
    weight, total = vectors[3], vectors[4]
    rates = work.scratch[5 * n_columns : 5 * n_columns + last]
    ratios = work.scratch[5 * n_columns + last :]
    n = list_words(items, batch, work)
    read_items(shared.rows, scale, options, work.slot, work.expected, rates, shape, exposure, size)
    work.touched[n] = last
    weight[:] = 0.0
    return n, shape, size, weight, total, ratios


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`; items are users."""
    options, warm = options_of(hyper), shared.item_memory.shape[0] > 0
    n, shape, size, weight, total, ratios = set_up(shared, scale, options, items, batch, work)
    for u in batch:
        start, stop = items.offsets[u], items.offsets[u + 1]
        ids, counts = work.ids[: stop - start], items.value[start:stop]
        ratio = ratios[: stop - start]
        for i in range(stop - start):
            ids[i] = work.slot[items.index[start + i]]
        if warm and shared.item_memory[u, 0] > 0:
            copy(shared.item_memory[u], shape)
        else:
            start_even(counts, options, shape)
        e = explain(work.expected, ids, counts, size, options, shape, weight, total, ratio)
        if warm:
            copy(shape, shared.item_memory[u])
        add_outer(work.stats, ids, ratio, weight)
        for k in range(options.n_components):
            work.stats[n, k] += shape[k] / (e + size[k])
    for i in range(n):
        basis, stats = work.expected[i], work.stats[i]
        for k in range(stats.shape[0]):
            stats[k] *= basis[k]
        work.slot[work.touched[i]] = -1
    return n + 1
