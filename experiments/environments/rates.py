"""Moves per second of one core: random actions, every observation read, a reset at every end."""

from __future__ import annotations

import time

import numba
import numpy as np

from dpsvi.kernels.jit import FLAGS
from dpsvi.rl import environments
from dpsvi.rl.generator import below
from experiments.environments.control import PEERS
from experiments.environments.side_by_side import GAMES, stream

COPIES = 64  # of the peer's environments that make a move together
LIMITS = (  # of what the table says
    f"gymnasium's arrays were measured with {COPIES} copies alone.  Compiled environments of "
    "others (gymnax, EnvPool, pgx) were not measured."
)


def ours(name: str):
    """A function that plays so many moves of our environment."""
    game = environments.get(name)
    reset, step, observe = game.reset, game.step, game.observe
    n_actions, limit = game.N_ACTIONS, game.LIMIT

    @numba.njit(**{**FLAGS, "cache": False})
    def play(state, observation, random, moves):
        reset(state, random)
        length, seen = 0, 0.0
        for _ in range(moves):
            reward, ended = step(state, below(random, n_actions), random)
            length += 1
            if ended or length == limit:
                reset(state, random)
                length = 0
            observe(state, observation)
            seen += reward + observation[0]
        return seen

    state = np.empty(game.N_STATE)
    observation = np.empty(int(np.prod(game.SHAPE)), np.float32)
    random = stream(0)
    play(state, observation, random, 10)  # compile
    return lambda moves: play(state, observation, random, moves)


def minatar(name: str):
    """A function that plays so many moves of a game of the package minatar."""
    from minatar.environment import Environment

    game = Environment(name)
    game.seed(0)
    actions, rng = game.minimal_action_set(), np.random.default_rng(0)

    def play(moves):
        length = 0
        for action in rng.choice(actions, moves).tolist():
            _, ended = game.act(action)
            length += 1
            if ended or length == environments.get(name).LIMIT:
                game.reset()
                length = 0
            game.state()

    return play


def gymnasium(name: str):
    """A function that plays so many moves of gymnasium's environment."""
    import gymnasium

    game = gymnasium.make(PEERS[name])
    game.reset(seed=0)
    rng = np.random.default_rng(0)

    def play(moves):
        for action in rng.integers(game.action_space.n, size=moves).tolist():
            _, _, ended, cut, _ = game.step(action)
            if ended or cut:
                game.reset()

    return play


def gymnasium_vector(name: str):
    """A function that plays so many moves of gymnasium's array of environments."""
    import gymnasium

    games = gymnasium.make_vec(
        PEERS[name], num_envs=COPIES, vectorization_mode="vector_entry_point"
    )
    games.reset(seed=0)
    rng = np.random.default_rng(0)

    def play(moves):
        for actions in rng.integers(2, size=(moves // COPIES, COPIES)):
            games.step(actions)

    return play


def entrants(name: str) -> dict:
    """Entrant -> function that plays so many moves."""
    found = {"dpsvi": ours(name)}
    if name in GAMES:
        found["minatar"] = minatar(name)
    if name in PEERS:
        found["gymnasium"] = gymnasium(name)
    if name == "cartpole":
        found[f"gymnasium, {COPIES} as arrays"] = gymnasium_vector(name)
    return found


def measure(name: str, seconds: float, repeats: int) -> dict:
    """Entrant -> moves per second of processor time, one number a repeat; they take turns."""
    moves, rates = {}, {}
    players = entrants(name)
    for entrant, play in players.items():
        moves[entrant], taken = 64, 0.0
        while taken < seconds / 4:
            moves[entrant] *= 4
            taken = _processor_seconds(play, moves[entrant])
        moves[entrant] = int(moves[entrant] * seconds / taken) // COPIES * COPIES
        rates[entrant] = []
    for _ in range(repeats):
        for entrant, play in players.items():
            n = moves[entrant]
            rates[entrant].append(n / _processor_seconds(play, n))
    return rates


def _processor_seconds(play, moves):
    before = time.process_time()
    play(moves)
    return time.process_time() - before
