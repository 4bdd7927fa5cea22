"""Workers with parameters of their own: how large their steps are to be, on CartPole.

The mean of n replicas moves by 1/n of what each of them moves.  With steps of n times the learning
rate all together move as fast as one process does, counted in moves; but a step of Adam is as
long as its rate, whatever the gradient, and a replica has to bear it.  So n times the rate stands
here beside the root of n and the rate as it is: SIMULATED, every step and exchange is executed.
The score is that of the last parameters, of 100 fresh greedy episodes.
"""

from __future__ import annotations

import math
import statistics

from dpsvi import VirtualCluster
from dpsvi.cluster.virtual import Network, Timing
from dpsvi.rl import ActorCritic
from experiments.hsa2c.runs import Runs

NODES = (1, 3, 4, 8)
LEARNING_RATES = (0.0025, 0.005, 0.01)
FACTORS = {"n": lambda n: n, "sqrt(n)": math.sqrt, "1": lambda n: 1.0}
# What plays how many games: a worker of n.  (Results are kept under the first of the two names.)
ENTRANTS = {
    "gala": ("gala, 8 games of each node", lambda n: 8),
    "paac": ("paac, 32 games of each worker", lambda n: 32),
    "paac, 32 games in all": ("paac, 32 games in all", lambda n: 32 // n),
}
EPISODES = 100


def make(runs: Runs, args) -> list[dict]:
    """A row for each entrant, n, learning rate and factor."""
    rows = []
    for entrant in ENTRANTS:
        for n in args.nodes or NODES:
            for rate in LEARNING_RATES:
                for factor, times in FACTORS.items():
                    fit = {
                        "entrant": entrant, "n": n, "step": round(rate * times(n), 6),
                        "moves": args.moves,
                    }  # fmt: skip
                    found = [runs.get(score, {**fit, "seed": s}) for s in range(args.seeds)]
                    if None not in found:
                        scores = [one["score"] for one in found]
                        rows.append({**fit, "rate": rate, "factor": factor, "scores": scores})
    return rows


def score(settings: dict) -> dict:
    """Mean return of the last parameters of a fit whose replicas step with the rate ``step``."""
    n, entrant = settings["n"], settings["entrant"]
    agent = ActorCritic(
        algorithm=entrant[:4], n_games=ENTRANTS[entrant][1](n), engine="simulated",
        learning_rate=settings["step"] / math.sqrt(n),  # a replica's step is the root times as long
        n_evaluations=1, n_episodes=1, random_state=settings["seed"],
        cluster=VirtualCluster(
            n_workers=n, timing=Timing(step=1e-4, value=0.0), seed=settings["seed"],
            network=Network(bandwidth=1.25e9, latency=1e-6),
        ),
    ).fit(settings["moves"])  # fmt: skip
    return {"score": float(agent.evaluate(EPISODES, random_state=settings["seed"]).mean())}


def table(rows: list[dict]) -> list[str]:
    """Lines of Markdown: for each n and learning rate a mean, and the worst seed, of each rule."""
    lines = [
        "Means over seeds of the last score, the worst seed in brackets; a replica steps with "
        "the learning rate times the factor.", "",
    ]  # fmt: skip
    for entrant in dict.fromkeys(row["entrant"] for row in rows):
        mine = [row for row in rows if row["entrant"] == entrant]
        lines += [
            f"{ENTRANTS[entrant][0]}; {mine[0]['moves']:,} moves, {len(mine[0]['scores'])} seeds.",
            "",
            f"| n | learning rate | {' | '.join(f'times {name}' for name in FACTORS)} |",
            "|---|---|" + "---:|" * len(FACTORS),
        ]  # fmt: skip
        for n, rate in dict.fromkeys((row["n"], row["rate"]) for row in mine):
            cells = (_cell(row) for row in mine if (row["n"], row["rate"]) == (n, rate))
            lines.append(f"| {n} | {rate:g} | {' | '.join(cells)} |")
        lines.append("")
    return lines


def _cell(row: dict) -> str:
    return f"{statistics.mean(row['scores']):.0f} ({min(row['scores']):.0f})"
