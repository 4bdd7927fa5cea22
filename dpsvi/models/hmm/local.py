"""The local step (44) of the hidden Markov model, and the same sweep for predictions.

The parameters are one row ``u (K) | U (K, K) | a row for each state``.  A state's row begins with
the expected number of visits to it, which is no parameter but tells where a window that begins in
the middle of a chain is likely to be; the rest are the natural parameters of its emissions
(:mod:`dpsvi.families.mixtures.components`, :mod:`dpsvi.expfam.categorical`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpsvi.expfam import by_dimension, categorical
from dpsvi.expfam.gaussian import BLOCK, add_stats, log_densities, mirror
from dpsvi.families.mixtures.components import standardise
from dpsvi.kernels.digamma import digamma
from dpsvi.kernels.jit import inline_kernel, kernel, naming_kernel, template
from dpsvi.models.hmm import markov
from dpsvi.models.hmm.chunk import BEGINS, INSIDE, ZERO, chunk_of, load

GAUSSIAN, CATEGORICAL = 0, 1  # kinds of emissions


class Options(NamedTuple):
    """What the local step knows besides the parameters: ``Model.hyper``."""

    kind: int  # of emissions
    marked: int  # 1: every step of an item has a mark before it; 0: an item is a whole sequence
    n_components: int  # K
    n_features: int  # D
    floor: np.ndarray  # (D,)
    origins: np.ndarray  # (K, D)
    prior: np.ndarray  # (columns,)


@naming_kernel
def options_of(hyper):
    """Name what :func:`dpsvi.kernels.hyper.pack` made of :class:`Options`."""
    kind, marked, n_components, n = int(hyper[0]), int(hyper[1]), int(hyper[2]), int(hyper[3])
    floor, rest = hyper[4 : 4 + n], hyper[4 + n :]
    origins = rest[: n_components * n].reshape((n_components, n))
    return Options(kind, marked, n_components, n, floor, origins, rest[n_components * n :])


@naming_kernel
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

    In place of concentrations stand ``exp(E ln p)``, in place of the rows of states Gaussian
    components in standard form, behind the part of ``E ln p(x | k)`` that does not depend on x, or
    ``E ln p`` of the symbols.  `sums` is (lam - prior) / scale in one vector.
    """
    options = options_of(hyper)
    kind, n_components = options.kind, options.n_components
    floor, prior = options.floor, options.prior
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
        states[k, 0] = 0.0
        if kind == CATEGORICAL:
            categorical.to_expected_log(states[k, 1:])
    if kind == GAUSSIAN:
        standardise(states, floor)


@inline_kernel
def _subnormalise(concentration):
    """Turn the concentrations of a Dirichlet distribution into ``exp(E ln p)``, in place."""
    total = 0.0
    for k in range(concentration.shape[0]):
        total += concentration[k]
    total = digamma(total)
    for k in range(concentration.shape[0]):
        concentration[k] = max(math.exp(digamma(concentration[k]) - total), markov.LEAST)


class Weights(NamedTuple):
    """What a sweep needs of the parameters."""

    kind: int
    origins: np.ndarray  # (K, D)
    start: np.ndarray  # pi~, (K,)
    trans: np.ndarray  # A~, (K, K)
    states: np.ndarray  # of the emissions, see `expect`, (K, width)
    visits: np.ndarray  # (K,), sums to 1


