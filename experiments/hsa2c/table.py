"""Table 2: algorithms side by side after as many moves, and what survives of the paper's rows.

Those with workers are simulated, four of them on the paced cluster with a link of 1 Gbit/s, and
the seconds are its; one thread is a worker of it that sends nothing, and PA3C and GA3C are two
threads of this machine.  The learning rate of each is chosen from the same grid with another seed;
that of stable-baselines3 is its own.  The score is that of the last parameters, of 100 fresh greedy
episodes.  The master of HSA2C has no momentum here.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

from scipy import stats

from dpsvi.rl import ActorCritic
from dpsvi.rl.algorithms import ALGORITHMS
from experiments.hsa2c import paced, stable_baselines
from experiments.hsa2c.runs import Runs

WORKERS = 4
LEARNING_RATES = (0.01, 0.005, 0.002, 0.001)
TUNING_SEED = 100
EPISODES = 100
HIDDEN = {"cartpole": (64, 64), "breakout": (128,)}


def _mean(n: int) -> dict:
    """Options of a master that moves by the mean of its n workers."""
    return {"strategy": "momentum", "strategy_options": {"momentum": 0.0}, "global_rate": 1 / n}


def _displacement(n: int) -> dict:
    return {"strategy": "displacement", "global_rate": 1 / n}


def _named(strategy: str) -> Callable[[int], dict]:
    return lambda n: {"strategy": strategy}


# Every entrant has its algorithm's number of games, and what is said here; then the options of a
# cluster of n workers, if there are some.
ENTRANTS: dict[str, tuple[dict, Callable[[int], dict] | None]] = {
    "A2C, one thread": ({"algorithm": "hsa2c", "engine": "serial"}, None),
    "HSA2C, B = 16": ({"algorithm": "hsa2c", "local_steps": 16}, _mean),
    "HSA2C, B = 1": ({"algorithm": "hsa2c", "local_steps": 1}, _mean),
    "HSA2C, B = 1, synchronous": (
        {"algorithm": "hsa2c", "local_steps": 1}, _named("local_sgd"),
    ),
    "PA3C": ({"algorithm": "pa3c", "engine": "threads", "n_jobs": 2}, None),
    "GA3C": ({"algorithm": "ga3c", "engine": "threads", "n_jobs": 2}, None),
    "PAAC": ({"algorithm": "paac"}, _named("local_sgd")),
    "GALA": ({"algorithm": "gala"}, _named("gala")),
    "DA3C": ({"algorithm": "da3c", "n_games": 4}, _displacement),
}  # fmt: skip
GAMES = ("Pong", "Boxing", "Seaquest", "Space Invaders", "Amidar", "Qbert")
LOST, ABSENT = "lost", "not given"
# What is known of the paper's rows; numbers with a question mark are from memory, unchecked.
PAPER = {
    **{f"HSA2C, {n} nodes": [LOST] * 6 for n in (20, 30, 40, 60)},
    "DDRL A3C (Adamski et al. 2018)": ["20", "98", "1832", "650", ABSENT, ABSENT],
    "GA3C (Babaeizadeh et al. 2017)": ["18?", "92?", "1706?", LOST, "218?", "14966?"],
    "BA3C (Adamski et al. 2017)": [LOST, ABSENT, LOST, LOST, ABSENT, ABSENT],
    "A3C, one day (Mnih et al. 2016)": ["11?", "34?", "2300?", "2215?", "284?", "13752?"],
}


def make(runs: Runs, args) -> list[dict]:
    """A row for each environment and entrant; the last are of a peer, run if it is installed."""
    rows = []
    for environment in args.environments.split(","):
        rows += ours(runs, environment, args)
        for entrant in stable_baselines.entrants(environment):
            told = {"environment": environment, "moves": args.moves}
            if entrant != stable_baselines.NAME:  # whose runs are kept without its name
                told["entrant"] = entrant
            found = [
                runs.get(stable_baselines.peer, {**told, "seed": s}, stable_baselines.installed())
                for s in range(args.seeds)
            ]  # fmt: skip
            found = [one for one in found if one is not None]
            rows.append({**told, "entrant": entrant, "results": found})
    return rows


def ours(runs: Runs, environment: str, args) -> list[dict]:
    """A row for each entrant of our own."""
    rows = []
    for entrant, (more, options) in ENTRANTS.items():
        settings = {
            "environment": environment, "entrant": entrant, "moves": args.moves,
            "n_games": games(more, 1 if options is None else WORKERS),
        }  # fmt: skip
        tried = [
            (runs.get(score, {**settings, "seed": TUNING_SEED, "learning_rate": rate}), rate)
            for rate in LEARNING_RATES
        ]  # fmt: skip
        tried = [(found["score"], rate) for found, rate in tried if found is not None]
        if not tried:
            continue
        settings["learning_rate"] = max(tried)[1]
        found = [runs.get(score, {**settings, "seed": seed}) for seed in range(args.seeds)]
        rows.append({**settings, "results": [one for one in found if one is not None]})
    return [row for row in rows if row["results"]]


def games(more: dict, n: int) -> int:
    """Games that each agent of an entrant plays at once, with n workers."""
    return more.get("n_games") or ALGORITHMS[more["algorithm"]].games(n)


def score(settings: dict) -> dict:
    """Mean return of the last parameters, moves, seconds."""
    more, options = ENTRANTS[settings["entrant"]]
    hidden = HIDDEN[settings["environment"]]
    agent = ActorCritic(
        settings["environment"], hidden=hidden, learning_rate=settings["learning_rate"],
        n_evaluations=1, n_episodes=1, random_state=settings["seed"],
        **{**more, "n_games": settings["n_games"]},
    )  # fmt: skip
    moves = agent.n_games * agent.n_moves
    if options is not None:
        size = paced.exchange_bytes(settings["environment"], hidden)
        cluster = paced.cluster(
            WORKERS, moves, "1 Gbit/s", size, seed=settings["seed"], **options(WORKERS)
        )
        agent.set_params(engine="simulated", cluster=cluster)
    agent.fit(settings["moves"])
    seconds = agent.history_[-1]["seconds"]
    return {
        "score": float(agent.evaluate(EPISODES, random_state=settings["seed"]).mean()),
        "moves": agent.n_moves_,
        "seconds": agent.n_moves_ / paced.MOVES_A_SECOND if agent.engine == "serial" else seconds,
    }  # fmt: skip


def interval(values: list[float]) -> tuple[float, float]:
    """Mean and half of its interval of 95 %, by Student's t."""
    n, half = len(values), math.nan
    if n > 1:
        half = stats.t.ppf(0.975, n - 1) * statistics.stdev(values) / math.sqrt(n)
    return statistics.mean(values), float(half)


