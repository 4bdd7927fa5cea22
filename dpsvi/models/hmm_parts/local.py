"""The local step (44) of the hidden Markov model, and the same sweep for predictions.

The parameters are one row ``u (K) | U (K, K) | a row for each state``.  A state's row begins with
the expected number of visits to it, which is no parameter but tells where a window that begins in
the middle of a chain is likely to be; the rest are the natural parameters of its emissions
(:mod:`dpsvi.expfam.normal_wishart`, :mod:`dpsvi.expfam.categorical`).
"""

from __future__ import annotations

import math

from dpsvi.expfam import categorical, markov
from dpsvi.expfam.digamma import digamma
from dpsvi.expfam.gaussian import BLOCK, add_stats, log_densities, mirror
from dpsvi.expfam.normal_wishart import expected_log_det, to_standard
from dpsvi.jit import inline_kernel, kernel
from dpsvi.models.hmm_parts.chunk import BEGINS, chunk_of, load

GAUSSIAN, CATEGORICAL = 0, 1  # kinds of emissions


@inline_kernel
def unpack(hyper):
    """(kind, marked, floor (D,), origins (K, D), prior (columns,)) out of `hyper`.

    ``marked`` is 1 when every step of an item is preceded by its mark; without, an item is a whole
    sequence.
    """
    kind, marked, n_components, n = int(hyper[0]), int(hyper[1]), int(hyper[2]), int(hyper[3])
    floor, rest = hyper[4 : 4 + n], hyper[4 + n :]
    origins = rest[: n_components * n].reshape((n_components, n))
    return kind, marked, floor, origins, rest[n_components * n :]


@inline_kernel
def split(vector, n_components):
    """Views of u (K,), U (K, K) and the states' rows (K, width) in a vector of parameters."""
    first, square = n_components, n_components * n_components
    states = vector[first + square :]
    return (
        vector[:first],
        vector[first : first + square].reshape((n_components, n_components)),
        states.reshape((n_components, states.shape[0] // n_components)),
    )


@kernel
def expect(sums, scale, hyper, expected, visits):
    """Fill `expected`, (columns,), with all that a sweep needs of the parameters.

    In place of concentrations stand ``exp(E ln p)``, in place of the rows of states Normal-Wishart
    distributions in standard form, behind the part of ``E ln p(x | k)`` that does not depend on x,
    or ``E ln p`` of the symbols.  `sums` is (lam - prior) / scale in one vector.
    """
    kind, _, floor, origins, prior = unpack(hyper)
    n_components, n = origins.shape
    for i in range(prior.shape[0]):
        expected[i] = prior[i] + scale * sums[i]
    start, trans, states = split(expected, n_components)
    total = 0.0
    for k in range(n_components):
        visits[k] = states[k, 0]
        total += visits[k]
    for k in range(n_components):
        visits[k] = max(visits[k] / total, markov.LEAST)
    _subnormalise(start)
    for k in range(n_components):
        _subnormalise(trans[k])
        if kind == GAUSSIAN:
            component = states[k, 1:]
            to_standard(component, floor)
            constant = n * (math.log(2.0 * math.pi) + 1.0 / component[0])
            states[k, 0] = 0.5 * (expected_log_det(component, n) - constant)
        else:
            categorical.to_expected_log(states[k, 1:])


@inline_kernel
def _subnormalise(concentration):
    """Turn the concentrations of a Dirichlet distribution into ``exp(E ln p)``, in place."""
    total = 0.0
    for k in range(concentration.shape[0]):
        total += concentration[k]
    total = digamma(total)
    for k in range(concentration.shape[0]):
        concentration[k] = max(math.exp(digamma(concentration[k]) - total), markov.LEAST)


@inline_kernel
def emissions(kind, origins, states, n_steps, chunk):
    """``chunk.weight = E ln p(x_t | k)`` for the steps in the chunk."""
    if kind == CATEGORICAL:
        symbols = chunk.x.reshape(chunk.mark.shape)[:n_steps]
        categorical.log_probabilities(symbols, states, chunk.weight)
        return
    for first in range(0, n_steps, BLOCK):
        log_densities(chunk.x[first // BLOCK], states, origins, chunk.y, chunk.block)
        for i in range(min(BLOCK, n_steps - first)):
            for k in range(origins.shape[0]):
                chunk.weight[first + i, k] = chunk.block[k, i]


@kernel
def sweep(items, batch, first, hyper, marked, expected, memory, begins):
    """Posteriors and bounds of items batch[first:last], as many as fit into the memory.

    They are left there, in ``posterior`` and ``bound``.  ``pairs`` is added to; to `begins`, (K,),
    the posteriors of the first steps of sequences are added.  Returns last and the steps filled.
    """
    kind, _, _, origins, _ = unpack(hyper)
    n_components, n = origins.shape
    start, trans, states = split(expected, n_components)
    chunk = chunk_of(memory, n_components, n)
    last, n_steps = load(items, batch, first, marked, chunk)
    emissions(kind, origins, states, n_steps, chunk)
    for t in range(n_steps):
        row, top = chunk.weight[t], chunk.weight[t, 0]
        for k in range(1, n_components):
            top = max(top, row[k])
        for k in range(n_components):
            row[k] = math.exp(row[k] - top)
        chunk.shift[t] = top
    end = 0
    for i in range(first, last):
        begin = end
        length = (items.offsets[batch[i] + 1] - items.offsets[batch[i]]) // (n + marked)
        end += length
        weight, posterior = chunk.weight[begin:end], chunk.posterior[begin:end]
        mark, bound = chunk.mark[begin:end], chunk.bound[begin:end]
        inside, outside = 0, length
        while mark[inside] == 0.0:
            inside += 1
        while mark[outside - 1] == 0.0:
            outside -= 1
        message = start if mark[0] >= BEGINS else chunk.visits
        markov.forward(message, trans, weight, posterior, bound)
        markov.smooth(trans, weight, posterior, inside, outside, chunk.pairs)
        for t in range(length):
            if t < inside or t >= outside:
                bound[t] = 0.0
                posterior[t] = 0.0
            else:
                bound[t] = math.log(bound[t]) + chunk.shift[begin + t]
        if mark[0] >= BEGINS:
            for k in range(n_components):
                begins[k] += posterior[0, k]
    return last, n_steps


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`; items are sequences, the one row is always touched."""
    kind, marked, _, origins, _ = unpack(hyper)
    n_components, n = origins.shape
    expected, stats = work.expected[0], work.stats[0]
    begins, pairs, states = split(stats, n_components)
    chunk = chunk_of(work.scratch, n_components, n)
    expect(work.totals, scale, hyper, expected, chunk.visits)
    chunk.pairs[:] = 0.0
    first = 0
    while first < batch.shape[0]:
        first, n_steps = sweep(
            items, batch, first, hyper, marked, expected, work.scratch, begins
        )
        if kind == CATEGORICAL:
            symbols = chunk.x.reshape(chunk.mark.shape)[:n_steps]
            categorical.add_symbols(symbols, chunk.posterior, states)
            continue
        for begin in range(0, n_steps, BLOCK):
            for i in range(BLOCK):
                for k in range(n_components):
                    inside = begin + i < n_steps
                    chunk.block[k, i] = chunk.posterior[begin + i, k] if inside else 0.0
            add_stats(chunk.x[begin // BLOCK], chunk.block, origins, chunk.y, states)
    trans = split(expected, n_components)[1]
    for j in range(n_components):
        for k in range(n_components):
            pairs[j, k] = chunk.pairs[j, k] * trans[j, k]
    if kind == GAUSSIAN:
        mirror(states, n)
    work.touched[0] = 0
    return 1