@kernel
def emissions(weights, n_steps, chunk, gaps):
    """``chunk.weight = E ln p(x_t | k)`` for the steps in the chunk.

    `gaps` is None, or a number where points may miss coordinates: another kernel, for its type.
    """
    if weights.kind == CATEGORICAL:
        symbols = chunk.x.reshape(chunk.mark.shape)[:n_steps]
        categorical.log_probabilities(symbols, weights.states, chunk.weight)
        return
    origins, block = weights.origins, chunk.block
    for first in range(0, n_steps, BLOCK):
        if gaps is None:
            log_densities(chunk.x[first // BLOCK], weights.states, origins, chunk.y, block)
        else:
            by_dimension.log_densities(chunk.x[first // BLOCK], weights.states, origins, block)
        for i in range(min(BLOCK, n_steps - first)):
            for k in range(origins.shape[0]):
                chunk.weight[first + i, k] = block[k, i]


@kernel
def sweep(items, batch, first, marked, weights, chunk, gaps, begins, pairs):
    """Posteriors and bounds of items batch[first:last], as many as fit into the chunk.

    They are left there.  The posteriors of the first steps of sequences are added to `begins`,
    (K,), and to ``pairs * trans``, (K, K), the expected transitions.  Returns last and the steps
    that were visited.
    """
    n_components, n = weights.origins.shape
    last, n_steps = load(items, batch, first, marked, chunk)
    emissions(weights, n_steps, chunk, gaps)
    for t in range(n_steps):
        row, top = chunk.weight[t], chunk.weight[t, 0]
        for k in range(1, n_components):
            top = max(top, row[k])
        for k in range(n_components):
            row[k] = math.exp(row[k] - top)
        chunk.shift[t] = top
    end = ZERO
    for i in range(first, last):
        begin = end
        end += (items.offsets[batch[i] + 1] - items.offsets[batch[i]]) // (n + marked)
        _visit(begin, end, weights, chunk, begins, pairs)
    return last, n_steps


@inline_kernel
def _visit(begin, end, weights, chunk, begins, pairs):
    """Forward and backward over one item, which has the steps begin:end of the chunk."""
    weight, posterior = chunk.weight[begin:end], chunk.posterior[begin:end]
    first, last = begin, end  # of what counts
    while not int(chunk.mark[first]) & INSIDE:
        first += 1
    while not int(chunk.mark[last - 1]) & INSIDE:
        last -= 1
    starts = chunk.mark[begin] >= BEGINS
    message = weights.start if starts else weights.visits
    markov.forward(message, weights.trans, weight, posterior, chunk.bound[begin:end])
    markov.smooth(weights.trans, weight, posterior, first - begin, last - begin, pairs)
    for t in range(begin, end):
        counts = first <= t < last
        chunk.bound[t] = math.log(chunk.bound[t]) + chunk.shift[t] if counts else 0.0
        if not counts:
            for k in range(weights.start.shape[0]):
                chunk.posterior[t, k] = 0.0
    if starts:
        for k in range(weights.start.shape[0]):
            begins[k] += chunk.posterior[begin, k]


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`; items are sequences, the one row is always touched."""
    return _step(scale, hyper, items, batch, work, None)


def local_with_gaps(shared, scale, hyper, items, batch, work):
    """The same for points that may miss coordinates."""
    return _step(scale, hyper, items, batch, work, 1)


def changes(shared, scale, hyper, items, batch, work):
    """The same as :func:`local` for passes that remember statistics, and give their changes."""
    return _change(shared.item_memory, scale, hyper, items, batch, work, None)


def changes_with_gaps(shared, scale, hyper, items, batch, work):
    """The same for points that may miss coordinates."""
    return _change(shared.item_memory, scale, hyper, items, batch, work, 1)


@template
def _step(scale, hyper, items, batch, work, gaps):
    options, chunk, weights = _read(scale, hyper, work)
    add(items, batch, options.marked, weights, chunk, gaps, work.stats[0])
    work.touched[0] = 0
    return 1


@template
def _change(memory, scale, hyper, items, batch, work, gaps):
    options, chunk, weights = _read(scale, hyper, work)
    add_changes(memory, items, batch, options.marked, weights, chunk, gaps, work.stats[0])
    work.touched[0] = 0
    return 1


@template
def _read(scale, hyper, work):
    options = options_of(hyper)
    chunk = chunk_of(work.scratch, *options.origins.shape)
    expect(work.totals, scale, hyper, work.expected[0], chunk.visits)
    start, trans, states = split(work.expected[0], options.n_components)
    weights = Weights(options.kind, options.origins, start, trans, states, chunk.visits)
    return options, chunk, weights


@kernel
def add(items, batch, marked, weights, chunk, gaps, row):
    """Add the statistics of the items in `batch` to `row`, (columns,), which is 0."""
    kind, trans, n = weights.kind, weights.trans, weights.origins.shape[1]
    begins, pairs, stats = split(row, trans.shape[0])
    first = ZERO
    while first < batch.shape[0]:
        first, n_steps = sweep(items, batch, first, marked, weights, chunk, gaps, begins, pairs)
        count(kind, weights.origins, n_steps, chunk, gaps, stats)
    for j in range(trans.shape[0]):
        for k in range(trans.shape[0]):
            pairs[j, k] *= trans[j, k]
    if gaps is None and kind == GAUSSIAN:
        mirror(stats, n)


@kernel
def add_changes(memory, items, batch, marked, weights, chunk, gaps, row):
    """Add what changed of the items' statistics since their last visit to `row`, (columns,).

    `memory` keeps them, and behind them what stands for an item that was not visited yet, of which
    it keeps 0 (:mod:`dpsvi.estimators.incremental`).
    """
    for i in range(batch.shape[0]):
        kept, known = memory[batch[i]], 0.0
        for j in range(row.shape[0]):
            known += abs(kept[j])
        old = kept if known > 0 else memory[items.offsets.shape[0] - 1]
        for j in range(row.shape[0]):
            row[j] -= old[j]
            kept[j] = 0.0
        add(items, batch[i : i + 1], marked, weights, chunk, gaps, kept)
        for j in range(row.shape[0]):
            row[j] += kept[j]


@inline_kernel
def count(kind, origins, n_steps, chunk, gaps, stats):
    """Add the statistics of the emissions in the chunk."""
    if kind == CATEGORICAL:
        symbols = chunk.x.reshape(chunk.mark.shape)[:n_steps]
        categorical.add_symbols(symbols, chunk.posterior, stats)
        return
    for first in range(0, n_steps, BLOCK):
        for i in range(BLOCK):
            t = first + i
            for k in range(origins.shape[0]):
                chunk.block[k, i] = chunk.posterior[t, k] if t < n_steps else 0.0
        if gaps is None:
            add_stats(chunk.x[first // BLOCK], chunk.block, origins, chunk.y, stats)
        else:
            by_dimension.add_stats(chunk.x[first // BLOCK], chunk.block, origins, stats)
