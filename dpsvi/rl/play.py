"""The local step of an actor-critic, compiled: play, look back, write a direction."""

from __future__ import annotations

import math

import numpy as np
from numba import from_dtype, types

from dpsvi.kernels.jit import abi, inline_kernel, kernel
from dpsvi.rl import generator
from dpsvi.rl.back_propagation import backward
from dpsvi.rl.layers import sizes
from dpsvi.rl.objectives import Q, assess, choose, derive, derive_q
from dpsvi.rl.optimizers import direct
from dpsvi.rl.templates import cuts, observe, reset, step
from dpsvi.rl.waiting import exchange

# Places in `hyper`; the description of the network follows.
GAMMA, TRACE, ENTROPY, VALUE, CLIP, OPTIMIZER, FIRST, SECOND, EPSILON = range(9)
N_GAMES, N_MOVES, STICKY, QUEUE, OBJECTIVE = range(9, 14)
LIMIT, SEED, N_STATE, N_PARAMETERS, NETWORK = range(14, 19)

# Places in what a thread keeps: steps that it made, and its stream.  The games follow, each with a
# few numbers before its state, then the queue.
MADE, RANDOM, GAMES = range(3)
AGE, LAST, OF_GAME = range(3)


@inline_kernel
def sticks(sticky, random):
    """Whether the environment repeats the last action instead."""
    return sticky > 0 and generator.uniform(random) < sticky


@inline_kernel
def parts(numbers, hyper):
    """The scratch of a local step: copies of the parameters, and all that is known of its moves."""
    net = hyper[NETWORK:]
    n_games, n = int(hyper[N_GAMES]), int(hyper[N_GAMES] * hyper[N_MOVES])
    inputs, n_actions, units, widest = sizes(net)
    n_outputs = n_actions + 1
    at = int(hyper[N_PARAMETERS])
    theta, more = numbers[:at], numbers[at:]
    x, more = more[: n * inputs], more[n * inputs :]
    hidden, more = more[: n * units], more[n * units :]
    out, more = more[: n * n_outputs], more[n * n_outputs :]
    above, more = more[: n * widest], more[n * widest :]
    at = n * widest + n_games * (units + 2)
    below, more = more[:at], more[at:]
    actions, rewards, ends, more = more[:n], more[n : 2 * n], more[2 * n : 3 * n], more[3 * n :]
    returns, transposed = more[: n * n_outputs], more[n * n_outputs :]
    return theta, x, hidden, out, above, below, actions, rewards, ends, returns, transposed


@inline_kernel
def read(flat, scale, theta):
    """``theta = scale * flat``, as far as `theta` goes."""
    s = theta.dtype.type(scale)
    for k in range(theta.shape[0]):
        theta[k] = s * flat[k]


def rollout(shared, scale, hyper, items, batch, work):
    """Template, a local step: play some moves of each game, and write where the parameters go.

    Alg. 9, lines 5 to 24 of the paper: the parameters are read once, at the beginning.  A game goes
    on where the thread's last step has left it; the item only numbers the step.  With a queue they
    are read at each move, and once more for what has waited longest.
    """
    net, objective = hyper[NETWORK:], int(hyper[OBJECTIVE])
    n_games, n_moves = int(hyper[N_GAMES]), int(hyper[N_MOVES])
    inputs, n_actions, _, _ = sizes(net)
    n, n_outputs, size = n_games * n_moves, n_actions + 1, OF_GAME + int(hyper[N_STATE])
    found = parts(work.scratch, hyper)
    theta, x, hidden, out, above, below, actions, rewards, ends, returns = found[:10]
    # RACE: other threads write to the rows meanwhile, the inconsistent reading of eq. (5).
    flat, queue = shared.rows.reshape(-1), int(hyper[QUEUE])
    read(flat, scale, theta)
    random, games = work.kept[RANDOM : RANDOM + 1].view(np.uint64), work.kept[GAMES:]
    turn = int(work.kept[MADE])
    if turn == 0:
        generator.seed(random, (int(hyper[SEED]) << 32) + int(batch[0]))
        for e in range(n_games):
            reset(games[e * size + OF_GAME : (e + 1) * size], random)
    work.kept[MADE] = turn + 1
    for t in range(n_moves):
        lo = t * n_games
        if queue > 0:
            read(flat, scale, theta)
        for e in range(n_games):
            m = lo + e
            observe(games[e * size + OF_GAME : (e + 1) * size], x[m * inputs : (m + 1) * inputs])
        assess(objective, theta, net, x, hidden, out, n, lo, lo + n_games)
        for e in range(n_games):
            m, game = lo + e, games[e * size : (e + 1) * size]
            state = game[OF_GAME:]
            action = choose(objective, out, m * n_outputs, n_actions, e, random)
            actions[m] = action
            if sticks(hyper[STICKY], random) and game[AGE] > 0:
                action = int(game[LAST])
            game[LAST] = action
            reward, ended = step(state, action, random)
            game[AGE] += 1
            cut = not ended and (cuts(state) or (hyper[LIMIT] > 0 and game[AGE] >= hyper[LIMIT]))
            if cut:  # the game would have gone on: what it was worth is in the last reward
                observe(state, above[:inputs])
                assess(objective, theta, net, above, below, returns, 1, 0, 1)
                reward += hyper[GAMMA] * returns[n_actions]
            rewards[m] = reward
            ends[m] = 1 if ended or cut else 0
            if ended or cut:
                game[AGE] = 0
                reset(state, random)
    # What the games are worth where they stand; `returns` is free until then.
    for e in range(n_games):
        observe(games[e * size + OF_GAME : (e + 1) * size], above[e * inputs : (e + 1) * inputs])
    if queue > 0:
        waiting = games[n_games * size :]
        each = waiting.shape[0] // queue
        at = (turn % queue) * each
        stand = above[: n_games * inputs]
        exchange(waiting[at : at + each], x, actions, rewards, ends, stand)
        if turn < queue:
            return 0  # nothing has waited there
        read(flat, scale, theta)
        assess(objective, theta, net, x, hidden, out, n, 0, n)
    assess(objective, theta, net, above, below, returns, n_games, 0, n_games)
    learn(shared, hyper, work)
    return shared.rows.shape[0]


