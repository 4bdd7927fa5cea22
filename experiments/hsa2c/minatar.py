"""MinAtar after ten million moves: the score of the last parameters, beside gymnax's agents.

One thread, two layers.  The learning rate and the weight of the entropy are a game's own, chosen
by hand from a few pairs, on seed 50 and on seed 0, which is one of those that are scored.  There
are two scores, each of 100 fresh episodes: with actions that are drawn, as gymnax's agents draw
theirs, and with greedy ones, which nothing of gymnax stands beside.
"""

from __future__ import annotations

import os
import statistics
import time
from importlib import import_module
from types import SimpleNamespace

from dpsvi.rl import ActorCritic
from experiments.hsa2c.runs import Runs
from experiments.hsa2c.table import EPISODES, interval

MOVES = 10_000_000
SETTINGS = {
    "breakout": {"learning_rate": 0.005, "entropy": 0.1},
    "space_invaders": {"learning_rate": 0.005, "entropy": 0.1},
    "asterix": {"learning_rate": 0.002, "entropy": 0.01},
    "freeway": {"learning_rate": 0.002, "entropy": 0.01},
}
# Scores of one agent each, trained by PPO for 10 M moves (github.com/RobertTLange/gymnax-blines);
# its evaluation draws actions (`pi.sample` in utils/ppo.py, `RolloutManager.select_action_ppo`).
GYMNAX = {"breakout": 22.9, "space_invaders": 131.6, "asterix": 15.0, "freeway": 58.8}
GYMNAX_LIMIT = 1000  # moves of an episode; Freeway ends by itself
STICKY = 0.1  # of the games' authors
RULES = ("gymnax's", "sticky actions")


def make(runs: Runs, args) -> list[dict]:
    """A row for each game and its rules."""
    rows = []
    for rules in RULES:
        for game in SETTINGS:
            told = {"game": game, "rules": rules, "moves": MOVES}
            found = [runs.get(score, {**told, "seed": seed}) for seed in range(args.seeds)]
            rows.append({**told, "results": [one for one in found if one is not None]})
    return [row for row in rows if row["results"]]


def score(settings: dict) -> dict:
    """Mean returns of the last parameters, processor seconds, load."""
    game = settings["game"]
    module = import_module(f"dpsvi.rl.environments.{game}")
    environment = SimpleNamespace(**{k: v for k, v in vars(module).items() if k[:2] != "__"})
    sticky = 0.0 if settings["rules"] == RULES[0] else STICKY
    if not sticky and environment.LIMIT:
        environment.LIMIT = GYMNAX_LIMIT
    agent = ActorCritic(
        environment, hidden=(128,), engine="serial", n_evaluations=1, n_episodes=1, sticky=sticky,
        random_state=settings["seed"], **SETTINGS[game],
    ).fit(1_000)  # compiles
    load, began = os.getloadavg()[0], time.process_time()
    agent.fit(settings["moves"])
    seconds = time.process_time() - began
    returns = {
        name: float(agent.evaluate(EPISODES, greedy=greedy, random_state=settings["seed"]).mean())
        for name, greedy in (("score", True), ("drawn", False))
    }
    return {**returns, "seconds": seconds, "moves": agent.n_moves_, "load": load}


def table(rows: list[dict]) -> list[str]:
    """Lines of Markdown, a table for each set of rules."""
    lines = []
    for rules in dict.fromkeys(row["rules"] for row in rows):
        lines += [
            f"Rules: {rules}.  Over seeds: means with intervals of 95 %, and medians.", "",
            "| game | seeds | actions drawn | median | gymnax, drawn | greedy | median "
            "| worst seed | processor seconds |",
            "|---|---|---:|---:|---:|---:|---:|---:|---:|",
        ]  # fmt: skip
        for row in (row for row in rows if row["rules"] == rules):
            found = row["results"]
            drawn, greedy = ([one[key] for one in found] for key in ("drawn", "score"))
            seconds = statistics.mean(one["seconds"] for one in found)
            theirs = GYMNAX[row["game"]] if rules == RULES[0] else "-"
            lines.append(
                f"| {row['game']} | {len(found)} | {_summary(drawn)} | {theirs} "
                f"| {_summary(greedy)} | {min(greedy):.1f} | {seconds:.0f} |"
            )
        lines.append("")
    return [*lines, "gymnax's agents, cited, are single ones, trained by PPO; they draw actions."]


def _summary(scores: list[float]) -> str:
    """Two cells: the mean with its interval, and the median."""
    mean, half = interval(scores)
    return f"{mean:.1f} +- {half:.1f} | {statistics.median(scores):.1f}"