def clock(entrant: str) -> str:
    """Whose seconds those of an entrant are."""
    if entrant not in ENTRANTS or ENTRANTS[entrant][0].get("engine") == "threads":
        return "this machine"
    return "the paced cluster"


def table(rows: list[dict]) -> list[str]:
    """Lines of Markdown: our algorithms for each environment, then the paper's rows."""
    lines = [
        "Seconds of the paced cluster are virtual (1,500 moves a second each node); those of this "
        "machine cannot be compared with them.  The master of HSA2C has no momentum here; "
        "synchronous HSA2C is DDRL's form of A3C: all workers wait for the mean.", "",
    ]  # fmt: skip
    for environment in dict.fromkeys(row["environment"] for row in rows):
        mine = [row for row in rows if row["environment"] == environment]
        lines += [
            f"{environment}, {mine[0]['moves']:,} moves; means over seeds, intervals of 95 %.", "",
            "| algorithm | seeds | score | seconds | of | learning rate |",
            "|---|---|---:|---:|---|---:|",
        ]  # fmt: skip
        lines += [*map(_line, mine), ""]
    lines += [
        "The paper's Table 2, scores.  Its own are lost; it says that they are the best, after 22 "
        "minutes on average.  Those of others are of their own papers, with ? from memory.", "",
        f"| | {' | '.join(GAMES)} |", "|---|" + "---:|" * len(GAMES),
    ]  # fmt: skip
    lines += [f"| {name} | {' | '.join(cells)} |" for name, cells in PAPER.items()]
    return lines


def _line(row: dict) -> str:
    if not row["results"]:
        return f"| {row['entrant']} | not run | - | - | - | - |"
    mean, half = interval([found["score"] for found in row["results"]])
    seconds = statistics.mean(found["seconds"] for found in row["results"])
    rate = f"{row['learning_rate']:g}" if "learning_rate" in row else row["results"][0]["settings"]
    return (
        f"| {row['entrant']} | {len(row['results'])} | {mean:.1f} +- {half:.1f} | {seconds:.1f} "
        f"| {clock(row['entrant'])} | {rate} |"
    )