@kernel
def learn(shared, hyper, work):
    """Write where the moves of :func:`rollout` say that the parameters go."""
    net, n_games = hyper[NETWORK:], int(hyper[N_GAMES])
    n, n_actions = n_games * int(hyper[N_MOVES]), sizes(net)[1]
    found = parts(work.scratch, hyper)
    theta, x, hidden, out, above, below, actions, rewards, ends, returns, transposed = found
    look_back(hyper, out, rewards, ends, returns, below, n_actions + 1)
    if hyper[OBJECTIVE] == Q:
        derive_q(out, n, n_actions, actions, returns, hyper[VALUE])
    else:
        derive(out, n, n_actions, actions, returns, hyper[ENTROPY], hyper[VALUE])
    gradient = work.stats.reshape(-1)[: theta.shape[0]]
    backward(theta, net, x, hidden, out, n, gradient, above, below, transposed)
    shrink = 1.0
    if hyper[CLIP] > 0:
        square = gradient.dtype.type(0)
        for k in range(gradient.shape[0]):
            square += gradient[k] * gradient[k]
        norm = math.sqrt(square)
        if norm > hyper[CLIP]:
            shrink = hyper[CLIP] / norm
    direct(
        int(hyper[OPTIMIZER]), gradient, shrink, shared.optimizer.reshape(-1), hyper[FIRST],
        hyper[SECOND], hyper[EPSILON],
    )  # fmt: skip
    for i in range(work.touched.shape[0]):
        work.touched[i] = i


def compile_parts(real: np.dtype) -> None:
    """Compile what takes long of what :func:`rollout` calls, for games of the interpreter."""
    shared_t, _, work_t, _ = abi(real)
    vector, vector64 = types.Array(from_dtype(real), 1, "C"), types.float64[::1]
    whole = types.int64
    assess.compile((whole, vector, vector64, vector, vector, vector, whole, whole, whole))
    learn.compile((shared_t, vector64, work_t))


@inline_kernel
def look_back(hyper, out, rewards, ends, returns, scratch, n_outputs):
    """Put into `returns` what each move was worth; it held what the games are worth at the end.

    These are the returns of generalised advantages: at ``trace = 1``, n-step returns.
    """
    n_games, n = int(hyper[N_GAMES]), rewards.shape[0]
    gamma, trace = returns.dtype.type(hyper[GAMMA]), returns.dtype.type(hyper[TRACE])
    one = returns.dtype.type(1)
    worth, follows = scratch[:n_games], scratch[n_games : 2 * n_games]
    for e in range(n_games):
        worth[e] = follows[e] = returns[e * n_outputs + n_outputs - 1]
    for lo in range(n - n_games, -1, -n_games):
        for e in range(n_games):
            m = lo + e
            mixed = trace * worth[e] + (one - trace) * follows[e]
            worth[e] = rewards[m] + gamma * (one - ends[m]) * mixed
            follows[e] = out[m * n_outputs + n_outputs - 1]
            returns[m] = worth[e]


def scratch(network, n_games: int, n_moves: int) -> int:
    """Numbers that :func:`rollout` needs besides what it keeps."""
    n, units = n_games * n_moves, sum(network.widths)
    n_outputs, widest = network.n_actions + 1, max(network.n_inputs, *network.widths, 1)
    each = network.n_inputs + units + 2 * n_outputs + 2 * widest + 3
    return network.n_parameters + n * each + n_games * (units + 2) + network.n_transposed
